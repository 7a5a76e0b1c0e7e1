"""Where the launcher's executable is."""

from __future__ import annotations

import os
import sysconfig
from importlib import resources
from pathlib import Path

from perftrail.errors import LauncherError

_NAME = "_bin/perftrail-launcher"


def launcher_path() -> Path:
    """Give the path of the installed launcher; raises `LauncherError` when there is none."""
    path = Path(str(resources.files("perftrail") / _NAME))
    if not path.is_file():
        path = _installed_elsewhere() or path
    if not path.is_file():
        raise LauncherError(
            f"{path} — the launcher is missing; it is built when perftrail is installed: "
            "run `pip install .` (or `make setup` in the source tree) where a C compiler is present"
        )
    if not os.access(path, os.X_OK):
        raise LauncherError(f"{path} — the launcher may not be executed; check its permissions and mount")
    return path


def _installed_elsewhere() -> Path | None:
    """Find the launcher of an editable install, which lies among the installed packages, not the sources."""
    path = Path(sysconfig.get_path("platlib"), "perftrail", _NAME)
    return path if path.is_file() else None
