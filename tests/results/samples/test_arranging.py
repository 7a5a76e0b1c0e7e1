"""Files of other tools become a study's revisions, variants, benchmarks, points and samples."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perftrail.errors import SourceError
from perftrail.model.benchmark import Point
from perftrail.model.exchange import SUMMARY, Series
from perftrail.results.samples import Arranged, SampleFile, arrange


def series(
    *values: float,
    benchmark: str = "b",
    subject: str | None = None,
    metric: str = "wall",
    unit: str = "s",
    day: int | None = None,
    machine: str | None = None,
    point: tuple[tuple[str, str], ...] = (),
    summary: bool = False,
) -> Series:
    return Series(
        benchmark=benchmark,
        point=point,
        subject=subject,
        metric=metric,
        unit=unit,
        values=values,
        when=None if day is None else datetime(2026, 1, day, tzinfo=UTC),
        machine=machine,
        summary=summary,
    )


def file(name: str, *held: Series, format: str = "jmh") -> SampleFile:
    return SampleFile(name=name, format=format, series=held)


def ids(arranged: Arranged) -> list[str]:
    return [revision.id for revision in arranged.revisions]


def values(arranged: Arranged, metric: str = "wall") -> dict[str, list[float]]:
    return {
        str(cell): [value for each in taken for value in each.values.get(metric, ())]
        for cell, taken in arranged.values_by_cell.items()
    }


def test_revisions_are_the_files_subjects_in_the_order_of_time() -> None:
    found = arrange(
        [file("1.json", series(1.0, subject="new", day=9)), file("2.json", series(1.0, subject="old", day=2))]
    )
    assert ids(found) == ["old", "new"]
    assert found.revisions[1].parents == ("old",)


def test_files_that_name_no_subject_are_revisions_themselves() -> None:
    assert ids(arrange([file("d/before.json", series(1.0)), file("d/after.json", series(1.0))])) == [
        "before",
        "after",
    ]


def test_files_of_one_name_in_several_directories_stay_apart() -> None:
    assert ids(arrange([file("a/out.json", series(1.0)), file("b/out.json", series(1.0))])) == [
        "a/out.json",
        "b/out.json",
    ]


def test_one_subject_in_several_files_is_one_sample() -> None:
    found = arrange([file("1", series(1.0, subject="r")), file("2", series(2.0, 3.0, subject="r"))])
    assert values(found) == {"r b": [1.0, 2.0, 3.0]}


def test_samples_of_different_machines_are_never_pooled() -> None:
    found = arrange(
        [file("1", series(1.0, subject="r", machine="here"), series(9.0, subject="r", machine="there"))]
    )
    assert found.variants == ("here", "there")
    assert values(found) == {"r (here) b": [1.0], "r (there) b": [9.0]}


def test_commands_of_hyperfine_are_variants_of_their_file() -> None:
    found = arrange(
        [file("monday.json", series(1.0, subject="a"), series(2.0, subject="b"), format="hyperfine")]
    )
    assert (ids(found), found.variants) == (["monday"], ("a", "b"))


def test_subjects_of_tables_are_a_revision_and_a_variant() -> None:
    found = arrange([file("x.csv", series(1.0, subject="v1 (pooled)"), format="csv")])
    assert (ids(found), found.variants) == (["v1"], ("pooled",))


def test_values_that_were_taken_together_stay_together_and_summaries_apart() -> None:
    found = arrange(
        [
            file(
                "1",
                series(1.0, 2.0),
                series(10.0, 20.0, metric="peak_memory", unit="B"),
                series(0.5, metric="user", summary=True),
            )
        ]
    )
    (taken,) = found.values_by_cell.values()
    assert [(dict(each.values), each.flags) for each in taken] == [
        ({"wall": [1.0, 2.0], "peak_memory": [10.0, 20.0]}, ()),
        ({"user": [0.5]}, (SUMMARY,)),
    ]


def test_numbers_of_parameters_are_numbers_in_their_order() -> None:
    found = arrange([file("1", *(series(1.0, point=(("n", text),)) for text in ("10", "9", "0.5")))])
    assert found.benchmarks["b"].parameters == {"n": (0.5, 9, 10)}
    assert {cell.point for cell in found.values_by_cell} == {Point((("n", value),)) for value in (0.5, 9, 10)}


def test_hostile_names_are_made_harmless_and_stay_different() -> None:
    names = ["a\x1b[31m", "a\x07[31m", "C:\\x1b", "a" * 300, "a" * 301]
    found = arrange([file("1", *(series(1.0, benchmark=name) for name in names))])
    assert len(found.benchmarks) == 5
    assert all(name.isprintable() and "\\" not in name and len(name) <= 100 for name in found.benchmarks)


def test_a_metric_in_two_units_is_refused() -> None:
    with pytest.raises(SourceError, match="in two units, 's' and 'ns'"):
        arrange([file("1", series(1.0)), file("2", series(1.0, unit="ns"))])


def test_more_combinations_than_a_study_may_have_are_refused() -> None:
    many = [series(1.0, point=tuple((name, str(value)) for name in "abc")) for value in range(50)]
    with pytest.raises(SourceError, match="more than 100000 combinations"):
        arrange([file("1", *many)])


def test_empty_files_are_refused() -> None:
    with pytest.raises(SourceError, match="no file has a sample"):
        arrange([file("1")])
