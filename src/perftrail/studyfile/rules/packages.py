"""Rules for a `[source]` that is a package of an ecosystem."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.model.source import Ecosystem, read_package
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.source import Source
    from perftrail.studyfile.complaints import Complaints

_ONLY: Mapping[str, tuple[Ecosystem, ...]] = {
    "requires": ("pypi",),
    "distribution": ("pypi",),
    "yanked": ("pypi", "crates", "npm"),
}
"""The keys that say something about some ecosystems only."""

_ADDRESSES: Mapping[Ecosystem, str] = {
    "pypi": r"(?:https?|file)://\S+",
    "crates": r"https?://\S+",
    "npm": r"https?://\S+",
}
_SOURCE_LINE = re.compile(
    r"""(?:deb-src\s+)? (?:\[[^\]]*\]\s+)?
    (?: (?:https?://|(?:file|copy):/)\S+ (?:\s+[^-\s]\S*)+   # ADDRESS SUITE COMPONENT
      | (?!deb\s) [^-\s:/\[][^\s:]* (?:\s+[^-\s:][^\s:]*)+   # SUITE COMPONENT
      | [^-\s:/\[][^\s:]*/                                   # a flat archive's directory
    ) \s*""",
    re.VERBOSE,
)
"""A line of `index` for Debian; without an address it is in the archive that the machine's own packages come from."""


def package_wrong(written: str) -> str | None:
    """Say what is wrong with ``ECOSYSTEM:NAME``, `None` when nothing is."""
    try:
        read_package(written)
    except ValueError as error:
        return str(error)
    return None


def check_package(source: Source, complaints: Complaints) -> None:
    """Complain about keys that do not fit the package's ecosystem, or each other."""
    if source.kind != "release" or source.archives:
        return
    _check_requirements(source, complaints)
    try:
        ecosystem = read_package(source.location).ecosystem
    except ValueError:
        ecosystem = None
    for name, ecosystems in _ONLY.items():
        if ecosystem not in {None, *ecosystems} and complaints.stands(("source", name)):
            complaints.add(
                ("source", name), f"says nothing about {ecosystem} packages; it is for {listed(ecosystems)}"
            )
    if source.index is not None and (wrong := _index_wrong(source.index, ecosystem)):
        complaints.add(("source", "index"), wrong)


def _check_requirements(source: Source, complaints: Complaints) -> None:
    if not source.requires:
        return
    # of the few studies that have it, none should slow the others
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415

    for text in source.requires:
        try:
            Requirement(text)
        except InvalidRequirement:
            wrong = f"{quoted(text)} is no requirement; write it as for pip, numpy>=1.26"
            complaints.add(("source", "requires"), wrong)


def _index_wrong(index: str, ecosystem: Ecosystem | None) -> str | None:
    if ecosystem != "debian":
        form = _ADDRESSES[ecosystem or "pypi"]
        return None if re.fullmatch(form, index) else f"{quoted(index)} is no address; write https://…"
    lines = [line.strip() for line in index.splitlines() if line.strip()]
    for line in lines or [index]:
        if _SOURCE_LINE.fullmatch(line) is None:
            return f"{quoted(line)} names no archive; write it as in sources.list, https://… SUITE COMPONENT"
    return None
