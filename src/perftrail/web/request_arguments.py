"""Values in the address of a request: the study, part of its history, revisions and subjects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from perftrail.errors import UsageError
from perftrail.model.subject import Subject
from perftrail.model.wording import escaped
from perftrail.present.dashboard.subjects import default_variants, named_revision
from perftrail.web.guard import LONGEST_NUMBER, RateLimit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from perftrail.model.subject import Revision
    from perftrail.present.dashboard.metric_history import MetricHistory
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.web.access import Access, LoginSessions, Visitor
    from perftrail.web.rendering import Pages
    from perftrail.web.studies import ServedStudy

LONGEST = 200
"""Maximum length of a name in an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """State that all pages share.

    `logins` limits attempts to log in. `streams` counts the live pages of each address.
    """

    served_studies: Mapping[str, ServedStudy]
    pages: Pages
    access: Access
    login_sessions: LoginSessions
    streams: Counter[str] = field(default_factory=Counter)
    logins: RateLimit = field(default_factory=lambda: RateLimit(burst=5.0, each_second=0.1))


class NotYetError(Exception):
    """A study has no snapshot yet, or none is possible."""

    def __init__(self, served_study: ServedStudy) -> None:
        super().__init__(served_study.name)
        self.served_study = served_study


def web(request: Request) -> Web:
    """Return the state that all pages share."""
    shared = request.app.state.web
    assert isinstance(shared, Web)
    return shared


def visitor(request: Request) -> Visitor:
    """Return the author of the request."""
    who: Visitor = request.state.visitor
    return who


def has_access(request: Request) -> bool:
    """Return whether the author still has access; a session may end during a stream of events."""
    shared, who = web(request), visitor(request)
    if shared.access.tokens is None or who.program or who.name:
        return True
    return shared.login_sessions.role(who.session_id) is not None


def served_study_of(request: Request) -> ServedStudy:
    """Return the study that an address names. Raises `HTTPException` for an unknown one."""
    found = web(request).served_studies.get(request.path_params["study"])
    if found is None:
        raise HTTPException(404, "no study has this name")
    return found


async def snapshot_of(request: Request) -> Snapshot:
    """Return the newest snapshot of the study in an address. Raises `NotYetError` before the first."""
    served_study = served_study_of(request)
    found = await served_study.snapshot()
    if found is None:
        raise NotYetError(served_study)
    return found


def named(request: Request, name: str) -> str:
    """Return a parameter of an address; empty without it. Raises `HTTPException` if it is too long."""
    text = request.query_params.get(name, "").strip()
    if len(text) > LONGEST:
        raise HTTPException(400, f"{name} is too long")
    return text


def whole_number(request: Request, name: str, default: int) -> int:
    """Return a number from an address. Raises `HTTPException` for anything else."""
    text = named(request, name)
    if not text:
        return default
    found = number(text)
    if found is None:
        raise HTTPException(400, f"{name}: write a number")
    return found


def number(text: str) -> int | None:
    """Parse a number; `None` for anything else, and for numbers that are too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a history, both ends included, and its neighbouring parts."""

    first: int
    last: int
    length: int

    @property
    def width(self) -> int:
        """Number of its revisions."""
        return self.last - self.first + 1

    @property
    def whole(self) -> bool:
        """Whether it is the whole history."""
        return self.width == self.length

    def moved(self, share: float) -> Part:
        """Return a part of the same width, moved by this share of the width."""
        by = round(share * self.width) or (1 if share > 0 else -1)
        first = max(0, min(self.first + by, self.length - self.width))
        return Part(first=first, last=first + self.width - 1, length=self.length)

    def scaled(self, factor: float) -> Part:
        """Return a part around the same middle, wider by this factor."""
        width = max(1, min(self.length, round(self.width * factor)))
        first = max(0, min(self.first + (self.width - width) // 2, self.length - width))
        return Part(first=first, last=first + width - 1, length=self.length)


def part_of(request: Request, series: MetricHistory) -> Part:
    """Return the requested part of a history, within its limits; all of it by default."""
    end = max(0, series.length - 1)
    first, last = (
        min(end, whole_number(request, name, default)) for name, default in (("first", 0), ("last", end))
    )
    return Part(first=min(first, last), last=max(first, last), length=series.length)


def series_of(snapshot: Snapshot, name: str) -> MetricHistory:
    """Return a metric along the history by its name. Raises `HTTPException` for an unknown one."""
    found = snapshot.histories.get(name)
    if found is None:
        raise HTTPException(404, "no such metric")
    return found


def revision_of(request: Request, snapshot: Snapshot) -> Revision:
    """Return the revision in an address. Raises `HTTPException` for an unknown one."""
    return _revision(snapshot, request.path_params["revision"])


def requested_subjects(request: Request, snapshot: Snapshot) -> tuple[Subject, Subject] | None:
    """Return the two requested subjects; `None` without samples.

    By default they are the newest revision in the first and the last variant; with a single variant, the oldest and
    the newest revision. If revisions are named, both have the same variant by default. Raises `HTTPException` for
    unknown names.
    """
    data = snapshot.report_data
    first, second, one, other = (named(request, name) for name in ("a", "b", "va", "vb"))
    if not data.measured:
        return None
    oldest, newest = data.measured[0], data.measured[-1]
    if first or second or len(data.variants) == 1:
        usual = (one or other or data.variants[0],) * 2
    else:
        oldest, usual = newest, default_variants(data, snapshot.rows_of, newest)
    return (
        _subject(snapshot, _revision(snapshot, first) if first else oldest, one or usual[0]),
        _subject(snapshot, _revision(snapshot, second) if second else newest, other or usual[1]),
    )


def _revision(snapshot: Snapshot, text: str) -> Revision:
    try:
        return named_revision(snapshot.report_data, text)
    except UsageError as error:
        raise HTTPException(404, str(error)) from error


def _subject(snapshot: Snapshot, revision: Revision, variant: str) -> Subject:
    if variant not in snapshot.report_data.variants:
        raise HTTPException(404, f"{escaped(variant, longest=60)}: the study has no such variant")
    return Subject(revision=revision, variant=variant)
