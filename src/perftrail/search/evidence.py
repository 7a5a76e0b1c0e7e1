r"""Record everything reported to a search: samples in batches, failed revisions, equal artefacts, boot sessions.

The machine's level changes with time. So each batch of samples includes some of one reference build, the same in all
batches. The batch is corrected by their offset from that build's usual level in that boot session. With r reference
samples, their offset delta is ``N(a, sigma^2 / r)`` around the machine's own, ``a ~ N(0, omega^2)``: its posterior
mean is the correction. An offset too large for that is the machine's if it occurs twice, in one batch or in two
neighbouring ones; then it is removed completely. If it occurs once it may be an outlier of the reference, and the
batch is not used. While the machine is calm, two batches share a reference: the second is corrected by its
neighbours' offsets, and is not used if these disagree. No order of time is modelled: drift, bursts, jumps and reboots
are removed by design, because reference and build are measured next to each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, assert_never

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

LARGE = 3.0
"""An offset beyond this number of standard deviations exceeds the machine's usual drift."""

_THINNED_FROM = 96
"""Groups of this many samples or more are thinned before their pairs are formed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample: the position of its build, and the natural logarithm of the value.

    `value` is `None` if the invocation failed; `noisy` marks a sample that other load disturbed.
    """

    position: int
    value: float | None
    noisy: bool = False

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(
                f"sample of position {self.position}: {self.value!r} is not a finite logarithm; "
                "the metric must be finite and above zero"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples that were taken directly one after another, in this order.

    `seconds` is the cost of all samples. `layout` is the seed with which their builds were relinked, at a
    cost of `relink_seconds`; 0 for the builds as linked by the recipe. `certificate` marks a block that a
    certificate requested, in random order.
    """

    samples: tuple[Sample, ...]
    seconds: float = 0.0
    layout: int = 0
    relink_seconds: float = 0.0
    certificate: bool = False

    def __post_init__(self) -> None:
        _check_seconds("batch", self.seconds)
        _check_seconds("batch: relinking", self.relink_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A revision was built, at a cost of `seconds`; its artefact equals that of position `same_as`, if present."""

    position: int
    seconds: float = 0.0
    same_as: int | None = None

    def __post_init__(self) -> None:
        _check_seconds(f"position {self.position}", self.seconds)
        if self.position == self.same_as:
            raise ValueError(f"position {self.position}: same_as names the position itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A revision that failed to build or run; that does not show on which side of the change it is."""

    position: int
    seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds(f"position {self.position}", self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSession:
    """All later samples are of this boot session, whose levels are not comparable with those of others."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotRelink:
    """The builds cannot be linked in other layouts, for this reason."""

    reason: str


Observation = Batch | Built | Unusable | BootSession | CannotRelink


def _check_seconds(what: str, seconds: float) -> None:
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{what}: {seconds!r} seconds; must be finite, zero or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordedBatch:
    """A batch and its boot session, with its values: build and value of each, and sorted values of each build."""

    batch: Batch
    session: str
    values: tuple[tuple[int, float], ...]
    groups: Mapping[int, Floats]


class Evidence:
    """The record of a search. Positions with equal artefacts are one build, named by the first of them."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._batches: list[_RecordedBatch] = []
        self._same: dict[int, int] = {}
        self._sampled: set[int] = set()
        self._samples: dict[int, tuple[Floats, ...]] | None = None
        self._spread = 0.0
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
        self._samples = None

    def _add_batch(self, batch: Batch) -> None:
        for sample in batch.samples:
            self._check(sample.position)
        good = [sample for sample in batch.samples if sample.value is not None]
        self._sampled |= {self.build_of(sample.position) for sample in good}
        self._batches.append(self._recorded(batch, self.session))
        self._sample_seconds += batch.seconds
        self._sample_count += len(batch.samples)
        self._noisy += sum(sample.noisy for sample in batch.samples)
        self.invocations += len(batch.samples) * self._question.invocations_per_sample
        self.seconds += batch.seconds + batch.relink_seconds
        if batch.layout:
            builds = len({sample.position for sample in batch.samples})
            self._relinks.append(batch.relink_seconds / max(builds, 1))

    def _recorded(self, batch: Batch, session: str) -> _RecordedBatch:
        values = tuple(
            (self.build_of(sample.position), sample.value)
            for sample in batch.samples
            if sample.value is not None
        )
        by_build: dict[int, list[float]] = {}
        for build, value in values:
            by_build.setdefault(build, []).append(value)
        groups = {build: np.sort(np.array(group)) for build, group in by_build.items()}
        return _RecordedBatch(batch=batch, session=session, values=values, groups=groups)

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

    def build_of(self, position: int) -> int:
        """Return the first position with an artefact equal to a position's; usually the position itself."""
        return self._same.get(position, position)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions whose build has samples, ascending."""
        found = self._corrected()
        alike = (position for position in self.built if self.build_of(position) in found)
        return tuple(sorted({*found, *alike}))

    @property
    def can_reuse_reference(self) -> bool:
        """Whether the next batch needs no reference: the last one had it, and the machine was calm."""
        self._corrected()
        if not self._calm:
            return False
        last = self._batches[-1]
        return last.session == self.session and bool(self._reference_samples(last))

    @property
    def unmeasured_build(self) -> int | None:
        """A build without usable samples, because all of its batches were disturbed; `None` without any."""
        found = self._corrected()
        return min((build for build in self._sampled - self.unusable if build not in found), default=None)

    @property
    def batches(self) -> int:
        """Number of batches so far."""
        return len(self._batches)

    @property
    def noisy_share(self) -> float:
        """The share of all samples that were noisy."""
        return self._noisy / max(self._sample_count, 1)

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

    def undithered_step(self, sigma: float) -> float:
        """Return the metric's step, if samples scatter too little to average it out; else zero."""
        step = self.resolution
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
        """The metric's finest step relative to its values, on the logarithmic scale; zero for one without steps.

        It is the largest power of ten of which all values are multiples: 1 for seconds without decimals. If no build's
        values vary, whole numbers from 10 on are not taken as rounded to their first digit: 100 and 200 are counts,
        while 100 and 110 may be times rounded to tens. A clock with coarse ticks varies, because an invocation starts
        anywhere between two ticks.
        """
        by_build = self._raw_values()
        values = np.concatenate([np.empty(0), *by_build.values()])
        if len(values) < 4:
            return 0.0
        smallest, step = float(values.min()), 0.0
        are_counts = smallest >= 9.5 and all(np.ptp(group) <= 1e-9 * group[0] for group in by_build.values())
        for digits in range(4):
            power = 10.0 ** (math.floor(math.log10(smallest * (1 + 1e-9))) - digits)
            if digits == 0 and are_counts:
                continue
            if np.all(np.abs(values / power - np.rint(values / power)) < 1e-6 * values / power):
                step = power
                break
        return math.log1p(step / float(np.median(values)))

    def _raw_values(self) -> Mapping[int, Floats]:
        values: dict[int, list[float]] = {}
        for recorded in self._batches:
            for build, value in recorded.values:
                values.setdefault(build, []).append(math.exp(value))
        return {build: np.array(group) for build, group in values.items()}

    def is_usable(self, position: int) -> bool:
        """Whether a position's build has samples and did not become unusable."""
        return position not in self.unusable and self.build_of(position) in self._corrected()

    def count(self, position: int) -> int:
        """Number of samples of a position's build, in all layouts."""
        return sum(map(len, self.samples(position)))

    def samples(self, position: int) -> tuple[Floats, ...]:
        """The corrected samples of a position's build, sorted: as linked by the recipe first, then each layout."""
        return self._corrected().get(self.build_of(position), ())

    def _corrected(self) -> dict[int, tuple[Floats, ...]]:
        if self._samples is None:
            self._samples = self._correct()
        return self._samples

    def all_samples(self, position: int) -> Floats:
        """All corrected samples of a position's build, sorted."""
        found = self.samples(position)
        return np.sort(np.concatenate(found)) if found else np.empty(0)

    def _correct(self) -> dict[int, tuple[Floats, ...]]:
        corrections = self._corrections()
        found: dict[int, dict[int, list[float]]] = {}
        for recorded, correction in zip(self._batches, corrections, strict=True):
            if correction is None:
                continue
            for build, value in recorded.values:
                found.setdefault(build, {}).setdefault(recorded.batch.layout, []).append(value - correction)
        return {
            build: tuple(np.sort(np.array(layouts[layout])) for layout in sorted(layouts))
            for build, layouts in found.items()
        }

    def _corrections(self) -> list[float | None]:
        """Return the correction to subtract from each batch; `None` for an unusable batch."""
        references = [self._reference_samples(recorded) for recorded in self._batches]
        sessions: dict[str, list[float]] = {}
        for recorded, values in zip(self._batches, references, strict=True):
            sessions.setdefault(recorded.session, []).extend(values)
        levels = {session: median(values) for session, values in sessions.items() if values}
        if not levels:
            return [0.0] * len(self._batches)
        first = next(iter(levels.values()))
        sigma = self._spread_within(references)
        offsets = [
            np.array(values) - levels[recorded.session] if values else np.empty(0)
            for recorded, values in zip(self._batches, references, strict=True)
        ]
        usual = _usual_drift([values for values in offsets if len(values)], sigma)
        machine_offsets = [
            _offset(values, neighbours, sigma=sigma, usual=usual) if len(values) else None
            for values, neighbours in zip(offsets, _neighbours(offsets), strict=True)
        ]
        latest = machine_offsets[-1] if machine_offsets else None
        self._calm = latest is not None and abs(latest) <= LARGE * sigma
        batch_offsets = [
            self._batch_offset(at, machine_offsets, offsets, sigma) for at in range(len(offsets))
        ]
        corrections = [
            None if offset is None else levels.get(recorded.session, first) - first + offset
            for recorded, offset in zip(self._batches, batch_offsets, strict=True)
        ]
        return self._with_blocks(corrections, sigma)

    def _with_blocks(self, corrections: Sequence[float | None], sigma: float) -> list[float | None]:
        """Add the corrections of certificate blocks without the reference, from the levels of their builds elsewhere.

        At least two of its builds, and most of them, must agree on the machine's offset. A level needs two samples.
        """
        known: dict[tuple[int, int], list[float]] = {}
        for recorded, correction in zip(self._batches, corrections, strict=True):
            if correction is not None:
                for build, value in recorded.values:
                    known.setdefault((build, recorded.batch.layout), []).append(value - correction)
        levels = {key: median(values) for key, values in known.items() if len(values) > 1}
        found = list(corrections)
        for at, recorded in enumerate(self._batches):
            if (
                corrections[at] is None
                and recorded.batch.certificate
                and not self._reference_samples(recorded)
            ):
                offsets_by_build: dict[int, list[float]] = {}
                for build, value in recorded.values:
                    if (build, recorded.batch.layout) in levels:
                        offsets_by_build.setdefault(build, []).append(
                            value - levels[build, recorded.batch.layout]
                        )
                offsets = [median(values) for values in offsets_by_build.values()]
                agreed = [each for each in offsets if abs(each - median(offsets)) <= LARGE * sigma]
                if len(agreed) > max(1, len(offsets) // 2):
                    found[at] = sum(agreed) / len(agreed)
        return found

    def _batch_offset(
        self, at: int, machine_offsets: Sequence[float | None], offsets: Sequence[Floats], sigma: float
    ) -> float | None:
        """Return a batch's offset; without a reference, the mean of its neighbours' offsets if these agree.

        A certificate's block without the reference is corrected by its own builds, see `_with_blocks`.
        """
        if len(offsets[at]) or self._batches[at].batch.certificate:
            return machine_offsets[at]
        session = self._batches[at].session
        near = [
            machine_offsets[other]
            for other in (at - 1, at + 1)
            if 0 <= other < len(machine_offsets)
            and self._batches[other].session == session
            and len(offsets[other])
        ]
        known = [offset for offset in near if offset is not None]
        if not known or len(known) < len(near) or max(known) - min(known) > LARGE * sigma:
            return None
        return sum(known) / len(known)

    def _reference_samples(self, recorded: _RecordedBatch) -> list[float]:
        return [value for build, value in recorded.values if build == self.reference]

    def _spread_within(self, references: Sequence[Sequence[float]]) -> float:
        """Estimate the spread of samples of one build in one batch; without such samples, from the reference's."""
        spread, freedom = pooled_spread(
            [group for recorded in self._batches for group in recorded.groups.values()]
        )
        if freedom >= 3:
            return max(spread, 1e-6)
        singles = [values[0] for values in references if values]
        return max(float(np.ptp(singles)) / 2 if len(singles) > 1 else spread, 1e-6)


def _usual_drift(offsets: Sequence[Floats], sigma: float) -> float:
    """Estimate omega, the machine's drift between batches beyond the reference's noise.

    The spread of few batches is estimated low on purpose, because an unnecessary correction costs more than
    none.
    """
    if len(offsets) <= 4:
        return 0.0
    spread = median(abs(median(values.tolist())) for values in offsets) / 0.6745
    noise = sigma**2 * float(np.mean([1 / len(values) for values in offsets]))
    return math.sqrt(max(spread**2 * (1 - 2 / math.sqrt(len(offsets))) - noise, 0.0))


def _neighbours(offsets: Sequence[Floats]) -> list[Floats]:
    """Return for each batch the offsets in the batches just before and after it."""
    none = np.empty(0)
    padded = [none, *offsets, none]
    return [np.concatenate([padded[at], padded[at + 2]]) for at in range(len(offsets))]


def _offset(values: Floats, neighbours: Floats, *, sigma: float, usual: float) -> float | None:
    """Return the machine's own offset in a batch, `None` if the reference's samples may be outliers."""
    middle = float(median(values.tolist()))
    noise = sigma**2 / len(values)
    if abs(middle) <= LARGE * math.sqrt(usual**2 + noise):
        return middle * usual**2 / (usual**2 + noise)
    others = np.concatenate([np.sort(np.abs(values - middle))[1:], np.abs(neighbours - middle)])
    return middle if len(others) and others.min() <= LARGE * math.hypot(usual, sigma) else None


@lru_cache(maxsize=2 * _THINNED_FROM)
def _pairs_of(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices of the later and the earlier value of each pair of `count` values."""
    return np.tril_indices(count, -1)


def pooled_spread(groups: Sequence[Floats]) -> tuple[float, int]:
    """Estimate the spread of samples from differences within groups; return it with its degrees of freedom.

    Each group's samples are sorted. The median of all pair differences over 0.954 (Shamos 1976): consistent
    for normal noise at every number of samples, 86 % efficient, robust to up to 29 % of outliers. Zero with
    no pair.
    """
    pairs = []
    freedom = 0
    for values in groups:
        freedom += len(values) - 1
        thinned = values[:: 1 + len(values) // _THINNED_FROM]
        if len(thinned) > 1:
            later, earlier = _pairs_of(len(thinned))
            pairs.append(thinned[later] - thinned[earlier])
    if not pairs:
        return 0.0, 0
    return float(np.median(np.concatenate(pairs))) / 0.9539, freedom
