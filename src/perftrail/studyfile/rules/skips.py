"""Rules for the `skip` lists of sources; whether the history has what they name shows when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.source import MAIN
from perftrail.studyfile.rules.texts import control_wrong, range_wrong, revision_wrong

if TYPE_CHECKING:
    from perftrail.model.source import Skip
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath


def check_skips(study: Study, complaints: Complaints) -> None:
    """Complain about skips that name no revision, or too much."""
    for name, source in study.every_source.items():
        path: KeyPath = ("source",) if name == MAIN else ("sources", name)
        for number, skip in enumerate(source.skip):
            _check_skip(skip, (*path, "skip", number), complaints)


def _check_skip(skip: Skip, path: KeyPath, complaints: Complaints) -> None:
    if not skip.reason.strip():
        complaints.add((*path, "reason"), "is empty; say why these are not to be built")
    elif wrong := control_wrong(skip.reason):
        complaints.add((*path, "reason"), wrong)
    if skip.range is None and skip.revision is None:
        if complaints.clean(path):
            complaints.add(path, 'names no revision; write revision = "…" or range = "OLD..NEW"')
    elif skip.range is not None and skip.revision is not None:
        complaints.add((*path, "revision"), "is there beside range; write an entry for each")
    elif skip.range is not None and (wrong := range_wrong(skip.range, words=False)):
        complaints.add((*path, "range"), wrong)
    elif skip.revision is not None and (wrong := revision_wrong(skip.revision)):
        complaints.add((*path, "revision"), wrong)
