"""The tables have the values of `show` and `report`, with units, types and a fixed order."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own
import pytest

import perftrail
from perftrail import studyfile
from perftrail.model import wording
from perftrail.model.store_records import SearchRecord
from perftrail.model.subject import Revision
from perftrail.notebook.tables import (
    ANSWERS,
    CHANGES,
    COMPARISONS,
    ESTIMATES,
    KINDS,
    SAMPLES,
    TYPES,
    answer_rows,
    change_rows,
    column_of,
    rows_table,
    with_parameters,
)
from perftrail.opening import open_view
from perftrail.present.report.report import make_report
from perftrail.results.show import show
from tests.cli.test_show import HISTORY, a_change

CHANGE: dict[str, Any] = {
    "revisions": ["r4", "r5"],
    "confidence": 0.97,
    "before": 1.0,
    "after": 2.0,
    "effect": {"value": 2.0, "low": 1.9, "high": 2.1, "confidence": 0.95},
    "kind": "step",
    "inside": None,
}
ANSWER: dict[str, Any] = {
    "verdict": "range",
    "metric": "count.wall",
    "benchmark": "count",
    "variant": "near",
    "unit": "s",
    "better": "lower",
    "reason": "the rest does not build",
    "confidence": 0.97,
    "minimum_detectable": None,
    "revisions": 9,
    "builds": 4,
    "invocations": 12,
    "seconds": 8.5,
    "changes": [CHANGE],
}


def a_search(answer: dict[str, Any] | None, metric: str = "wall") -> SearchRecord:
    question = {"metric": metric, "benchmark": "count", "variant": "near", "first": "r0", "last": "r8"}
    return SearchRecord(
        key="k", machine="m", question=question, started="2025-11-21T03:00:00Z", answer=answer
    )


def test_every_kind_is_called_as_arrow_calls_it() -> None:
    plain = {kind: str(of).replace(", ordered=0", "").replace("values=", "") for kind, of in TYPES.items()}
    assert {kind: _named(text) for kind, text in plain.items()} == KINDS


def _named(text: str) -> str:
    known = {"dictionary<string, indices=int32>": "dictionary<int32, string>"}
    return known.get(text, text.replace("item: ", "").replace("tz=", ""))


def test_estimates_are_those_of_show(measured: Path) -> None:
    with open_view(studyfile.load(str(measured)), store=None) as view:
        shown: Any = list(show(view).as_json())
    table = perftrail.open(measured).estimates()
    names = ("revision", "variant", "benchmark", "metric", "unit", "noise", "count", "failures", "flags")
    reported = [
        {
            **{name: row[name] for name in names},
            "size": row["point"]["size"],
            **{name: row["estimate"][name] for name in ("value", "low", "high", "confidence")},
        }
        for row in shown
    ]
    assert table.select(list(reported[0])).to_pylist() == reported
    assert len(reported) == 8


def test_comparisons_are_those_of_the_report(measured: Path) -> None:
    both = perftrail.open(measured).comparisons().to_pylist()
    assert [(each["subject"], each["reference"], each["metric"]) for each in both] == [
        ("far", "near", "wall"),
        ("far", "near", "peak_memory"),
    ]
    assert all(each["low"] <= each["effect"] <= each["high"] for each in both)
    with open_view(studyfile.load(str(measured)), store=None) as view:
        verdict = make_report(view, measured / ".perftrail").verdict
    # Of both metrics the report names the larger sure difference: on a busy machine that of memory.
    [reported] = [each for each in both if f"count.{each['metric']} " in verdict.sentence]
    assert f"far {wording.change(reported['effect'])}" in verdict.sentence
    for fact in verdict.facts:
        assert fact.label != "Certainty" or f", {reported['pairs']} interleaved pairs" in fact.text
    assert all(0 < each["pairs"] <= 24 for each in both)  # two points, twelve times each
    assert reported["improved"] is (None if reported["verdict"] in ("unclear", "same") else False)


def test_tables_come_in_the_same_order_each_time(measured: Path) -> None:
    study = perftrail.open(measured)
    assert study.samples().equals(study.samples())
    assert study.estimates().equals(study.estimates())


def test_units_and_meanings_are_in_the_metadata(measured: Path) -> None:
    study = perftrail.open(measured)
    for table, columns in (
        (study.samples(), SAMPLES),
        (study.estimates(), ESTIMATES),
        (study.answers(), ANSWERS),
    ):
        meanings = {column.name: column.meaning for column in columns}
        for field in table.schema:
            reported = field.metadata[b"meaning"].decode()
            assert reported == meanings.get(
                field.name, "The parameter size; null if the benchmark does not have it."
            )
    units = json.loads(study.samples().field("value").metadata[b"units"])
    assert (units["count.wall"], units["count.peak_memory"], units["count.page_faults"]) == ("s", "B", "")
    assert study.answers().field("seconds").metadata[b"unit"] == b"s"
    assert study.samples().schema.metadata[b"study"].decode() == study.title


def test_names_are_dictionaries_and_times_are_times(measured: Path) -> None:
    samples = perftrail.open(measured).samples()
    assert samples.schema.field("variant").type == pa.dictionary(pa.int32(), pa.string())
    assert samples.schema.field("started").type == pa.timestamp("us", tz="UTC")
    assert samples["variant"].chunk(0).dictionary.to_pylist() == ["near", "far"]
    assert samples["started"].null_count == 0
    assert [column.num_chunks for column in samples.columns] == [1] * samples.num_columns


@pytest.mark.parametrize(
    ("values", "kind"),
    [("1, 2", "whole"), ("1, 0.5", "number"), ('1, "many"', "name"), (f"1, {2**70}", "number")],
)
def test_a_parameter_has_the_type_of_its_values(measured: Path, values: str, kind: str) -> None:
    study = studyfile.load(str(measured))
    [benchmark] = study.benchmarks.values()
    given = {"size": tuple(json.loads(f"[{values}]")), "value": (1,)}
    changed = replace(study, benchmarks={"count": replace(benchmark, parameters=given)})
    kinds = {column.name: column.kind for column in with_parameters(SAMPLES, changed)}
    assert (kinds["size"], kinds["point.value"], kinds["value"]) == (kind, "whole", "number")


def test_a_change_names_its_candidates(measured: Path) -> None:
    study = studyfile.load(str(measured))
    [benchmark] = study.benchmarks.values()
    changed = replace(study, benchmarks={"work": replace(benchmark, parameters={"threads": (1, 2)})})
    hostile = Revision(id="r5", summary="\x1b[31m", label="<b>")
    rows = change_rows(changed, [*HISTORY[:5], hostile, *HISTORY[6:]], [a_change(revision=hostile)])
    [reported] = rows_table(CHANGES, changed, rows, {}).to_pylist()
    assert (reported["position"], reported["label"], reported["threads"]) == (5, "<b>", 2)
    assert (reported["effect"], reported["candidates"], reported["better"]) == (1.1234, ["r5"], "lower")


def answers(measured: Path, *records: SearchRecord) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rows_table(
        ANSWERS, studyfile.load(str(measured)), answer_rows(records), {}
    ).to_pylist()
    return rows


def test_a_search_has_a_row_for_each_change(measured: Path) -> None:
    inside = {"revisions": ["m1"], "confidence": 0.9, "inside": None}
    two = {**ANSWER, "verdict": "several", "changes": [CHANGE, {**CHANGE, "kind": "ramp", "inside": inside}]}
    first, second = answers(measured, a_search(two))
    assert (first["search"], first["change"], first["kind"], first["inside"]) == (1, 0, "step", None)
    assert (second["search"], second["change"], second["kind"]) == (1, 1, "ramp")
    assert json.loads(second["inside"]) == inside
    assert (first["candidates"], first["sure"], first["effect"], first["high"]) == (
        ["r4", "r5"],
        0.97,
        2.0,
        2.1,
    )
    assert first["started"] == datetime(2025, 11, 21, 3, tzinfo=UTC)


def test_a_search_that_found_nothing_or_has_not_ended_has_one_row(measured: Path) -> None:
    equal = {"ratio": 1.01, "low": 1.0, "high": 1.02}
    none = {
        **ANSWER,
        "verdict": "none",
        "changes": [],
        "minimum_detectable": 0.02,
        "ends": equal,
        "rest": None,
    }
    nothing, going_on = answers(measured, a_search(none), a_search(None))
    assert (nothing["verdict"], nothing["minimum_detectable"], nothing["change"]) == ("none", 0.02, None)
    assert (nothing["ends"], nothing["rest"]) == (1.01, None)
    assert (going_on["search"], going_on["verdict"], going_on["metric"]) == (2, None, "wall")


def test_a_search_for_several_metrics_has_rows_for_each(measured: Path) -> None:
    several = {"metrics": [ANSWER, {**ANSWER, "metric": "count.cpu", "verdict": "none", "changes": []}]}
    reported = answers(measured, a_search(several, metric="wall, cpu"))
    assert [(each["search"], each["metric"], each["verdict"]) for each in reported] == [
        (1, "count.wall", "range"),
        (1, "count.cpu", "none"),
    ]


def test_an_effect_that_is_unknown_is_null(measured: Path) -> None:
    unknown = {**ANSWER, "changes": [{**CHANGE, "before": None, "effect": None}]}
    [reported] = answers(measured, a_search(unknown))
    assert (reported["before"], reported["effect"], reported["low"], reported["after"]) == (
        None,
        None,
        None,
        2.0,
    )


def test_no_parameter_takes_the_name_of_a_column() -> None:
    names = {column.name for columns in (SAMPLES, ESTIMATES, CHANGES) for column in columns}
    assert not {column_of(name) for name in names} & names
    assert len(COMPARISONS) == len({column.name for column in COMPARISONS})
