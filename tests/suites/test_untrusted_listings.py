"""Listings are untrusted text: names are escaped where they enter, and anything else is a `FormatError`."""

from __future__ import annotations

import json

import pytest

from perftrail.errors import FormatError
from perftrail.model.suite import Suite, SuiteKind
from perftrail.suites import listed

GO = "\nperftrail: program a.test\n"
ITEM = {"name": "b", "point": [], "request": {"id": "b"}, "metric": "time", "unit": "s"}


def of(kind: SuiteKind, output: str) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, str(each.point)) for each in listed(Suite(kind=kind), output))


def asv(**changes: object) -> str:
    return json.dumps({**ITEM, **changes})


def test_control_characters_in_names_are_escaped_and_the_suite_still_gets_them() -> None:
    (item,) = listed(Suite(kind="asv"), asv(name="a\x01b\u202e", point=[["n\x1b", "x\x02"]], unit="\x03"))
    assert (item.name, str(item.point), item.unit) == ("a\\x01b\\u202e", "n\\x1b=x\\x02", "\\x03")
    assert item.selector == '{"id": "b"}'
    assert of("go", f"{GO}BenchmarkA\x01-8 10 5.0 ns/op\n") == (("A\\x01", ""),)


@pytest.mark.parametrize("number", ["1.2.3", "1e999", "1e-310", "."])
def test_odd_numbers_of_go_are_skipped_or_limited(number: str) -> None:
    found = listed(Suite(kind="go"), f"{GO}BenchmarkA 10 {number} ns/op\nBenchmarkB 10 5.0 ns/op\n")
    assert "B" in [each.name for each in found]
    assert all(1 <= each.iterations <= 1_000_000_000 for each in found)


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("asv", asv(point=[["n", 1, 2]])),
        ("asv", asv(point=[["n"]])),
        ("asv", asv(point=[[1, 2]])),
        ("asv", asv(point=[["n", float("nan")]])),
        ("asv", "[" * 100_000),
        ("asv", '{"name": 1' + "0" * 5000 + "}"),
        (
            "google-benchmark",
            f'{GO}{{"benchmarks": [{{"name": "a\\ud800", "real_time": 1, "cpu_time": 1}}]}}',
        ),
        ("go", f"{GO}BenchmarkA\0 10 5.0 ns/op\n"),
    ],
)
def test_other_answers_are_format_errors(kind: SuiteKind, output: str) -> None:
    with pytest.raises(FormatError):
        of(kind, output)
