"""What a request is about: the study, its newest snapshot, and what its address says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from perftrail.web.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from perftrail.web.access import Access, Visitor, Visits
    from perftrail.web.desk import Desk
    from perftrail.web.rendering import Pages
    from perftrail.workflows.serving.course import Course
    from perftrail.workflows.serving.snapshot import Snapshot

LONGEST = 200
"""No name in an address is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Everything that the pages share. `logins` says how often somebody may try a token."""

    desks: Mapping[str, Desk]
    pages: Pages
    access: Access
    visits: Visits
    logins: Pace = field(default_factory=lambda: Pace(burst=5.0, each_second=0.1))


class NotYetError(Exception):
    """A study's first snapshot is still being taken, or could not be."""

    def __init__(self, desk: Desk) -> None:
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


def desk_of(request: Request) -> Desk:
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


def place(request: Request, name: str, default: int) -> int:
    """Give a place in the history. Raises `HTTPException` for what is no number."""
    text = named(request, name)
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise HTTPException(400, f"{name}: write a number")
    return int(text)


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
    first, last = (min(end, place(request, name, default)) for name, default in (("first", 0), ("last", end)))
    return Part(first=min(first, last), last=max(first, last), length=course.length)


def course_of(snapshot: Snapshot, name: str) -> Course:
    """Give a figure along the history by its name. Raises `HTTPException` where there is none."""
    found = snapshot.courses.get(name)
    if found is None:
        raise HTTPException(404, "no figure is called so")
    return found
