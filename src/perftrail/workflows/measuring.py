"""Which start comes next: the state of each runnable, from the store and from what was just measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import FailedInvocation, Marked, Measurement, enough_quiet, sift, weight
from perftrail.stats.estimate import enough

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from perftrail.model.measurement import Outcome, Phase
    from perftrail.model.study import MeasurePolicy
    from perftrail.workflows.workshop import Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one runnable so far, and what it still lacks. `metrics` decide when it is enough.

    Failures that are `forgiven` do not count: what failed is tried again.
    """

    known: Mapping[tuple[Phase, int], Outcome]
    policy: MeasurePolicy
    metrics: tuple[str, ...]
    forgiven: AbstractSet[tuple[Phase, int]] = frozenset()

    @property
    def warmups(self) -> Sequence[Outcome]:
        """The warm-ups so far, by ordinal."""
        return self._of("warmup")

    @property
    def samples(self) -> Sequence[Outcome]:
        """The samples so far, by ordinal."""
        return self._of("sample")

    @property
    def measurements(self) -> Sequence[Measurement]:
        """The samples that gave values."""
        return [outcome for outcome in self.samples if isinstance(outcome, Measurement)]

    @property
    def broken(self) -> bool:
        """Whether starting it again is pointless: its first start failed, or most did."""
        failed = sum(not isinstance(outcome, Measurement) for outcome in (*self.warmups, *self.samples))
        return failed > len(self.measurements)

    @property
    def gave_up(self) -> bool:
        """Whether it ran into a limit, beyond which larger points are not tried where the study says `give_up`."""
        outcomes = (*self.warmups, *self.samples)
        failed = (outcome for outcome in outcomes if isinstance(outcome, FailedInvocation))
        return self.broken and any(outcome.failure.is_limit for outcome in failed)

    @property
    def left(self) -> tuple[int, int]:
        """How many starts it lacks: at least, and at most."""
        if self.broken or self._enough():
            return (0, 0)
        warmups = max(0, self.policy.warmups - len(self.warmups))
        invocations = self.policy.invocations
        count = len(self.samples)
        return (warmups + max(1, invocations.least - count), warmups + invocations.most - count)

    @property
    def seconds_each(self) -> float:
        """What one start takes, from those there are; zero when there is none yet."""
        seconds = [outcome.seconds for outcome in (*self.warmups, *self.samples)]
        return sum(seconds) / len(seconds) if seconds else 0.0

    @property
    def next(self) -> tuple[Phase, int]:
        """The start that it lacks first: warm-ups before samples, then the first ordinal that is free."""
        phase: Phase = "warmup" if len(self.warmups) < self.policy.warmups else "sample"
        ordinal = 0
        while (phase, ordinal) in self.known:
            ordinal += 1
        return phase, ordinal

    def _of(self, phase: Phase) -> Sequence[Outcome]:
        return [self.known[key] for key in sorted(self.known) if key[0] == phase and key not in self.forgiven]

    def _enough(self) -> bool:
        count, taken = self.policy.invocations, len(self.samples)
        if taken >= count.most:
            return True
        quiet = sum(weight(measurement.flags) > 0.0 for measurement in self.measurements)
        lacking = quiet < len(self.measurements) and not enough_quiet(quiet, least=count.least)
        if lacking and taken < 2 * count.least:
            # Marked samples are made up for, but not for ever: where it is always busy, all are used.
            return False
        return taken >= count.least and all(self._precise(metric) for metric in self.metrics)

    def _precise(self, metric: str) -> bool:
        """Whether one metric is known well enough from the samples that its estimate will use."""
        marked = marked_values(self.measurements, metric)
        values = sift(marked, least=self.policy.invocations.least).values
        return enough(
            values,
            least=min(self.policy.invocations.least, len(values)),
            most=self.policy.invocations.most,
            precision=self.policy.precision,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Standing):
    """The standing of a runnable that is at hand, to be started."""

    ready: Ready


def marked_values(measurements: Sequence[Measurement], metric: str) -> Sequence[Marked]:
    """Give the values of a metric, each with the marks of its sample."""
    return [
        Marked(value=each.values[metric], flags=each.flags) for each in measurements if metric in each.values
    ]
