"""pip, the client of Python's package indexes, with the user's own settings."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.client import QUICK_SECONDS, Client, client_environment

if TYPE_CHECKING:
    from perftrail.ports import Starter
    from perftrail.sources.client import Answer

_NOT_OURS = (
    "PYTHON",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_NO_COMPILE",
    "PIP_NO_CACHE_DIR",
    "PIP_REQUIRE",
    "PIP_LOG",
    "PIP_QUIET",
    "PIP_VERBOSE",
    "PIP_DRY_RUN",
    "PIP_REPORT",
)
"""Variables that would change where and how things are installed, not from where."""

_EXCEPTION = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_EMPTY_TALK = r"subprocess-exited|metadata-generation|Ignored the following|Could not find a version"
_COMPLAINT = re.compile(rf"^\s*(?:fatal )?(?:error|ERROR): (?!{_EMPTY_TALK})(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """Runs the pip of the interpreter that runs us, from a directory where nothing can be imported."""

    client: Client
    cache: Path

    def ask(
        self, *words: str, timeout_seconds: float = QUICK_SECONDS, log: str | Path | None = None
    ) -> Answer:
        """Run one pip command. Raises `SourceError` when this interpreter has no pip."""
        answer = self.client.ask(
            [sys.executable, "-P", "-m", "pip", "--no-input", "--disable-pip-version-check", *words],
            directory=self.cache,
            timeout_seconds=timeout_seconds,
            log=log,
        )
        if answer.failed and "No module named pip" in answer.errors:
            raise SourceError(f"{sys.executable} has no pip; install it with: {sys.executable} -m ensurepip")
        return answer


def make_pip(starter: Starter, *, cache: Path) -> Pip:
    """Give a pip that keeps what it downloads and builds below `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    environment = {
        **client_environment(without=_NOT_OURS),
        "PIP_CACHE_DIR": str(cache),
        "COLUMNS": "2000",
        "NO_COLOR": "1",
    }
    return Pip(client=Client(starter=starter, environment=environment), cache=cache)


def why_pip_failed(answer: Answer) -> str:
    """The line that best tells why an installation failed: what a build raised before what pip made of it."""
    said = "\n".join([*answer.lines(), answer.errors])
    for pattern in (_EXCEPTION, _COMPLAINT):
        found = pattern.findall(said)
        if found:
            return str(found[0]).strip()
    return answer.why
