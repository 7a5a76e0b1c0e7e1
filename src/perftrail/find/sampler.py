"""Take batches of samples along a line of revisions, as a search asks for them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from perftrail.find.journal import NO_BOOT
from perftrail.measure.pairs import scaled_value, value_of
from perftrail.measure.subjects import PlannedInvocation, Ready
from perftrail.model.build import Failure, content_key
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, Runnable, seed_of
from perftrail.model.noisy_samples import is_always_noisy, weight
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.search import Batch, BootSession, Built, CannotRelink, Sample, Unusable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.find.journal import Ledger, MachineBoot
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.benchmark import Point
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.search import Answer, Measure

LAYOUTS_AT_ONCE = 8
"""Number of layouts linked at once."""

MOST_PARTIAL = 50
"""Maximum number of interruptions of a batch; after that perftrail does not start it again."""

Values = dict[str, float]
"""All metrics of one invocation, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchValues:
    """The values of one batch for each target, by name, and the tried positions without a sample of it."""

    batches: Mapping[str, Batch]
    unusable: Mapping[str, tuple[Unusable, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A round: all metrics of each position at each point, without noisy samples."""

    values: Mapping[int, Mapping[Point, Values]]


class _PartlyStored(Exception):
    """An earlier run stored only a part of this batch, or measured it in another boot session."""


class Sampler:
    """Measures targets that share their invocations, over revisions in a line.

    A batch is one block of draws: its samples ran directly one after another, with the same path, environment
    and layout. A batch that the store has completely is not repeated; an incomplete one is. A noisy sample is
    repeated once, except in a round, where it cancels its pair. `discarded` counts noisy
    samples that were repeated, `noisy` the noisy samples that were used. `works`: a failure is a value of the target,
    also one of the build, so that every position is usable.
    """

    def __init__(
        self,
        session: Session,
        targets: Mapping[str, Target],
        revisions: Sequence[Revision],
        ledger: Ledger,
        *,
        name: str,
    ) -> None:
        first = next(iter(targets.values()))
        self.targets = dict(targets)
        self.revisions = revisions
        self.variant, self.benchmark, self.points = first.variant, first.benchmark, first.points
        self.works = first.works
        self._benchmark_points = first.benchmark_points
        self._session = session
        self._runner = session.runner
        self._ledger = ledger
        self._name = name
        benchmark = session.study.benchmarks[first.benchmark]
        self.is_counted = benchmark.counted_alone is not None
        self._has_only_amounts = all(each.is_amount or each.works for each in targets.values())
        self._boot = NO_BOOT
        self._prepared: set[int] = set()
        self._same_as: dict[int, int] = {}
        self._first_position: dict[tuple[str, ...], int] = {}
        self._ran: set[int] = set()
        self._sampled: dict[str, set[int]] = {target: set() for target in targets}
        self._failures: dict[str, dict[int, Failure]] = {target: {} for target in targets}
        self._unbuilt: dict[int, Failure] = {}
        self._reasons: dict[int, list[Failure | None]] = {}
        self._timed_out: dict[str, dict[int, int]] = {target: {} for target in targets}
        self._values: dict[str, int] = dict.fromkeys(targets, 0)
        self._linked_layouts = range(0)
        self._unpinned = ""
        self._first_samples = self._noisy_first_samples = 0
        self.discarded = 0
        self.noisy = 0
        self.blocks: list[Block] = []
        self._measured_batches: list[tuple[tuple[str, ...], Mapping[str, Batch]]] = []

    def usable(self, target: str) -> frozenset[int]:
        """Return the positions with samples of a target, or with the artefact of such a position."""
        sampled = self._sampled[target]
        return frozenset(sampled | {at for at, same_as in self._same_as.items() if same_as in sampled})

    def failures(self, target: str) -> Mapping[int, Failure]:
        """Return the failures of tried positions without a sample of a target, in ascending order."""
        usable = self.usable(target)
        return {at: why for at, why in sorted(self._failures[target].items()) if at not in usable}

    def timed_out(self, target: str) -> frozenset[int]:
        """Return the positions with an invocation that exceeded its time, which is a value of this target."""
        return frozenset(self._timed_out[target])

    def only_timed_out(self, target: str) -> bool:
        """Whether every invocation of several revisions exceeded its time, so that nothing can be compared."""
        runs = self._timed_out[target]
        return len(runs) > 1 and sum(runs.values()) == self._values[target]

    def known_failures(self, target: str) -> Mapping[str, Failure]:
        """Return the failures of revisions without a sample of a target, by the revisions' ids."""
        return {self.revisions[at].id: why for at, why in self.failures(target).items()}

    def build_of(self, position: int) -> int:
        """Return the first position with an equal artefact."""
        return self._same_as.get(position, position)

    def known_batches(self, target: str, positions: Mapping[str, int]) -> Iterator[Batch]:
        """Yield existing samples of some revisions as batches at other positions; `positions` maps ids to these.

        They cost nothing, and are not rounds.
        """
        for ids, batches in self._measured_batches:
            samples = tuple(
                replace(sample, position=positions[id_])
                for id_, sample in zip(ids, batches[target].samples, strict=True)
                if id_ in positions
            )
            if samples:
                yield replace(
                    batches[target], samples=samples, seconds=0.0, relink_seconds=0.0, certificate=False
                )

    @property
    def can_relink(self) -> bool:
        """Whether the program can be linked in several layouts, for all that is known of its builds."""
        return (
            self._has_layouts
            and not self._unpinned
            and all(map(self._session.subject_builder.can_relink, self._first_cells))
        )

    @property
    def pins(self) -> bool:
        """Whether layouts come from recorded links, if these can be repeated."""
        return self._has_layouts and any(map(self._session.subject_builder.pins, self._first_cells))

    @property
    def unpinned(self) -> str:
        """Why recorded links cannot place the program's code; empty if they can, and for programs without layouts."""
        if not self.pins or not self.is_linked:
            return ""
        return self._unpinned or self._session.subject_builder.unpinned(self._first_cells[0])

    @property
    def _has_layouts(self) -> bool:
        return not (self.is_counted or self._has_only_amounts)

    @property
    def _first_cells(self) -> tuple[Cell, ...]:
        subject = Subject(revision=self.revisions[0], variant=self.variant)
        return self._cells(subject)

    @property
    def is_linked(self) -> bool:
        """Whether a linker produced the measured program, judged by the command and the existing builds."""
        return any(
            self._session.subject_builder.is_linked(
                self._cells(Subject(revision=revision, variant=self.variant))[0]
            )
            for revision in (self.revisions[0], self.revisions[-1])
        )

    def enter_boot_session(self, boot: MachineBoot) -> BootSession | None:
        """Sample in this boot session from now on; return an observation if it differs from the previous one.

        Counts do not depend on the boot session.
        """
        if self.is_counted:
            return None
        before, self._boot = self._boot, boot
        return BootSession(name=boot.id) if boot.id != before.id else None

    def record_failure(self, position: int, failure: Failure, *, seconds: float = 0.0) -> Unusable:
        """Record why a position is unusable for all targets; return the observation, with its cost in seconds."""
        for failures in self._failures.values():
            failures[position] = failure
        return Unusable(position=position, seconds=seconds)

    def prepare(self, position: int) -> Generator[Event, None, Built | Unusable | None]:
        """Build a position and run its warm-ups, if not done yet; return the observation.

        A revision whose artefact equals that of another one is reported as an equal build.
        """
        if position in self._prepared:
            return None
        ready_cells = yield from self._ready_cells(position)
        outcome = ready_cells if isinstance(ready_cells, Failure) else ready_cells[0].prepared.built
        seconds = outcome.seconds
        self._ledger.count_build(self.revisions[position], self.variant, seconds)
        if self.works:
            self._prepared.add(position)
            return Built(position=position, seconds=seconds)
        if isinstance(ready_cells, Failure):
            return self.record_failure(position, ready_cells, seconds=seconds)
        failure = yield from self._warm_up(ready_cells)
        if failure is not None:
            return self.record_failure(position, failure, seconds=seconds)
        self._prepared.add(position)
        same_as = self._first_position.setdefault(_runnables(ready_cells), position)
        if same_as == position:
            return Built(position=position, seconds=seconds)
        self._same_as[position] = same_as
        return Built(position=position, seconds=seconds, same_as=same_as)

    def take(self, measure: Measure, step: int) -> Generator[Event, None, BatchValues | CannotRelink]:
        """Take a batch of prepared positions, which the search asked for in this step."""
        relinked = yield from self._relink(measure)
        if isinstance(relinked, CannotRelink):
            return relinked
        ready_cells, relink_seconds = relinked
        order = [self.revisions[position].id for position in measure.order]
        drawn = content_key(self._name, step, measure.layout, measure.certificate, *order)[:8]
        for attempt in range(MOST_PARTIAL):
            block = f"find {self._name} {step} {drawn}" + (f" again {attempt}" if attempt else "")
            try:
                values = yield from self._take_block(measure, ready_cells, block, relink_seconds)
            except _PartlyStored:
                continue
            return self._unpinned_by(measure, values) or values
        raise RuntimeError(f"step {step} was interrupted {MOST_PARTIAL} times")

    def _unpinned_by(self, measure: Measure, values: BatchValues) -> CannotRelink | None:
        """Return why nothing is pinned any more after a program that failed in a layout; it may run as linked."""
        failed = {each.position: name for name, several in values.unusable.items() for each in several}
        if not (measure.layout and self.pins and failed):
            return None
        position, target = next(iter(failed.items()))
        reason = self._failures[target][position].message
        for position in failed:
            for failures in self._failures.values():
                failures.pop(position, None)
        self._measured_batches.pop()
        if measure.certificate:
            self.blocks.pop()
        self._unpinned = f"{self.revisions[position].short} fails in a layout: {reason}"
        return CannotRelink(reason=self._unpinned)

    def _take_block(
        self,
        measure: Measure,
        ready_cells: Mapping[int, tuple[Ready, ...]],
        block: str,
        relink_seconds: float,
    ) -> Generator[Event, None, BatchValues]:
        stored = self._stored(ready_cells, block)
        seed = seed_of(block)
        draws = [
            Draw(block=block, turn=turn, seed=seed, layout=measure.layout)
            for turn in range(2 * len(measure.order))
        ]
        if not stored and self._session.at_once > 1 and not self.works:
            self._submit(measure, ready_cells, draws)
        found: list[tuple[int, dict[Point, Outcome]]] = []
        seconds = 0.0
        for turn, position in enumerate(measure.order):
            sample, spent = yield from self._sample(ready_cells[position], draws[turn], stored)
            seconds += spent
            again = len(measure.order) + turn
            if self._wants_another(sample, measure) and (not stored or (again, 0) in stored):
                other, spent = yield from self._sample(ready_cells[position], draws[again], stored)
                seconds += spent
                self.discarded += 1
                if self._has_value(other) and not _is_noisy(other):
                    sample = other
            found.append((position, sample))
            if self._has_value(sample):
                self._ran.add(position)
            elif position not in self._ran:
                break
        self._runner.withdraw()
        if measure.certificate:
            self.blocks.append(_block(found))
        samples_by_target = {name: [self._read(name, *each) for each in found] for name in self.targets}
        self.noisy += max(sum(sample.noisy for sample in samples) for samples in samples_by_target.values())
        batches = {
            name: Batch(
                samples=tuple(samples),
                seconds=seconds,
                layout=measure.layout,
                relink_seconds=relink_seconds,
                certificate=measure.certificate,
            )
            for name, samples in samples_by_target.items()
        }
        self._measured_batches.append((tuple(self.revisions[position].id for position, _ in found), batches))
        ran = {position for position, _ in found}
        return BatchValues(
            batches=batches,
            unusable={
                name: tuple(Unusable(position=at) for at in sorted(ran & self.failures(name).keys()))
                for name in self.targets
            },
        )

    def _has_value(self, sample: Mapping[Point, Outcome]) -> bool:
        """Whether any target has a value in a sample: a failure is one of some targets."""
        return any(not isinstance(value_of(each, sample), Failure) for each in self.targets.values())

    def _read(self, target: str, position: int, sample: dict[Point, Outcome]) -> Sample:
        """Evaluate a target for one sample, and record why it has no value."""
        if self.works:
            failed = (each.failure for each in sample.values() if isinstance(each, FailedInvocation))
            failure = next(failed, self._unbuilt.get(position))
            self._reasons.setdefault(position, []).append(failure)
            self._sampled[target].add(position)
            return Sample(position=position, value=float(failure is None))
        value = scaled_value(self.targets[target], sample)
        if isinstance(value, Failure):
            self._failures[target][position] = value
            return Sample(position=position, value=None)
        if any(isinstance(each, FailedInvocation) for each in sample.values()):
            self._timed_out[target].setdefault(position, 0)
            self._timed_out[target][position] += 1
        self._values[target] += 1
        self._sampled[target].add(position)
        noisy = not self.targets[target].is_amount and _is_noisy(sample)
        return Sample(position=position, value=value, noisy=noisy)

    def _sample(
        self, ready_cells: tuple[Ready, ...], draw: Draw, stored: Mapping[tuple[int, int], Outcome]
    ) -> Generator[Event, None, tuple[dict[Point, Outcome], float]]:
        """Run one invocation at each point, in alternating order, up to the first failure; return them and the cost.

        Several benchmarks may have the same point; a failure is the last outcome of its point.
        """
        found: dict[Point, Outcome] = {}
        seconds = 0.0
        common = self._runner.next_ordinal(*ready_cells)
        for number in _point_order(len(ready_cells), draw.turn):
            ready = ready_cells[number]
            outcome = stored.get((draw.turn, number))
            if outcome is None:
                if stored:
                    raise _PartlyStored
                ordinal = common if self.works else self._runner.next_ordinal(ready)
                outcome = yield from self._runner.outcome(ready, "sample", ordinal, draw=draw)
            self._ledger.count(outcome.key, outcome.seconds)
            seconds += outcome.seconds
            found[ready.cell.point] = outcome
            if isinstance(outcome, FailedInvocation):
                break
        return found, seconds

    def _submit(
        self, measure: Measure, ready_cells: Mapping[int, tuple[Ready, ...]], draws: Sequence[Draw]
    ) -> None:
        """Submit the whole batch to the measuring machine, in its order."""
        ordinals: dict[str, int] = {}
        planned: list[PlannedInvocation] = []
        for turn, position in enumerate(measure.order):
            for number in _point_order(len(self.points), turn):
                ready = ready_cells[position][number]
                ordinal = ordinals.get(ready.runnable.key, self._runner.next_ordinal(ready))
                ordinals[ready.runnable.key] = ordinal + 1
                planned.append(self._runner.plan(ready, "sample", ordinal, draw=draws[turn]))
        self._runner.submit(planned)

    def _stored(
        self, ready_cells: Mapping[int, tuple[Ready, ...]], block: str
    ) -> dict[tuple[int, int], Outcome]:
        """Return the stored outcomes of a block, by turn and number of the point, if it is of this boot session."""
        found: dict[tuple[int, int], Outcome] = {}
        for of_points in ready_cells.values():
            for number, ready in enumerate(of_points):
                for outcome in self._runner.known(ready).values():
                    if outcome.draw.block == block:
                        if outcome.started < self._boot.since:
                            raise _PartlyStored
                        found[outcome.draw.turn, number] = outcome
        return found

    def _wants_another(self, sample: dict[Point, Outcome], measure: Measure) -> bool:
        if measure.certificate or self._has_only_amounts:
            return False
        noisy = self._has_value(sample) and _is_noisy(sample)
        wanted = noisy and not is_always_noisy(self._noisy_first_samples, self._first_samples)
        self._first_samples += 1
        self._noisy_first_samples += noisy
        return wanted

    def _warm_up(self, ready_cells: Sequence[Ready]) -> Generator[Event, None, Failure | None]:
        """Run each point's warm-ups; return a failure if there is one."""
        for ready in ready_cells:
            for number in range(self._session.study.measure.warmups):
                outcome = yield from self._runner.outcome(ready, "warmup", number)
                self._ledger.count(outcome.key, outcome.seconds)
                if isinstance(outcome, FailedInvocation):
                    is_value = self._has_value({ready.cell.point: outcome})
                    return None if is_value else outcome.failure
        return None

    def _relink(
        self, measure: Measure
    ) -> Generator[Event, None, tuple[Mapping[int, tuple[Ready, ...]], float] | CannotRelink]:
        """Link a batch's builds in its layout, several layouts in one pass, and prepare them."""
        subject_builder = self._session.subject_builder
        if measure.layout:
            cells = [
                cell
                for position in measure.positions
                for cell in self._cells(Subject(revision=self.revisions[position], variant=self.variant))
            ]
            if measure.layout not in self._linked_layouts:
                count = LAYOUTS_AT_ONCE if measure.certificate else 1
                self._linked_layouts = range(measure.layout, measure.layout + count)
            yield from subject_builder.relink(cells, self._linked_layouts)
        ready_cells: dict[int, tuple[Ready, ...]] = {}
        seconds = 0.0
        for position in measure.positions:
            prepared = yield from self._ready_cells(position, layout=measure.layout)
            if isinstance(prepared, Failure) and self.works:
                ready_cells[position] = ()
                continue
            if isinstance(prepared, Failure):
                self._unpinned = f"{self.revisions[position].short}: {prepared.message}"
                return CannotRelink(reason=self._unpinned)
            ready_cells[position] = prepared
            seconds += prepared[0].prepared.built.seconds if measure.layout else 0.0
        return ready_cells, seconds

    def _ready_cells(
        self, position: int, *, layout: int = 0
    ) -> Generator[Event, None, tuple[Ready, ...] | Failure]:
        """Prepare everything that a sample of a position runs."""
        subject = Subject(revision=self.revisions[position], variant=self.variant)
        ready_cells: list[Ready] = []
        for cell in self._cells(subject):
            ready = yield from self._ledger.ready(cell, layout=layout)
            if isinstance(ready, Failure):
                self._unbuilt[position] = ready
                return ready
            ready_cells.append(ready)
        self._unbuilt.pop(position, None)
        return tuple(ready_cells)

    def _cells(self, subject: Subject) -> tuple[Cell, ...]:
        return tuple(
            Cell(subject=subject, benchmark=benchmark, point=point)
            for benchmark, point in self._benchmark_points
        )

    # The results of runs as values: only where `works`.

    def stored(self, *, before: str) -> Iterator[tuple[Built, Batch]]:
        """Yield the results of each revision that the store has from before a time; new samples follow them.

        Use the time when the search first began: a resumed search then repeats its steps. Builds and starts nothing.
        They guide the search and are no evidence: no round ran them in random order.
        """
        builds = self._session.store.subject_builds()
        for position, revision in enumerate(self.revisions):
            subject = Subject(revision=revision, variant=self.variant)
            record = builds.get((revision.id, self.variant))
            if record is None:
                continue
            built = self._session.subject_builder.known_build(subject)
            if isinstance(built, Failure):
                reasons: list[Failure | None] = [built] * (record.finished < before)
            else:
                reasons = self._stored_reasons(subject, before)
            if reasons:
                self._reasons[position] = reasons
                samples = tuple(Sample(position=position, value=float(each is None)) for each in reasons)
                yield Built(position=position), Batch(samples=samples, stored=True)

    def _stored_reasons(self, subject: Subject, before: str) -> list[Failure | None]:
        """Return the failure of each complete stored sample of a build, `None` if everything worked."""
        by_ordinal: list[dict[int, Outcome]] = []
        for cell in self._cells(subject):
            runnable = self._session.subject_builder.known_runnable(cell)
            if not isinstance(runnable, Runnable):
                return []
            outcomes = self._session.store.outcomes((runnable.key,), self._session.machine.id)
            earlier = (each for each in outcomes.get(runnable.key, ()) if each.started < before)
            by_ordinal.append({each.key.ordinal: each for each in earlier if each.key.phase == "sample"})
        reasons: list[Failure | None] = []
        for ordinal in count():
            found = [each[ordinal] for each in by_ordinal if ordinal in each]
            failed = next((each.failure for each in found if isinstance(each, FailedInvocation)), None)
            if failed is None and len(found) < len(by_ordinal):
                break
            reasons.append(failed)
        return reasons

    def last_reason(self, position: int) -> Failure | None:
        """Return the failure of the last sample of a position, `None` if it worked or a failure is no value."""
        return self._reasons[position][-1] if self.works else None

    def reasons(self, answer: Answer) -> Mapping[int, Failure]:
        """Return the last failure of each position that ever failed; at a culprit, the one whose rate changed there."""
        found: dict[int, Failure] = {}
        for position, reasons in sorted(self._reasons.items()):
            failed = [each for each in reasons if each is not None]
            if failed:
                found[position] = failed[-1]
        for culprit in {change.positions[-1] for change in answer.changes} & found.keys():
            rises = self._rises(culprit)
            failed = [each for each in reversed(self._reasons[culprit]) if each is not None]
            found[culprit] = max(failed, key=lambda failure: rises[_reason(failure)])
        return found

    def _rises(self, culprit: int) -> Mapping[str, float]:
        """Return by how much the rate of each reason to fail rises at a culprit."""
        rises: dict[str, float] = defaultdict(float)
        for is_after in (True, False):
            side = [each for at, each in self._reasons.items() if (at >= culprit) == is_after]
            runs = sum(map(len, side))
            for failure in (each for reasons in side for each in reasons if each is not None):
                rises[_reason(failure)] += (1 if is_after else -1) / runs
        return rises


def _reason(failure: Failure) -> str:
    """Return what is the same in failures for one reason: stage, end, and the message without numbers."""
    end, _, message = failure.message.partition(":")
    return f"{failure.stage} {end} {re.sub('[0-9]+', '#', message)}"


def _is_noisy(found: Mapping[Point, Outcome]) -> bool:
    return any(weight(each.flags) == 0.0 for each in found.values() if isinstance(each, Measurement))


def _block(found: Sequence[tuple[int, dict[Point, Outcome]]]) -> Block:
    values: dict[int, dict[Point, Values]] = {}
    for position, sample in found:
        measured = {
            point: dict(each.values) for point, each in sample.items() if isinstance(each, Measurement)
        }
        if len(measured) == len(sample) and not _is_noisy(sample):
            values[position] = measured
    return Block(values=values)


def _point_order(points: int, turn: int) -> range:
    return range(points) if turn % 2 == 0 else range(points - 1, -1, -1)


def _runnables(ready_cells: Sequence[Ready]) -> tuple[str, ...]:
    return tuple(ready.runnable.key for ready in ready_cells)
