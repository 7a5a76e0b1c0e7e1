"""A package of an ecosystem, as ``ECOSYSTEM:NAME`` names it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from perftrail.model.wording import listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

Ecosystem = Literal["pypi", "crates", "npm", "debian"]
ECOSYSTEMS: tuple[Ecosystem, ...] = get_args(Ecosystem)

_NPM_PART = r"[A-Za-z0-9_~][A-Za-z0-9._~-]*"
_NAMES: Mapping[Ecosystem, re.Pattern[str]] = {
    "pypi": re.compile(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]"),
    "crates": re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}"),
    "npm": re.compile(rf"(?:@{_NPM_PART}/)?{_NPM_PART}"),
    "debian": re.compile(r"[a-z0-9][a-z0-9+.-]+"),
}
"""What may be handed to a client: no name is an option, a path or an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The name of a package and the ecosystem it belongs to."""

    ecosystem: Ecosystem
    name: str

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}"


def read_package(location: str) -> Package:
    """Read ``ECOSYSTEM:NAME``; raises `ValueError`, whose text says what is wrong with the one given.

    >>> str(read_package("npm:@scope/name"))
    'npm:@scope/name'
    >>> read_package("crates:--config")
    Traceback (most recent call last):
    ValueError: "--config" is no name of a package; write crates:NAME, versions go into source.range
    """
    written, colon, name = location.partition(":")
    if not colon and _NAMES["pypi"].fullmatch(location):
        raise ValueError(
            f"{quoted(location)} lacks its ecosystem; write {quoted('pypi:' + location)} for a Python package, "
            f"or {listed(f'{each}:…' for each in ECOSYSTEMS if each != 'pypi')}"
        )
    if "://" in location:
        raise ValueError(f"{quoted(location)} is an address; releases are of a package, as pypi:NAME")
    for ecosystem in ECOSYSTEMS:
        if written == ecosystem and colon:
            if _NAMES[ecosystem].fullmatch(name) is None:
                raise ValueError(
                    f"{quoted(name)} is no name of a package; write {ecosystem}:NAME, "
                    "versions go into source.range"
                )
            return Package(ecosystem=ecosystem, name=name)
    near = nearest(written, ECOSYSTEMS) if colon else None
    hint = f"did you mean {quoted(f'{near}:{name}')}?" if near else f"write {listed(_FORMS)}"
    raise ValueError(f"{quoted(location)} is no package; {hint}")


_FORMS = [f"{ecosystem}:NAME" for ecosystem in ECOSYSTEMS]
