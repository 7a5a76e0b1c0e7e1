"""Record everything reported to a search: samples in batches, failed revisions, equal artefacts, boot sessions.

`search.drift` corrects the samples for the machine's changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

import numpy as np

from perftrail.model.noisy_samples import is_always_noisy
from perftrail.search.drift import Drift, RecordedBatch
from perftrail.search.observation import Batch, BootSession, Built, CannotRelink, Unusable
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    import numpy.typing as npt

    from perftrail.search.observation import Observation
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]


LEAST_COUNT = 9.5
"""Smaller whole numbers may be rounded times."""


class Evidence:
    """The record of a search. Positions with equal artefacts are one build, named by the first of them."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._batches: list[RecordedBatch] = []
        self._same: dict[int, int] = {}
        self._sampled: set[int] = set()
        self._samples: dict[int, tuple[Floats, ...]] | None = None
        self._corrected_by: int | None = None
        self._rounds: list[dict[int, float]] = []
        self._in_rounds: set[int] = set()
        self._is_strict = True
        self._raw: dict[int, Floats] | None = None
        self._tick: float | None = None
        self.build_log: list[tuple[int, float]] = []
        self._sample_seconds = 0.0
        self._sample_count = 0
        self._relinks: list[float] = []
        self._noisy = 0
        self._calm = False
        self.session = ""
        self.relinks = question.relinks
        self.built: set[int] = set()
        self.unusable: set[int] = set()
        self.version = 0
        self.reference: int | None = None
        self.invocations = 0
        self.seconds = 0.0

    def add(self, observation: Observation) -> None:
        """Record an observation. Raises `ValueError` for a position outside the history."""
        match observation:
            case Batch():
                self._add_batch(observation)
            case Built():
                self._check(observation.position)
                self._spend_on_build(observation.position, observation.seconds)
                self.built.add(observation.position)
                if observation.same_as is not None:
                    self._check(observation.same_as)
                    self._join(observation.position, observation.same_as)
            case Unusable():
                self._check(observation.position)
                self.unusable.add(observation.position)
                self._spend_on_build(observation.position, observation.seconds)
            case BootSession():
                self.session = observation.name
            case CannotRelink():
                self.relinks = False
            case _:
                assert_never(observation)
        if not (isinstance(observation, Batch) and observation.certificate):
            self._samples = None
        self._raw = self._tick = None
        self.version += 1

    def _add_batch(self, batch: Batch) -> None:
        for sample in batch.samples:
            self._check(sample.position)
        good = [sample for sample in batch.samples if sample.value is not None]
        self._sampled |= {self.build_of(sample.position) for sample in good}
        self._batches.append(self._recorded(batch, self.session))
        self._noisy += sum(sample.noisy for sample in batch.samples)
        if not batch.stored:
            self._spend_on_samples(batch)
        if self._is_strict == self.is_always_noisy:
            self._find_rounds()
        elif batch.certificate:
            self._rounds.append(self._round_of(self._batches[-1]))
            self._in_rounds |= self._batches[-1].groups.keys()

    def _spend_on_samples(self, batch: Batch) -> None:
        self._sample_seconds += batch.seconds
        self._sample_count += len(batch.samples)
        self.invocations += len(batch.samples) * self._question.invocations_per_sample
        self.seconds += batch.seconds + batch.relink_seconds
        if batch.layout:
            builds = len({sample.position for sample in batch.samples})
            self._relinks.append(batch.relink_seconds / max(builds, 1))

    def _recorded(self, batch: Batch, session: str) -> RecordedBatch:
        values = tuple(
            (self.build_of(sample.position), self._question.scale.level(sample.value))
            for sample in batch.samples
            if sample.value is not None
        )
        by_build: dict[int, list[float]] = {}
        for build, value in values:
            by_build.setdefault(build, []).append(value)
        groups = {build: np.sort(np.array(group)) for build, group in by_build.items()}
        means = {build: float(group.mean()) for build, group in groups.items()}
        return RecordedBatch(batch=batch, session=session, values=values, groups=groups, means=means)

    def _check(self, position: int) -> None:
        if not 0 <= position < self._question.revisions:
            last = self._question.revisions - 1
            raise ValueError(f"position {position}: the history has positions 0 to {last}")

    def _spend_on_build(self, position: int, seconds: float) -> None:
        if seconds > 0:
            self.build_log.append((position, seconds))
        self.seconds += seconds

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self.build_of(one), self.build_of(other)))
        for position in {*self._same, one, other}:
            if self.build_of(position) == second:
                self._same[position] = first
        if second in self._sampled:
            self._sampled = self._sampled - {second} | {first}
        if self.reference == second:
            self.reference = first
        self._batches = [self._recorded(each.batch, each.session) for each in self._batches]
        self._find_rounds()

    def build_of(self, position: int) -> int:
        """Return the first position with an artefact equal to a position's; usually the position itself."""
        return self._same.get(position, position)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions whose build has usable samples, ascending."""
        return self._alike(self._measured)

    @property
    def guiding_positions(self) -> tuple[int, ...]:
        """The positions whose build has usable samples outside rounds, ascending."""
        return self._alike(self._corrected().keys())

    def _alike(self, builds: Set[int]) -> tuple[int, ...]:
        return tuple(sorted({*builds, *(each for each in self.built if self.build_of(each) in builds)}))

    @property
    def _measured(self) -> Set[int]:
        """The builds with usable samples: those of rounds need no correction."""
        return self._corrected().keys() | self._in_rounds

    @property
    def can_reuse_reference(self) -> bool:
        """Whether the next batch needs no reference: the last one had it, and the machine was calm."""
        self._corrected()
        if not self._calm:
            return False
        last = self._batches[-1]
        is_near = last.session == self.session and not last.batch.certificate
        return is_near and bool(last.samples_of(self.reference))

    @property
    def unmeasured_build(self) -> int | None:
        """A build without usable samples, because all of its batches were disturbed; `None` without any."""
        return min(self._sampled - self.unusable - self._measured, default=None)

    @property
    def batches(self) -> int:
        """Number of batches so far."""
        return len(self._batches)

    @property
    def rounds(self) -> list[dict[int, float]]:
        """For each batch in random order, the mean of each build's values; without builds that were disturbed in it."""
        return self._rounds

    def values_in_rounds(self, position: int) -> Floats:
        """Return the values of a position's build in rounds, one for each, in the order of measurement."""
        build = self.build_of(position)
        return np.array([each[build] for each in self._rounds if build in each], dtype=np.float64)

    def _find_rounds(self) -> None:
        self._is_strict = not self.is_always_noisy
        certified = [each for each in self._batches if each.batch.certificate]
        self._rounds = [self._round_of(each) for each in certified]
        self._in_rounds = {build for each in certified for build in each.groups}

    def layouts_of(self, one: int, other: int) -> int:
        """Number of layouts in which rounds ran both builds; 1 if they were measured as linked."""
        builds = {self.build_of(one), self.build_of(other)}
        drawn = {
            each.batch.layout
            for each in self._batches
            if each.batch.certificate and each.batch.layout and builds <= each.groups.keys()
        }
        return max(1, len(drawn))

    def _round_of(self, recorded: RecordedBatch) -> dict[int, float]:
        disturbed = {
            self.build_of(sample.position)
            for sample in recorded.batch.samples
            if sample.value is None or (sample.noisy and self._is_strict)
        }
        return {build: mean for build, mean in recorded.means.items() if build not in disturbed}

    @property
    def is_always_noisy(self) -> bool:
        """Whether a noisy sample no longer cancels its pair in a round: hardly any pairs would be left."""
        return is_always_noisy(self._noisy, self._sample_count)

    def is_started(self, position: int) -> bool:
        """Whether a position was built, has samples or is unusable."""
        return position in self.built or self.has_result(position)

    def has_result(self, position: int) -> bool:
        """Whether a position's build has samples or is unusable, so that it needs no first measurement."""
        return position in self.unusable or self.build_of(position) in self._sampled

    @property
    def relinking_is_expensive(self) -> bool:
        """Whether linking a build in another layout costs more than two samples of it."""
        count = len(self._relinks)
        return count > 0 and sum(self._relinks) / count > 2 * self.seconds_per_sample

    def undithered_step(self, sigma: float, *builds: int) -> float:
        """Return the metric's step, if samples scatter too little to average it out; else zero.

        It is that of the smallest value of these builds: the change of one tick is the largest there.
        """
        values = self._raw_values()
        found = [float(values[build].min()) for build in builds if build in values]
        step = self._step_at(min(found)) if found else 0.0
        return step if sigma < 0.4 * step else 0.0

    @property
    def with_result(self) -> frozenset[int]:
        """The positions that need no first measurement: with samples, unusable, or equal to another build."""
        return frozenset(self.unusable | self._sampled | set(self._same) & self.built)

    @property
    def attempted(self) -> frozenset[int]:
        """All positions that were built, have samples or are unusable."""
        return frozenset(self.built | self.unusable | self._sampled)

    @property
    def builds(self) -> int:
        """Number of revisions that were attempted, failed ones included."""
        return len(self.attempted)

    @property
    def seconds_per_build(self) -> float:
        """The mean cost of a build so far; the question's guess before the first."""
        if not self.build_log:
            return max(self._question.costs.build, 1e-9)
        return max(sum(seconds for _, seconds in self.build_log) / len(self.build_log), 1e-9)

    @property
    def seconds_per_sample(self) -> float:
        """The mean cost of a sample so far; the question's guess before the first."""
        if not self._sample_count or self._sample_seconds <= 0:
            return max(self._question.costs.sample, 1e-9)
        return max(self._sample_seconds / self._sample_count, 1e-9)

    @property
    def resolution(self) -> float:
        """The metric's finest step on its scale, at its median value; zero for one without steps."""
        values = list(self._raw_values().values())
        return self._step_at(float(np.median(np.concatenate(values)))) if values else 0.0

    def _step_at(self, value: float) -> float:
        step = self._finest_step()
        return math.log1p(step / value) if self._question.scale is Scale.RATIO else step

    def _finest_step(self) -> float:
        """Return the metric's finest step in its own unit; zero for one without steps.

        It is the largest power of ten of which all values are multiples: 1 for seconds without decimals. If no
        build's values vary, whole numbers from 10 on are not taken as rounded to their first digit: 100 and 200
        are counts, while 100 and 110 may be times rounded to tens. On the scale of differences, smaller ones
        are counts, too. A clock with coarse ticks varies, because an invocation starts anywhere between two
        ticks.
        """
        if self._tick is None:
            least = 0.0 if self._question.scale is Scale.DIFFERENCE else LEAST_COUNT
            self._tick = _finest_step(list(self._raw_values().values()), least)
        return self._tick

    def _raw_values(self) -> Mapping[int, Floats]:
        if self._raw is None:
            values: dict[int, list[float]] = {}
            for recorded in self._batches:
                for build, value in recorded.values:
                    values.setdefault(build, []).append(self._question.scale.as_value(value))
            self._raw = {build: np.array(group) for build, group in values.items()}
        return self._raw

    @property
    def largest_scatter(self) -> float:
        """The largest distance of two values of one build, on the metric's scale."""
        logs = self._question.scale is Scale.RATIO
        values = (np.log(each) if logs else each for each in self._raw_values().values())
        return max((float(np.ptp(each)) for each in values), default=0.0)

    def count(self, position: int) -> int:
        """Number of usable samples of a position's build, in all layouts and rounds."""
        outside = sum(map(len, self.samples(position)))
        return (
            outside if self._question.scale is Scale.RATE else outside + len(self.values_in_rounds(position))
        )

    def samples(self, position: int) -> tuple[Floats, ...]:
        """The corrected samples of a position's build, sorted: as linked by the recipe first, then each layout.

        Without those of rounds, except for a rate, whose samples need no correction.
        """
        return self._corrected().get(self.build_of(position), ())

    def _corrected(self) -> dict[int, tuple[Floats, ...]]:
        if self._question.scale is Scale.RATE:
            return {build: (np.sort(values),) for build, values in self._raw_values().items()}
        if self._samples is None or self._corrected_by != self.reference:
            drift = Drift([each for each in self._batches if not each.batch.certificate], self.reference)
            self._samples, self._calm, self._corrected_by = drift.samples(), drift.calm, self.reference
        return self._samples

    def all_samples(self, position: int) -> Floats:
        """All corrected samples of a position's build, sorted."""
        found = self.samples(position)
        return np.sort(np.concatenate(found)) if found else np.empty(0)


def _finest_step(by_build: Sequence[Floats], least_count: float) -> float:
    """Return the largest power of ten of which all values are multiples; zero without any."""
    values = np.abs(np.concatenate([np.empty(0), *by_build]))
    values = values[values > 0.0]
    if len(values) < 4:
        return 0.0
    smallest = float(values.min())
    are_counts = smallest >= least_count and all(np.ptp(group) <= 1e-9 * abs(group[0]) for group in by_build)
    for digits in range(4):
        power: float = 10.0 ** (math.floor(math.log10(smallest * (1 + 1e-9))) - digits)
        if digits == 0 and are_counts:
            continue
        if np.all(np.abs(values / power - np.rint(values / power)) < 1e-6 * values / power):
            return power
    return 0.0
