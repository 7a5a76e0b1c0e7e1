"""What of a study's history is not measured, though it was asked for: builds that failed, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.plan import subjects
from perftrail.workflows.troubles import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision
    from perftrail.workflows.eras import LeftOut
    from perftrail.workflows.session import View
    from perftrail.workflows.troubles import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class NotHad:
    """Builds that failed, one trouble each, and revisions that the study leaves out."""

    troubles: tuple[Trouble, ...]
    left_out: tuple[LeftOut, ...]


def not_had(view: View, revisions: Sequence[Revision]) -> NotHad:
    """Give what is known not to be had of the study's revisions. Makes nothing."""
    found = {
        subject: known
        for subject in subjects(view.study, view.workshop.wanted(revisions))
        if (known := view.workshop.known_build(subject)) is not None
    }
    failures = {subject: known for subject, known in found.items() if isinstance(known, Failure)}
    return NotHad(troubles=common(tuple(found), failures), left_out=view.workshop.left_out(revisions))
