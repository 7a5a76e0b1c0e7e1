"""A search told in plain words, for `show --search` and the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from perftrail.model.quantity import counted
from perftrail.search.answer import Verdict
from perftrail.search.evidence import Block, Readings, Same, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.search.answer import Answer, Change
    from perftrail.search.evidence import News
    from perftrail.search.snapshot import Belief

_TIMES = ("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times")


def step(news: News, belief: Belief | None, label: Callable[[int], str], *, what: str = "") -> str:
    """Say what was measured and what it made of the search.

    `belief` is the one after the news; `label` names a position; `what` is the figure that was read, or why
    there is none.

    >>> step(Unusable(position=5), None, "r{}".format, what="build")
    'r5 could not be used (build)'
    """
    match news:
        case Unusable():
            done = f"{label(news.position)} could not be used{f' ({what})' if what else ''}"
            return done if belief is None else f"{done}; {left(belief)}"
        case Readings():
            done = f"measured {label(news.position)} {_times(len(news.values))}{f': {what}' if what else ''}"
            if belief is None:
                return done
            side = _side(belief.after_the_change(news.position))
            return f"{done}, {side}; {left(belief)}" if side else f"{done}; {left(belief)}"
        case Same():
            done = f"{label(news.position)} was built to the same as {label(news.like)}"
            return done if belief is None else f"{done}; {left(belief)}"
        case Block():
            return "measured on from here in another block: the machine has changed"
        case _:
            assert_never(news)


def verdict(answer: Answer, label: Callable[[int], str]) -> str:
    """Say the answer in one sentence."""
    match answer.verdict:
        case Verdict.FOUND | Verdict.RANGE | Verdict.SEVERAL:
            return "; ".join(_change(change, label) for change in answer.changes) + f" ({answer.reason})"
        case Verdict.NONE:
            seen = f"no change of {_percent(answer.smallest_seen)} or more"
            return f"{seen}, {_percent(answer.confidence)} sure ({answer.reason})"
        case Verdict.UNCLEAR:
            return f"unclear: {answer.reason}"
        case _:
            assert_never(answer.verdict)


def _change(change: Change, label: Callable[[int], str]) -> str:
    first, last = label(change.positions[0]), label(change.positions[-1])
    where = first if len(change.positions) == 1 else f"one of {len(change.positions)}, {first} to {last}"
    if change.effect is None:
        return f"{where}, {_percent(change.confidence)} sure"
    effect = change.effect
    interval = f"times {effect.value:.3g} [{effect.low:.3g}, {effect.high:.3g}]"
    return f"{where}, {_percent(change.confidence)} sure, {interval}"


def _side(probability: float | None) -> str:
    if probability is None or probability == 0:
        return ""
    if probability >= 0.5:
        return f"{_percent(probability)} it is after the change"
    return f"{_percent(1 - probability)} it is before the change"


def left(belief: Belief) -> str:
    """Say what is left to be told apart."""
    if belief.no_change > 0.5:
        return f"{_percent(belief.no_change)} that nothing changed"
    return f"{counted(belief.candidates, 'candidate')} left"


def _times(count: int) -> str:
    return _TIMES[count] if count < len(_TIMES) else f"{count} times"


def _percent(share: float) -> str:
    """Print a share with as many nines as it has, and never as a round 100 %."""
    percent = 100 * min(share, 0.9999)
    digits = 0 if percent < 99 else 1 if percent < 99.9 else 2
    return f"{percent:.{digits}f} %"
