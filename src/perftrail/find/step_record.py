"""Serialise one search step for the store, and describe it in words."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING

from perftrail.model.wording import quantity
from perftrail.search import Batch, Built, Unusable
from perftrail.search.words import claim_progress, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.find.sampler import Sampler
    from perftrail.model.json_data import Json
    from perftrail.model.subject import Revision
    from perftrail.search import Belief, Measure, Visit

    Result = Batch | Built | Unusable

MOST_NAMED = 4
"""Maximum number of metrics named in a step's description."""


def measured_position(measure: Measure) -> int:
    """Return the position that a batch is about; for a certificate, the first after the change.

    >>> from perftrail.search import Measure
    >>> measured_position(Measure(order=(0, 7, 0, 7, 7)))
    7
    >>> measured_position(Measure(order=(9, 4, 5, 0), certificate=True))
    5
    """
    positions = sorted(measure.positions)
    if measure.certificate:
        return positions[len(positions) // 2]
    runs = Counter(measure.order)
    return max(positions, key=lambda position: (runs[position], position))


def action_json(visit: Visit, about: int, revisions: Sequence[Revision], *, alone: bool) -> dict[str, Json]:
    """Return a request as data: `measure` and `position` are its subject, `order` is everything that runs."""
    measure = visit.measure
    data: dict[str, Json] = {
        "measure": revisions[about].id,
        "position": about,
        "order": [revisions[position].id for position in measure.order],
    }
    if measure.certificate:
        data["certificate"] = True
    if measure.layout:
        data["layout"] = measure.layout
    if not alone:
        data["metrics"] = list(visit.names)
    return data


def observation_json(result: Result, about: int, sampler: Sampler, name: str) -> dict[str, Json]:
    """Return a step's observation about a metric as data; values are the metric's own, not logarithms."""
    failure = sampler.failures(name).get(about)
    if failure is not None:
        why: dict[str, Json] = {"unusable": failure.stage, "message": failure.message, "log": failure.log}
        return {**why, "seconds": result.seconds}
    if isinstance(result, Batch):
        samples: list[Json] = [
            {
                "revision": sampler.revisions[each.position].id,
                "value": None if each.value is None else math.exp(each.value),
                **({"noisy": True} if each.noisy else {}),
            }
            for each in result.samples
        ]
        return {"values": [*_values(result, about)], "samples": samples, "seconds": result.seconds}
    if isinstance(result, Built) and result.same_as is not None:
        return {"same_as": sampler.revisions[result.same_as].id, "seconds": result.seconds}
    return {"seconds": result.seconds}


def belief_json(belief: Belief | None, revisions: Sequence[Revision]) -> dict[str, Json]:
    """Return the belief after a step: for every built revision, P(the change is at or before it)."""
    if belief is None:
        return {}
    built: list[Json] = [
        {"revision": revisions[position].id, "position": position, "changed": round(share, 6)}
        for position, share in belief.at_or_before
    ]
    return {
        "no_change": round(belief.no_change, 6),
        "candidates": belief.candidates,
        "built": built,
        "before": belief.before,
        "after": belief.after,
        "sigma": belief.sigma,
        "tau": belief.tau,
    }


def words(result: Result, about: int, sampler: Sampler, name: str, belief: Belief | None) -> str:
    """Describe a step of a search for one metric; the median represents several samples."""

    def label(position: int) -> str:
        return sampler.revisions[position].short

    failure = sampler.failures(name).get(about)
    if failure is not None:
        return step(Unusable(position=about), belief, label, what=failure.stage)
    if isinstance(result, Batch):
        values = _values(result, about)
        what = quantity(statistics.median(values), sampler.targets[name].unit) if values else ""
        return step(result, belief, label, what="" if result.certificate else what)
    return step(result, belief, label)


def words_of_several(
    result: Mapping[str, Result], about: int, sampler: Sampler, beliefs: Mapping[str, Belief | None]
) -> str:
    """Describe a step of a search for several metrics, and the number of candidates left."""
    label = sampler.revisions[about].short
    failures = [sampler.failures(name).get(about) for name in result]
    if all(failures):
        assert failures[0] is not None
        return f"{label} is unusable ({failures[0].stage})"
    certificate = any(isinstance(each, Batch) and each.certificate for each in result.values())
    done = "ran a certificate block around" if certificate else "measured"
    return f"{done} {label}; {candidates_words(beliefs)}"


def progress(visit: Visit, beliefs: Iterable[Belief | None]) -> str:
    """Return how far the certificate that takes longest is; empty if the step is no block of one."""
    claims = [each.claim for each in beliefs if each is not None and each.claim is not None]
    if not (visit.measure.certificate and claims):
        return ""
    return claim_progress(max(claims, key=lambda each: each.blocks_left or math.inf))


def candidates_words(beliefs: Mapping[str, Belief | None]) -> str:
    """Describe the remaining candidates: for each of a few metrics, else the number of metrics with more than one.

    A metric that probably did not change has no candidate.
    """
    counts: dict[str, int] = {}
    for name, belief in beliefs.items():
        if belief is None:
            return "no other revision to compare with yet"
        counts[name] = belief.candidates if belief.no_change <= 0.5 else 0
    if len(counts) <= MOST_NAMED:
        return "candidates: " + ", ".join(f"{name} {count or 'none'}" for name, count in counts.items())
    left = [count for count in counts.values() if count > 1]
    if not left:
        return f"each of {len(counts)} metrics has one candidate or none"
    return f"{len(left)} of {len(counts)} metrics have more than one candidate, at most {max(left)}"


def _values(batch: Batch, about: int) -> list[float]:
    return [
        math.exp(each.value) for each in batch.samples if each.position == about and each.value is not None
    ]
