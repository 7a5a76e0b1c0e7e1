"""The estimated time of missing samples uses the time of each point, not the average of all."""

from __future__ import annotations

from perftrail.measure.invocation_runner import RunnableOutcomes
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.build import Failure, Stage
from perftrail.model.measurement import FailedInvocation, InvocationKey, Measurement, Outcome
from perftrail.model.plan import Cell
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.model.subject import Revision, Subject
from perftrail.results.remaining_work import PlanProgress, Span

SUBJECT = Subject(revision=Revision(id="r0", parents=()), variant="plain")
LATER = Subject(revision=Revision(id="r1", parents=("r0",)), variant="plain")
POLICY = MeasurePolicy(invocations=Invocations(least=5, most=5), warmups=0)
BENCHMARKS = {
    "sort": Benchmark(command="{build}/sort {size}", parameters={"size": (1, 2, 3, 4)}, give_up=True),
    "other": Benchmark(command="{build}/other {size}", parameters={"size": (1, 2)}),
}


def cell(size: int, benchmark: str = "sort", subject: Subject = SUBJECT) -> Cell:
    return Cell(subject=subject, benchmark=benchmark, point=Point((("size", size),)))


def took(*seconds: float, busy: int = 0) -> tuple[Outcome, ...]:
    return tuple(
        Measurement(
            key=key(number),
            started="",
            seconds=each,
            values={"wall": each},
            flags=("busy",) if number < busy else (),
        )
        for number, each in enumerate(seconds)
    )


def failed(stage: Stage) -> tuple[Outcome, ...]:
    failure = Failure(stage=stage, message="", log="", seconds=150.0)
    return (FailedInvocation(key=key(0), started="", seconds=150.0, failure=failure),)


def key(ordinal: int) -> InvocationKey:
    return InvocationKey(runnable="k", machine="m", phase="sample", ordinal=ordinal)


def standing(*outcomes: Outcome, policy: MeasurePolicy = POLICY) -> RunnableOutcomes:
    return RunnableOutcomes.of(outcomes, policy=policy, metrics=("wall",))


def progress(held: dict[Cell, tuple[Outcome, ...]]) -> PlanProgress:
    found = PlanProgress(BENCHMARKS)
    for each, outcomes in held.items():
        found.set_outcomes(each, standing(*outcomes))
    return found


def seconds(held: dict[Cell, tuple[Outcome, ...]]) -> float | None:
    span = progress(held).left().seconds
    assert span is None or span.least == span.most
    return None if span is None else span.least


def test_each_takes_as_long_as_it_took() -> None:
    left = progress({cell(1): took(1.0, 3.0), cell(2): took(100.0, 100.0, 100.0, 100.0)}).left()
    assert (left.done, left.starts, left.seconds) == (6, Span(least=4, most=4), Span(least=106.0, most=106.0))


def test_what_was_never_started_takes_at_least_as_long_as_what_it_is_larger_than() -> None:
    done = {cell(1): took(1.0, 1.0, 1.0, 1.0, 1.0), cell(2): took(7.0, 7.0, 7.0, 7.0, 7.0)}
    assert seconds({**done, cell(3): ()}) == 5 * 7.0
    assert seconds({**done, cell(1, "other"): ()}) == 5 * 4.0
    assert progress({**done, cell(3): (), cell(4): ()}).left().unseen == 2
    assert seconds({cell(1): ()}) is None


def test_noisy_samples_are_replaced_within_the_requested_range() -> None:
    ranged = MeasurePolicy(invocations=Invocations(least=5, most=12), warmups=0)
    assert standing(*took(*[1.0] * 5), policy=ranged).left == (0, 0)
    assert standing(*took(*[1.0] * 5, busy=1), policy=ranged).left == (1, 7)
    assert standing(*took(*[1.0] * 6, busy=1), policy=ranged).left == (0, 0)
    assert standing(*took(*[1.0] * 9, busy=9), policy=ranged).left == (1, 3)
    assert standing(*took(*[1.0] * 10, busy=10), policy=ranged).left == (0, 0)
    assert standing(*took(*[1.0] * 5, busy=1)).left == (0, 0)


def test_a_point_takes_as_long_as_at_other_revisions() -> None:
    done = {cell(1): took(1.0, 1.0, 1.0, 1.0, 1.0), cell(2): took(7.0, 7.0, 7.0, 7.0, 7.0)}
    left = progress({**done, cell(1, subject=LATER): (), cell(2, subject=LATER): ()}).left()
    assert (left.seconds, left.unseen) == (Span(least=40.0, most=40.0), 0)


def test_what_is_put_again_counts_once() -> None:
    found = progress({cell(1): (), cell(2): took(2.0)})
    assert found.left().starts.least == 9
    for count in range(1, 6):
        found.set_outcomes(cell(1), standing(*took(*[3.0] * count)))
    left = found.left()
    assert (left.done, left.starts.least, left.seconds) == (6, 4, Span(least=8.0, most=8.0))
    assert (found.has_work_left(cell(1)), found.has_work_left(cell(2))) == (False, True)


def test_what_failed_is_not_started_again_nor_what_is_larger_than_what_was_given_up() -> None:
    ended = progress({cell(1): took(1.0), cell(2): failed("timeout"), cell(3): (), cell(4): ()})
    assert ended.give_up(cell(1)) == ()
    assert ended.give_up(cell(2)) == (cell(3), cell(4))
    assert ended.skipped_cells == {cell(3), cell(4)}
    assert (ended.left().starts.least, ended.left().unseen) == (4, 0)
    ended.set_outcomes(cell(3), standing())
    assert not ended.has_work_left(cell(3))
    crashed = progress({cell(1): took(1.0), cell(2): failed("crash"), cell(3): ()})
    assert crashed.give_up(cell(2)) == ()
    assert crashed.left().starts.least == 4 + 5


def test_larger_points_are_left_out_only_where_the_study_says_so() -> None:
    found = progress({cell(1, "other"): failed("timeout"), cell(2, "other"): ()})
    assert found.give_up(cell(1, "other")) == ()
    assert found.left().starts.least == 5
