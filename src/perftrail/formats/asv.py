"""asv's results (``results/<machine>/<commit>-<environment>.json``), and a directory of them for `asv publish`.

asv has one metric for each benchmark: wall time keeps the benchmark's name, other metrics are appended to it after a
dot. Variants become environments.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, Node, begins_with, parse
from perftrail.formats.rows import file_name
from perftrail.formats.units import unit
from perftrail.model.benchmark import Point
from perftrail.model.exchange import Series
from perftrail.model.recipe import PLAIN
from perftrail.stats.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.benchmark import Value
    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.study import Study
    from perftrail.stats.estimate import Estimate


_METRICS = {"time": "wall", "timeraw": "wall", "peakmem": "peak_memory", "mem": "size"}
_UNITS_OF_KINDS = {"time": "seconds", "timeraw": "seconds", "peakmem": "bytes", "mem": "bytes"}
_OLDEST, _VERSION = 1, 2

_OLD_RESULT = re.compile(
    rb'"results":\s*\{\s*"[^"]+":\s*(?:\{\s*"(?:result|params|stats|samples|number)"|null|[-0-9])'
)
"""The first benchmark in a file of version 1, which has no columns."""


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this is asv's result of a commit."""
    return (
        begins_with(head, rb"\{")
        and b'"commit_hash"' in head
        and (b'"result_columns"' in head or _OLD_RESULT.search(head) is not None)
    )


def read(content: bytes, context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark: its samples if they were recorded, else asv's median.

    Failed and skipped benchmarks are left out. The environment is a parameter, so that results of several are not
    pooled.

    Names of parameters and units are in ``benchmarks.json``, one directory up. Without it, parameters are ``arg``,
    ``arg2``…, and units follow asv's names (``time_…``, ``peakmem_…``).
    """
    document = parse(content)
    version = document["version"]
    if version.number() not in (_OLDEST, _VERSION):
        raise version.error(f"is not {_OLDEST} or {_VERSION}; this version of asv's results is not known")
    about = context.read_relative("../benchmarks.json")
    known = {} if about is None else dict(parse(about).members())
    named = document.get("result_columns")
    columns = [] if named is None else [each.text() for each in named.elements()]
    result = _Commit(document)
    return tuple(
        series
        for name, row in document["results"].members()
        for series in result.series(name, _columns_of(row, columns), known.get(name))
    )


def _columns_of(row: Node, columns: Sequence[str]) -> dict[str, Node]:
    """Return the columns of a benchmark; in version 1, they have names, and a number is the only result."""
    if columns:
        return dict(zip(columns, row.elements(), strict=False))
    found = dict(row.members()) if isinstance(row.value, dict) else {"result": row}
    single = {
        name: Node([each.value], each.path)
        for name, each in found.items()
        if not isinstance(each.value, list)
    }
    return {**found, **single}


class _Commit:
    """The common properties of all results of a file."""

    def __init__(self, document: Node) -> None:
        self.subject = document["commit_hash"].text()
        date = document.get("date")
        self.when = None if date is None else _time(date)
        parameters = document.get("params")
        environment = document.get("env_name")
        named = "" if environment is None else environment.text()
        self.environment = () if named in ("", PLAIN) else (("environment", named),)
        machine = None if parameters is None else parameters.get("machine")
        self.machine = None if machine is None else machine.text()

    def series(self, name: str, row: Mapping[str, Node], about: Node | None) -> Iterator[Series]:
        """Yield each point of a benchmark with a result."""
        kind = name.rpartition(".")[2].partition("_")[0]
        stated = None if about is None else about.get("unit")
        known = unit(stated.text() if stated else _UNITS_OF_KINDS.get(kind, ""))
        results = _elements(row.get("result"))
        samples = _elements(row.get("samples"))
        for index, point in enumerate(_points(row, about, len(results))):
            result = results[index] if index < len(results) else None
            raw = _numbers(samples[index]) if index < len(samples) else ()
            if result is None or result.value is None or _is_nan(result):
                continue
            yield Series(
                benchmark=name,
                point=(*point, *self.environment),
                subject=self.subject,
                metric=_METRICS.get(kind, "value"),
                unit=known.name,
                values=known.scaled(raw or (result.number(),)),
                when=self.when,
                machine=self.machine,
                summary=not raw and kind in ("time", "timeraw"),
                note=None if raw or kind not in ("time", "timeraw") else "median",
            )


def _points(row: Mapping[str, Node], about: Node | None, most: int) -> Iterator[tuple[tuple[str, str], ...]]:
    """Return the points in asv's order, each value as asv writes it, texts without their quotes."""
    axes = [[each.scalar() for each in axis.elements()] for axis in _elements(row.get("params"))]
    names = [] if about is None else [each.text() for each in _elements(about.get("param_names"))]
    names += ["arg" if index == 0 else f"arg{index + 1}" for index in range(len(names), len(axes))]
    if len(set(names)) < len(names):
        raise FormatError(f"benchmarks.json: two parameters have one name in {names[:12]}")
    for values in itertools.islice(itertools.product(*axes), most):
        yield tuple(zip(names, map(_plain, values), strict=False))


def _plain(value: str) -> str:
    """Remove the quotes of a Python literal.

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


def _time(date: Node) -> datetime:
    """Parse asv's times, which are in milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(date.number() / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        raise date.error("is not a time in milliseconds since 1970") from None


_COLUMNS = (
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
    "samples",
)
_ASV_UNITS = {"s": "seconds", "B": "bytes"}
_TYPES = {"s": "time", "B": "peakmemory"}
MACHINE = "perftrail"
"""The machine's name if that of the samples is unknown."""


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:
    """Return every result with its values and all their digits; asv's own files have five digits."""
    benchmarks: dict[str, list[Exported]] = defaultdict(list)
    results: dict[tuple[str, str, str], list[Exported]] = defaultdict(list)
    for each in samples:
        benchmarks[_name(each)].append(each)
        machine = _directory(each.machine or MACHINE)
        results[machine, each.subject.revision.id, each.subject.variant].append(each)
    known = {name: _Benchmark(name, those) for name, those in benchmarks.items()}
    files = {
        "asv.conf.json": _json(_configuration(study)),
        "results/benchmarks.json": _json(
            {**{each.name: each.description() for each in known.values()}, "version": 2}
        ),
    }
    for (machine, revision, variant), those in results.items():
        files[f"results/{machine}/machine.json"] = _json({"machine": machine, "version": 1})
        short = those[0].subject.revision.short
        prefix = short[:8] if short != revision else _directory(revision)
        file = file_name(f"{prefix}-{_directory(variant)}", files, ".json", below=f"results/{machine}/")
        files[file] = _json(_result(machine, those, known))
    return files


def _name(sample: Exported) -> str:
    return sample.benchmark if sample.metric == "wall" else f"{sample.benchmark}.{sample.metric}"


def _directory(text: str) -> str:
    """Return a directory name for any text."""
    return re.sub(r"[^A-Za-z0-9_+.-]+", "-", text).strip(".-")[:60] or MACHINE


class _Benchmark:
    """A benchmark in asv's form: its parameters and, in the order of their product, its points."""

    def __init__(self, name: str, samples: Sequence[Exported]) -> None:
        self.name = name
        self._unit = samples[0].unit
        self._names = samples[0].point.names
        self._values = [
            list(dict.fromkeys(each.point[parameter] for each in samples)) for parameter in self._names
        ]
        self.points = [
            Point(tuple(zip(self._names, combination, strict=True)))
            for combination in itertools.product(*self._values)
        ]

    @property
    def parameters(self) -> list[Json]:
        """The values of each parameter, as asv writes them."""
        return [[_literal(value) for value in values] for values in self._values]

    @property
    def version(self) -> str:
        """The version of a benchmark: asv ignores results of other versions."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def description(self) -> dict[str, Json]:
        """The entry in benchmarks.json."""
        return {
            "code": "",
            "name": self.name,
            "param_names": list(self._names),
            "params": self.parameters,
            "timeout": 60.0,
            "type": _TYPES.get(self._unit, "track"),
            "unit": _ASV_UNITS.get(self._unit, self._unit or "unit"),
            "version": self.version,
        }


def _result(machine: str, samples: Sequence[Exported], known: Mapping[str, _Benchmark]) -> dict[str, Json]:
    subject = samples[0].subject
    by_name: dict[str, dict[Point, Exported]] = defaultdict(dict)
    for each in samples:
        by_name[_name(each)][each.point] = each
    return {
        "commit_hash": subject.revision.id,
        "env_name": _directory(subject.variant),
        "date": _milliseconds(subject.revision.time),
        "params": {"machine": machine, "variant": subject.variant},
        "python": "",
        "requirements": {},
        "env_vars": {},
        "result_columns": list(_COLUMNS),
        "results": {name: _columns(known[name], those) for name, those in by_name.items()},
        "durations": {},
        "version": 2,
    }


def _columns(benchmark: _Benchmark, samples: Mapping[Point, Exported]) -> list[Json]:
    """Return asv's columns of a benchmark; empty at points without samples."""
    by_point = [samples.get(point) for point in benchmark.points]
    started = min((each.started for each in by_point if each is not None and each.started), default="")
    intervals = [None if each is None else _interval(each.numbers) for each in by_point]
    spread = [None if each is None or len(each.values) == 1 else each for each in by_point]
    return [
        [None if each is None else each.median for each in by_point],
        benchmark.parameters,
        benchmark.version,
        _milliseconds(started),
        None,
        [None if each is None else each.low for each in intervals],
        [None if each is None else each.high for each in intervals],
        [None if each is None else _quantile(each.numbers, 0.25) for each in spread],
        [None if each is None else _quantile(each.numbers, 0.75) for each in spread],
        [None if each is None else 1 for each in by_point],
        [None if each is None else len(each.values) for each in by_point],
        [None if each is None else list(each.numbers) for each in by_point],
    ]


def _interval(numbers: Sequence[float]) -> Estimate | None:
    """Return asv's 99 % interval; `None` if the values are too few for it."""
    found = estimate(numbers, confidence=0.99)
    return found if found.confidence == 0.99 else None


def _quantile(numbers: Sequence[float], share: float) -> float:
    ordered = sorted(numbers)
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def _milliseconds(time: str) -> int | None:
    """Return a time in asv's form; `None` for an invalid text."""
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return None


def _literal(value: Value) -> str:
    return repr(value)


def _configuration(study: Study) -> dict[str, Json]:
    """Return asv publish's configuration: project and repository."""
    return {
        "version": 1,
        "project": study.title,
        "project_url": "",
        "repo": study.searched_source.location if study.searched_source.kind == "git" else "",
        "branches": [_branch(study.searched_source.range or "")],
        "show_commit_url": "#",
        "results_dir": "results",
        "html_dir": "html",
    }


def _branch(range: str) -> str:
    """Return the branch whose history asv reads: the newer end of the range, if it has ends."""
    _, dots, new = range.partition("..")
    return new if dots and new else "HEAD"


def _json(value: Mapping[str, Json]) -> bytes:
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()
