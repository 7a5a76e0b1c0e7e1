"""The git command line, with everything off that a repository or a user's settings could make it run."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.client import QUICK_SECONDS, Client, client_environment

if TYPE_CHECKING:
    from perftrail.ports import Starter
    from perftrail.sources.client import Answer

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.git.allow=always",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.ext.allow=never",
)
"""Given as variables, which win over any repository's and any user's settings."""

_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_COMMAND")
"""Of git's own variables, those that a remote address may need; the others would change what git means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Runs git in a repository, never through a shell, a pager, a hook or a prompt."""

    client: Client
    program: str

    def ask(
        self,
        *words: str,
        repository: str | Path,
        stdin: bytes = b"",
        timeout_seconds: float = QUICK_SECONDS,
        log: str | Path | None = None,
    ) -> Answer:
        """Run one git command in a directory that is a repository or lies in one."""
        return self.client.ask(
            [self.program, "--no-pager", *words],
            directory=repository,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            log=log,
        )


def local_git(starter: Starter, *, cache: Path) -> Git:
    """Give a git that knows no settings but ours and reads repositories whoever owns them.

    Settings that name trusted directories count only in a user's own file, and only there do they reach
    the process that a clone of a path starts: so there is a file, and it is ours.
    """
    return _git(starter, _settings_file(cache, "gitconfig", "[safe]\n\tdirectory = *\n"))


def remote_git(starter: Starter, *, cache: Path) -> Git:
    """Give a git that also knows the user's settings, for the credentials and proxies of remote addresses."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    users = [settings / "git/config", Path.home() / ".gitconfig"]
    includes = "".join(f'[include]\n\tpath = "{_escaped(str(path))}"\n' for path in users)
    return _git(starter, _settings_file(cache, "gitconfig-remote", includes + "[safe]\n\tdirectory = *\n"))


def _git(starter: Starter, settings: Path) -> Git:
    program = shutil.which("git")
    if program is None:
        raise SourceError("git is not installed: install it, or choose another kind of source")
    environment = {
        **client_environment(without=("GIT_",), keep=_KEPT),
        **_settings_variables(),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
    }
    return Git(client=Client(starter=starter, environment=environment), program=program)


def _settings_variables() -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, setting in enumerate(_SETTINGS):
        name, _, value = setting.partition("=")
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _settings_file(cache: Path, name: str, text: str) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / name
    if not path.is_file() or path.read_text() != text:
        with tempfile.NamedTemporaryFile("w", dir=cache, delete=False) as ours:
            ours.write(text)
        Path(ours.name).replace(path)
    return path


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
