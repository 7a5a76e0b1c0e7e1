"""apt, the client of Debian's archives: with the machine's own settings, or with archives that a study names."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.file_lock import alone
from perftrail.model.build import content_key
from perftrail.sources.client import LONG_SECONDS, Client, client_environment
from perftrail.sources.ecosystems.apt_archives import lists_sources, machine_archives, named_archives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.ports import Starter
    from perftrail.sources.client import Answer


_ASKED = "asked"
"""The file beside an apt's lists whose date tells when they were had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apt:
    """Runs apt's programs with options of ours; they need no right to change the machine.

    `archives` are lists of archives by file name, which are not the machine's own: what they have is kept in
    `directory`. `named` are those of a study.
    """

    client: Client
    options: tuple[str, ...]
    directory: Path
    archives: Mapping[str, str] = field(default_factory=dict)
    named: bool = False

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

    Where the machine's apt knows of programs only, the sources of the same archives are meant. What apt knows of
    archives that are not its own is kept below `cache`. Raises `SourceError`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    find_program("apt-get")
    client = Client(starter=starter, environment=client_environment(without=("DEBIAN_",)))
    machine = Apt(client=client, options=(), directory=cache)
    if index is not None:
        return _beside(machine, named_archives(index, machine), named=True)
    if lists_sources(machine) or not (archives := machine_archives(machine)):
        return machine
    return _beside(machine, archives, named=False)


def when_asked(apt: Apt) -> str:
    """Say when archives that are not the machine's own said what they have: ISO 8601; empty when they never did."""
    try:
        seconds = (apt.directory / _ASKED).stat().st_mtime
    except FileNotFoundError:
        return ""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


def ask_archives(apt: Apt) -> None:
    """Have archives say what they have now; the machine's own lists are its own affair. Raises `SourceError`."""
    if not apt.archives:
        return
    place = apt.directory
    with alone(place.with_name(f"{place.name}.lock")):
        for name in ("lists/partial", "cache/archives/partial", "archives"):
            (place / name).mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        for name, text in apt.archives.items():
            (place / "archives" / name).write_text(text, encoding="utf-8")
        answer = apt.ask("apt-get", "update", "-q")
        # Of the machine's archives some may well have no sources: one that has them is enough.
        if answer.failed and (apt.named or not any((place / "lists").glob("*Sources*"))):
            whose = "source.index: apt cannot read these archives"
            own = "apt cannot read the sources of this machine's archives"
            raise SourceError(f"{whose if apt.named else own}: {why_apt_failed(answer)}")
        (place / _ASKED).touch()


def _beside(machine: Apt, archives: Mapping[str, str], *, named: bool) -> Apt:
    """Give an apt that knows these archives alone, lists of them by file name."""
    place = (machine.directory / f"apt-{content_key(archives)[:16]}").absolute()
    options = {
        "Dir::State": place,
        "Dir::State::status": place / "status",
        "Dir::Cache": place / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": place / "archives",
        "Acquire::Languages": "none",
    }
    return Apt(
        client=machine.client,
        options=tuple(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        directory=place,
        archives=archives,
        named=named,
    )


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
