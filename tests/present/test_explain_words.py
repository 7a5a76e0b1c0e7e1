"""What `explain` says about metrics whose noise hides a difference."""

from __future__ import annotations

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.plan import Cell
from perftrail.model.subject import Revision, Subject
from perftrail.present.explain import headline, next_commands, print_explained
from perftrail.stats.ratios import difference
from perftrail.verbs.explain.explain import CellReport, ExplainReport, MetricDifference

BEFORE, AFTER = Revision(id="a" * 40, summary="old"), Revision(id="b" * 40, summary="new")
NOISY = ([1.0, 1.2, 0.9, 1.1, 1.05], [1.1, 0.95, 1.25, 1.0, 1.2])


def metric(
    name: str, before: list[float], after: list[float], *, method: str = "launcher"
) -> MetricDifference:
    return MetricDifference(
        name=name,
        unit="s",
        method=method,
        invocations=len(before),
        difference=difference(before, after, floor=0.0, metrics=10),
    )


def report(*metrics: MetricDifference) -> ExplainReport:
    cell = Cell(subject=Subject(revision=AFTER, variant="plain"), benchmark="work", point=Point(()))
    return ExplainReport(
        culprit=AFTER,
        against=BEFORE,
        changes=None,
        cells=(CellReport(cell=cell, equal=False, metrics=metrics),),
        failures=(),
        unavailable=(),
    )


def test_noisy_metrics_are_unclear_with_what_could_be_missed_and_what_settles_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_explained(report(metric("wall", *NOISY), metric("locks", [7.0] * 3, [7.0] * 3)), study_file=None)
    output = capsys.readouterr().out
    least = difference(*NOISY, floor=0.0, metrics=10).minimum_detectable
    assert 0.2 < least < 2.0
    assert f"unclear, no metric is certain to differ; could miss changes of wall below {least:.0%}" in (
        output.splitlines()[0].replace(" %", "%")
    )
    assert f"unclear, with the minimum detectable change: wall {least:.0%}" in output.replace(" %", "%")
    assert "unchanged: locks" in output
    assert "no difference" not in output
    assert "Next: perftrail compare aaaaaaaaaa bbbbbbbbbb" in output
    assert "Next: perftrail explain bbbbbbbbbb --invocations 20" in output
    assert "backport" not in output


def test_a_metric_whose_changes_only_show_if_they_are_huge_has_no_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scattered = metric("voluntary_switches", [1.0, 90.0, 3.0], [80.0, 2.0, 1.0])
    print_explained(report(scattered, metric("wall", *NOISY)), study_file=None)
    output = capsys.readouterr().out
    assert "  too noisy to compare with so few invocations: voluntary_switches\n" in output
    assert "unclear, with the minimum detectable change: wall" in output


def test_equal_metrics_do_not_differ_and_need_no_more_invocations(capsys: pytest.CaptureFixture[str]) -> None:
    explained = report(metric("locks", [7.0] * 3, [7.0] * 3))
    assert headline(explained).endswith("do not differ in any metric")
    print_explained(explained, study_file=None)
    output = capsys.readouterr().out
    assert "unclear" not in output
    assert "Next:" not in output


def test_a_difference_beside_noisy_metrics_leaves_these_unclear(capsys: pytest.CaptureFixture[str]) -> None:
    counts = metric("instructions", [100.0] * 3, [130.0] * 3, method="valgrind")
    print_explained(report(counts, metric("wall", *NOISY)), study_file="a study")
    output = capsys.readouterr().out
    assert "differs most in instructions: 30 % more" in output.splitlines()[0]
    assert "unclear, with the minimum detectable change: wall" in output
    assert "Next: perftrail compare aaaaaaaaaa bbbbbbbbbb 'a study'" in output
    assert "Next: perftrail backport bbbbbbbbbb 'a study' --onto OLD" in output


def test_more_invocations_are_not_suggested_for_counts_of_a_profiler() -> None:
    """`--invocations` repeats plain invocations only."""
    assert next_commands(report(metric("calls of futex", *NOISY, method="strace")), study_file=None) == []


def test_the_json_has_the_verdict_and_the_minimum_detectable_change() -> None:
    [point] = report(metric("wall", *NOISY)).as_json()["points"]
    [wall] = point["metrics"]
    assert wall["verdict"] == "unclear"
    assert wall["minimum_detectable"] is not None
