"""The two ends: found among what can be built, measured until they are shown to differ, or not to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.policy import READINGS, Choice, breakage
from perftrail.search.purse import may_build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

HOPELESS = 40
"""Give up after so many failures without one usable revision."""

_LEAST_GAIN = 0.01


def inward(revisions: int) -> Iterator[int]:
    """Yield distances from an end at which to look for a usable revision, further and further apart.

    >>> list(inward(20))
    [0, 1, 2, 3, 4, 6, 9, 13, 19]
    """
    distance = 0
    while distance < revisions:
        yield distance
        distance = max(distance + 1, distance * 3 // 2)


def first_look(question: Question, evidence: Evidence) -> tuple[Choice, ...]:
    """Ask for the first readings of both ends: taken one by one in the order low, high, low; none once had.

    The first is what to do next; the others could be done at the same time.
    """
    wanted = question.readings_at_ends
    distances = list(inward(question.revisions))
    low = _end(evidence, distances)
    high = _end(evidence, [question.revisions - 1 - distance for distance in distances])
    steps = [(low, wanted - wanted // 2), (high, wanted), (low, wanted)]
    return tuple(
        Choice(position=end, readings=enough - evidence.count(end), bits=0.0, seconds=0.0)
        for end, enough in steps
        if end is not None and end not in evidence.unusable and evidence.count(end) < enough
    )


def known_level(evidence: Evidence, posterior: Posterior, readings: int) -> Choice | None:
    """Ask for a reference in a block that shares no build with the others; `None` where none is needed.

    It is the build with the most readings among those surest of their side.
    """
    if evidence.is_linked(evidence.block):
        return None
    shares = posterior.at_or_before / max(float(posterior.gaps.sum()), 1e-300)
    usable = [
        (round(min(share, 1 - share), 3), -evidence.count(position), position)
        for position, share in zip(posterior.positions, shares.tolist(), strict=True)
        if position not in evidence.unusable
    ]
    if not usable:
        return None
    return Choice(position=min(usable)[2], readings=readings, bits=0.0, seconds=0.0, reference=True)


def _end(evidence: Evidence, order: list[int]) -> int | None:
    """Return the first of `order` that is usable or not tried; else any between; else `None`."""
    if len(evidence.unusable) >= HOPELESS and len(evidence.positions) < 2:
        return None
    for position in order:
        if evidence.count(position) or position not in evidence.unusable:
            return position
    between = range(min(order), max(order) + 1)
    return next((position for position in between if not evidence.is_attempted(position)), None)


def went_inside(question: Question, posterior: Posterior) -> bool:
    """Whether something was built that is no neighbour of an end."""
    reach = _reach(question)
    return any(reach <= position < question.revisions - reach for position in posterior.positions[1:-1])


def _reach(question: Question) -> int:
    return max(1, question.revisions // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A choice, the variance it takes off, and the most that a choice of its kind could take off."""

    choice: Choice
    gain: float
    most: float


def tell_apart(question: Question, evidence: Evidence, posterior: Posterior) -> Choice | None:
    """Choose what narrows the difference of the ends' levels most per second: readings or a build.

    The variance of a side's level is ``1 / sum_i 1/(tau^2 + sigma^2/n_i)`` over the builds near that end
    (readings do not average layout, builds do: Kalibera and Jones 2013). `None` when nothing can narrow it
    any more.
    """
    reach = _reach(question)
    last = question.revisions - 1
    total = 0.0
    options: list[_Option] = []
    for nearby in (range(reach), range(last, last - reach, -1)):
        near = [position for position in posterior.positions if position in nearby]
        if not near:
            near = [posterior.positions[0 if nearby[0] == 0 else -1]]
        precision = sum(1 / _variance(posterior, evidence.count(position)) for position in near)
        total += 1 / precision
        options += _more_readings(evidence, posterior, near, precision)
        fresh = next((position for position in nearby if not evidence.is_attempted(position)), None)
        if fresh is not None and may_build(question, evidence):
            options.append(_neighbour(evidence, posterior, fresh, precision))
    useful = [option for option in options if option.most >= _LEAST_GAIN * total]
    if not useful:
        return None
    return max(useful, key=lambda option: option.gain / option.choice.seconds).choice


def _variance(posterior: Posterior, readings: int) -> float:
    return posterior.tau**2 + posterior.sigma**2 / readings


def _more_readings(
    evidence: Evidence, posterior: Posterior, near: list[int], precision: float
) -> Iterator[_Option]:
    for position in near:
        if position in evidence.unusable:
            continue
        count = evidence.count(position)
        rest = precision - 1 / _variance(posterior, count)
        added = max(1, min(20, count // 3))
        seconds = added * evidence.seconds_per_reading
        yield _Option(
            choice=Choice(position=position, readings=added, bits=0.0, seconds=seconds),
            gain=1 / precision - 1 / (rest + 1 / _variance(posterior, count + added)),
            most=1 / precision - 1 / (rest + 1 / _variance(posterior, count + 20)),
        )


def _neighbour(evidence: Evidence, posterior: Posterior, position: int, precision: float) -> _Option:
    works = 1 - float(breakage(evidence).probability(np.array([position]))[0])
    ratio = min(20.0, (posterior.sigma / posterior.tau) ** 2)
    readings = int(READINGS[np.searchsorted(READINGS, ratio)])
    gain = 1 / precision - 1 / (precision + 1 / _variance(posterior, readings))
    seconds = evidence.seconds_per_build + works * readings * evidence.seconds_per_reading
    choice = Choice(position=position, readings=readings, bits=0.0, seconds=seconds)
    return _Option(choice=choice, gain=works * gain, most=gain)
