"""What the registries of Rust crates and of npm packages have in common: releases by Semantic Versioning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from perftrail.sources.ecosystems.registry import Release
from perftrail.sources.ecosystems.semantic_version import SemanticVersion

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from perftrail.model.source import Package
    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter


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
