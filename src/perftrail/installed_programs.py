"""Find the compiled programs that are installed with perftrail."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from importlib import resources
from pathlib import Path


@cache
def installed_program(name: str) -> Path:
    """Return the path of a compiled program, whether it exists or not.

    Those of an editable install are in the directory of packages and not in the sources.
    """
    path = Path(str(resources.files("perftrail") / "_bin" / name))
    packages = Path(sysconfig.get_path("platlib"), "perftrail", "_bin", name)
    return packages if packages.is_file() and not path.is_file() else path


def recorder_path() -> Path | None:
    """Return the path of perftrail-recorder; `None` if it is missing or not executable."""
    path = installed_program("perftrail-recorder")
    return path if os.access(path, os.X_OK) else None
