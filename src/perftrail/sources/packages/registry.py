"""Releases of packages in any ecosystem, the registries that publish them, and Semantic Versioning 2.0."""

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
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter


class Version(Protocol):
    """A version by its ecosystem's rule, comparable within the same ecosystem."""

    def __lt__(self, other: Any, /) -> bool:  # noqa: ANN401 - each compares with its own kind only
        """Return whether this version is older."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version of a package. `id` is the ecosystem's notation; `uploaded` is ISO 8601 or empty.

    `yanked`: its authors yanked or deprecated it.
    """

    id: str
    version: Version
    prerelease: bool
    yanked: bool
    uploaded: str


class Registry(Protocol):
    """Knows the releases of one package, and fetches them."""

    @property
    def package(self) -> Package:
        """The package's name in the ecosystem's notation."""
        ...

    @property
    def limits(self) -> str:
        """Limits of the known releases, for messages; empty if all are known."""
        ...

    def version(self, text: str) -> Version:
        """Parse a version. Raises `SourceError` for an invalid one."""
        ...

    def releases(self) -> tuple[Release, ...]:
        """Return all releases, oldest first, including pre-releases and yanked ones. Raises `SourceError`."""
        ...

    def content(self, id: str) -> str:
        """Return the content key of a release's content: equal keys mean equal trees. Downloads nothing."""
        ...

    def write_release(self, id: str, directory: Path, log: str) -> None:
        """Write a release into a new directory, whose parent exists.

        Every attempt is appended to the file `log`. Raises `SourceError` if that fails; the caller then removes the
        directory.
        """
        ...


_VERSION = re.compile(
    r"[v=]?(?P<major>\d{1,20})(?:\.(?P<minor>\d{1,20})(?:\.(?P<patch>\d{1,20}))?)?"
    r"(?:-(?P<prerelease>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<build>[0-9A-Za-z.-]+))?",
    re.ASCII,
)
_WHOLE = re.compile(
    r"\d{1,20}\.\d{1,20}\.\d{1,20}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


_LONGEST_VERSION = 256
"""Longest version that registries accept."""


@dataclass(frozen=True, slots=True, order=True)
class SemanticVersion:
    """A version; pre-releases are older than the release, numbers in them older than words.

    The build metadata, which the standard ignores, only distinguishes versions that would be equal.

    >>> SemanticVersion.read("1.9.0") < SemanticVersion.read("1.10.0-rc.1") < SemanticVersion.read("v1.10")
    True
    """

    numbers: tuple[int, int, int]
    prerelease: tuple[tuple[int, int, str], ...]
    build: str

    @classmethod
    def read(cls, text: str) -> SemanticVersion:
        """Parse a version; missing parts at its end are zero. Raises `SourceError`."""
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
        if found is None:
            raise SourceError(f"range: {quoted(text)} is not a version number such as 1.4.2 or 2.0.0-rc.1")
        parts = (found["prerelease"] or "").split(".") if found["prerelease"] else []
        named = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return cls(
            (int(found["major"]), int(found["minor"] or 0), int(found["patch"] or 0)),
            named or _RELEASE_RANK,
            found["build"] or "",
        )

    @property
    def is_prerelease(self) -> bool:
        """Whether this is a pre-release."""
        return self.prerelease != _RELEASE_RANK


_RELEASE_RANK = ((2, 0, ""),)
"""Sorts a release after all its pre-releases."""


def is_semantic_version(text: str) -> bool:
    """Whether a text is a whole version in a registry's notation; only such texts are passed to a client.

    >>> [is_semantic_version(text) for text in ("1.0.0-rc.1+x", "1.0", "latest", "1.0.0 --registry=x")]
    [True, False, False, False]
    """
    return len(text) <= _LONGEST_VERSION and _WHOLE.fullmatch(text) is not None


class SemanticRegistry(ABC):
    """The releases of one package, in the order of their versions."""

    limits = ""

    def __init__(self, package: Package, table: SourceTable, *, cache: Path, starter: Starter) -> None:
        self.package = package
        self._table = table
        self._cache = cache
        self._starter = starter

    def version(self, text: str) -> SemanticVersion:
        """Parse a version according to Semantic Versioning."""
        return SemanticVersion.read(text)

    def releases(self) -> tuple[Release, ...]:
        """Return the registry's releases."""
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
        """Return version, yanked and upload time of each release."""
