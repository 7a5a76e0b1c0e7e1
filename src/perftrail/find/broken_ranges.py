"""Ranges of a history whose revisions were tried and are unusable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.model.build import Failure, Stage
    from perftrail.search.answer import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRange:
    """Consecutive revisions that were tried and were unusable, with no usable revision known between them.

    `first` and `last` are the outermost that were tried; `tried` is their number. `before` and `after` are
    the nearest usable positions around them, or `None` at the end of the history. `stage` is that of the
    first.
    """

    first: int
    last: int
    tried: int
    before: int | None
    after: int | None
    stage: Stage


def find_broken_ranges(
    usable: Collection[int], failures: Mapping[int, Failure], changes: Sequence[Change]
) -> tuple[BrokenRange, ...]:
    """Return the ranges that touch or contain a change, or that reach an end without usable revisions.

    >>> from perftrail.model.build import Failure
    >>> failed = Failure(stage="build", message="")
    >>> [(each.first, each.last, each.before) for each in find_broken_ranges({0, 4}, {6: failed, 9: failed}, ())]
    [(6, 9, 4)]
    """
    return tuple(each for each in _every_broken_range(usable, failures) if _matters(each, changes))


def _every_broken_range(usable: Collection[int], failures: Mapping[int, Failure]) -> Iterator[BrokenRange]:
    run: list[int] = []
    before: int | None = None
    for position in sorted({*usable, *failures}):
        if position in failures:
            run.append(position)
            continue
        if run:
            yield _broken_range(run, failures, before=before, after=position)
        run, before = [], position
    if run:
        yield _broken_range(run, failures, before=before, after=None)


def _broken_range(
    run: Sequence[int], failures: Mapping[int, Failure], *, before: int | None, after: int | None
) -> BrokenRange:
    return BrokenRange(
        first=run[0],
        last=run[-1],
        tried=len(run),
        before=before,
        after=after,
        stage=failures[run[0]].stage,
    )


def _matters(broken_range: BrokenRange, changes: Sequence[Change]) -> bool:
    if broken_range.before is None or broken_range.after is None:
        return True
    return any(
        broken_range.first <= change.positions[-1] + 1 and broken_range.last >= change.positions[0] - 2
        for change in changes
        if change.positions
    )
