"""Stretches of a history that appear to be broken: facts beside an answer, not part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.model.build import Failure, Stage
    from perftrail.search.answer import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring revisions that were tried and could not be used, nothing usable known between them.

    `first` and `last` are the outermost that were tried, `tried` counts them. `before` and `after` are the
    nearest usable positions around; `None` where the history ends first. `stage` is that of the first.
    """

    first: int
    last: int
    tried: int
    before: int | None
    after: int | None
    stage: Stage


def stretches(
    usable: Collection[int], failures: Mapping[int, Failure], changes: Sequence[Change]
) -> tuple[Stretch, ...]:
    """Give the stretches that border on a change or hold it, or that reach to where nothing usable is known.

    >>> from perftrail.model.build import Failure
    >>> failed = Failure(stage="build", message="")
    >>> [(each.first, each.last, each.before) for each in stretches({0, 4}, {6: failed, 9: failed}, ())]
    [(6, 9, 4)]
    """
    return tuple(each for each in _all(usable, failures) if _matters(each, changes))


def _all(usable: Collection[int], failures: Mapping[int, Failure]) -> Iterator[Stretch]:
    run: list[int] = []
    before: int | None = None
    for position in sorted({*usable, *failures}):
        if position in failures:
            run.append(position)
            continue
        if run:
            yield _stretch(run, failures, before=before, after=position)
        run, before = [], position
    if run:
        yield _stretch(run, failures, before=before, after=None)


def _stretch(
    run: Sequence[int], failures: Mapping[int, Failure], *, before: int | None, after: int | None
) -> Stretch:
    return Stretch(
        first=run[0],
        last=run[-1],
        tried=len(run),
        before=before,
        after=after,
        stage=failures[run[0]].stage,
    )


def _matters(stretch: Stretch, changes: Sequence[Change]) -> bool:
    if stretch.before is None or stretch.after is None:
        return True
    return any(
        stretch.first <= change.positions[-1] + 1 and stretch.last >= change.positions[0] - 2
        for change in changes
        if change.positions
    )
