"""Compilers' caches: which there are, where they keep what they found, and what tells a build's tools of them."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import content_key

if TYPE_CHECKING:
    from collections.abc import Mapping

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
