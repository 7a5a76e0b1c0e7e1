"""Charts in a notebook: interactive, static and as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import vl_convert

import perftrail
from perftrail.charts.frame import themed
from perftrail.errors import UsageError
from perftrail.notebook.opened import SVG, TEXT, VEGA_LITE, ShownChart
from tests.charts.examples import HOSTILE, examples


def shown(name: str) -> ShownChart:
    return ShownChart(examples()[name])


def stripped(svg: str) -> str:
    """A drawing without the numbers that differ from one to the next."""
    return re.sub(r"(gradient|clip)[_0-9]+", r"\1", svg)


def test_a_chart_comes_as_vega_lite_svg_and_words() -> None:
    bundle = shown("curve")._repr_mimebundle_()
    assert list(bundle) == [VEGA_LITE, SVG, TEXT]
    spec: Any = bundle[VEGA_LITE]
    assert spec["$schema"].endswith("/v5.json")
    assert spec["title"]["text"] == "A title"
    assert "A title" in str(bundle[SVG])
    assert str(bundle[TEXT]).startswith("A title\n")


def test_only_requested_formats_are_rendered() -> None:
    chart = shown("curve")
    assert list(chart._repr_mimebundle_(include={TEXT})) == [TEXT]
    assert list(chart._repr_mimebundle_(exclude={SVG, TEXT})) == [VEGA_LITE]


@pytest.mark.parametrize("name", sorted(examples()))
def test_notebooks_vega_lite_draws_what_the_reports_does(name: str) -> None:
    """Notebooks know Vega-Lite 5, reports are drawn with 6."""
    spec = themed(examples()[name].spec, "light")
    five, six = (vl_convert.vegalite_to_svg(spec, vl_version=version) for version in ("5.21", "6.4"))
    assert stripped(five) == stripped(six)


@pytest.mark.parametrize("name", sorted(examples()))
def test_hostile_names_stay_text(name: str) -> None:
    drawn = shown(name).svg()
    assert not [
        each.tag
        for each in ET.fromstring(drawn).iter()
        if each.tag.endswith(("script", "foreignObject", "img"))
    ]
    assert HOSTILE not in drawn


def test_the_charts_are_those_of_the_report(measured: Path) -> None:
    study = perftrail.open(measured)
    charts = study.charts()
    assert list(charts) == [
        "curve-count-wall-size",
        "curve-count-peak-memory-size",
        "against",
        "heat-every-benchmark",
        "samples",
    ]
    assert study.chart().name == "curve-count-wall-size"
    assert study.chart("against").spec == charts["against"].spec


def test_an_unknown_chart_is_refused_with_the_near_miss(measured: Path) -> None:
    with pytest.raises(UsageError, match='no chart "agains"; did you mean "against"'):
        perftrail.open(measured).chart("agains")
