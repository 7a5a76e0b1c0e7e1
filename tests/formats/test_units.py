"""Each unit of another tool, with what one of it is in perftrail's."""

from __future__ import annotations

import pytest

from perftrail.formats import units
from perftrail.formats.units import unit

SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("us", "µs", "μs"), 0.000_001),
    "ps": 0.000_000_000_001,
    "ns": 0.000_000_001,
    "ms": 0.001,
    "min": 60.0,
}
BYTES = {
    **dict.fromkeys(("B", "byte", "bytes"), 1.0),
    "kB": 1e3,
    "KiB": 1024.0,
    "MB": 1e6,
    "MiB": 1_048_576.0,
    "GB": 1e9,
    "GiB": 1_073_741_824.0,
}


@pytest.mark.parametrize(("text", "seconds"), SECONDS.items(), ids=SECONDS)
def test_a_time_is_in_seconds(text: str, seconds: float) -> None:
    assert unit(text).name == "s"
    assert unit(text).scaled([1.0, 3.0]) == pytest.approx((seconds, 3 * seconds))


@pytest.mark.parametrize(("text", "size"), BYTES.items(), ids=BYTES)
def test_a_size_is_in_bytes(text: str, size: float) -> None:
    assert unit(text).name == "B"
    assert unit(text).scaled([1.0, 3.0]) == pytest.approx((size, 3 * size))


def test_no_unit_is_without_a_test() -> None:
    assert {*units._SECONDS, *units._BYTES} == {*SECONDS, *BYTES}
