"""Durations and sizes are read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.model.notation import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10min", 600),
        ("60s", 60),
        ("1h30min", 5400),
        ("1h 30m", 5400),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("2d", 172800),
        (" 3 s ", 3),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "min", "10 minutes", "-5s", "1e3s", "5s5", "nan", "٣s", "9" * 100 + "s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2 << 30), ("512MiB", 512 << 20), ("1GB", 10**9), ("1.5KiB", 1536), ("7 B", 7), ("3kB", 3000)],
)
def test_a_size_is_read_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "5", "5G", "5Gb", "-1B", "1GiB 2MiB", "GiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@given(st.integers(0, 10**10))
def test_a_duration_written_is_read_the_same(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


@given(st.integers(0, 2**50))
def test_a_size_written_is_read_the_same(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_what_is_no_duration_is_not_written(seconds: float) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        format_duration(seconds)
