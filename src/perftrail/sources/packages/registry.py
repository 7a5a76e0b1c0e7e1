"""What the releases of a package are, whatever ecosystem it belongs to, and what has them.

Versions as Rust crates and npm packages have them: Semantic Versioning 2.0.

What the registries of Rust crates and of npm packages have in common: releases by Semantic Versioning.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from perftrail.errors import SourceError
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from perftrail.model.source import Package
    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter


class Version(Protocol):
    """A version by its ecosystem's rule, comparable with others of the same ecosystem."""

    def __lt__(self, other: Any, /) -> bool:  # noqa: ANN401 - each compares with its own kind only
        """Say whether this version is older."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version of a package. `id` is how the ecosystem writes it; `uploaded` is ISO 8601 or empty.

    `yanked` is a release that its authors took back: yanked, or deprecated.
    """

    id: str
    version: Version
    prerelease: bool
    yanked: bool
    uploaded: str


class Registry(Protocol):
    """Knows the releases of one package and fetches them."""

    @property
    def package(self) -> Package:
        """The package, its name written as the ecosystem does."""
        ...

    @property
    def fits(self) -> str:
        """What its releases are limited to, for messages; empty when it knows of all."""
        ...

    def version(self, text: str) -> Version:
        """Read a version as people write it. Raises `SourceError` for what is none."""
        ...

    def releases(self) -> tuple[Release, ...]:
        """Give all releases, oldest first, pre-releases and yanked ones among them. Raises `SourceError`."""
        ...

    def content(self, id: str) -> str:
        """Name what a release holds; equal names, equal trees. Downloads nothing."""
        ...

    def put(self, id: str, directory: Path, log: str) -> None:
        """Put a release into a directory that does not exist yet, whose parent does.

        What was tried is appended to the file `log`. Raises `SourceError` when it cannot be had; what was
        put there until then, the caller removes.
        """
        ...


_VERSION = re.compile(
    r"[v=]?(?P<major>\d{1,20})(?:\.(?P<minor>\d{1,20})(?:\.(?P<patch>\d{1,20}))?)?"
    r"(?:-(?P<before>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<build>[0-9A-Za-z.-]+))?",
    re.ASCII,
)
_WHOLE = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SemanticVersion:
    """A version; what is before a release is older than it, numbers in it are older than words.

    The build metadata, of which the standard takes no note, only tells apart what would be equal.

    >>> SemanticVersion.read("1.9.0") < SemanticVersion.read("1.10.0-rc.1") < SemanticVersion.read("v1.10")
    True
    """

    numbers: tuple[int, int, int]
    before: tuple[tuple[int, int, str], ...]
    build: str

    @classmethod
    def read(cls, text: str) -> SemanticVersion:
        """Read a version; what is left out at its end is zero. Raises `SourceError`."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise SourceError(f"range: {quoted(text)} is no version number such as 1.4.2 or 2.0.0-rc.1")
        parts = (found["before"] or "").split(".") if found["before"] else []
        named = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return cls(
            (int(found["major"]), int(found["minor"] or 0), int(found["patch"] or 0)),
            # what nothing stands before is later than all of which something does
            named or _NOTHING,
            found["build"] or "",
        )

    @property
    def is_prerelease(self) -> bool:
        """Whether this comes before a release."""
        return self.before != _NOTHING


_NOTHING = ((2, 0, ""),)


def is_semantic_version(text: str) -> bool:
    """Whether a text is a whole version, as a registry writes it; nothing else is handed to a client.

    >>> [is_semantic_version(text) for text in ("1.0.0-rc.1+x", "1.0", "latest", "1.0.0 --registry=x")]
    [True, False, False, False]
    """
    return _WHOLE.fullmatch(text) is not None


class SemanticRegistry(ABC):
    """The releases of one package, in the order of their versions."""

    fits = ""

    def __init__(self, package: Package, asked: Asked, *, cache: Path, starter: Starter) -> None:
        self.package = package
        self._asked = asked
        self._cache = cache
        self._starter = starter

    def version(self, text: str) -> SemanticVersion:
        """Read a version as Semantic Versioning has it."""
        return SemanticVersion.read(text)

    def releases(self) -> tuple[Release, ...]:
        """Give what the registry has."""
        found = [
            Release(
                id=id,
                version=(version := SemanticVersion.read(id)),
                prerelease=version.is_prerelease,
                yanked=yanked,
                uploaded=uploaded,
            )
            for id, yanked, uploaded in self._published()
        ]
        return tuple(sorted(found, key=lambda each: each.version))

    @abstractmethod
    def _published(self) -> Iterable[tuple[str, bool, str]]:
        """Give of each release its version, whether it was taken back, and when it was uploaded."""
