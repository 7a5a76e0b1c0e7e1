"""Convert frozen values to plain JSON data and back, as the types of their fields say."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

from cattrs import BaseValidationError
from cattrs.preconf.json import make_converter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cattrs import Converter

    from perftrail.model.search_record import Json

Kind = TypeVar("Kind")


def to_plain(value: object) -> dict[str, Json]:
    """Return a dataclass instance as plain data, by the names of its fields."""
    return cast("dict[str, Json]", _converter().unstructure(value))


def json_of(typed: Mapping[str, object]) -> dict[str, Json]:
    """Return a typed dictionary of JSON as what it is: plain data."""
    return cast("dict[str, Json]", typed)


def from_plain(kind: type[Kind], data: Mapping[str, Json]) -> Kind:
    """Return the instance of a dataclass that `to_plain` returned as `data`. Raises `ValueError` for other data."""
    try:
        return _converter().structure(data, kind)
    except (BaseValidationError, KeyError, TypeError) as error:
        raise ValueError(f"not the data of a {kind.__name__}") from error


@cache
def _converter() -> Converter:
    converter = make_converter()
    # JSON has no infinite numbers, but Python reads "inf".
    converter.register_unstructure_hook(float, lambda each: each if math.isfinite(each) else str(each))
    return converter
