"""Comparisons of two revisions over fakes: verdicts, the order of starts, sharing of the error, budget, resuming."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import ChangedEnvironment, StudyError, UsageError
from perftrail.measure.events import BudgetTooSmall, BuilderMessage, Invoked, Progress, SameArtefact
from perftrail.measure.session import Session
from perftrail.measure.subjects import retry_stale_builds
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Recipe
from perftrail.model.measurement import Conditions
from perftrail.model.metrics import Derived, Metric
from perftrail.model.process import Command, Exited, Ran
from perftrail.model.recipe import Build, Variant, VariantRun
from perftrail.model.source import Source
from perftrail.model.study import Invocations, MeasurePolicy, Study
from perftrail.model.subject import Subject
from perftrail.model.target import parse_metric
from perftrail.present.outdated import comparison_notes, sample_notes
from perftrail.results.gate import Gate, Row, stored_comparisons
from perftrail.results.measured import MeasuredHere
from perftrail.results.selection import Choice, choose
from perftrail.stats.comparison import Verdict
from perftrail.verbs.compare import Compare, CompareRequest
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.fakes.watcher import FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

POLICY = MeasurePolicy(invocations=Invocations(least=3, most=60), warmups=1, precision=0.02)


WALL = Choice(metrics=(parse_metric("wall"),))


def study(**changes: object) -> Study:
    return a_study(**{"measure": POLICY, **changes})


def starter(base: float, head: float, *, noise: float = 0.01) -> FakeStarter:
    return FakeStarter(seconds=lambda words: (base, head)[number_of(words)], noise=noise)


def session_of(tmp_path: Path, started: FakeStarter, **others: object) -> Session:
    custom_study = others.pop("custom_study", None) or study()
    source = others.pop("source", None) or FakeSource(2)
    return a_session(custom_study, tmp_path, source=source, starter=started, **others)  # type: ignore[arg-type] # as a_session's


def gate(session: Session, **options: object) -> Gate:
    wanted = {"choice": WALL, "fail_on": "slower", **options}
    request = replace(CompareRequest(base="r0", head="r1"), **wanted)  # type: ignore[arg-type] # as the request's
    return drain(Compare(session, request).events())[1]


def only(found: Gate) -> Row:
    [row] = found.rows
    return row


@pytest.mark.parametrize(
    ("head", "verdict", "code"),
    [(1.05, Verdict.SLOWER, 3), (0.95, Verdict.FASTER, 0), (1.0, Verdict.SAME, 0)],
)
def test_a_head_is_slower_faster_or_the_same(
    tmp_path: Path, head: float, verdict: Verdict, code: int
) -> None:
    found = gate(session_of(tmp_path, starter(1.0, head)))
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert only(found).comparison is not None
    assert only(found).pairs < POLICY.invocations.most


def test_in_much_noise_it_is_unclear_and_says_what_would_have_been_seen(tmp_path: Path) -> None:
    found = gate(session_of(tmp_path, starter(1.0, 1.01, noise=0.3)))
    assert (found.verdict, found.exit_code) == (Verdict.UNCLEAR, 0)
    comparison = only(found).comparison
    assert comparison is not None
    assert comparison.minimum_detectable is not None
    assert comparison.minimum_detectable > 0.1
    assert gate(session_of(tmp_path, starter(1.0, 1.01, noise=0.3)), fail_on="unclear").exit_code == 3


def test_a_sure_difference_below_the_smallest_that_counts_trips_nothing(tmp_path: Path) -> None:
    found = gate(session_of(tmp_path, starter(1.0, 1.03, noise=0.001)), threshold=0.0305)
    row = only(found)
    assert row.verdict in (Verdict.SAME, Verdict.SLOWER)
    assert found.exit_code == 0


def test_the_order_in_each_pair_is_drawn_and_pairs_stop_when_the_verdict_is_settled(tmp_path: Path) -> None:
    started = starter(1.0, 2.0, noise=0.0)
    found = gate(session_of(tmp_path, started))
    numbers = [number_of(words) for words in started.started]
    pairs = [tuple(numbers[at : at + 2]) for at in range(2, len(numbers), 2)]  # after a warm-up of each
    assert set(pairs) == {(0, 1), (1, 0)}
    assert len(numbers) == 2 + 2 * only(found).pairs
    assert only(found).pairs < 20


def test_equal_builds_are_the_same_and_nothing_is_started(tmp_path: Path) -> None:
    started = starter(1.0, 1.0)
    session = session_of(tmp_path, started, source=FakeSource(2, same_as={"r1": "r0"}))
    request = CompareRequest(base="r0", head="r1", choice=WALL, fail_on="any")
    events, found = drain(Compare(session, request).events())
    assert started.started == []
    assert any(isinstance(event, SameArtefact) for event in events)
    assert only(found).one_build
    assert (found.verdict, found.exit_code) == (Verdict.SAME, 0)


def test_both_builds_are_confirmed_before_anything_is_measured(tmp_path: Path) -> None:
    class Refused(FakeBuilder):
        """A builder whose builds of an earlier session have other outputs now."""

        def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
            super().confirm(decisive)
            raise ChangedEnvironment(("key",), since="2026-11-01")

    started, source = starter(1.0, 1.0), FakeSource(2)
    builder = Refused(source)
    with pytest.raises(ChangedEnvironment):
        gate(session_of(tmp_path, started, source=source, builder=builder))
    assert (builder.decisive, started.started) == (["r0", "r1"], [])


def test_a_comparison_starts_again_with_new_builds_after_a_change_of_the_environment(tmp_path: Path) -> None:
    class Changed(FakeBuilder):
        """A builder that notices another environment once."""

        def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
            super().confirm(decisive)
            if len(self.decisive) == 2:
                raise ChangedEnvironment(("key",), since="2026-11-01")

    source = FakeSource(2)
    session = session_of(tmp_path, starter(1.0, 1.0), source=source, builder=Changed(source))
    request = CompareRequest(base="r0", head="r1", choice=WALL, fail_on="any")
    events, found = drain(
        retry_stale_builds(session.subject_builder, lambda: Compare(session, request).events())
    )
    assert found.verdict == Verdict.SAME
    texts = [each.text for each in events if isinstance(each, BuilderMessage)]
    assert [text for text in texts if text.startswith("the environment of builds changed since 2026-11-01")]


def test_the_forecast_is_about_all_benchmarks(tmp_path: Path) -> None:
    three = study(benchmarks={f"work{number}": Benchmark(command="{build}/work") for number in range(3)})
    session = session_of(tmp_path, starter(1.0, 1.5), custom_study=three)
    events, _ = drain(Compare(session, CompareRequest(base="r0", head="r1", choice=WALL)).events())
    progress = [each for each in events if isinstance(each, Progress)]
    assert progress[0].done == 2
    assert progress[0].left_most == 3 * 2 * POLICY.invocations.most - 2
    assert progress[0].seconds_most == pytest.approx(1.25 * progress[0].left_most, rel=0.2)


def test_the_forecast_includes_the_pairs_that_replace_discarded_ones(tmp_path: Path) -> None:
    busy = Conditions(foreign_cpus=4.0)
    watcher = FakeWatcher.with_conditions(Conditions(), Conditions(), busy, busy)  # after two warm-ups
    session = session_of(tmp_path, starter(1.0, 1.5), watcher=watcher)
    events, _ = drain(Compare(session, CompareRequest(base="r0", head="r1", choice=WALL)).events())
    first = next(each for each in events if isinstance(each, Progress))
    assert (first.done, first.left_most) == (2, 2 * POLICY.invocations.most)


def test_the_more_metrics_share_the_error_the_more_pairs_a_verdict_takes(tmp_path: Path) -> None:
    one = gate(session_of(tmp_path / "one", starter(1.0, 1.5, noise=0.0)))
    many = study(benchmarks={f"work{number}": Benchmark(command="{build}/work") for number in range(50)})
    fifty = gate(session_of(tmp_path / "many", starter(1.0, 1.5, noise=0.0), custom_study=many))
    first = fifty.rows[0].comparison
    assert first is not None
    assert first.confidence == 0.99
    assert first.level == pytest.approx(0.01 / 50 / 2)
    assert only(one).pairs < fifty.rows[0].pairs


def test_a_maximum_of_pairs_that_allows_no_verdict_is_refused_with_the_reason(tmp_path: Path) -> None:
    started = starter(1.0, 1.01, noise=0.3)
    with pytest.raises(UsageError) as refused:
        gate(session_of(tmp_path, started), most=4)
    assert str(refused.value) == (
        "--max-pairs 4: a verdict on one metric needs at least 9 pairs with --confidence 0.99; write --max-pairs 9 or "
        "more, or lower the confidence"
    )
    many = study(benchmarks={f"work{number}": Benchmark(command="{build}/work") for number in range(50)})
    with pytest.raises(
        UsageError, match=r"verdicts on 50 metrics need at least 15 pairs .*, compare fewer metrics"
    ):
        gate(session_of(tmp_path, started, custom_study=many), most=9)
    assert started.started == []
    assert only(gate(session_of(tmp_path, started), most=9)).pairs == 9


def test_a_maximum_of_pairs_also_limits_layouts_that_are_expensive_to_link(tmp_path: Path) -> None:
    relinked = study(build=Build(relink=("sh relink.sh {layout}",)))
    source = FakeSource(2)
    started = FakeStarter(seconds=lambda words: 1.0, noise=0.3)
    clock = itertools.count(step=1000.0)
    session = session_of(tmp_path, started, custom_study=relinked, source=source, builder=FakeBuilder(source))
    wanted = CompareRequest(base="r0", head="r1", choice=WALL, most=20)
    row = only(drain(Compare(session, wanted, clock=lambda: next(clock)).events())[1])
    assert row.layouts > 1
    assert row.pairs / row.layouts == 2, "two pairs of each layout, instead of four"
    assert 9 <= row.pairs <= 20


def test_of_many_unchanged_benchmarks_none_is_called_different(tmp_path: Path) -> None:
    names = [f"work{number}" for number in range(10)]
    custom_study = study(
        benchmarks={name: Benchmark(command=f"{{build}}/work {name}") for name in names},
        measure=MeasurePolicy(invocations=Invocations(least=3, most=20), warmups=0, precision=0.001),
    )
    found = gate(session_of(tmp_path, starter(1.0, 1.0, noise=0.05), custom_study=custom_study))
    assert len(found.rows) == 10
    assert found.exit_code == 0


def test_a_program_that_neither_side_builds_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    custom_study = study(benchmarks={"work": Benchmark(command="./work {cpus}")})
    builder = FakeBuilder(FakeSource(2))
    with pytest.raises(StudyError, match=r"benchmark\.work\.command: .* did you mean \{build\}/work\?"):
        gate(session_of(tmp_path, starter(1.0, 1.0), custom_study=custom_study, builder=builder))
    assert not builder.built_ids


def test_a_program_that_neither_side_builds_is_a_note_if_others_are_compared(tmp_path: Path) -> None:
    works = study().benchmarks
    custom_study = study(benchmarks={**works, "fixed": Benchmark(command="sort /dev/null")})
    found = gate(session_of(tmp_path, starter(1.0, 1.0), custom_study=custom_study))
    [note] = [each for each in found.notes if "names neither" in each]
    assert note.startswith(f"{custom_study.file}:1: benchmark.fixed.command: sort /dev/null names neither")


def test_the_worst_change_is_first(tmp_path: Path) -> None:
    custom_study = study(
        benchmarks={name: Benchmark(command=f"{{build}}/work {name}") for name in ("a", "b", "c")}
    )
    factors = {"a": 0.8, "b": 1.5, "c": 1.2}
    started = FakeStarter(seconds=lambda words: factors[words[1]] if number_of(words) else 1.0, noise=0.005)
    found = gate(session_of(tmp_path, started, custom_study=custom_study))
    assert [row.metric.benchmark for row in found.rows] == ["b", "c", "a"]
    assert [row.metric.benchmark for row in found.tripped] == ["b", "c"]


def test_every_variant_is_compared(tmp_path: Path) -> None:
    variants = {"plain": Variant(), "other": Variant(rebuild=False, run=VariantRun(env={"MODE": "other"}))}
    found = gate(session_of(tmp_path, starter(1.0, 1.2), custom_study=study(variants=variants)))
    assert {row.metric.variant for row in found.rows} == {"plain", "other"}


def test_a_head_that_does_not_build_is_no_answer(tmp_path: Path) -> None:
    source = FakeSource(2)
    session = session_of(
        tmp_path, starter(1.0, 1.0), source=source, builder=FakeBuilder(source, broken={"r1"})
    )
    found = gate(session)
    assert [each.side for each in found.broken] == ["head"]
    assert found.exit_code == 1


def test_a_benchmark_that_only_the_head_has_is_no_fault_of_it(tmp_path: Path) -> None:
    custom_study = study(
        benchmarks={name: Benchmark(command=f"{{build}}/work {name}") for name in ("new", "old")}
    )
    started = starter(1.0, 1.0)
    started.ended = lambda words: Exited(code=int(words[1] == "new" and number_of(words) == 0))
    found = gate(session_of(tmp_path, started, custom_study=custom_study))
    assert [each.side for each in found.failed_sides] == ["base"]
    assert (found.broken, found.exit_code) == ((), 0)


def test_a_benchmark_that_the_head_breaks_is_one(tmp_path: Path) -> None:
    started = starter(1.0, 1.0)
    started.ended = lambda words: Exited(code=number_of(words))
    found = gate(session_of(tmp_path, started))
    assert found.exit_code == 1
    assert found.broken[0].failure.stage == "crash"


def test_killed_in_the_middle_it_resumes_with_the_same_result(tmp_path: Path) -> None:
    store = MemoryStore()
    workflow = Compare(
        session_of(tmp_path, starter(1.0, 1.05), store=store),
        CompareRequest(base="r0", head="r1", choice=WALL),
    ).events()
    invoked = 0
    while invoked < 13:
        invoked += isinstance(next(workflow), Invoked)
    workflow.close()
    second = starter(1.0, 1.05)
    found = gate(session_of(tmp_path, second, store=store))
    assert found.verdict is Verdict.SLOWER
    # a warm-up each and five whole pairs were there; the sixth lacked a start and is not made whole later
    assert len(second.started) == 2 * (only(found).pairs - 5)
    third = starter(1.0, 1.05)
    again = gate(session_of(tmp_path, third, store=store))
    assert third.started == []
    assert again.as_json()["comparisons"] == found.as_json()["comparisons"]


def test_a_stored_comparison_in_another_form_is_reported_instead_of_omitted_silently(tmp_path: Path) -> None:
    session = session_of(tmp_path, starter(1.0, 1.05), store=MemoryStore())
    gate(session)
    assert comparison_notes(session) == ()
    [record] = session.store.comparisons()
    old = {name.replace("rows", "lines"): value for name, value in record.result.items()}
    session.store.add_comparison(replace(record, result=old))
    assert len(stored_comparisons(session)) == 1
    [note] = comparison_notes(session)
    assert note.startswith("1 stored comparison is not shown: another version of perftrail stored it")
    assert note.endswith("compare again with: perftrail compare BASE HEAD")
    assert sample_notes(session, MeasuredHere(session)) == (note,)


class Hours:
    """A clock that advances by so much at each call."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def test_a_budget_ends_it_and_the_findings_so_far_are_reported(tmp_path: Path) -> None:
    session = session_of(tmp_path, starter(1.0, 1.0, noise=0.3))
    request = CompareRequest(base="r0", head="r1", choice=WALL, budget_seconds=30.0)
    _, found = drain(Compare(session, request, clock=Hours(1.0)).events())
    assert 0 < only(found).pairs < 30
    assert any("budget" in note for note in found.notes)


def test_a_budget_too_small_for_any_verdict_is_no_answer(tmp_path: Path) -> None:
    request = CompareRequest(base="r0", head="r1", choice=WALL, fail_on="slower", budget_seconds=4.0)
    _, found = drain(Compare(session_of(tmp_path, starter(1.0, 9.0)), request, clock=Hours(1.0)).events())
    assert only(found).verdict is Verdict.UNCLEAR
    assert found.exit_code == 1


def test_a_budget_ends_a_comparison_of_many_benchmarks_within_a_round(tmp_path: Path) -> None:
    names = [f"work{number}" for number in range(20)]
    custom_study = study(
        benchmarks={name: Benchmark(command=f"{{build}}/work {name}") for name in names},
        measure=MeasurePolicy(invocations=Invocations(least=3, most=20), warmups=0),
    )
    started = starter(1.0, 1.0)
    session = session_of(tmp_path, started, custom_study=custom_study)
    request = CompareRequest(base="r0", head="r1", choice=WALL, budget_seconds=5.0)
    events, found = drain(Compare(session, request, clock=Hours(1.0)).events())
    [warning] = [each for each in events if isinstance(each, BudgetTooSmall)]
    assert (warning.verdicts, warning.budget) == (20, 5.0)
    assert 0 < len(started.started) < 2 * 2 * 10
    notes = [row.note for row in found.rows]
    assert len(notes) == 20
    assert notes.count("the budget ended before its first pair") >= 10
    assert any(
        "the budget ended the comparison after 1 round, with 20 benchmarks" in note for note in found.notes
    )


def test_metrics_are_chosen_by_name_benchmark_and_point(tmp_path: Path) -> None:
    custom_study = study(
        benchmarks={
            "one": Benchmark(command="{build}/work {size}", parameters={"size": (1, 2)}),
            "two": Benchmark(command="{build}/work 0"),
        }
    )
    choice = choose(custom_study, benchmarks=(), metrics=("one.wall[size=2]", "peak_memory"))
    started = starter(1.0, 1.0)
    found = gate(session_of(tmp_path, started, custom_study=custom_study), choice=choice)
    names = {row.metric.name for row in found.rows}
    assert names == {
        "one.wall[size=2]",
        "one.peak_memory[size=1]",
        "one.peak_memory[size=2]",
        "two.peak_memory",
    }
    narrow = choose(custom_study, benchmarks=("o*",), metrics=("wall[size=2]",))
    started = starter(1.0, 1.0)
    found = gate(session_of(tmp_path / "narrow", started, custom_study=custom_study), choice=narrow)
    assert only(found).metric.name == "one.wall[size=2]"
    assert {words[1] for words in started.started} == {"2"}


@pytest.mark.parametrize(
    ("metrics", "benchmarks", "expected"),
    [
        (("speed",), (), "--metric speed"),
        (("wall[size=9]",), (), "--metric wall"),
        ((), ("nothing",), "--benchmark nothing"),
        (("not a metric",), (), "--metric not a metric"),
    ],
)
def test_metrics_that_there_are_not_are_wrong_usage(
    metrics: tuple[str, ...], benchmarks: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(UsageError, match=expected.replace("[", r"\[")):
        choose(study(), metrics=metrics, benchmarks=benchmarks)


def test_more_of_a_metric_that_is_better_high_is_no_regression(tmp_path: Path) -> None:
    """For the CPU's frequency, which the watcher measures, more is better."""

    started = starter(1.0, 1.0)

    class Frequency(FakeWatcher):
        def end(self, own_cpu_seconds: float) -> Conditions:
            return Conditions(cpu_hertz=2e9 if number_of(started.started[-1]) else 1e9)

    custom_study = study(measure=MeasurePolicy(invocations=Invocations(least=3, most=30), warmups=0))
    session = session_of(tmp_path, started, custom_study=custom_study, watcher=Frequency())
    choice = choose(custom_study, benchmarks=(), metrics=("cpu_frequency",))
    found = gate(session, choice=choice)
    assert only(found).verdict is Verdict.FASTER
    assert only(found).word == "better"
    assert found.exit_code == 0


def test_a_directory_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    custom_study = study(source=Source(kind="directory", location="/there"))
    with pytest.raises(UsageError, match="one revision"):
        gate(session_of(tmp_path, starter(1.0, 1.0), custom_study=custom_study))


class Times(FakeStarter):
    """A starter with very noisy wall times; the head takes `factor` times the CPU time."""

    factor = 1.0

    def run(self, command: Command) -> Ran:
        own = self.factor if number_of(command.arguments) else 1.0
        return replace(super().run(command), cpu_seconds=own * math.exp(self.chance.gauss(0.0, 0.005)))


@pytest.mark.parametrize(("factor", "code"), [(1.05, 3), (1.0, 0)])
def test_of_a_benchmark_that_declares_nothing_both_times_count(
    tmp_path: Path, factor: float, code: int
) -> None:
    started = Times(seconds=lambda _: 1.0, noise=0.3)
    started.factor = factor
    found = gate(session_of(tmp_path, started), choice=Choice())
    verdicts = {row.metric.text: str(row.verdict) for row in found.rows}
    assert verdicts == {"wall": "unclear", "cpu": "slower" if factor > 1.0 else "same"}
    assert found.exit_code == code
    # once the one tells, the other is not measured on for; where it tells nothing, it is
    assert (len(started.started) < 2 * POLICY.invocations.most) == (factor > 1.0)


def test_without_a_choice_a_benchmark_s_own_metrics_are_compared_and_what_is_derived() -> None:
    own = Benchmark(command="{build}/work", metrics={"rate": Metric(pattern="r ([0-9]+)")})
    custom_study = study(
        benchmarks={"work": own}, derived={"double": Derived(value="rate * 2", benchmark="work")}
    )
    assert [target.text for target in Choice().of(custom_study, "work", "plain")] == ["double", "rate"]
    assert [target.text for target in Choice().of(study(), "work", "plain")] == ["wall", "cpu"]


def test_who_builds_several_at_once_is_asked_for_both_sides_of_what_is_wanted(tmp_path: Path) -> None:
    builder = FakeBuilder(FakeSource(2), parallel_builds=2)
    variants = {"plain": Variant(), "other": Variant()}
    only_plain = Benchmark(command="{build}/work", exclude=({"variant": "other"},))
    custom_study = study(variants=variants, benchmarks={"work": only_plain})
    gate(session_of(tmp_path, starter(1.0, 1.1), custom_study=custom_study, builder=builder))
    assert builder.begun == ["r0", "r1"]
