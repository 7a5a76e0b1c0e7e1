"""`slower` means worse in every output, whether lower or higher values are better."""

from __future__ import annotations

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.metrics import Better
from perftrail.model.subject import Revision, Subject
from perftrail.notebook.tables import comparison_rows
from perftrail.present.dashboard.subjects import ComparedMetric
from perftrail.present.report.comparisons import SubjectComparison
from perftrail.results.gate import ComparedMetric as GateMetric
from perftrail.results.gate import Row as GateRow
from perftrail.results.pairs import Shift
from perftrail.results.rows import Row
from perftrail.stats.comparison import Comparison, Rule, compare_once

NO_POINT = Point(())


def compared(ratio: float) -> Comparison:
    return compare_once([1.0 + 0.001 * number for number in range(20)], [ratio] * 20, Rule(most=20))


def verdicts(ratio: float, better: Better) -> dict[str, str]:
    """Return the verdict of each output on a metric whose values became `ratio` times as large."""
    comparison = compared(ratio)
    subject = Subject(revision=Revision(id="r" * 40), variant="new")
    row = Row(subject=subject, benchmark="work", point=NO_POINT, metric="rate", unit="1/s", failures=0)
    shift = Shift(
        reference=subject, row=row, points=(NO_POINT,), better=better, comparison=comparison, decides=True
    )
    subjects = SubjectComparison(
        name="new",
        where="",
        reference="old",
        benchmark="work",
        metric="rate",
        unit="1/s",
        better=better,
        ratios=(ratio,) * 20,
        comparison=comparison,
    )
    in_api = ComparedMetric(metric="rate", first="", second="", subject_comparison=subjects).as_json()
    assert in_api["comparison"] is not None
    metric = GateMetric(
        text="rate", name="rate", benchmark="work", variant="plain", point=NO_POINT, better=better, unit="1/s"
    )
    (in_notebook,) = comparison_rows([subjects])
    assert in_notebook["improved"] is (in_notebook["verdict"] == "faster")
    return {
        "compare --json": GateRow(metric=metric, comparison=comparison, pairs=20).verdict,
        "show --json": shift.as_json()["verdict"],
        "API": in_api["comparison"]["verdict"],
        "API, words": {"worse": "slower", "better": "faster"}[in_api["comparison"]["words"]],
        "notebook": str(in_notebook["verdict"]),
    }


@pytest.mark.parametrize(
    ("ratio", "better", "verdict"),
    [
        (1.5, "lower", "slower"),
        (0.5, "lower", "faster"),
        (1.5, "higher", "faster"),
        (0.5, "higher", "slower"),
    ],
)
def test_every_output_has_the_same_verdict(ratio: float, better: Better, verdict: str) -> None:
    assert set(verdicts(ratio, better).values()) == {verdict}
