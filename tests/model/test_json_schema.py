"""JSON Schema of types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypedDict

import jsonschema
import pytest

from perftrail.model.json_data import Schemas, document


class Colour(StrEnum):
    RED = "red"


class Partial(TypedDict, total=False):
    """Some fields."""

    note: str


class TreeJson(Partial):
    """A tree."""

    name: Annotated[str, "how it is called"]
    parts: list[TreeJson]
    weight: int | float | None
    kind: Literal["a", "b"]
    colour: Colour
    short: Annotated[str, {"maxLength": 3}]
    ends: tuple[int, int]
    more: object


@dataclass
class Point:
    """A point."""

    x: float
    y: float


LEAF = {
    "name": "leaf",
    "parts": [],
    "weight": 1.5,
    "kind": "a",
    "colour": "red",
    "short": "abc",
    "ends": [1, 2],
    "more": [],
}


def check(value: object) -> None:
    jsonschema.Draft202012Validator(document(TreeJson, "tree")).validate(value)


def test_a_value_of_a_type_is_valid() -> None:
    check(LEAF)
    check({**LEAF, "note": "n", "parts": [LEAF], "weight": None})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 1},
        {"parts": [{}]},
        {"weight": "1"},
        {"kind": "c"},
        {"colour": "blue"},
        {"short": "abcd"},
        {"ends": [1]},
        {"note": None},
        {"other": 1},
    ],
)
def test_another_value_is_not(wrong: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check({**LEAF, **wrong})


def test_descriptions_are_those_of_the_types() -> None:
    tree = document(TreeJson, "tree")["$defs"]["Tree"]
    assert tree["description"] == "A tree."
    assert tree["properties"]["name"] == {"type": "string", "description": "how it is called"}
    assert "note" not in tree["required"]


def test_a_data_class_is_an_object_with_its_fields() -> None:
    schemas = Schemas("#/components/schemas/")
    assert schemas.of(Point) == {"$ref": "#/components/schemas/Point"}
    assert schemas.definitions["Point"]["required"] == ["x", "y"]


@pytest.mark.parametrize("kind", [bytes, set[int], complex])
def test_a_type_that_is_not_json_is_refused(kind: object) -> None:
    with pytest.raises(TypeError, match="not a type of JSON"):
        Schemas().of(kind)


def test_two_types_of_one_name_are_refused() -> None:
    class Tree(TypedDict):
        """Another tree."""

    schemas = Schemas()
    schemas.of(TreeJson)
    with pytest.raises(TypeError, match="two types named Tree"):
        schemas.of(Tree)
