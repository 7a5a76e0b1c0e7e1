"""Requests and answers of `find`, with revisions in place of positions.

The JSON form of an answer is a contract.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.find.instruction_search import NO_COUNTS
from perftrail.find.journal import NO_WORK, MachineBootJson
from perftrail.find.priors import performance_words
from perftrail.model.benchmark import Value
from perftrail.model.build import Stage
from perftrail.model.metrics import Better
from perftrail.model.source import NO_PINS, PinsJson
from perftrail.model.target import Working
from perftrail.model.wording import counted
from perftrail.search import Costs, Origin, Question
from perftrail.search.answer import Kind, Verdict
from perftrail.search.budget import BUILDS_SPENT, INVOCATIONS_SPENT, TIME_SPENT
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.find.broken_ranges import BrokenRange
    from perftrail.find.instruction_search import InstructionCounts
    from perftrail.find.journal import MachineBoot, Work
    from perftrail.find.other_metrics import AlsoChanged
    from perftrail.find.sampler import Sampler
    from perftrail.model.build import Failure
    from perftrail.model.source import Pins
    from perftrail.model.study import Prior
    from perftrail.model.subject import Merge, Revision
    from perftrail.model.target import Goal, Target
    from perftrail.search import Answer, Budget, Change, Effect, Summary
    from perftrail.search.answer import Suspicion


class EffectJson(TypedDict):
    """The ratio after/before with its interval."""

    value: float
    low: Annotated[float | None, "null: unbounded"]
    high: Annotated[float | None, "null: unbounded"]
    confidence: Annotated[float, "confidence of the interval"]


class DifferenceEffectJson(TypedDict):
    """The difference after − before with its interval, for metrics that have no ratio; of rates in shares."""

    difference: float
    low: float
    high: float
    confidence: Annotated[float, "confidence of the interval"]


class LevelsJson(TypedDict):
    """The size of a change. Without a usable revision on one side, its levels and effect are null."""

    confidence: Annotated[float, "probability that the culprit is among the revisions"]
    before: Annotated[float | None, "level before the change, in the metric's unit"]
    after: Annotated[float | None, "level after the change, in the metric's unit"]
    effect: EffectJson | DifferenceEffectJson | None


class NamedRevisionJson(TypedDict):
    """A revision with its label and the first line of its message."""

    revision: str
    label: str
    summary: str


class InsideMergeJson(LevelsJson):
    """The origin of a change whose culprit is a merge, with the search on its branch."""

    revisions: Annotated[list[str], "candidates for the culprit, oldest first"]
    named: list[NamedRevisionJson]
    inside: Annotated[
        InsideMergeJson | None, "the search on the culprit's branch, if the culprit is a merge, too"
    ]
    origin: Origin
    origin_confidence: Annotated[float, "probability of the origin"]
    reason: Annotated[str, "why the search on the branch ended"]


class FindCertificateJson(TypedDict):
    """The evidence for an answer from rounds of interleaved runs."""

    blocks: Annotated[int, "number of rounds that ran both builds"]
    invocations: int
    error: Annotated[
        float,
        "bound of the probability of such evidence without a change; if equal: with one of the threshold",
    ]
    layouts: Annotated[int, "number of memory layouts; 1: builds as their recipe links them"]
    single_change: Annotated[bool, "whether the rounds also exclude further changes of the threshold or more"]
    possible: Annotated[
        float | None,
        "the largest other change that is not excluded, as a ratio minus one or a difference; null: unbounded",
    ]
    spread: Annotated[
        float | None, "ratio of the spread of samples after the change to that before; null: too few values"
    ]


class AlsoChangedJson(TypedDict):
    """Another metric that changed at the same revision."""

    metric: str
    point: dict[str, Value]
    unit: str
    better: Better
    effect: EffectJson


class FindChangeJson(LevelsJson):
    """One change: the candidates for its culprit, and its size."""

    revisions: Annotated[list[str], "candidates for the culprit, oldest first"]
    named: list[NamedRevisionJson]
    kind: Kind
    at_least: Annotated[
        bool, "whether runs on the slower side timed out, so that the effect is a lower bound"
    ]
    notes: Annotated[list[str], "candidates whose messages mention speed or memory"]
    certificate: FindCertificateJson | None
    also_changed: list[AlsoChangedJson]
    inside: Annotated[InsideMergeJson | None, "the search on the branch, if the culprit is a merge"]


class FindFailureJson(TypedDict):
    """A revision that was tried, without a usable sample."""

    revision: str
    stage: Stage
    message: str
    log: str


class BrokenRangeJson(TypedDict):
    """Neighbouring tried revisions that are all unusable: the first and the last. `stage` is where the first failed."""

    revisions: list[str]
    stage: Stage
    tried: int
    usable_before: str | None
    usable_after: str | None


class SuspicionJson(TypedDict):
    """A change that is likely, and that the rounds did not certify."""

    revisions: list[str]
    confidence: float
    evidence: Annotated[float, "evidence so far, as an e-value: 1 is none"]
    needed: Annotated[float, "e-value at which the change is certified"]
    blocks_left: Annotated[int | None, "forecast of the number of further rounds; null: no forecast"]
    possible: Annotated[
        float | None,
        "the largest change that is not excluded, as a ratio minus one or a difference; null: unbounded",
    ]
    observed: Annotated[
        float | None,
        "ratio after/before, or difference, in the rounds, without an interval; null: it was not compared",
    ]
    doubted: Annotated[bool, "whether memory layouts may explain the difference"]


class RatioJson(TypedDict):
    """A ratio of later to earlier builds with its 95 % interval."""

    ratio: float
    low: float
    high: float


class DifferenceJson(TypedDict):
    """A difference of later and earlier builds with its 95 % interval; of rates in shares: 0.1 is 10 points."""

    difference: float
    low: float
    high: float


class UnseenJson(TypedDict):
    """The longest part of the history without a measured build."""

    revisions: Annotated[int, "number of revisions in it"]
    after: Annotated[str, "the measured revision before it"]
    before: Annotated[str, "the measured revision after it"]


class FindAnswerJson(PinsJson):
    """The answer of a search for one metric, and its cost."""

    verdict: Verdict
    goal: Literal["works", "metric"]
    scale: Annotated[
        Scale, "how values are compared: by their ratio, their difference, or as a rate of 0 and 1"
    ]
    metric: str
    benchmark: str
    variant: str
    unit: str
    better: Better
    linked: Annotated[
        bool, "whether a linker produced the measured program, so that its memory layout may matter"
    ]
    pinned: Annotated[
        bool, "whether its layouts place code that a commit does not change alike in all builds"
    ]
    unpinned: Annotated[
        str, "why a linked program's layouts are not pinned; empty if they are, or are not wanted"
    ]
    revisions: Annotated[int, "number of revisions in the range"]
    builds: Annotated[int, "number of builds, failed ones included"]
    unbuildable: Annotated[list[str], "revisions without a usable sample"]
    failures: list[FindFailureJson]
    broken_ranges: list[BrokenRangeJson]
    invocations: int
    discarded: Annotated[int, "noisy samples that were repeated"]
    repeated: Annotated[int, "runs whose end was no result, and that were repeated: retry_on"]
    noisy: Annotated[int, "noisy samples that the answer uses"]
    mostly_noisy: Annotated[bool, "whether these are more than half of all samples"]
    seconds: float
    confidence: Annotated[float, "probability that the verdict is right; if unclear, of the likeliest change"]
    minimum_detectable: Annotated[
        float | None,
        "no further change of this size is between the measured builds: relative, or a difference on the scale",
    ]
    certificate: Annotated[
        FindCertificateJson | None, "evidence for the verdict none; each change has separate evidence"
    ]
    ends: Annotated[
        RatioJson | DifferenceJson | None, "difference of the outermost measured builds; null: not compared"
    ]
    rest: Annotated[RatioJson | DifferenceJson | None, "what the changes do not explain of it"]
    unseen: Annotated[UnseenJson | None, "null: every revision that can be built was measured"]
    below_threshold: Annotated[list[FindChangeJson], "changes that exist and are smaller than the threshold"]
    suspected: list[SuspicionJson]
    machine: str
    tools: Annotated[list[str], "the versions of the tools that built all measured revisions"]
    boots: list[MachineBootJson]
    other_machines: list[str]
    priors: list[str]
    searched_metric: Annotated[
        str, "the metric that located the changes: instructions, if their counts did; else the requested one"
    ]
    certified_metric: Annotated[str | None, "the metric that the rounds compare; null: nothing is certified"]
    reason: Annotated[str, "why the search ended"]
    changes: Annotated[list[FindChangeJson], "of the threshold or more, in the order of the history"]


class FindTableJson(PinsJson):
    """The answers of a search for several metrics, and the total cost. Costs of single answers must not be added."""

    metrics: list[FindAnswerJson]
    revisions: int
    builds: int
    unusable: Annotated[int, "number of revisions without a usable sample of any metric"]
    invocations: int
    seconds: float
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableRevision:
    """A revision that was tried, without a usable sample, and the reason.

    `study_line` is the line of the study to look at, for example ``perftrail.toml:7 (build.steps)``; empty if unknown.
    """

    revision: Revision
    failure: Failure
    study_line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideMerge:
    """The origin of a change whose culprit is a merge.

    `revisions` are those of the branch that was searched, its base first. `change` is the change found in it.
    Both are empty if the change has another origin. `confidence` is the probability of `origin`. `reason`
    states why the search ended. `inside` is the next search if the culprit is itself a merge.
    """

    merge: Merge
    origin: Origin
    confidence: float
    reason: str
    revisions: tuple[Revision, ...] = ()
    change: Change | None = None
    inside: InsideMerge | None = None

    @property
    def candidates(self) -> tuple[Revision, ...]:
        """Revisions that may be the culprit, oldest first; the merge itself if only it can be."""
        if self.change is not None:
            return tuple(self.revisions[position] for position in self.change.positions)
        return (self.merge.revision,) if self.origin == "combination" else ()

    def as_json(self) -> InsideMergeJson:
        """Return it in the form of a change, with its origin."""
        shape: LevelsJson = (
            {"confidence": self.confidence, "before": None, "after": None, "effect": None}
            if self.change is None
            else _levels(self.change)
        )
        return {
            "revisions": [revision.id for revision in self.candidates],
            "named": [_named(revision) for revision in self.candidates],
            **shape,
            "inside": None if self.inside is None else self.inside.as_json(),
            "origin": self.origin,
            "origin_confidence": self.confidence,
            "reason": self.reason,
        }


def noisy_words(noisy: int, *, no_change: bool, mostly: bool = False) -> Iterator[str]:
    """Yield notes that noisy samples were used, and what they can hide; `no_change`: the answer has no change.

    >>> list(noisy_words(2, no_change=False))
    ['used 2 noisy samples, taken while other processes used the machine']
    >>> [words[:49] for words in noisy_words(2, no_change=True)][1:], list(noisy_words(0, no_change=True))
    (['noise can hide a change that shows only on a quie'], [])
    """
    if mostly:
        yield "other processes used the machine during most samples"
    elif noisy:
        yield f"used {counted(noisy, 'noisy sample')}, taken while other processes used the machine"
    if noisy and no_change:
        yield (
            "noise can hide a change that shows only on a quiet machine, for example in how threads scale; "
            '[measure] quiet = "wait 60s" measures only on a quiet machine'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FindAnswer:
    """A search's answer and its cost. `builds` includes failed builds; `seconds` is the total time.

    `inside` is, for each change by its number, the search inside its merge; `also` lists other metrics that
    changed. `broken_ranges` are ranges of unusable revisions. `priors` describes the prior in words. `discarded`
    samples were noisy and were repeated; `noisy` samples were used although noisy; `repeated` runs had an end that is
    no result. `boots` are the machine's boot sessions of the samples, `tools` the versions of the tools of all
    builds. `other_machines` describes other machines with the same search. `new` is the work that this command
    performed; the rest was stored. `with_notes`: the search was asked to use the revisions' messages as a prior.
    `linked`: whether a linker produced the measured program. `can_relink`: whether it can be linked in other layouts;
    `pinned`: by recorded links, which place unchanged code alike; `unpinned` states why not. `timed_out` are the
    positions with a run that exceeded its time, a value of at least the limit. `counts` are the instructions of
    builds that guided the search. `shown_as` is the number of this search in `perftrail show --search`; empty for the
    last search, which needs no number.
    """

    answer: Answer
    target: Target | Working
    revisions: tuple[Revision, ...]
    builds: int
    unusable: tuple[UnusableRevision, ...]
    invocations: int
    seconds: float
    machine: str
    inside: Mapping[int, InsideMerge]
    also: Mapping[int, tuple[AlsoChanged, ...]] = field(default_factory=dict)
    broken_ranges: tuple[BrokenRange, ...] = ()
    priors: tuple[str, ...] = ()
    discarded: int = 0
    repeated: int = 0
    noisy: int = 0
    boots: tuple[MachineBoot, ...] = ()
    tools: tuple[str, ...] = ()
    other_machines: tuple[str, ...] = ()
    with_notes: bool = False
    pins: Pins = NO_PINS
    shown_as: str = ""
    linked: bool = True
    can_relink: bool = False
    pinned: bool = False
    unpinned: str = ""
    new: Work = NO_WORK
    counts: InstructionCounts = NO_COUNTS
    timed_out: frozenset[int] = frozenset()

    @property
    def searched_metric(self) -> str:
        """The metric that located the changes: instructions if their counts did, else the requested one."""
        located = set(self.counts.located())
        found = [change.positions for change in self.answer.changes]
        by_counts = found and all(len(each) == 1 and each[0] in located for each in found)
        return "instructions" if by_counts else self.target.text

    @property
    def certified_metric(self) -> str | None:
        """The metric that the rounds compared, if something is certified."""
        certificates = (self.answer.certificate, *(change.certificate for change in self.answer.changes))
        return self.target.text if any(certificates) else None

    @property
    def name(self) -> str:
        """The metric's name, with its variant if there is one."""
        variant = "" if self.target.variant == "plain" else f" ({self.target.variant})"
        return f"{self.target.text}{variant}"

    @property
    def unit_of_differences(self) -> str:
        """The unit of a change; empty for ratios and rates."""
        return self.target.unit if self.answer.scale is Scale.DIFFERENCE else ""

    @property
    def unusable_count(self) -> int:
        """Number of revisions that were tried, without a usable sample; skipped revisions do not count."""
        return sum(each.failure.stage != "skipped" for each in self.unusable)

    @property
    def unclear(self) -> bool:
        """Whether the search reached no answer."""
        return self.answer.verdict == "unclear"

    @property
    def mostly_noisy(self) -> bool:
        """Whether other processes used the machine during more than half of the samples that the answer uses."""
        invocations_per_sample = 1 if isinstance(self.target, Working) else len(self.target.points)
        return 2 * self.noisy * invocations_per_sample > self.invocations

    @property
    def stopped_by_budget(self) -> bool:
        """Whether a budget ended the search."""
        return self.answer.reason in (TIME_SPENT, BUILDS_SPENT, INVOCATIONS_SPENT)

    def candidates(self, change: Change) -> tuple[Revision, ...]:
        """Return the revisions that may be the culprit of a change, oldest first."""
        return tuple(self.revisions[position] for position in change.positions)

    def notes(self, change: Change) -> Mapping[Revision, str]:
        """Return the candidates whose messages mention speed or memory, each with the word that raised its prior."""
        candidates = self.candidates(change) if self.with_notes else ()
        return {candidates[number]: word for number, word in performance_words(candidates).items()}

    def is_lower_bound(self, change: Change) -> bool:
        """Whether runs on the slower side of a change exceeded their time, so that it is at least as large."""
        if change.effect is None or isinstance(self.target, Working) or self.target.limit is None:
            return False
        is_slower = change.effect.size > 0.0
        position, level = (
            (change.positions[-1], change.after)
            if is_slower
            else (max(0, change.positions[0] - 1), change.before)
        )
        return position in self.timed_out and (level or 0.0) > self.target.limit / 2

    def as_json(self) -> FindAnswerJson:
        """Return the answer as `find --json` prints it: ids are full, numbers that do not exist are null."""
        return {
            "verdict": self.answer.verdict,
            **self.pins.as_json(),
            "goal": "works" if isinstance(self.target, Working) else "metric",
            "scale": self.answer.scale,
            "metric": self.target.text,
            "benchmark": self.target.benchmark,
            "variant": self.target.variant,
            "unit": self.target.unit,
            "better": self.target.better,
            "linked": self.linked,
            "pinned": self.pinned,
            "unpinned": self.unpinned,
            "revisions": len(self.revisions),
            "builds": self.builds,
            "unbuildable": [each.revision.id for each in self.unusable],
            "failures": [
                {
                    "revision": each.revision.id,
                    "stage": each.failure.stage,
                    "message": each.failure.message,
                    "log": each.failure.log,
                }
                for each in self.unusable
            ],
            "broken_ranges": [self._broken_range(each) for each in self.broken_ranges],
            "invocations": self.invocations,
            "discarded": self.discarded,
            "repeated": self.repeated,
            "noisy": self.noisy,
            "mostly_noisy": self.mostly_noisy,
            "seconds": round(self.seconds, 3),
            "confidence": self.answer.confidence,
            "minimum_detectable": _finite(self.answer.minimum_detectable),
            "certificate": _certificate(self.answer.certificate),
            "ends": _difference(self.answer.ends),
            "rest": _difference(self.answer.rest),
            "unseen": self._unseen(),
            "below_threshold": [self._change(None, each) for each in self.answer.below_threshold],
            "suspected": [self._suspected(each) for each in self.answer.suspected],
            "machine": self.machine,
            "tools": list(self.tools),
            "boots": [boot.as_json() for boot in self.boots],
            "other_machines": list(self.other_machines),
            "priors": list(self.priors),
            "searched_metric": self.searched_metric,
            "certified_metric": self.certified_metric,
            "reason": self.answer.reason,
            "changes": [self._change(number, change) for number, change in enumerate(self.answer.changes)],
        }

    def _unseen(self) -> UnseenJson | None:
        if self.answer.unseen is None:
            return None
        low, high = self.answer.unseen
        return {
            "revisions": high - low - 1,
            "after": self.revisions[low].id,
            "before": self.revisions[high].id,
        }

    def _change(self, number: int | None, change: Change) -> FindChangeJson:
        """Return a change; `number` is that of a change in the answer, `None` for one below the threshold."""
        inside = None if number is None else self.inside.get(number)
        return {
            "revisions": [revision.id for revision in self.candidates(change)],
            "named": [_named(revision) for revision in self.candidates(change)],
            **_levels(change),
            "kind": change.kind,
            "at_least": self.is_lower_bound(change),
            "notes": [revision.id for revision in self.notes(change)],
            "certificate": _certificate(change.certificate),
            "also_changed": [_also(each) for each in (() if number is None else self.also.get(number, ()))],
            "inside": None if inside is None else inside.as_json(),
        }

    def _suspected(self, suspicion: Suspicion) -> SuspicionJson:
        return {
            "revisions": [self.revisions[position].id for position in suspicion.positions],
            "confidence": suspicion.confidence,
            "evidence": suspicion.evidence,
            "needed": suspicion.needed,
            "blocks_left": suspicion.blocks_left,
            "possible": _finite(suspicion.possible),
            "observed": suspicion.observed,
            "doubted": suspicion.doubted,
        }

    def _broken_range(self, broken_range: BrokenRange) -> BrokenRangeJson:
        def named(position: int | None) -> str | None:
            return None if position is None else self.revisions[position].id

        return {
            "revisions": [self.revisions[broken_range.first].id, self.revisions[broken_range.last].id],
            "stage": broken_range.stage,
            "tried": broken_range.tried,
            "usable_before": named(broken_range.before),
            "usable_after": named(broken_range.after),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTable:
    """Answers about several metrics from one search. Each cost is that of the whole search up to this answer.

    `shown_as` is as in `FindAnswer`.
    """

    answers: tuple[FindAnswer, ...]
    revisions: tuple[Revision, ...]
    builds: int
    invocations: int
    seconds: float
    machine: str
    pins: Pins = NO_PINS
    shown_as: str = ""
    new: Work = NO_WORK

    @property
    def unusable_count(self) -> int:
        """Number of revisions without a usable sample of any metric."""
        failed = [
            {each.revision.id for each in answer.unusable if each.failure.stage != "skipped"}
            for answer in self.answers
        ]
        return len(set.intersection(*failed))

    @property
    def unclear(self) -> bool:
        """Whether the search found no change, and reached no answer about at least one metric."""
        found = any(answer.answer.changes for answer in self.answers)
        return not found and any(answer.unclear for answer in self.answers)

    def as_json(self) -> FindTableJson:
        """Return the answers as `find --json` prints them: each in the form of a single answer, and the total cost."""
        return {
            "metrics": [answer.as_json() for answer in self.answers],
            **self.pins.as_json(),
            "revisions": len(self.revisions),
            "builds": self.builds,
            "unusable": self.unusable_count,
            "invocations": self.invocations,
            "seconds": round(self.seconds, 3),
            "machine": self.machine,
        }


def by_culprit(answers: Sequence[FindAnswer]) -> Mapping[tuple[str, ...], list[tuple[FindAnswer, int]]]:
    """Group the changes of several answers by their candidates, in the order of the history."""
    order = {revision.id: number for answer in answers for number, revision in enumerate(answer.revisions)}
    gathered: dict[tuple[str, ...], list[tuple[FindAnswer, int]]] = {}
    for answer in answers:
        for number, change in enumerate(answer.answer.changes):
            ids = tuple(revision.id for revision in answer.candidates(change))
            gathered.setdefault(ids, []).append((answer, number))
    return dict(sorted(gathered.items(), key=lambda item: [order[id_] for id_ in item[0]]))


def _named(revision: Revision) -> NamedRevisionJson:
    return {"revision": revision.id, "label": revision.label, "summary": revision.summary}


def _levels(change: Change) -> LevelsJson:
    effect = change.effect
    return {
        "confidence": change.confidence,
        "before": change.before,
        "after": change.after,
        "effect": None if effect is None else _effect_json(effect),
    }


def _effect_json(effect: Effect) -> EffectJson | DifferenceEffectJson:
    if effect.scale is Scale.RATIO:
        return _effect(effect)
    return {"difference": effect.value, "low": effect.low, "high": effect.high, "confidence": 0.95}


def _effect(effect: Effect) -> EffectJson:
    return {"value": effect.value, "low": effect.low, "high": effect.high, "confidence": 0.95}


def _difference(effect: Effect | None) -> RatioJson | DifferenceJson | None:
    if effect is None:
        return None
    if effect.scale is Scale.RATIO:
        return {"ratio": effect.value, "low": effect.low, "high": effect.high}
    return {"difference": effect.value, "low": effect.low, "high": effect.high}


def _certificate(summary: Summary | None) -> FindCertificateJson | None:
    """Return the evidence of an answer as data; `possible` is the largest other change that is not excluded."""
    if summary is None:
        return None
    return {
        "blocks": summary.blocks,
        "invocations": summary.invocations,
        "error": summary.error,
        "layouts": summary.layouts,
        "single_change": summary.is_only_change,
        "possible": _finite(summary.possible),
        "spread": summary.spread,
    }


def _also(changed: AlsoChanged) -> AlsoChangedJson:
    return {
        "metric": changed.metric,
        "point": dict(changed.point.values),
        "unit": changed.unit,
        "better": changed.better,
        "effect": _effect(changed.effect),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


DEFAULT_COSTS = Costs()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """What to find: metrics, part of the history, threshold, confidence and budget.

    `thorough` also searches for reverted changes. `priors` are the priors to use, if they have data;
    `suspect` are the paths of the path prior.
    """

    goal: Goal
    range: str | None
    threshold: float
    confidence: float
    budget: Budget
    thorough: bool = False
    priors: tuple[Prior, ...] = ()
    suspect: tuple[str, ...] = ()

    def question(
        self,
        revisions: int,
        sampler: Sampler | None = None,
        target: Target | None = None,
        *,
        prior: tuple[float, ...] | None = None,
        costs: Costs = DEFAULT_COSTS,
        built: frozenset[int] = frozenset(),
        distance: tuple[float, ...] | None = None,
        seed: int = 0,
    ) -> Question:
        """Return the search's question over `revisions` revisions, with the properties of a sampler and a target."""
        return Question(
            revisions=revisions,
            threshold=self.threshold,
            confidence=self.confidence,
            budget=self.budget,
            scale=Scale.RATIO if target is None or target.scale is None else Scale(target.scale),
            adapts=target is not None and target.scale is None,
            prior=prior,
            costs=costs,
            thorough=self.thorough,
            invocations_per_sample=1 if sampler is None else len(sampler.points),
            relinks=sampler is not None and sampler.can_relink,
            linked=sampler is None or sampler.is_linked,
            counted=target is not None and target.is_amount,
            built=built,
            distance=distance,
            seed=seed,
        )
