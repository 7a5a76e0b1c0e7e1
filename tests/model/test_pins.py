"""The pinned revisions of the sources that are not walked, in words and in JSON."""

from __future__ import annotations

from perftrail.model.json_data import json_of
from perftrail.model.source import NO_PINS, Pins, stored_pins
from perftrail.model.subject import Revision

V1 = Revision(id="a" * 40, label="v1.2")
PINS = Pins(along="app", at={"main": V1, "bench": Revision(id="b" * 64)})


def test_a_study_of_one_source_says_nothing_of_it() -> None:
    assert (str(NO_PINS), NO_PINS.as_json()) == ("", {})


def test_the_walked_source_and_every_other_one_are_named() -> None:
    assert str(PINS) == "along app, with main at v1.2 (aaaaaaaaaa) and bench at bbbbbbbbbb"


def test_a_release_is_not_named_twice() -> None:
    pins = Pins(at={"app": Revision(id="1.2", label="1.2")})
    assert str(pins) == "along main, with app at 1.2"


def test_json_has_full_ids_and_leads_back() -> None:
    data = PINS.as_json()
    assert data == {"along": "app", "pins": {"main": "a" * 40, "bench": "b" * 64}}
    assert stored_pins({**json_of(data), "metric": "wall"}).as_json() == data


def test_a_question_about_one_source_has_no_pins() -> None:
    assert stored_pins({"metric": "wall"}) == NO_PINS


def test_only_the_walked_source_moves() -> None:
    walked = Revision(id="c")
    assert (PINS.revision("app", walked), PINS.revision("main", walked)) == (walked, V1)
