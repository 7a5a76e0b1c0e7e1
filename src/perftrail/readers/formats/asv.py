"""asv's results (``results/<machine>/<commit>-<environment>.json``)."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.exchange import Series
from perftrail.model.recipe import PLAIN
from perftrail.readers.formats.document import Node, parse
from perftrail.readers.formats.surroundings import NOWHERE, begins_with
from perftrail.readers.formats.units import unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.readers.formats.surroundings import Place

_METRICS = {"time": "wall", "timeraw": "wall", "peakmem": "peak_memory", "mem": "size"}
_UNITS = {"time": "seconds", "timeraw": "seconds", "peakmem": "bytes", "mem": "bytes"}
_VERSION = 2


def knows(head: bytes, _name: str) -> bool:
    """Whether this is asv's result of a commit."""
    return begins_with(head, rb"\{") and b'"commit_hash"' in head and b'"result_columns"' in head


def read(content: bytes, place: Place = NOWHERE) -> tuple[Series, ...]:
    """Read every benchmark: its samples where they were recorded, else asv's median.

    Failed and skipped ones are left out. The environment is a parameter: results of several are not pooled.

    The names of parameters and the units are in ``benchmarks.json``, one directory up; without it, parameters are
    ``arg``, ``arg2``…, and units follow asv's names (``time_…``, ``peakmem_…``).
    """
    document = parse(content)
    version = document["version"]
    if version.number() != _VERSION:
        raise version.complaint(f"is not {_VERSION}; bring the results to this form with `asv update`")
    about = place.beside("../benchmarks.json")
    known = {} if about is None else dict(parse(about).members())
    columns = [each.text() for each in document["result_columns"].elements()]
    result = _Commit(document)
    return tuple(
        series
        for name, row in document["results"].members()
        for series in result.series(name, dict(zip(columns, row.elements(), strict=False)), known.get(name))
    )


class _Commit:
    """What all results of a file have in common."""

    def __init__(self, document: Node) -> None:
        self.subject = document["commit_hash"].text()
        date = document.get("date")
        self.when = None if date is None else _moment(date)
        parameters = document.get("params")
        environment = document.get("env_name")
        named = "" if environment is None else environment.text()
        self.environment = () if named in ("", PLAIN) else (("environment", named),)
        machine = None if parameters is None else parameters.get("machine")
        self.machine = None if machine is None else machine.text()

    def series(self, name: str, row: Mapping[str, Node], about: Node | None) -> Iterator[Series]:
        """Give each point of a benchmark that has a result."""
        kind = name.rpartition(".")[2].partition("_")[0]
        stated = None if about is None else about.get("unit")
        known = unit(stated.text() if stated else _UNITS.get(kind, ""))
        results = _elements(row.get("result"))
        samples = _elements(row.get("samples"))
        for index, point in enumerate(_points(row, about, len(results))):
            result = results[index] if index < len(results) else None
            taken = _numbers(samples[index]) if index < len(samples) else ()
            if result is None or result.value is None or _is_nan(result):
                continue
            yield Series(
                benchmark=name,
                point=(*point, *self.environment),
                subject=self.subject,
                metric=_METRICS.get(kind, "value"),
                unit=known.name,
                values=known.scaled(taken or (result.number(),)),
                when=self.when,
                machine=self.machine,
                summary=not taken and kind in ("time", "timeraw"),
                note=None if taken or kind not in ("time", "timeraw") else "median",
            )


def _points(row: Mapping[str, Node], about: Node | None, most: int) -> Iterator[tuple[tuple[str, str], ...]]:
    """Give the points in asv's order, each value as asv writes it: a text in quotes has them left out."""
    axes = [[each.scalar() for each in axis.elements()] for axis in _elements(row.get("params"))]
    names = [] if about is None else [each.text() for each in _elements(about.get("param_names"))]
    names += ["arg" if place == 0 else f"arg{place + 1}" for place in range(len(names), len(axes))]
    if len(set(names)) < len(names):
        raise FormatError(f"benchmarks.json: two parameters have one name in {names[:12]}")
    for values in itertools.islice(itertools.product(*axes), most):
        yield tuple(zip(names, map(_plain, values), strict=False))


def _plain(value: str) -> str:
    """Leave out the quotes of a text as Python writes it.

    >>> _plain("'a'"), _plain("10")
    ('a', '10')
    """
    quotes = ("'", '"')
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in quotes else value


def _elements(node: Node | None) -> tuple[Node, ...]:
    return () if node is None or node.value is None else node.elements()


def _numbers(node: Node) -> tuple[float, ...]:
    return () if node.value is None else node.numbers()


def _is_nan(node: Node) -> bool:
    return isinstance(node.value, float) and math.isnan(node.value)


def _moment(date: Node) -> datetime:
    """Read asv's moment: milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(date.number() / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        raise date.complaint("is no time in milliseconds since 1970") from None
