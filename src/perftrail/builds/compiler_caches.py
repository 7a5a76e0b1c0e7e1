"""The compiler caches of this machine: ccache and sccache."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import content_key

if TYPE_CHECKING:
    from collections.abc import Mapping


_CCACHE_LINKS = Path("/usr/lib/ccache")
"""Directory of compiler links on Debian that use ccache."""

_SCCACHE_VERSION = re.compile(r"sccache (\d+)\.(\d+)")
_SCCACHE_OLDEST = (0, 9)
"""Oldest sccache whose server can have a name instead of a port, which parallel builds would share."""

CACHE_SHARE = 0.25
"""Share of the disk quota for a compiler cache, which removes old entries itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The directories of ccache and sccache, if they are used, and the size limit of sccache."""

    ccache: Path | None = None
    sccache: Path | None = None
    sccache_bytes: float | None = None

    def environment(self, base: Mapping[str, str], *, home: Path) -> dict[str, str]:
        """Return a build's variables that make its compilers use the caches; `home` is the build's own directory."""
        found = dict(base)
        if self.ccache is not None:
            found |= {
                "PATH": f"{_CCACHE_LINKS}{os.pathsep}{base['PATH']}",
                "CCACHE_DIR": str(self.ccache),
                # The build directory gets only into debug information, which artefacts ignore. If ccache hashed it,
                # no object compiled with -g would ever be reused.
                "CCACHE_NOHASHDIR": "1",
            }
        if self.sccache is not None:
            wrapper = _wrapper(self.sccache)
            found |= {
                # Meson and CMake look for sccache themselves.
                "PATH": f"{wrapper.parent}{os.pathsep}{found.get('PATH', '')}",
                "RUSTC_WRAPPER": str(wrapper),
                "SCCACHE_DIR": str(self.sccache),
                "SCCACHE_CONF": os.devnull,
                # A private server, which ends with the recipe line that started it. Names of sockets must be short.
                "SCCACHE_SERVER_UDS": rf"\x00perftrail-{content_key(str(home))[:32]}",
                "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
            }
            if self.sccache_bytes is not None:
                found["SCCACHE_CACHE_SIZE"] = str(int(self.sccache_bytes))
        return found

    def __str__(self) -> str:
        data = {"compilers through ccache": self.ccache, "rustc through sccache": self.sccache}
        return "; ".join(f"{what}, stored in {where}" for what, where in data.items() if where is not None)


def has_ccache() -> bool:
    """Return whether ccache is installed in the way that needs no change of the recipe."""
    return (_CCACHE_LINKS / "cc").exists()


def write_wrapper(sccache: Path, program: str) -> None:
    """Write a script that starts the program sccache with a short path: its socket does not fit into a long TMPDIR."""
    wrapper = _wrapper(sccache)
    if not wrapper.is_file():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False) as file:
            file.write(f'#!/bin/sh\nTMPDIR=/tmp exec {shlex.quote(program)} "$@"\n')
        Path(file.name).chmod(0o755)
        Path(file.name).replace(wrapper)


def _wrapper(sccache: Path) -> Path:
    """Return the script's path next to the cache; inside, sccache would consider it an entry."""
    return sccache.with_name("sccache-wrapper") / "sccache"


def is_usable_sccache(version: str) -> bool:
    """Return whether an sccache with this version output is usable."""
    found = _SCCACHE_VERSION.search(version)
    return found is not None and (int(found[1]), int(found[2])) >= _SCCACHE_OLDEST
