"""Files of other tools; data/README.md states their versions and commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from perftrail.formats import read_file
from perftrail.model.exchange import Series

DATA = Path(__file__).parent / "data"


def series(path: str) -> tuple[Series, ...]:
    return read_file(DATA / path).series


def one(found: tuple[Series, ...], metric: str, benchmark: str, **point: str) -> Series:
    """Give the only series of a benchmark and metric at the points that have these parameters."""
    (chosen,) = [
        each
        for each in found
        if (each.metric, each.benchmark) == (metric, benchmark) and point.items() <= dict(each.point).items()
    ]
    return chosen


def document(path: str) -> Any:
    return json.loads((DATA / path).read_text())


def rows(path: str) -> list[dict[str, str]]:
    with (DATA / path).open(newline="") as file:
        return list(csv.DictReader(file))
