"""Events of building and measuring, for the console, the dashboard and the tests; and the time of day."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import NoAnswer
from perftrail.measure.failure_groups import MACHINE_REMEDY
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.ports import RemarkingSource

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from perftrail.measure.sources import SkippedRevisions
    from perftrail.model.build import Built
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Difference, Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRead:
    """The revisions of the source were read, oldest first; `remark` states how the range was corrected.

    `are_new`: these are only the revisions since the last check of a watch.
    `metrics` is the number of metrics that a search is about, and `most_seconds` its limit of time, at least that of
    `builds_in_time` builds.
    """

    revisions: tuple[Revision, ...]
    remark: str = ""
    are_new: bool = False
    metrics: int = 1
    most_seconds: float | None = None
    builds_in_time: int = 0

    @classmethod
    def of(cls, source: Source, revisions: tuple[Revision, ...]) -> HistoryRead:
        """Return the event for revisions that a source has just returned."""
        return cls(revisions=revisions, remark=source.remark if isinstance(source, RemarkingSource) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The study excludes these revisions, all for one reason."""

    skipped: SkippedRevisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """Samples that count only if the new build is identical.

    `differences` counts their cells by what changed; `measured_cells` is the number of all measured cells.
    """

    differences: Mapping[Difference, int]
    measured_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStarted:
    """A build started."""

    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFinished:
    """A build ended, or failed. `known`: the store had the outcome, so nothing was built."""

    subject: Subject
    outcome: Built | Failure
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderMessage:
    """The builder did something else of interest, for example removed old builds to free disk space."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkBuildFailed:
    """A benchmark build failed although the subject's build succeeded."""

    subject: Subject
    benchmark: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinked:
    """A subject was linked in other orders, each named by its seed; the last one may have failed."""

    subject: Subject
    outcomes: Mapping[int, Built | Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelinkedWithoutEffect:
    """The benchmark's files were equal for several layout seeds: the recipe's relink has no effect."""

    subject: Subject
    benchmark: str
    layouts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SameArtefact:
    """Several subjects have equal artefacts, so perftrail measures them once."""

    benchmark: str
    subjects: tuple[Subject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsRead:
    """Metrics that were added to the study were read from stored outputs.

    `read` counts the invocations that need not be repeated, `missing` those whose stored output lacks the metrics.
    """

    cell: Cell
    metrics: tuple[str, ...]
    read: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoking:
    """An invocation starts."""

    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """An invocation ended, with a measurement or a recorded failure."""

    cell: Cell
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Points were skipped because a smaller value of the same axis already ran out of time or memory."""

    cells: tuple[Cell, ...]
    because: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a run: completed invocations, and the seconds left at least and at most.

    The time for `unseen` points is unknown, so the run can take longer.
    """

    done: int
    left_least: int
    left_most: int
    seconds_least: float
    seconds_most: float
    unseen: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[Progress]) -> Progress:
        """Return the progress of several benchmarks that are measured alternately.

        >>> part = Progress(done=4, left_least=2, left_most=6, seconds_least=1.0, seconds_most=3.0)
        >>> total = Progress.of_all([part, part, part.ended()])
        >>> total.done, total.left_most, total.seconds_most
        (12, 12, 6.0)
        """
        every = list(parts)
        return cls(
            done=sum(each.done for each in every),
            left_least=sum(each.left_least for each in every),
            left_most=sum(each.left_most for each in every),
            seconds_least=sum(each.seconds_least for each in every),
            seconds_most=sum(each.seconds_most for each in every),
            unseen=sum(each.unseen for each in every),
        )

    def ended(self) -> Progress:
        """Return the progress of a benchmark that needs no more invocations."""
        return replace(self, left_least=0, left_most=0, seconds_least=0.0, seconds_most=0.0, unseen=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A search performed a step. `belief` is its state after the step; `resumed` marks a step read from the store.

    `purpose` is why the search took the step, and how far its rounds are. It is empty for a step that narrows a
    change down. `metrics` is the number of the search's metrics, `decided` the number of those that are decided.
    `seconds_left` forecasts the least and the most seconds until all are decided; `None`: no forecast.
    """

    number: int
    words: str
    purpose: str = ""
    metrics: int = 1
    decided: int = 0
    seconds_left: tuple[float, float] | None = None
    belief: Mapping[str, Json] = field(default_factory=dict)
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiling:
    """A search profiles a benchmark at both ends with a profiler, which takes about this many seconds."""

    benchmark: str
    profiler: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLongForBudget:
    """A search skips a phase before its first step, which would take more than `limit` seconds, a part of its budget.

    `seconds` is the forecast of the phase's time; `None`: it is only known to be above the limit.
    """

    phase: str
    seconds: float | None
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTooSmall:
    """A comparison will probably end without a verdict: `verdicts` need `pairs` each, which take `seconds`."""

    verdicts: int
    pairs: int
    seconds: float
    budget: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """A search counts instructions to locate a change of a metric, which takes about this many seconds without builds.

    `instructions` and `requested` are the changes between the ends, as logarithms of ratios.
    """

    metric: str
    instructions: float
    requested: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCounted:
    """The instructions of a build were counted; `change` is relative to the oldest, as the logarithm of a ratio."""

    revision: Revision
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WentFurtherBack:
    """A search found no change since a revision, so a range further back is searched. `unclear`: it is not certain."""

    since: Revision
    unclear: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteListing:
    """The listing of a suite of a subject started."""

    subject: Subject
    suite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteListed:
    """A suite of a subject was listed: its number of benchmarks, or why it could not be listed.

    `unlisted` are files whose benchmarks the suite could not name, each with the reason. `seconds` is the time of the
    listing; zero if it was stored.
    """

    subject: Subject
    suite: str
    result: int | Failure
    unlisted: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating:
    """A suite runs each of some benchmarks for a moment to choose its iterations; `done` counts them meanwhile."""

    subject: Subject
    suite: str
    benchmarks: int
    done: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The iterations of some benchmarks were chosen, in `seconds`; `failure` is why those of others were not."""

    subject: Subject
    suite: str
    benchmarks: int
    seconds: float
    failure: Failure | None = None


Event = (
    HistoryRead
    | WentFurtherBack
    | Skipped
    | Outdated
    | BuildStarted
    | BuildFinished
    | BuilderMessage
    | BenchmarkBuildFailed
    | SuiteListing
    | SuiteListed
    | Calibrating
    | Calibrated
    | Relinked
    | RelinkedWithoutEffect
    | SameArtefact
    | OutputsRead
    | Invoking
    | Invoked
    | GivenUp
    | Progress
    | Profiling
    | TooLongForBudget
    | BudgetTooSmall
    | Counting
    | BuildCounted
    | Stepped
)


Result = TypeVar("Result")


def stop_at_fault_of_machine(
    events: Generator[Event, None, Result], *, keep_going: bool
) -> Generator[Event, None, Result]:
    """Yield the events of a search or a watch. Raises `NoAnswer` at the first failure that this machine caused.

    Such a failure is not a property of the revision, so that no answer may depend on it, unless the user wants to
    keep going.
    """
    if keep_going:
        return (yield from events)
    while True:
        try:
            event = next(events)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        yield event
        for subject, failure in _failures_of(event):
            if failure.is_of_machine:
                events.close()
                reason = failure.message.partition("\n")[0]
                raise NoAnswer(
                    f"{subject}: {failure.stage}: {reason}. This machine caused the failure, "
                    f"not the revision: {MACHINE_REMEDY}. If this remains, [[source.skip]] skips the revision"
                )


def _failures_of(event: Event) -> Iterator[tuple[Subject, Failure]]:
    match event:
        case BuildFinished(subject=subject, outcome=Failure() as failure):
            yield subject, failure
        case BenchmarkBuildFailed(subject=subject, failure=failure):
            yield subject, failure
        case Relinked(subject=subject, outcomes=outcomes):
            yield from ((subject, each) for each in outcomes.values() if isinstance(each, Failure))
        case Invoked(cell=cell, outcome=FailedInvocation(failure=failure)):
            yield cell.subject, failure
        case _:
            return


def now() -> str:
    """Return the current UTC time to the millisecond, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
