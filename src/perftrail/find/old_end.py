"""Search without a known old end: from further and further back, until a range certainly has a change.

`old_ends` lists the old ends to try, `FindFromNewEnd` searches each range until one has a change. Each of these
searches is recorded like any other, so the whole resumes: a repeated command replays the finished ones.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from perftrail.find.answer import FindTable
from perftrail.find.find import Find
from perftrail.measure.events import WentFurtherBack
from perftrail.model.source import Ends, read_span
from perftrail.model.target import Working
from perftrail.sources.ranges import count_until, moment

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.find.answer import FindAnswer, FindRequest
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session

FIRST_DAYS = (1, 3, 7, 14, 30)
"""Days before the new end of the first old ends; each later one is twice as far away."""

ENDS, END_INVOCATIONS = 2, 120
"""Most builds and invocations of a comparison of two ends; without a sign of a change, a range further back is next."""


def old_ends(times: Sequence[str], *, by_number: bool) -> tuple[int, ...]:
    """Return the positions of the old ends to try, the nearest first; the last one is the beginning.

    `times` are those of all revisions, oldest first, ISO 8601. With `by_number`, or without dates, the steps are
    numbers of revisions: 1, 2, 4, 8, …

    >>> days = [f"2024-03-{day:02}" for day in range(1, 32)]
    >>> old_ends(days, by_number=False), old_ends(days[:10], by_number=True)
    ((29, 27, 23, 16, 0), (8, 7, 5, 1, 0))
    """
    newest = len(times) - 1
    last = moment(times[-1], edge="start") if times else None
    found: list[int] = []
    step = 0
    while newest > 0 and (not found or found[-1] > 0):
        if by_number or last is None:
            at = newest - 2**step
        else:
            days = (
                FIRST_DAYS[step]
                if step < len(FIRST_DAYS)
                else FIRST_DAYS[-1] * 2 ** (step - len(FIRST_DAYS) + 1)
            )
            at = _position_before(times, newest, days)
        if not found or at < found[-1]:
            found.append(max(at, 0))
        step += 1
    return tuple(found)


def _position_before(times: Sequence[str], newest: int, days: int) -> int:
    """Return the position of the last revision that is at least some days older than the newest."""
    last = moment(times[newest], edge="start")
    assert last is not None, times[newest]
    try:
        return count_until(last - timedelta(days=days), times[:newest]) - 1
    except OverflowError:
        return 0


def has_open_old_end(range: str | None) -> bool:
    """Return whether a range names only its new end: ``..HEAD``."""
    try:
        span = None if range is None else read_span(range)
    except ValueError:
        return False
    return isinstance(span, Ends) and not span.old and bool(span.new)


class FindFromNewEnd:
    """A search of a range whose old end is unknown."""

    def __init__(self, session: Session, request: FindRequest) -> None:
        self._session = session
        self._request = request

    def events(self) -> Generator[Event, None, FindAnswer | FindTable]:
        """Search ranges with the same new end; yield events and return the answer of the first one with a change.

        All searches share the error probability and the time budget.
        """
        revisions = self._session.source.history(self._request.range)
        table = self._session.study.searched_source
        by_number = table.walk == "tags" or table.kind == "release"
        positions = old_ends([revision.time for revision in revisions], by_number=by_number)
        if not positions:
            return (yield from Find(self._session, self._request).events())
        result = None
        budget = self._request.budget
        for number, position in enumerate(positions, start=1):
            if result is not None:
                yield WentFurtherBack(since=revisions[positions[number - 2]], unclear=result.unclear)
            # The shares of all searches, 1/2, 1/6, 1/12, …, add up to the error of the request.
            error = (1.0 - self._request.confidence) / (number * (number + 1))
            request = replace(
                self._request,
                range=f"{revisions[position].id}..{revisions[-1].id}",
                confidence=1.0 - error,
                budget=budget,
            )
            began = self._session.clock()
            result = yield from self._search(request, is_last=position == 0)
            budget = budget.without(builds=0, invocations=0, seconds=self._session.clock() - began)
            if _has_change(result) or budget.seconds == 0.0:
                break
        assert result is not None
        return result

    def _search(
        self, request: FindRequest, *, is_last: bool
    ) -> Generator[Event, None, FindAnswer | FindTable]:
        """Search one range: only its ends first, and all of it if they may differ or if no range is left."""
        goal = request.goal
        if not is_last and not isinstance(goal, Working):
            limit = END_INVOCATIONS * len({target.benchmark for target in goal})
            brief = replace(request.budget, builds=ENDS, invocations=limit)
            ends = yield from Find(self._session, replace(request, budget=brief)).events()
            if not any(each.answer.changes or each.answer.suspected for each in _answers(ends)):
                return ends
        return (yield from Find(self._session, request).events())


def _has_change(result: FindAnswer | FindTable) -> bool:
    return any(each.answer.changes for each in _answers(result))


def _answers(result: FindAnswer | FindTable) -> tuple[FindAnswer, ...]:
    return result.answers if isinstance(result, FindTable) else (result,)
