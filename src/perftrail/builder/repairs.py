"""Repairs a tree before its recipe runs: puts the study's files into it and applies patches, never outside of it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builder.patching import Patcher
from perftrail.model.build import content_key
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from perftrail.builder.steps import Log
    from perftrail.model.build import Repairs
    from perftrail.ports import Starter


def repairs_key(repairs: Repairs, study: Path) -> tuple[str, ...]:
    """Name repairs by what the study's files hold, as part of a build's key; nothing where there are none.

    What a patch is called does not matter, where a file is put and whether it is a program does.
    """
    if not repairs:
        return ()
    overlay = {place: _content(study / file) for place, file in repairs.overlay.items()}
    return (content_key(overlay, [_content(study / file) for file in repairs.patches]),)


def repair(repairs: Repairs, tree: Path, *, study: Path, starter: Starter, log: Log) -> str:
    """Put files into a tree and apply patches; give why that cannot be done, else nothing.

    The first thing that fails ends it. What was done is in the log; what of a patch fits is left applied, with
    the rest in ``.rej`` files beside, for whoever looks at the tree.
    """
    for place, file in repairs.overlay.items():
        log.note(f"# {file} of the study put at {place}")
        if trouble := _put(study / file, tree, place):
            log.note(f"[{trouble}]")
            return trouble
    for file in repairs.patches:
        log.note(f"# {file} of the study applied")
        if trouble := Patcher(starter, study / file, named=file).apply(tree, log):
            log.note(f"[{trouble}]")
            return trouble
    return ""


def _put(file: Path, tree: Path, place: str) -> str:
    """Copy a file to its place, whatever file or link is there; links on the way must stay in the tree."""
    target = tree / place
    shown = f"overlay to {quoted(place)}"
    if not target.parent.resolve().is_relative_to(tree.resolve()):
        return f"{shown}: a link of this revision leads out of its tree there"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() and not target.is_symlink():
            return f"{shown}: this revision has a directory there"
        # A link is replaced and not followed, a file that others share is not written into.
        target.unlink(missing_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755 if _is_program(file) else 0o644)
    except (FileExistsError, NotADirectoryError):
        return f"{shown}: what is a directory in that path is a file in this revision"
    except OSError as error:
        return f"{shown}: {(error.strerror or str(error)).lower()}"
    return ""


def _content(file: Path) -> list[str | bool]:
    if not file.is_file():
        return ["missing"]
    return [hashlib.sha256(file.read_bytes()).hexdigest(), _is_program(file)]


def _is_program(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o100)
