"""apt, the client of Debian's archives: with the machine's own settings, or with archives that a study names."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.file_lock import alone
from perftrail.model.build import content_key
from perftrail.sources.client import LONG_SECONDS, Client, client_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.ports import Starter
    from perftrail.sources.client import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Apt:
    """Runs apt's programs with options of ours; they need no right to change the machine."""

    client: Client
    options: tuple[str, ...]
    directory: Path

    def ask(
        self,
        program: str,
        *words: str,
        directory: Path | None = None,
        log: str | Path | None = None,
    ) -> Answer:
        """Run a program of apt. Raises `SourceError` when it is not installed."""
        return self.client.ask(
            [find_program(program), *self.options, *words],
            directory=directory or self.directory,
            timeout_seconds=LONG_SECONDS,
            log=log,
        )


def make_apt(starter: Starter, *, index: str | None, cache: Path) -> Apt:
    """Give an apt that knows the archives of `index`, lines as in sources.list, or else the machine's.

    Those of `index` are kept below `cache` and asked for what is new. Raises `SourceError`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    client = Client(starter=starter, environment=client_environment(without=("DEBIAN_",)))
    if index is None:
        return Apt(client=client, options=(), directory=cache)
    place = (cache / f"apt-{content_key(index)[:16]}").absolute()
    options = {
        "Dir::State": place,
        "Dir::State::status": place / "status",
        "Dir::Cache": place / "cache",
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Acquire::Languages": "none",
    }
    apt = Apt(
        client=client,
        options=tuple(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        directory=place,
    )
    with alone(cache / f"{place.name}.lock"):
        for name in ("lists/partial", "cache/archives/partial"):
            (place / name).mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        lines = [_source_line(line) for line in index.splitlines() if line.strip()]
        (place / "sources.list").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        answer = apt.ask("apt-get", "update", "-q")
    if answer.failed:
        raise SourceError(f"source.index: apt cannot read these archives: {why_apt_failed(answer)}")
    return apt


def find_program(name: str) -> str:
    """Find one of Debian's programs. Raises `SourceError` when it is not installed."""
    program = shutil.which(name)
    if program is None:
        package = "dpkg-dev" if name.startswith("dpkg-") else "apt"
        raise SourceError(
            f"{name} is not installed, which Debian's sources are had with; install {package}, on Debian or "
            "one of its kind"
        )
    return program


def why_apt_failed(answer: Answer) -> str:
    """What apt or dpkg said was the matter: its first complaint."""
    lines: Sequence[str] = [line.strip() for line in answer.errors.splitlines()]
    complaints = [line for line in lines if line.startswith("E: ") or ": error: " in line]
    told = complaints[0].removeprefix("E: ") if complaints else answer.why
    return told or answer.ended


def _source_line(line: str) -> str:
    words = line.strip()
    return words if words.startswith("deb-src") else f"deb-src {words}"
