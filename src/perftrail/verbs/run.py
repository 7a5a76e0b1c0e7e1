"""Build and measure the missing part of a study's plan."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import NoAnswer, UsageError
from perftrail.measure.events import GivenUp, HistoryRead, Invoked, Progress, SameArtefact, Skipped
from perftrail.measure.failure_groups import same_reason, study_line
from perftrail.measure.invocation import invocation_seed
from perftrail.measure.invocation_runner import DisagreementJson, ReadyOutcomes, disagreements
from perftrail.measure.sources import SkippedRevisionJson, skips_json
from perftrail.model.build import Failure, Stage
from perftrail.model.measurement import Draw, FailedInvocation
from perftrail.model.plan import cells, ordered, subjects
from perftrail.model.source import NO_PINS, PinsJson
from perftrail.results.measured import MeasuredHere
from perftrail.results.remaining_work import PlanProgress, Span

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.invocation_runner import Disagreement
    from perftrail.measure.session import Session
    from perftrail.measure.sources import SkippedRevisions
    from perftrail.measure.subjects import PlannedInvocation, Ready
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.source import Pins
    from perftrail.model.subject import Subject
    from perftrail.results.selection import Selection


class RunFailureJson(TypedDict):
    """A subject that failed to build or to run."""

    subject: str
    stage: Stage
    message: str
    log: str


class RunReportJson(PinsJson):
    """What a run measured."""

    revisions: int
    points: Annotated[
        int, "number of combinations of subject, benchmark and parameter values, failures included"
    ]
    measured: int
    skipped: Annotated[int, "points skipped after a smaller one reached a limit"]
    invocations: int
    skipped_revisions: list[SkippedRevisionJson]
    failures: list[RunFailureJson]
    disagreements: list[DisagreementJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The result of a run: numbers of cells with samples, and failed subjects.

    `skipped` is the number of cells with a larger point than one that reached a limit. The study
    skips `skipped_revisions`. `disagreements` are printed answers that should be equal and differ. `to_correct` is the
    line of the study file that the first failed program is about; empty without one.
    """

    revisions: int
    cells: int
    measured: int
    skipped: int
    failures: Mapping[str, Failure]
    invocations: int
    skipped_revisions: tuple[SkippedRevisions, ...] = ()
    pins: Pins = NO_PINS
    disagreements: tuple[Disagreement, ...] = ()
    to_correct: str = ""

    def as_json(self) -> RunReportJson:
        """Return the report as `run --json` prints it."""
        return {
            "revisions": self.revisions,
            **self.pins.as_json(),
            "points": self.cells,
            "measured": self.measured,
            "skipped": self.skipped,
            "invocations": self.invocations,
            "skipped_revisions": skips_json(self.skipped_revisions),
            "failures": [
                {"subject": name, "stage": each.stage, "message": each.message, "log": each.log}
                for name, each in self.failures.items()
            ],
            "disagreements": [each.as_json() for each in self.disagreements],
        }


class Run:
    """One run of a study: builds every selected subject, then measures round by round until all have enough samples."""

    def __init__(self, session: Session, selection: Selection) -> None:
        self._session = session
        self._selection = selection
        self._failures: dict[str, Failure] = {}
        self._ready_outcomes: dict[str, ReadyOutcomes] = {}
        self._cells: dict[str, list[Cell]] = {}
        self._plan_progress = PlanProgress(session.study.benchmarks)
        self._planned = 0
        self._failed_to_run: dict[Subject, Failure] = {}
        self._to_correct = ""
        self._any_ran = False

    def events(self) -> Generator[Event, None, RunReport]:
        """Run; yield events and return the report."""
        revisions = self._session.source.history()
        yield HistoryRead.of(self._session.source, revisions)
        subject_builder = self._session.subject_builder
        skipped_revisions = subject_builder.skipped_revisions(revisions)
        yield from (Skipped(skipped=each) for each in skipped_revisions)
        yield from MeasuredHere(self._session).outdated_of(self._selection.includes)
        planned = subjects(self._session.study, subject_builder.wanted(revisions))
        subject_builder.protect(planned)
        wanted = [subject for subject in planned if self._cells_of(subject)]
        if self._selection.rules and planned and not wanted:
            rules = " ".join(f"--only {name}={pattern}" for name, pattern in self._selection.rules)
            raise UsageError(f"{rules}: nothing in the plan matches; print the plan with: perftrail check")
        yield from self._build_first(wanted)
        yield from subject_builder.build_in_parallel(wanted)
        for subject in planned:
            yield from self._build(subject)
        yield from subject_builder.confirm()
        yield from self._same_artefacts()
        for benchmark in self._session.study.benchmarks:
            keys = [
                key for key, each in self._ready_outcomes.items() if each.ready.cell.benchmark == benchmark
            ]
            yield from self._measure(self._by_point(keys))
        return RunReport(
            revisions=len(revisions),
            cells=self._planned,
            measured=sum(
                len(self._cells[key]) for key, each in self._ready_outcomes.items() if each.measured
            ),
            skipped=sum(
                len(self._cells[key])
                for key, each in self._ready_outcomes.items()
                if each.ready.cell in self._plan_progress.skipped_cells
            ),
            failures=self._failures,
            invocations=self._session.runner.started,
            skipped_revisions=skipped_revisions,
            pins=self._session.pins,
            disagreements=disagreements(self._session.study, self._outcomes()),
            to_correct=self._to_correct,
        )

    def _outcomes(self) -> Iterator[tuple[Cell, ReadyOutcomes]]:
        for key, each in self._ready_outcomes.items():
            yield from ((cell, each) for cell in self._cells[key])

    def _build(self, subject: Subject) -> Generator[Event, None, None]:
        wanted = self._cells_of(subject)
        self._planned += len(wanted)
        ready_cells: list[Ready] = []
        for cell in wanted:
            ready = yield from self._session.subject_builder.ready(cell)
            if isinstance(ready, Failure):
                self._failures[str(subject)] = ready
            else:
                self._cells.setdefault(ready.runnable.key, []).append(cell)
                ready_cells.append(ready)
        self._read_stored([ready for ready in ready_cells if ready.runnable.key not in self._ready_outcomes])

    def _build_first(self, wanted: Sequence[Subject]) -> Generator[Event, None, None]:
        """Build the oldest two, and the newest if both fail. Raises `NoAnswer` if all three fail for one reason."""
        if self._session.keep_going:
            return
        subject_builder = self._session.subject_builder
        yield from subject_builder.build_in_parallel(wanted[: max(2, subject_builder.parallel_builds)])
        failures: dict[Subject, Failure] = {}
        for subject in dict.fromkeys((*wanted[:2], *wanted[-1:])):
            outcome = yield from subject_builder.build(subject)
            if not isinstance(outcome, Failure):
                return
            failures[subject] = outcome
        if reason := same_reason(failures, self._session.study, eras_of=subject_builder.build_inputs.eras_of):
            raise NoAnswer(reason)

    def _stop_if_all_fail(self, cell: Cell, outcome: Outcome) -> None:
        """Raise `NoAnswer` if every subject so far failed to run for one reason."""
        if isinstance(outcome, FailedInvocation):
            self._failed_to_run[cell.subject] = outcome.failure
            self._to_correct = self._to_correct or study_line(
                outcome.failure,
                self._session.study,
                cell.benchmark,
                cell.subject,
                self._session.subject_builder.build_inputs.eras_of(cell.subject),
            )
        else:
            self._any_ran = True
        if (
            not self._any_ran
            and not self._session.keep_going
            and (
                reason := same_reason(
                    self._failed_to_run,
                    self._session.study,
                    cell.benchmark,
                    eras_of=self._session.subject_builder.build_inputs.eras_of,
                )
            )
        ):
            raise NoAnswer(reason)

    def _cells_of(self, subject: Subject) -> list[Cell]:
        return [cell for cell in cells(self._session.study, subject) if self._selection.includes(cell)]

    def _read_stored(self, ready_cells: Sequence[Ready]) -> None:
        study = self._session.study
        stored = self._session.runner.stored(ready_cells)
        for ready in ready_cells:
            benchmark = study.benchmarks[ready.cell.benchmark]
            outcomes = ReadyOutcomes(
                ready=ready,
                policy=study.measure,
                metrics=benchmark.leading,
                same=tuple(name for name, metric in benchmark.metrics.items() if metric.same),
            )
            for outcome in stored.get(ready.runnable.key, ()):
                if self._session.subject_builder.retry_failed and isinstance(outcome, FailedInvocation):
                    outcomes.skip(outcome)
                else:
                    outcomes.add(outcome)
            self._ready_outcomes[ready.runnable.key] = outcomes
            self._plan_progress.set_outcomes(ready.cell, outcomes)

    def _same_artefacts(self) -> Generator[Event, None, None]:
        for shared in self._cells.values():
            if len(shared) > 1 and shared[0].point == self._first_point(shared[0]):
                yield SameArtefact(
                    benchmark=shared[0].benchmark, subjects=tuple(cell.subject for cell in shared)
                )

    def _first_point(self, cell: Cell) -> object:
        return next(self._session.study.benchmarks[cell.benchmark].each_point(cell.subject.variant))

    def _by_point(self, keys: Sequence[str]) -> list[str]:
        """Group the subjects of a point, so that a short disturbance affects all of them."""
        points = dict.fromkeys(self._ready_outcomes[key].ready.cell.point for key in keys)
        numbers = {point: number for number, point in enumerate(points)}
        return sorted(keys, key=lambda key: numbers[self._ready_outcomes[key].ready.cell.point])

    def _measure(self, keys: Sequence[str]) -> Generator[Event, None, None]:
        for key in keys:
            yield from self._give_up(self._ready_outcomes[key].ready.cell)
        number = 0
        while active := [
            key for key in keys if self._plan_progress.has_work_left(self._ready_outcomes[key].ready.cell)
        ]:
            yield from self._round(active, number)
            number += 1

    def _round(self, active: Sequence[str], number: int) -> Generator[Event, None, None]:
        """Start each cell once. The subjects of a point are a block: they run directly one after another."""
        study = self._session.study
        furthest = max(
            (self._ready_outcomes[key].next for key in active),
            key=lambda each: (each[0] != "warmup", each),
        )
        seed = invocation_seed(study, *furthest)
        for block in self._blocks(active, number):
            yield from self._block(block, Draw(block=secrets.token_hex(8), seed=seed))

    def _blocks(self, active: Sequence[str], number: int) -> Iterator[Sequence[str]]:
        """Order the invocations of a round, point after point, with the subjects of a point in random order.

        Points are compared with each other, so their order alternates; the subjects of a point are compared
        in pairs.
        """
        policy = self._session.study.measure
        points: dict[str, list[str]] = {}
        for key in active:
            points.setdefault(str(self._ready_outcomes[key].ready.cell.point), []).append(key)
        for point in ordered(tuple(points), number, order=policy.order, seed=policy.seed):
            order = "random" if policy.order == "interleaved" else policy.order
            yield ordered(points[point], number, order=order, seed=policy.seed)

    def _block(self, block: Sequence[str], draw: Draw) -> Generator[Event, None, None]:
        in_block = (self._ready_outcomes[key] for key in block)
        wanted = (each for each in in_block if self._plan_progress.has_work_left(each.ready.cell))
        starts = (self._start(each, replace(draw, turn=turn)) for turn, each in enumerate(wanted))
        for event in self._session.runner.perform_new(starts):
            yield event
            if isinstance(event, Invoked):
                self._stop_if_all_fail(event.cell, event.outcome)
                outcomes = self._ready_outcomes[event.outcome.key.runnable]
                outcomes.add(event.outcome)
                self._plan_progress.set_outcomes(event.cell, outcomes)
                if isinstance(event.outcome, FailedInvocation):
                    self._failures.setdefault(str(event.cell), event.outcome.failure)
                    yield from self._give_up(event.cell)
            yield self._progress()

    def _start(self, outcomes: ReadyOutcomes, draw: Draw) -> PlannedInvocation:
        return self._session.runner.plan(outcomes.ready, *outcomes.next, draw=draw)

    def _give_up(self, cell: Cell) -> Generator[Event, None, None]:
        if larger := self._plan_progress.give_up(cell):
            yield GivenUp(cells=larger, because=cell)

    def _progress(self) -> Progress:
        left = self._plan_progress.left()
        seconds = left.seconds or Span(least=0.0, most=0.0)
        return Progress(
            done=left.done,
            left_least=int(left.starts.least),
            left_most=int(left.starts.most),
            seconds_least=seconds.least,
            seconds_most=seconds.most,
            unseen=left.unseen,
        )
