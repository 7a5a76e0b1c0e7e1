"""What a study lacks takes as long as each of its things took, not as long as all did on the average."""

from __future__ import annotations

from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure, Stage
from perftrail.model.measurement import FailedInvocation, InvocationKey, Measurement, Outcome
from perftrail.model.parameters import Point
from perftrail.model.plan import Cell
from perftrail.model.policies import Invocations, MeasurePolicy
from perftrail.model.subject import Revision, Subject
from perftrail.workflows.lacking import Lack, lacking
from perftrail.workflows.measuring import Standing

SUBJECT = Subject(revision=Revision(id="r0", parents=()), variant="plain")
LATER = Subject(revision=Revision(id="r1", parents=("r0",)), variant="plain")
POLICY = MeasurePolicy(invocations=Invocations(least=5, most=5), warmups=0)
BENCHMARKS = {
    "sort": Benchmark(command="{build}/sort {size}", parameters={"size": (1, 2, 3, 4)}, give_up=True),
    "other": Benchmark(command="{build}/other {size}", parameters={"size": (1, 2)}),
}


def cell(size: int, benchmark: str = "sort", subject: Subject = SUBJECT) -> Cell:
    return Cell(subject=subject, benchmark=benchmark, point=Point((("size", size),)))


def took(*seconds: float) -> tuple[Outcome, ...]:
    return tuple(
        Measurement(key=key(number), started="", seconds=each, values={"wall": each})
        for number, each in enumerate(seconds)
    )


def failed(stage: Stage) -> tuple[Outcome, ...]:
    failure = Failure(stage=stage, message="", log="", seconds=150.0)
    return (FailedInvocation(key=key(0), started="", seconds=150.0, failure=failure),)


def key(ordinal: int) -> InvocationKey:
    return InvocationKey(runnable="k", machine="m", phase="sample", ordinal=ordinal)


def lacks(held: dict[Cell, tuple[Outcome, ...]]) -> tuple[Lack, ...]:
    standings = {
        cell: Standing(
            known={(each.key.phase, each.key.ordinal): each for each in outcomes},
            policy=POLICY,
            metrics=("wall",),
        )
        for cell, outcomes in held.items()
    }
    return lacking(standings, BENCHMARKS)


def test_each_takes_as_long_as_it_took() -> None:
    found = lacks({cell(1): took(1.0, 3.0), cell(2): took(100.0, 100.0, 100.0, 100.0)})
    assert [(each.left.least, each.seconds) for each in found] == [(3, 2.0), (1, 100.0)]


def test_what_was_never_started_takes_at_least_as_long_as_what_it_is_larger_than() -> None:
    found = lacks({cell(1): took(1.0), cell(2): took(7.0), cell(3): (), cell(1, "other"): ()})
    assert [(each.seconds, each.unseen) for each in found] == [
        (1.0, False),
        (7.0, False),
        (7.0, True),
        (4.0, True),
    ]
    assert [each.seconds for each in lacks({cell(1): ()})] == [None]


def test_a_point_takes_as_long_as_at_other_revisions() -> None:
    found = lacks({cell(1): took(1.0), cell(2): took(7.0), cell(2, subject=LATER): ()})
    assert [(each.seconds, each.unseen) for each in found][2] == (7.0, False)


def test_what_failed_is_not_started_again_nor_what_is_larger_than_what_was_given_up() -> None:
    ended = lacks({cell(1): took(1.0), cell(2): failed("timeout"), cell(3): ()})
    assert [each.left.least for each in ended] == [4, 0, 0]
    crashed = lacks({cell(1): took(1.0), cell(2): failed("crash"), cell(3): ()})
    assert [each.left.least for each in crashed] == [4, 0, 5]


def test_larger_points_are_left_out_only_where_the_study_says_so() -> None:
    found = lacks({cell(1, "other"): failed("timeout"), cell(2, "other"): ()})
    assert [each.left.least for each in found] == [0, 5]
