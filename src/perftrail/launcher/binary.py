"""Where the launcher's executable is."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from perftrail.errors import LauncherError


def launcher_path() -> Path:
    """Give the path of the installed launcher; raises `LauncherError` when there is none.

    An editable install keeps compiled files elsewhere than the sources, so only the import system knows.
    """
    found = resources.files("perftrail") / "_bin" / "perftrail-launcher"
    path = Path(str(found))
    if not path.is_file():
        raise LauncherError(
            f"{path} — the launcher is missing; it is built when perftrail is installed: "
            "run `pip install .` (or `make setup` in the source tree) where a C compiler is present"
        )
    if not os.access(path, os.X_OK):
        raise LauncherError(f"{path} — the launcher may not be executed; check its permissions and mount")
    return path
