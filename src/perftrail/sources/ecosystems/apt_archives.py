"""The archives of Debian's sources: those that a study names, or the machine's own, which rarely list sources."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.sources.ecosystems.apt_command import Apt

_OF_PROGRAMS = re.compile(r"^[ \t]*deb(?=[ \t])", re.MULTILINE)
_TYPES = re.compile(r"^Types[ \t]*:.*$", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(r"(?:deb-src\s+)?(?P<options>\[[^\]]*\]\s*)?(?P<place>.*)")


def lists_sources(apt: Apt) -> bool:
    """Whether apt is set up for any archive of sources."""
    return bool(apt.ask("apt-get", "indextargets", "--no-release-info", "Created-By: Sources").output.strip())


def machine_archives(apt: Apt) -> Mapping[str, str]:
    """Give the machine's own lists of archives, by file name, as if they asked for sources instead of programs."""
    told = apt.ask(
        "apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"
    )
    said = dict(word.split("=", 1) for word in shlex.split(told.output.decode(errors="replace")))
    parts = Path(said.get("PARTS", ""))
    files = [Path(said.get("LIST", "")), *(sorted(parts.iterdir()) if parts.is_dir() else [])]
    return {
        each.name: asked
        for each in files
        if each.suffix in (".list", ".sources") and each.is_file()
        if (asked := _asking_for_sources(each.read_text(encoding="utf-8", errors="replace"), each.suffix))
    }


def named_archives(index: str, machine: Apt) -> Mapping[str, str]:
    """Give what a study's `index` names as a list of archives. Raises `SourceError`.

    A line without an address means the archive that this machine's own packages come from. The study file has made
    sure that each line names something.
    """
    lines = [_source_line(line.strip(), machine) for line in index.splitlines() if line.strip()]
    return {"index.list": "".join(f"{line}\n" for line in lines)}


def _asking_for_sources(text: str, suffix: str) -> str:
    """The same archives, but of sources; empty when there are none."""
    pattern, words = (_TYPES, "Types: deb-src") if suffix == ".sources" else (_OF_PROGRAMS, "deb-src")
    asked, count = pattern.subn(words, text)
    return asked if count else ""


def _source_line(line: str, machine: Apt) -> str:
    found = _LINE.fullmatch(line)
    assert found is not None  # every part of it may be empty
    place = found["place"]
    if ":" not in place.partition(" ")[0]:
        place = f"{_machine_address(line, machine)} {place}"
    return f"deb-src {found['options'] or ''}{place}"


def _machine_address(line: str, machine: Apt) -> str:
    """The address that dpkg comes from, which every machine of Debian's kind has."""
    for told in machine.ask("apt-cache", "madison", "dpkg").lines():
        where = told.split("|")[-1].split()
        if where and ":" in where[0]:
            return where[0]
    raise SourceError(
        f"source.index: {quoted(line)} names no address, and apt does not know where this machine's own "
        "packages come from; run apt-get update, or write ADDRESS SUITE COMPONENT"
    )
