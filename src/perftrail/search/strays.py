"""Builds that are not like the others on their side of the answer's changes: told, so that nobody overlooks them.

A search for steps takes one such build for an outlier among builds, and rightly goes on: a single one decides
nothing. But a change that the next revision takes back looks the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Stray
from perftrail.search.noise import likely_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.search.answer import Change
    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

LEAST_READINGS = 3
"""A build with fewer readings is not said to be a stray: they might be outliers."""

_LEAST_BUILDS = 3
"""With fewer builds on a side it cannot be told which of them is unlike the others."""


def strays(question: Question, evidence: Evidence, changes: Sequence[Change]) -> tuple[Stray, ...]:
    """Return the builds whose middle readings all lie a smallest change or more from their side's level.

    A side's level is the median of its builds' medians; builds with equal artefacts are one. What lies among
    the candidates of a change is on no side.
    """
    taken = sorted((change.positions[0], change.positions[-1]) for change in changes)
    bounds = [-1, *(bound for candidates in taken for bound in candidates), question.revisions]
    found: list[Stray] = []
    for start, stop in list(pairwise(bounds))[::2]:
        found += _among(question, evidence, range(start + 1 if start < 0 else start, stop))
    return tuple(found)


def _among(question: Question, evidence: Evidence, side: range) -> list[Stray]:
    """Return the strays of one side."""
    builds = [
        position
        for position in evidence.positions
        if position in side and evidence.representative(position) == position and evidence.count(position)
    ]
    if len(builds) < _LEAST_BUILDS:
        return []
    medians = [float(np.median(evidence.values(build))) for build in builds]
    beside = float(np.median(medians))
    found: list[Stray] = []
    for build, level in zip(builds, medians, strict=True):
        away = likely_levels(evidence.values(build)) - beside
        alike = bool((away > 0).all() or (away < 0).all())
        if evidence.count(build) >= LEAST_READINGS and alike and np.abs(away).min() >= question.smallest_log:
            found.append(Stray(position=build, level=float(np.exp(level)), beside=float(np.exp(beside))))
    return found
