"""Rules for overlays and patches: the study has the files, and they go where a tree can have them."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.wording import nearest, quoted
from perftrail.studyfile.rules.texts import inside_wrong

if TYPE_CHECKING:
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath

MOST_LOOKED_AT = 2000
"""Files of a directory among which the one that was meant is looked for."""


def check_repairs(
    recipe: Build | Era | VariantBuild, path: KeyPath, complaints: Complaints, *, study: Path
) -> None:
    """Complain about files that the study does not have and places that no tree can have."""
    taken: dict[str, str] = {}
    for file, place in recipe.overlay.items():
        key = (*path, "overlay", file)
        if wrong := _file_wrong(file, study) or _place_wrong(place):
            complaints.add(key, wrong)
        elif (other := taken.setdefault(posixpath.normpath(place), file)) != file:
            complaints.add(key, f"goes where {quoted(other)} goes, to {quoted(place)}")
    for file in recipe.patch:
        if wrong := _file_wrong(file, study):
            complaints.add((*path, "patch"), wrong)


def _file_wrong(file: str, study: Path) -> str | None:
    if wrong := inside_wrong(file, of="the study's directory"):
        return wrong
    path = study / file
    try:
        if path.is_file():
            return None
        there = path.exists()
        around = files_in(path.parent, below=study)
    except (OSError, ValueError) as error:
        return f"{quoted(file)} cannot be read: {error}"
    if there:
        return f"{quoted(file)} is no file; name each file of a directory"
    near = nearest(file, around)
    return f"{quoted(file)} is no file of the study's directory" + (
        f"; did you mean {quoted(near)}?" if near else ""
    )


def _place_wrong(place: str) -> str | None:
    if wrong := inside_wrong(place, of="the revision's root"):
        return wrong
    parts = posixpath.normpath(place).split("/")
    if parts == ["."] or place.endswith("/"):
        return f"{quoted(place)} is a directory; name the file in it"
    if parts[0] == ".git":
        return f"{quoted(place)} belongs to git; no repair may go there"
    return None


def files_in(directory: Path, *, below: Path) -> list[str]:
    """Name the files of a directory relative to another one, sorted; none when there is no such directory.

    At most `MOST_LOOKED_AT` entries are looked at. Raises `OSError` when the directory cannot be read.
    """
    if not directory.is_dir():
        return []
    entries = (each for each, _ in zip(directory.iterdir(), range(MOST_LOOKED_AT), strict=False))
    return sorted(str(each.relative_to(below)) for each in entries if each.is_file())
