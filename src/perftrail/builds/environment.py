"""The environment of a build: small, clean, and the same for everybody."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INHERITED = (
    "HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""Variables by which tools find their own files, certificates and proxies."""


def search_path() -> str:
    """Return the search path for programs; absolute directories only."""
    return os.pathsep.join(
        part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part[:1] == "/"
    )


def _user_name() -> str:
    """Return this user's name; its number where the system lists no name, as in containers."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def build_environment(*, temporary: Path) -> dict[str, str]:
    """Return the variables of a build line, before the recipe's own."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    user = _user_name()
    return {
        "HOME": "/",
        **inherited,
        "USER": user,
        "LOGNAME": user,
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(temporary),
    }
