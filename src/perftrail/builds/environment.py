"""The environment of builds and benchmarks: small, clean, and the same in every shell."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INHERITED = (
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


def declared_environment() -> dict[str, str]:
    """Return the variables of a benchmark, before the study's own: locale and time zone are fixed.

    `LC_ALL` is absent, so that a study can set `LANG` or `LC_NUMERIC`.
    """
    user = _user_name()
    return {
        "HOME": os.environ.get("HOME", "/"),
        "USER": user,
        "LOGNAME": user,
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def build_environment(*, temporary: Path) -> dict[str, str]:
    """Return the variables of a build line, before the recipe's own."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **declared_environment(), "LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}
