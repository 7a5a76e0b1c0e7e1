"""What a request is about: the study, its newest snapshot, and what its address says: parts, revisions, subjects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from perftrail.errors import UsageError
from perftrail.model.subject import Subject
from perftrail.present.dashboard.subjects import named_revision, usual_variants
from perftrail.present.report.words import shown
from perftrail.web.guard import LONGEST_NUMBER, Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from perftrail.model.subject import Revision
    from perftrail.present.dashboard.metric_history import Course
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.web.access import Access, Visitor, Visits
    from perftrail.web.rendering import Pages
    from perftrail.web.studies import ServedStudy

LONGEST = 200
"""No name in an address is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Everything that the pages share. `logins` says how often somebody may try a token."""

    desks: Mapping[str, ServedStudy]
    pages: Pages
    access: Access
    visits: Visits
    logins: Pace = field(default_factory=lambda: Pace(burst=5.0, each_second=0.1))


class NotYetError(Exception):
    """A study's first snapshot is still being taken, or could not be."""

    def __init__(self, desk: ServedStudy) -> None:
        super().__init__(desk.name)
        self.desk = desk


def web(request: Request) -> Web:
    """Give what the pages share."""
    shared = request.app.state.web
    assert isinstance(shared, Web)
    return shared


def visitor(request: Request) -> Visitor:
    """Give who asks."""
    who: Visitor = request.state.visitor
    return who


def still_here(request: Request) -> bool:
    """Whether who asked would be answered still: a visit may have ended while they watch."""
    shared, who = web(request), visitor(request)
    if shared.access.tokens is None or who.program or who.name:
        return True
    return shared.visits.role(who.visit) is not None


def desk_of(request: Request) -> ServedStudy:
    """Give the study that an address names. Raises `HTTPException` where there is none."""
    found = web(request).desks.get(request.path_params["study"])
    if found is None:
        raise HTTPException(404, "no study is called so")
    return found


async def snapshot_of(request: Request) -> Snapshot:
    """Give the newest snapshot of the study that an address names. Raises `NotYetError` before the first."""
    desk = desk_of(request)
    found = await desk.snapshot()
    if found is None:
        raise NotYetError(desk)
    return found


def named(request: Request, name: str) -> str:
    """Give what an address asks for by a name; empty where it does not. Raises `HTTPException` for what is too long."""
    text = request.query_params.get(name, "").strip()
    if len(text) > LONGEST:
        raise HTTPException(400, f"{name} is too long")
    return text


def whole_number(request: Request, name: str, default: int) -> int:
    """Give a number that an address asks for. Raises `HTTPException` for what is no number."""
    text = named(request, name)
    if not text:
        return default
    found = number(text)
    if found is None:
        raise HTTPException(400, f"{name}: write a number")
    return found


def number(text: str) -> int | None:
    """Read a number of an address; `None` where it is none, or longer than any that has a use."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a history, both ends included, and those beside it."""

    first: int
    last: int
    length: int

    @property
    def width(self) -> int:
        """How many revisions it has."""
        return self.last - self.first + 1

    @property
    def whole(self) -> bool:
        """Whether it is all of the history."""
        return self.width == self.length

    def moved(self, share: float) -> Part:
        """The part as wide as this one, that share of its width further on."""
        by = round(share * self.width) or (1 if share > 0 else -1)
        first = max(0, min(self.first + by, self.length - self.width))
        return Part(first=first, last=first + self.width - 1, length=self.length)

    def scaled(self, factor: float) -> Part:
        """The part around the same middle, so many times as wide."""
        width = max(1, min(self.length, round(self.width * factor)))
        first = max(0, min(self.first + (self.width - width) // 2, self.length - width))
        return Part(first=first, last=first + width - 1, length=self.length)


def part_of(request: Request, course: Course) -> Part:
    """Give the part of a history that is asked for, as far as there is one; all of it where none is."""
    end = max(0, course.length - 1)
    first, last = (
        min(end, whole_number(request, name, default)) for name, default in (("first", 0), ("last", end))
    )
    return Part(first=min(first, last), last=max(first, last), length=course.length)


def course_of(snapshot: Snapshot, name: str) -> Course:
    """Give a figure along the history by its name. Raises `HTTPException` where there is none."""
    found = snapshot.courses.get(name)
    if found is None:
        raise HTTPException(404, "no figure is called so")
    return found


def revision_of(request: Request, snapshot: Snapshot) -> Revision:
    """Give the revision that an address leads to. Raises `HTTPException` where there is none."""
    return _revision(snapshot, request.path_params["revision"])


def asked_subjects(request: Request, snapshot: Snapshot) -> tuple[Subject, Subject] | None:
    """Give the two subjects that are asked for; `None` where nothing was measured.

    Where no revision is named, the newest in the first and the last variant, of one variant alone the oldest and the
    newest; else both in the same variant, as far as none is named. Raises `HTTPException` for what there is not.
    """
    gathered = snapshot.gathered
    first, second, one, other = (named(request, name) for name in ("a", "b", "va", "vb"))
    if not gathered.measured:
        return None
    oldest, newest = gathered.measured[0], gathered.measured[-1]
    if first or second or len(gathered.variants) == 1:
        usual = (one or other or gathered.variants[0],) * 2
    else:
        oldest, usual = newest, usual_variants(gathered, snapshot.rows_of, newest)
    return (
        _subject(snapshot, _revision(snapshot, first) if first else oldest, one or usual[0]),
        _subject(snapshot, _revision(snapshot, second) if second else newest, other or usual[1]),
    )


def _revision(snapshot: Snapshot, text: str) -> Revision:
    try:
        return named_revision(snapshot.gathered, text)
    except UsageError as error:
        raise HTTPException(404, str(error)) from error


def _subject(snapshot: Snapshot, revision: Revision, variant: str) -> Subject:
    if variant not in snapshot.gathered.variants:
        raise HTTPException(404, f"{shown(variant, longest=60)}: no variant of this study is called so")
    return Subject(revision=revision, variant=variant)
