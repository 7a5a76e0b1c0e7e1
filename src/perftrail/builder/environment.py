"""The environment of a build: small, clean and the same for everybody."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

_CCACHE_LINKS = Path("/usr/lib/ccache")
"""Where Debian keeps compilers' names that lead to ccache."""

_FROM_OURS = (
    "HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""What tools find their own files, certificates and proxies by."""


def search_path() -> str:
    """Where programs are looked for; absolute directories only."""
    return os.pathsep.join(
        part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part[:1] == "/"
    )


def build_environment(*, temporary: Path, compiler_cache: Path | None) -> dict[str, str]:
    """Give what a build line sees before the recipe's own variables."""
    ours = {name: os.environ[name] for name in _FROM_OURS if name in os.environ}
    user = pwd.getpwuid(os.getuid()).pw_name
    base = {
        "HOME": "/",
        **ours,
        "USER": user,
        "LOGNAME": user,
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(temporary),
    }
    if compiler_cache is None:
        return base
    return {
        **base,
        "PATH": f"{_CCACHE_LINKS}{os.pathsep}{base['PATH']}",
        "CCACHE_DIR": str(compiler_cache),
        # The build directory only gets into debug information, which no artefact counts; with it in the
        # hash nothing that is compiled with -g would ever be found again.
        "CCACHE_NOHASHDIR": "1",
    }


def has_compiler_cache() -> bool:
    """Whether ccache is installed the way that needs nothing of the recipe."""
    return (_CCACHE_LINKS / "cc").exists()
