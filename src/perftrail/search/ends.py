"""The two ends: found among what can be built, measured until they are shown to differ, or not to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.policy import READINGS, Choice, breakage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

HOPELESS = 40
"""Give up after so many failures without one usable revision."""

_LEAST_GAIN = 0.01


def inward(revisions: int) -> Iterator[int]:
    """Distances from an end at which to look for a usable revision: near ones first, then further and further.

    >>> list(inward(20))
    [0, 1, 2, 3, 4, 6, 9, 13, 19]
    """
    distance = 0
    while distance < revisions:
        yield distance
        distance = max(distance + 1, distance * 3 // 2)


def first_look(question: Question, evidence: Evidence) -> Choice | None:
    """Ask for the first readings of both ends, in the order low, high, low; `None` once both have them."""
    wanted = question.readings_at_ends
    low = _end(question, evidence, [*inward(question.revisions)])
    high = _end(question, evidence, [question.revisions - 1 - distance for distance in inward(question.revisions)])
    counts = [0 if end is None else evidence.count(end) for end in (low, high)]
    half = wanted // 2 + wanted % 2
    if low is not None and counts[0] < half:
        return _more(evidence, low, half - counts[0])
    if high is not None and high != low and counts[1] < wanted:
        return _more(evidence, high, wanted - counts[1])
    if low is not None and counts[0] < wanted:
        return _more(evidence, low, wanted - counts[0])
    return None


def _end(question: Question, evidence: Evidence, order: list[int]) -> int | None:
    """The first of `order` that is usable or not tried; then any left between; `None` when there is none."""
    if len(evidence.unusable) >= HOPELESS and not evidence.positions:
        return None
    for position in order:
        if evidence.count(position) or position not in evidence.unusable:
            return position
    for position in range(min(order), max(order) + 1):
        if not evidence.is_attempted(position):
            return position
    return None


def _more(evidence: Evidence, position: int, readings: int) -> Choice | None:
    if position in evidence.unusable:
        return None
    seconds = evidence.seconds_per_reading * readings
    if not evidence.count(position):
        seconds += evidence.seconds_per_build
    return Choice(position=position, readings=readings, bits=0.0, seconds=seconds)


def went_inside(question: Question, posterior: Posterior) -> bool:
    """Whether something was built that is no neighbour of an end."""
    reach = _reach(question)
    last = question.revisions - 1
    inner = posterior.positions[1:-1]
    return any(reach <= position <= last - reach for position in inner)


def _reach(question: Question) -> int:
    return max(1, question.revisions // 8)


def tell_apart(question: Question, evidence: Evidence, posterior: Posterior) -> Choice | None:
    """Choose what narrows the difference of the ends' levels most per second: a reading, or a neighbour's build.

    The variance of a side's level is ``1 / sum_i 1/(tau^2 + sigma^2/n_i)`` over its builds (Kalibera and Jones 2013:
    readings do not average layout, builds do). `None` when nothing can narrow it any more.
    """
    reach = _reach(question)
    layout, scatter = posterior.tau**2, posterior.sigma**2
    total = 0.0
    options: list[tuple[float, float, Choice]] = []
    last = question.revisions - 1
    for end, inside in ((0, 1), (last, -1)):
        near = [position for position in posterior.positions if abs(position - end) < reach]
        if not near:
            near = [posterior.positions[0 if end == 0 else -1]]
        counts = np.array([evidence.count(position) for position in near], dtype=np.float64)
        precision = float((1 / (layout + scatter / counts)).sum())
        total += 1 / precision
        for position, count in zip(near, counts.tolist(), strict=True):
            if position in evidence.unusable:
                continue
            added = max(1, min(20, int(count) // 3))
            more = precision - 1 / (layout + scatter / count) + 1 / (layout + scatter / (count + added))
            most = precision - 1 / (layout + scatter / count) + 1 / (layout + scatter / (count + 20))
            seconds = added * evidence.seconds_per_reading
            choice = Choice(position=position, readings=added, bits=0.0, seconds=seconds)
            options.append(((1 / precision - 1 / more) / seconds, 1 / precision - 1 / most, choice))
        fresh = next(
            (
                end + inside * distance
                for distance in range(reach)
                if not evidence.is_attempted(end + inside * distance)
            ),
            None,
        )
        if fresh is None:
            continue
        works = 1 - float(breakage(evidence).probability(np.array([fresh]))[0])
        readings = int(READINGS[np.searchsorted(READINGS, min(20.0, scatter / layout))])
        more = precision + 1 / (layout + scatter / readings)
        seconds = evidence.seconds_per_build + works * readings * evidence.seconds_per_reading
        gain = 1 / precision - 1 / more
        choice = Choice(position=fresh, readings=readings, bits=0.0, seconds=seconds)
        options.append((works * gain / seconds, gain, choice))
    useful = [(rate, choice) for rate, gain, choice in options if gain >= _LEAST_GAIN * total]
    return max(useful, key=lambda option: option[0])[1] if useful else None
