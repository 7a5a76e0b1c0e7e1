"""A metric's name in a study gives one metric, or an error that says how to name each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.expression import evaluate
from perftrail.model.metrics import Counter, Derived, Metric
from perftrail.model.recipe import Variant
from perftrail.model.source import Source
from perftrail.model.study import FindPolicy, Study
from perftrail.model.target import (
    MetricReference,
    TargetError,
    Working,
    derived_targets,
    parse_metric,
    resolve,
    resolve_goal,
    resolve_points,
)

STUDY = Study(
    title="",
    file="/x/perftrail.toml",
    directory="/x",
    source=Source(kind="directory", location="/x"),
    benchmarks={
        "mt": Benchmark(
            command="x",
            parameters={"threads": (1, 2, 8), "size": (100, 200), "mode": ("fast",)},
            exclude=({"threads": 8, "size": 200},),
            metrics={"real": Metric(pattern="(x)", unit="s", better="lower")},
        ),
        "one.b": Benchmark(command="x", metrics={"rate": Metric(pattern="(x)", better="higher")}),
    },
    derived={
        "ratio": Derived(benchmark="mt", value="real[threads=1] / real[threads=8]", better="higher"),
        "speedup": Derived(benchmark="mt", value="real[threads=1] / real", better="higher", unit="x"),
    },
)
TWO_VARIANTS = replace(STUDY, variants={"plain": Variant(), "pooled": Variant()})


def _point(threads: int, size: int) -> Point:
    return Point((("threads", threads), ("size", size), ("mode", "fast")))


def test_a_metric_of_one_benchmark_without_parameters_is_found_by_its_name() -> None:
    target = resolve(STUDY, "rate")
    assert (target.benchmark, target.variant, target.better) == ("one.b", "plain", "higher")
    assert target.points == (Point(),)
    assert target.name == "one.b.rate"


@pytest.mark.parametrize(
    ("metric", "counters", "is_amount"),
    [
        ("wall", (), False),
        ("page_faults", (), False),
        ("peak_memory", (), True),
        ("real", (), False),
        ("size", (), True),
        ("cache_misses", ("hardware",), False),
        ("instructions", ("instructions",), True),
        ("allocations", ("allocations",), True),
    ],
)
def test_memory_and_counts_are_amounts_that_other_processes_do_not_change(
    metric: str, counters: tuple[Counter, ...], is_amount: bool
) -> None:
    metrics = {"real": Metric(pattern="(x)", unit="s"), "size": Metric(pattern="(x)", unit="B")}
    study = replace(
        STUDY, benchmarks={"one": Benchmark(command="x", metrics=metrics, counters=counters)}, derived={}
    )
    assert resolve(study, metric).is_amount is is_amount


def test_a_point_is_named_in_brackets() -> None:
    target = resolve(STUDY, "real[size=200, threads=2]")
    assert target.points == (_point(2, 200),)
    assert (target.text, target.name) == ("real[size=200, threads=2]", "mt.real[threads=2, size=200]")
    assert target.unit == "s"


def test_only_the_first_points_are_resolved_on_request() -> None:
    names = [target.name for target in resolve_points(STUDY, "real", most=2)]
    assert names == ["mt.real[threads=1, size=100]", "mt.real[threads=1, size=200]"]


def test_a_derived_metric_needs_the_points_of_its_references() -> None:
    target = resolve(STUDY, "mt.ratio[size=100]")
    assert target.points == (_point(1, 100), _point(8, 100))
    assert evaluate(target.expression, lambda reference: float(reference.point["threads"])) == 1 / 8


def test_a_derived_metric_leaves_out_what_an_exclusion_takes_from_it() -> None:
    assert [target.open_point for target in derived_targets(STUDY, "ratio", "plain")] == [
        Point((("size", 100), ("mode", "fast")))
    ]
    assert resolve(STUDY, "ratio").points == (_point(1, 100), _point(8, 100))


def test_a_reference_may_leave_open_what_another_fixes() -> None:
    target = resolve(STUDY, "speedup[threads=2, size=200]")
    assert target.points == (_point(1, 200), _point(2, 200))
    assert len(derived_targets(STUDY, "speedup", "plain")) == 5


def test_a_metric_at_one_point_only_is_measured_there_once() -> None:
    assert resolve(STUDY, "speedup[threads=1, size=200]").points == (_point(1, 200),)


@pytest.mark.parametrize(
    ("study", "text", "variant", "message"),
    [
        (STUDY, "wall", None, 'several benchmarks have "wall"; write mt.wall or one.b.wall'),
        (TWO_VARIANTS, "rate", None, "the study has several variants; choose one: plain or pooled"),
        (
            STUDY,
            "mt.wall[size=200]",
            None,
            '"mt.wall[size=200]" leaves parameters open; write mt.wall[threads=1, size=200] or '
            "mt.wall[threads=2, size=200]",
        ),
        (STUDY, "reel", None, 'no metric "reel"; did you mean "real"?'),
        (STUDY, "tm.real", None, 'no benchmark "tm"; choose mt or one.b'),
        (STUDY, "one.rate", None, 'no benchmark "one"; did you mean "one.b"?'),
        (TWO_VARIANTS, "rate", "poold", 'no variant "poold"; did you mean "pooled"?'),
        (STUDY, "rate[n=1]", None, 'no parameter "n"; the benchmark has none'),
        (STUDY, "real[thread=1]", None, 'no parameter "thread"; did you mean "threads"?'),
        (STUDY, "real[threads=3]", None, "threads=3 is not among the benchmark's values; choose 1, 2 or 8"),
        (STUDY, "ratio[threads=1]", None, "ratio fixes threads itself, in derived.ratio.value"),
        (
            STUDY,
            "real[threads=8, size=200]",
            None,
            '"real[threads=8, size=200]" is not measured in variant plain: benchmark.mt.exclude excludes it',
        ),
        (
            STUDY,
            "a b",
            None,
            '"a b" is not a valid metric; write NAME, BENCHMARK.NAME or NAME[parameter=value]',
        ),
        (
            STUDY,
            "mt.instructions",
            None,
            'no metric "instructions"; add counters = ["instructions"] to [benchmark.mt]',
        ),
        (
            replace(STUDY, benchmarks={"mt": Benchmark(command="x", counters=("instructions",))}, derived={}),
            "cpu",
            None,
            'no metric "cpu"; choose instructions; counters = ["instructions"] of [benchmark.mt] replaces wall, CPU '
            "time and memory: to measure both, add a second benchmark with the same command",
        ),
        (STUDY, "real[threads=1]x", None, '"real[threads=1]x": expected an operator or the end, not "x"'),
    ],
)
def test_what_is_unknown_or_ambiguous_is_reported_with_the_choices(
    study: Study, text: str, variant: str | None, message: str
) -> None:
    with pytest.raises(TargetError) as raised:
        resolve(study, text, variant)
    assert str(raised.value) == message


@pytest.mark.parametrize("text", ["mt.wall[size=200]", "mt.wall[size=200, threads=*]"])
def test_a_goal_with_open_parameters_means_every_point(text: str) -> None:
    goal = resolve_goal(STUDY, (text,))
    assert not isinstance(goal, Working)
    assert [each.text for each in goal] == ["mt.wall[threads=1, size=200]", "mt.wall[threads=2, size=200]"]
    assert [each.text for each in goal] == [each.name for each in goal]


def test_each_choice_that_an_ambiguous_name_offers_is_a_good_name() -> None:
    with pytest.raises(TargetError) as raised:
        resolve(STUDY, "mt.wall")
    offered = str(raised.value).partition("write ")[2].replace(" or ", ", mt.").replace("mt.mt.", "mt.")
    names = [f"mt.{part.rstrip(', ')}" for part in offered.split("mt.") if part]
    assert len(names) == 5
    assert [resolve(STUDY, name).name for name in names] == names


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("wall", MetricReference(name="wall")),
        ("a.b-c.wall", MetricReference(name="wall", benchmark="a.b-c")),
        ("wall [n=2, mode='a b']", MetricReference(name="wall", fixed={"n": 2, "mode": "a b"})),
        ('wall[x="2"]', MetricReference(name="wall", fixed={"x": "2"})),
    ],
)
def test_a_metric_is_read_with_its_benchmark_and_parameters(text: str, reference: MetricReference) -> None:
    assert parse_metric(text) == reference


def test_a_value_may_be_written_as_text_or_as_number() -> None:
    assert resolve(STUDY, 'real[threads="2", size=100.0]').points == (_point(2, 100),)


def test_the_variant_to_find_in_is_not_guessed() -> None:
    study = replace(TWO_VARIANTS, find=FindPolicy(variant="pooled"))
    assert resolve(study, "rate", study.find.variant).variant == "pooled"
