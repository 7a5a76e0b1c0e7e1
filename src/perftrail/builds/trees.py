"""What builds are made of: the study's own source or a folder of it, and the trees of other sources beside.

Compilers' caches: which there are, where they keep what they found, and what tells a build's tools of them.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.builds.artefact import Content, content_of
from perftrail.file_tree import remove_tree
from perftrail.model.build import content_key
from perftrail.model.placeholders import source_placeholder
from perftrail.ports import PartlyRead, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.build import Recipe
    from perftrail.model.subject import Revision


NO_SOURCES: Mapping[str, Revision] = MappingProxyType({})
"""What most lines name of other sources."""

NO_TREES: Mapping[str, Source] = MappingProxyType({})
"""What a study of one source has beside it."""

_BESIDE = "sources"
_OUTPUT = re.compile(r"\{source\.([^{}]+)\}/+(.+)", re.DOTALL)
_OWN = ""


class Trees:
    """Knows the sources of a study: where the tree of a recipe comes from and what lies beside it.

    `others` are the other sources by name, `folders` those of variants that are a folder of their own.
    """

    def __init__(
        self, source: Source, *, others: Mapping[str, Source], folders: Mapping[str, Source]
    ) -> None:
        self._source = source
        self._others = others
        self._folders = folders

    def of(self, recipe: Recipe) -> Source:
        """Give the source of the tree that a recipe is followed in."""
        return self._folders[recipe.root] if recipe.root else self._source

    def content_of(self, revision: Revision, recipe: Recipe) -> str:
        """Name what a recipe may find in a revision's tree: all of it, but for what it says is not used."""
        source = self.of(recipe)
        if recipe.unaffected_by and isinstance(source, PartlyRead):
            return source.content_without(revision, recipe.unaffected_by)
        return source.content(revision)

    def content(self, wanted: Mapping[str, Revision]) -> list[dict[str, str]]:
        """Name the trees of other sources for a key; nothing where none is wanted, so that it stays as it is."""
        named = {name: self._others[name].content(revision) for name, revision in wanted.items()}
        return [named] if named else []

    def lay(self, wanted: Mapping[str, Revision], directory: Path, log: Path) -> None:
        """Put trees of other sources below a directory, anew, by their names. Raises `CheckoutFailed`."""
        remove_tree(directory)
        for name, revision in wanted.items():
            directory.mkdir(parents=True, exist_ok=True)
            self._others[name].materialise(revision, str(directory / name), str(log))


def beside_build(tree: Path) -> Path:
    """Where the trees of other sources lie that a build names; `tree` is the build's own."""
    return tree.with_name(_BESIDE)


def beside_link(out: Path) -> Path:
    """Where the trees of other sources lie that only a benchmark names; `out` is what its lines make."""
    return out.with_name(f"{out.name}.{_BESIDE}")


def values_of(directory: Path) -> dict[str, str]:
    """Give what the placeholders of the trees below a directory stand for."""
    if not directory.is_dir():
        return {}
    return {source_placeholder(tree.name): str(tree) for tree in sorted(directory.iterdir())}


def outputs_by_tree(outputs: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return globs by the source whose tree they match in, those of a build's own tree under an empty name."""
    globs: dict[str, list[str]] = {}
    for output in outputs:
        found = _OUTPUT.fullmatch(output)
        name, glob = (found[1], found[2]) if found else (_OWN, output)
        globs.setdefault(name, []).append(glob)
    return globs


def content_of_outputs(tree: Path, outputs: Sequence[str], *, keys: Sequence[str]) -> Content:
    """Digest what outputs match in a build's tree and, as ``{source.NAME}/GLOB``, in the trees beside it."""
    parts = {
        name: content_of(beside_build(tree) / name if name else tree, each, keys=keys)
        for name, each in outputs_by_tree(outputs).items()
    }
    if list(parts) == [_OWN]:
        return parts[_OWN]
    return Content(
        digest=content_key({name: part.digest for name, part in parts.items()}),
        files=sum(part.files for part in parts.values()),
        mentions_build=any(part.mentions_build for part in parts.values()),
    )


_CCACHE_LINKS = Path("/usr/lib/ccache")
"""Where Debian keeps compilers' names that lead to ccache."""

_SCCACHE_VERSION = re.compile(r"sccache (\d+)\.(\d+)")
_SCCACHE_OLDEST = (0, 9)
"""The first sccache whose server can have a name instead of a port, which two builds at once would share."""

CACHE_SHARE = 0.25
"""What of the room on the disk a compiler's cache may take; each evicts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """Where ccache and sccache keep what they found, each if it is used, and how much sccache may keep."""

    ccache: Path | None = None
    sccache: Path | None = None
    sccache_bytes: float | None = None

    def environment(self, base: Mapping[str, str], *, home: Path) -> dict[str, str]:
        """Add to a build's variables what makes its compilers use the caches; `home` is the build's alone."""
        found = dict(base)
        if self.ccache is not None:
            found |= {
                "PATH": f"{_CCACHE_LINKS}{os.pathsep}{base['PATH']}",
                "CCACHE_DIR": str(self.ccache),
                # The build directory only gets into debug information, which no artefact counts; with it in the
                # hash nothing that is compiled with -g would ever be found again.
                "CCACHE_NOHASHDIR": "1",
            }
        if self.sccache is not None:
            found |= {
                "RUSTC_WRAPPER": str(_wrapper(self.sccache)),
                "SCCACHE_DIR": str(self.sccache),
                "SCCACHE_CONF": os.devnull,
                # A server of its own, which ends with the line that started it; short, as names of sockets must be.
                "SCCACHE_SERVER_UDS": rf"\x00perftrail-{content_key(str(home))[:32]}",
                "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
            }
            if self.sccache_bytes is not None:
                found["SCCACHE_CACHE_SIZE"] = str(int(self.sccache_bytes))
        return found

    def __str__(self) -> str:
        told = {"compilers through ccache": self.ccache, "rustc through sccache": self.sccache}
        return "; ".join(f"{what}, kept in {where}" for what, where in told.items() if where is not None)


def has_ccache() -> bool:
    """Whether ccache is installed the way that needs nothing of the recipe."""
    return (_CCACHE_LINKS / "cc").exists()


def write_wrapper(sccache: Path) -> None:
    """Write what starts sccache where its cache lies: its sockets have no room in a build's own, long TMPDIR."""
    wrapper = _wrapper(sccache)
    if not wrapper.is_file():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False) as ours:
            ours.write('#!/bin/sh\nTMPDIR=/tmp exec sccache "$@"\n')
        Path(ours.name).chmod(0o755)
        Path(ours.name).replace(wrapper)


def _wrapper(sccache: Path) -> Path:
    """Beside the cache and not in it, where sccache would take it for an entry."""
    return sccache.with_name("sccache.sh")


def fits_sccache(said: str) -> bool:
    """Whether an sccache that says so of its version can be used."""
    found = _SCCACHE_VERSION.search(said)
    return found is not None and (int(found[1]), int(found[2])) >= _SCCACHE_OLDEST
