"""Copies of studies together with their results."""

from __future__ import annotations

import shutil
from pathlib import Path

from perftrail.results_directory import RESULTS, accept


def copy_study(study: Path, to: Path) -> Path:
    """Copy a directory with studies below it, and accept the copied results, as their user would."""
    shutil.copytree(study, to, symlinks=True)
    for results in [each for each in (to, *to.rglob("*")) if each.name == RESULTS and each.is_dir()]:
        accept(results)
    return to
