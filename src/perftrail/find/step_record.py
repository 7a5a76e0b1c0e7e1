"""Serialise one search step for the store, and describe it in words."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.wording import counted, quantity
from perftrail.search import Batch, Built, Unusable
from perftrail.search.answer import Purpose
from perftrail.search.words import claim_progress, step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.find.sampler import Sampler
    from perftrail.model.build import Failure
    from perftrail.model.json_data import Json
    from perftrail.model.subject import Revision
    from perftrail.search import BatchRequest, Belief, Measure

    Result = Batch | Built | Unusable

MOST_NAMED = 4
"""Maximum number of metrics named in a step's description."""

RECENT_ROUNDS = 5
"""Number of the last rounds whose costs forecast those of further ones."""

MOST_NOISY_STEPS = 3
"""Number of steps in a row with noisy samples that name them; the answer has the total."""


def measured_position(measure: Measure, result: Result) -> int:
    """Return the position that a step is about: that of its build, the one with most runs, or a round's middle one.

    >>> from perftrail.search import Batch, Measure, Unusable
    >>> measured_position(Measure(order=(0, 7, 0, 7, 7)), Batch(samples=(), seconds=1.0))
    7
    >>> measured_position(Measure(order=(9, 4, 5, 0), certificate=True), Batch(samples=(), seconds=1.0))
    5
    >>> measured_position(Measure(order=(9, 4, 5, 0), certificate=True), Unusable(position=4))
    4
    """
    if not isinstance(result, Batch):
        return result.position
    positions = sorted(measure.positions)
    if measure.certificate:
        return positions[len(positions) // 2]
    runs = Counter(measure.order)
    return max(positions, key=lambda position: (runs[position], position))


def action_json(
    batch_request: BatchRequest, about: int, revisions: Sequence[Revision], *, alone: bool, purpose: str
) -> dict[str, Json]:
    """Return a request as data: `measure` and `position` are its subject, `order` is everything that runs.

    `alone`: the search has one metric. `purpose` is why the search took the step, with its progress, in words.
    """
    measure = batch_request.measure
    data: dict[str, Json] = {
        "measure": revisions[about].id,
        "position": about,
        "order": [revisions[position].id for position in measure.order],
    }
    if measure.certificate:
        data["certificate"] = True
    if measure.layout:
        data["layout"] = measure.layout
    if purpose:
        data["purpose"] = purpose
    if not alone:
        data["metrics"] = list(batch_request.names)
    return data


def observation_json(result: Result, about: int, sampler: Sampler, name: str) -> dict[str, Json]:
    """Return a step's observation about a metric as data."""
    failure = sampler.failures(name).get(about)
    if failure is not None:
        why: dict[str, Json] = {"unusable": failure.stage, "message": failure.message, "log": failure.log}
        return {**why, "seconds": result.seconds}
    if isinstance(result, Batch):
        samples: list[Json] = [
            {
                "revision": sampler.revisions[each.position].id,
                "value": each.value,
                **({"noisy": True} if each.noisy else {}),
            }
            for each in result.samples
        ]
        reason = sampler.last_reason(about)
        failed: dict[str, Json] = (
            {} if reason is None else {"stage": reason.stage, "message": reason.message, "log": reason.log}
        )
        return {"values": [*_values(result, about)], "samples": samples, "seconds": result.seconds, **failed}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefChange:
    """The belief about a metric after a step and before it; `None` where there is none to report."""

    after: Belief | None
    before: Belief | None = None


class StepWords:
    """Words of a search's steps, in their order: some depend on the steps before.

    Noisy samples are named in the step that took them. After a few steps in a row with nothing else, the answer's
    total replaces them: on a busy machine every line would repeat them. The costs of rounds forecast further ones.
    `merge` is the merge inside which the steps search; the first step names it.
    """

    def __init__(self, *, merge: Revision | None = None) -> None:
        self._merge = merge
        self._before: dict[str, Belief | None] = {}
        self._noisy_steps = 0
        self._costs: deque[float] = deque(maxlen=RECENT_ROUNDS)

    def describe(
        self,
        batch_request: BatchRequest,
        observation: Mapping[str, Result],
        sampler: Sampler,
        beliefs: Mapping[str, Belief | None],
        *,
        alone: bool,
    ) -> tuple[str, str]:
        """Return the description of a step, and its purpose with the progress.

        `beliefs` are those of all metrics. `alone`: the search has one metric.
        """
        name = batch_request.names[0]
        about = measured_position(batch_request.measure, observation[name])
        batch = next((each for each in observation.values() if isinstance(each, Batch)), None)
        noise = self._noise(batch)
        if batch is not None and batch.certificate:
            self._costs.append(batch.seconds + batch.relink_seconds)
        if alone:
            belief_change = BeliefChange(after=beliefs[name], before=self._before.get(name))
            text = words(observation[name], about, sampler, name, belief_change, noise=noise)
        else:
            text = words_of_several(observation, about, sampler, beliefs, self._before)
        purpose = self._purpose(batch_request, sampler, beliefs[name], self._before.get(name))
        self._before = dict(beliefs)
        if not alone:
            purpose = f"{purpose}, for {name}" if purpose else f"for {name}"
        if self._merge is not None:
            inside = f"to search inside the merge {self._merge.short}"
            purpose = f"{inside}; {purpose}" if purpose else inside
            self._merge = None
        return text, purpose

    def _noise(self, batch: Batch | None) -> str | None:
        """Return the remark about noisy samples of a batch: `None` for their number."""
        if batch is None:
            return None
        noisy = sum(sample.noisy for sample in batch.samples)
        self._noisy_steps = self._noisy_steps + 1 if noisy else 0
        if self._noisy_steps < MOST_NOISY_STEPS:
            return None
        if self._noisy_steps == MOST_NOISY_STEPS:
            return f"{counted(noisy, 'noisy sample')}; the answer counts further ones"
        return ""

    def _purpose(
        self, batch_request: BatchRequest, sampler: Sampler, belief: Belief | None, before: Belief | None
    ) -> str:
        """Return why a metric asked for a step, and how far its rounds are; the last round of a claim decides it."""
        measure = batch_request.measure
        if measure.purpose is not Purpose.ROUND:
            return str(measure.purpose)
        claim = None if belief is None else belief.claim
        if claim is None and before is not None and before.claim is not None:
            claim = replace(before.claim, blocks=before.claim.blocks + 1)
        if claim is None:
            return "to decide what is still open"
        cost = (min(self._costs), max(self._costs)) if self._costs else None
        return claim_progress(claim, lambda at: sampler.revisions[at].short, seconds=cost)


def words(
    result: Result,
    about: int,
    sampler: Sampler,
    name: str,
    belief_change: BeliefChange,
    *,
    noise: str | None = None,
) -> str:
    """Describe a step of a search for one metric; the median represents several samples."""

    def label(position: int) -> str:
        return sampler.revisions[position].short

    failure = sampler.failures(name).get(about)
    if failure is not None:
        return step(
            Unusable(position=about),
            belief_change.after,
            label,
            what=failure.stage,
            before=belief_change.before,
        )
    if isinstance(result, Batch):
        values = _values(result, about)
        what = quantity(statistics.median(values), sampler.targets[name].unit) if values else ""
        if sampler.works:
            what = _outcome_words(result, sampler.last_reason(about))
        return step(
            result,
            belief_change.after,
            label,
            what="" if result.certificate and not sampler.works else what,
            before=belief_change.before,
            noise=noise,
        )
    return step(result, belief_change.after, label, before=belief_change.before)


def _outcome_words(batch: Batch, reason: Failure | None) -> str:
    """Describe runs of a program that works or not; `reason` is why the last one failed."""
    if batch.certificate:
        return f"{sum(each.value == 1.0 for each in batch.samples)} of {len(batch.samples)} worked"
    return "works" if reason is None else f"failed ({reason.stage})"


def words_of_several(
    result: Mapping[str, Result],
    about: int,
    sampler: Sampler,
    beliefs: Mapping[str, Belief | None],
    before: Mapping[str, Belief | None],
) -> str:
    """Describe a step of a search for several metrics, and the number of candidates left."""
    label = sampler.revisions[about].short
    failures = [sampler.failures(name).get(about) for name in result]
    if all(failures):
        assert failures[0] is not None
        return f"{label} is not usable ({failures[0].stage})"
    certificate = any(isinstance(each, Batch) and each.certificate for each in result.values())
    known = (before.get(name) for name in result)
    again = any(each is not None and each.after_the_change(about) is not None for each in known)
    done = f"ran a round around {label}" if certificate else f"measured {label}"
    done += " again" if again and not certificate else ""
    return f"{done}; {candidates_words(beliefs, before)}"


def candidates_words(
    beliefs: Mapping[str, Belief | None], before: Mapping[str, Belief | None] | None = None
) -> str:
    """Describe the remaining candidates: for each of a few metrics, else the number of metrics with more than one.

    A metric that probably did not change has no candidate. A number that grew since the beliefs `before` contains
    how much. Metrics of which only one revision was measured are not described, unless these are all.

    >>> candidates_words({"wall": None, "cpu": None})
    'no other revision to compare with yet'
    """
    counts = {name: _candidates(belief) for name, belief in beliefs.items() if belief is not None}
    if not counts:
        return "no other revision to compare with yet"
    if len(counts) <= MOST_NAMED:
        parts = []
        for name, count in counts.items():
            earlier = _candidates((before or {}).get(name))
            grown = f" ({count - earlier} more)" if 0 < earlier < count else ""
            parts.append(f"{name} {count or 'none'}{grown}")
        return f"candidates: {', '.join(parts)}"
    left = [count for count in counts.values() if count > 1]
    if not left:
        return f"each of {len(counts)} metrics has one candidate or none"
    return f"{len(left)} of {len(counts)} metrics have more than one candidate, at most {max(left)}"


def _candidates(belief: Belief | None) -> int:
    return 0 if belief is None or belief.no_change > 0.5 else belief.candidates


def _values(batch: Batch, about: int) -> list[float]:
    return [each.value for each in batch.samples if each.position == about and each.value is not None]
