"""Rust crates: their releases as cargo's registry has them, each the tree that was published."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.source import Archive
from perftrail.model.wording import quoted
from perftrail.sources.archives_fetch import fetch, is_download
from perftrail.sources.archives_unpack import unpack
from perftrail.sources.ecosystems.cargo_index import read_index
from perftrail.sources.ecosystems.semantic_registry import SemanticRegistry
from perftrail.sources.ecosystems.semantic_version import is_semantic_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.sources.ecosystems.cargo_index import CrateIndex

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLACE = re.compile(r"\{(crate|version|prefix|lowerprefix|sha256-checksum)\}")


class Crates(SemanticRegistry):
    """The releases of a crate; what it depends on is for its build to have, as its manifest says."""

    def content(self, id: str) -> str:
        """Name a crate's archive by its checksum."""
        return content_key("archive", self._checksum(id))

    def put(self, id: str, directory: Path, log: str) -> None:
        """Download a crate once, check it, and unpack it."""
        settings = self._index.settings
        if settings.get("auth-required") is True:
            raise CheckoutFailed(
                "the registry of cargo's settings gives crates only to those who log in; "
                "download them and use the archives table"
            )
        address = _address(settings, self.package.name, id, self._checksum(id))
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(f"$ unpack {address} into {directory}", file=file)
            archive = Archive(version=id, file=address, sha256=self._checksum(id))
            taken = fetch(archive, base="", cache=self._cache)
            print(f"{unpack(taken, directory)} files", file=file)

    def _published(self) -> Iterator[tuple[str, bool, str]]:
        for id, line in self._by_version.items():
            yield id, line.get("yanked") is True, str(line.get("pubtime") or "")

    @cached_property
    def _index(self) -> CrateIndex:
        return read_index(self._starter, self.package.name, index=self._asked.index, cache=self._cache)

    @cached_property
    def _by_version(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            line["vers"]: line
            for line in self._index.lines
            if isinstance(line.get("vers"), str) and is_semantic_version(line["vers"])
        }

    def _checksum(self, id: str) -> str:
        line = self._by_version.get(id)
        if line is None:
            raise SourceError(f"{self.package}: the registry has no release {quoted(id)}")
        checksum = str(line.get("cksum"))
        if _SHA256.fullmatch(checksum) is None:
            raise SourceError(f"{self.package}: the registry gives no checksum of {quoted(id)}")
        return checksum


def _address(settings: Mapping[str, Any], name: str, version: str, checksum: str) -> str:
    """Where a crate's archive lies, by the rule for a registry's ``dl``."""
    template = str(settings.get("dl") or "")
    if not is_download(template):
        raise CheckoutFailed(
            f"the registry of cargo's settings has its crates at no address: {quoted(template)}"
        )
    if _PLACE.search(template) is None:
        template = f"{template}/{{crate}}/{{version}}/download"
    prefix = _prefix(name)
    stands_for = {
        "crate": name,
        "version": version,
        "prefix": prefix,
        "lowerprefix": prefix.lower(),
        "sha256-checksum": checksum,
    }
    return _PLACE.sub(lambda found: stands_for[found[1]], template)


def _prefix(name: str) -> str:
    """The directory of a crate in an index.

    >>> [_prefix(name) for name in ("a", "ab", "abc", "Cargo")]
    ['1', '2', '3/a', 'Ca/rg']
    """
    if len(name) <= 2:
        return str(len(name))
    return f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"
