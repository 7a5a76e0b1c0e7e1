"""Colours and shapes of subjects in charts."""

from __future__ import annotations

from typing import Any

from perftrail.charts.frame import Palette


def test_many_subjects_have_a_colour_and_a_shape_that_no_other_has() -> None:
    names = [f"subject {number}" for number in range(40)]
    palette = Palette(tuple(names))
    shapes: Any = palette.shapes(names)
    assert len({*zip(map(palette.colour, names), shapes["scale"]["range"], strict=True)}) == len(names)
