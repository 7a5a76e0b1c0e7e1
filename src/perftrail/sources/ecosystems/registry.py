"""What the releases of a package are, whatever ecosystem it belongs to, and what has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.source import Package


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
