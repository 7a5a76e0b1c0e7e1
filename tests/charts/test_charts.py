"""Every chart is valid Vega-Lite, equals its stored specification, and contains its marks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perftrail.charts.comparison import ComparisonRow, ratio_chart
from perftrail.charts.curve import GivenUp, curve, speed_up
from perftrail.charts.frame import COLOURS, FOUND, MOST, MOST_DOTS, Palette, themed, thinned
from perftrail.charts.history import POINTS, Events, Mark, history, label_rises
from perftrail.charts.samples import MOST_ROWS, samples
from tests.charts.examples import HOSTILE, LABELS, PALETTE, along, examples, points

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(examples())


@cache
def validator() -> jsonschema.Draft7Validator:
    """Vega-Lite's own schema, as Altair ships it."""
    folder = files("altair") / "vegalite" / "v6" / "schema"
    return jsonschema.Draft7Validator(json.loads((folder / "vega-lite-schema.json").read_text("utf-8")))


def layers(spec: Any, mark: str) -> Iterator[Any]:
    return (layer for layer in spec["layer"] if layer["mark"]["type"] == mark)


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_what_it_was(name: str) -> None:
    spec = json.dumps(examples()[name].spec, indent=1, sort_keys=True) + "\n"
    file = GOLDEN / f"{name}.json"
    if os.environ.get("PERFTRAIL_GOLDEN") == "write":
        file.write_text(spec, encoding="utf-8")
    assert spec == file.read_text(encoding="utf-8"), "PERFTRAIL_GOLDEN=write writes it anew; look at it first"


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_valid_vega_lite(name: str) -> None:
    spec = themed(examples()[name].spec, "dark")
    errors = [error.message[:300] for error in validator().iter_errors(spec)]
    assert not errors


def test_the_schema_refuses_what_is_not_vega_lite() -> None:
    spec: dict[str, Any] = {**examples()["curve"].spec, "layer": [{"mark": "no such mark", "encoding": {}}]}
    assert not validator().is_valid(spec)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_text_is_never_part_of_an_expression(name: str) -> None:
    """Names stand in data, titles and domains only: Vega evaluates filters, tests and signals."""

    def expressions(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("filter", "test", "expr", "signal", "calculate", "labelExpr", "href", "url"):
                    yield json.dumps(inner)
                yield from expressions(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from expressions(inner)

    assert all("onerror" not in text for text in expressions(examples()[name].spec))


def test_the_interval_of_every_point_is_drawn() -> None:
    spec: Any = curve(points("plain", 4.0, 2.0), [], labels=LABELS, palette=PALETTE).spec
    [rule] = layers(spec, "rule")
    assert [(row["low"], row["high"]) for row in rule["data"]["values"]] == [(3.6, 4.4), (1.8, 2.2)]


def test_the_caption_of_points_with_few_samples_does_not_promise_95_percent() -> None:
    few, many = points("plain", 4.0, 2.0), [replace(each, count=6) for each in points("plain", 4.0, 2.0)]
    captions = [curve(each, [], labels=LABELS, palette=PALETTE).caption for each in (few, many)]
    assert captions == [
        "Medians with their 95 % intervals, of lower confidence for fewer than 6 samples.",
        "Medians with their 95 % intervals.",
    ]


def test_the_line_of_a_change_does_not_cover_the_interval_of_its_revision() -> None:
    drawn: Any = examples()["history"].spec
    change = next(at for at, each in enumerate(drawn["layer"]) if each["mark"].get("color") == FOUND)
    interval = next(at for at, each in enumerate(drawn["layer"]) if each["data"].get("name") == POINTS)
    assert change < interval


def test_a_point_given_up_is_at_its_limit_with_its_reason() -> None:
    spec: Any = examples()["curve"].spec
    [words] = layers(spec, "text")
    [row] = words["data"]["values"]
    assert (row["at"], row["value"], row["why"]) == (4.0, 60.0, "over 60s")


def test_words_of_many_points_given_up_do_not_cover_each_other() -> None:
    lost = [GivenUp(subject="plain", at=at, why="left out", limit=None) for at in (2.0, 4.0, 8.0, 16.0)]
    drawn = curve(points("plain", 4.0, 2.0), lost, labels=LABELS, palette=PALETTE)
    assert list(layers(drawn.spec, "text")) == []
    assert "the table says why" in drawn.caption


def test_speed_up_starts_at_one_thread_not_at_none() -> None:
    shifted = [replace(point, at=point.at - 1.0) for point in points("plain", 6.0, 4.0, 3.0, 2.0)]
    drawn = json.dumps(speed_up(shifted, labels=LABELS, palette=PALETTE).spec)
    assert "times as fast as at threads = 1" in drawn
    assert '"at": 0.0' not in drawn


def test_axes_are_logarithmic_where_values_span_decades() -> None:
    near: Any = curve(points("plain", 4.0, 2.0), [], labels=LABELS, palette=PALETTE).spec
    far: Any = curve(points("plain", 400.0, 2.0), [], labels=LABELS, palette=PALETTE).spec
    kinds = [next(layers(spec, "rule"))["encoding"]["y"]["scale"].get("type") for spec in (near, far)]
    assert kinds == [None, "log"]


def test_a_subject_has_one_colour_whatever_else_is_drawn() -> None:
    palette = Palette(("plain", "pooled", "jemalloc"))
    for shown in (["plain", "jemalloc"], ["jemalloc"]):
        scale: Any = palette.encoding(shown)["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True))["jemalloc"] == COLOURS[2]


def test_many_revisions_are_drawn_as_few_points_that_hide_none() -> None:
    every = along(*range(10_000))
    drawn = thinned(every)
    assert len(drawn) <= MOST
    assert sum(point.of for point in drawn) == len(every)
    assert min(point.low for point in drawn) == every[0].low
    assert max(point.high for point in drawn) == every[-1].high


def test_numbers_of_steps_keep_clear_of_the_words_above_the_drawing() -> None:
    drawn: Any = examples()["history"].spec
    plain: Any = history(along(0, 3), Events(length=6), labels=LABELS, palette=PALETTE).spec
    [numbers] = [layer for layer in layers(drawn, "text") if layer["data"]["values"][0]["word"] == "1"]
    assert (
        numbers["encoding"]["y"]["scale"]["padding"]
        > -numbers["mark"]["dy"] + numbers["mark"]["fontSize"] / 2
    )
    assert next(layers(plain, "point"))["encoding"]["y"]["scale"].get("padding", 8) == 8


def test_a_long_history_stays_small() -> None:
    chart = history(along(*range(10_000)), Events(length=10_000), labels=LABELS, palette=PALETTE)
    assert len(json.dumps(chart.spec)) < 150_000


def test_a_million_samples_stay_small() -> None:
    rows = {f"r{number}": [1.0 + value / 1000 for value in range(10_000)] for number in range(100)}
    chart = samples(rows, labels=LABELS, palette=PALETTE, kinds=dict.fromkeys(rows, "plain"))
    spec: Any = chart.spec
    [dots] = layers(spec, "point")
    assert len(dots["data"]["values"]) == MOST_ROWS * MOST_DOTS
    values = [row["value"] for row in dots["data"]["values"]]
    assert (min(values), max(values)) == (1.0, 10.999)
    assert "76 more" in chart.caption


def test_only_what_differs_for_sure_has_a_colour_in_the_map() -> None:
    spec: Any = examples()["heat"].spec
    sure, unclear = layers(spec, "rect")
    assert "color" not in unclear["encoding"]
    assert [row["row"] for row in unclear["data"]["values"]] == ["mt two"]
    assert {row["standing"]: row["shown"] for row in sure["data"]["values"]} == {"differs": 2.0, "same": 1.0}
    reported = [row["words"] for layer in layers(spec, "text") for row in layer["data"]["values"]]
    assert "0.96 [0.70, 1.30] ?" in reported


def test_the_map_says_what_it_leaves_out() -> None:
    assert "Only the table has the 3 rows with the smallest differences." in examples()["heat"].caption


def test_a_long_hostile_word_is_cut() -> None:
    spec: Any = examples()["history"].spec
    words = [row["word"] for layer in layers(spec, "text") for row in layer["data"]["values"]]
    assert HOSTILE not in words


def test_of_very_many_pairs_those_of_every_point_are_drawn() -> None:
    """Three points with forty pairs each, one after the other: the third is seen, too."""
    ratios = tuple(value for value in (0.9, 1.0, 1.7) for _ in range(40))
    row = ComparisonRow(
        row="new", subject="new", ratios=ratios, effect=1.15, low=1.1, high=1.2, verdict="worse"
    )
    drawn = ratio_chart([row], name="against", title="Against", reference="old", palette=PALETTE)
    spec: Any = drawn.spec
    dots = [each["value"] for each in next(layers(spec, "point"))["data"]["values"]]
    assert [dots.count(value) for value in (0.9, 1.0, 1.7)] == [MOST_DOTS // 3] * 3
    assert "At most 60 dots" in drawn.caption


def test_labels_of_neighbouring_changes_do_not_overlap() -> None:
    marks = [Mark(position=position, word="a1b2c3d4e5 Merge it") for position in (5, 31, 33, 35, 36, 58)]
    rises = label_rises(marks, 60)
    assert rises[0] == rises[-1] == 0
    near = rises[1:5]
    assert len({rise for rise in near if rise is not None}) == sum(rise is not None for rise in near) >= 2
    assert None in near
