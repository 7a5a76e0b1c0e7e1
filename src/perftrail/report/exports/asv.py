"""A directory of asv results: what `asv publish` makes pages of, where the history is a git repository.

asv has one figure for each benchmark: the wall time keeps the benchmark's name, another metric stands behind a point.
It has no variants: each is an environment.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point
from perftrail.report.exports.revisions import file_name
from perftrail.stats.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Value
    from perftrail.model.exchange import Exported
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.stats.estimate import Estimate

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
_UNITS = {"s": "seconds", "B": "bytes"}
_TYPES = {"s": "time", "B": "peakmemory"}
MACHINE = "perftrail"
"""The machine's name where the samples' is not known."""


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:
    """Write every result with its values, all of their digits; asv's own files keep five."""
    benchmarks: dict[str, list[Exported]] = defaultdict(list)
    results: dict[tuple[str, str, str], list[Exported]] = defaultdict(list)
    for each in samples:
        benchmarks[_name(each)].append(each)
        machine = _directory(each.machine or MACHINE)
        results[machine, each.subject.revision.id, each.subject.variant].append(each)
    known = {name: _Benchmark(name, those) for name, those in benchmarks.items()}
    files = {
        "asv.conf.json": _json(_settings(study)),
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
    """Make a directory's name of any text."""
    return re.sub(r"[^A-Za-z0-9_+.-]+", "-", text).strip(".-")[:60] or MACHINE


class _Benchmark:
    """A benchmark as asv describes it: its parameters and, in the order of their product, its points."""

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
        return [[_written(value) for value in values] for values in self._values]

    @property
    def version(self) -> str:
        """Names what a result is of: asv leaves results of another version out."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def description(self) -> dict[str, Json]:
        """What benchmarks.json says of it."""
        return {
            "code": "",
            "name": self.name,
            "param_names": list(self._names),
            "params": self.parameters,
            "timeout": 60.0,
            "type": _TYPES.get(self._unit, "track"),
            "unit": _UNITS.get(self._unit, self._unit or "unit"),
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
    """Give what asv keeps of a benchmark in the order of its columns; nothing at points that were not measured."""
    held = [samples.get(point) for point in benchmark.points]
    started = min((each.started for each in held if each is not None and each.started), default="")
    sure = [None if each is None else _sure(each.numbers) for each in held]
    spread = [None if each is None or len(each.values) == 1 else each for each in held]
    return [
        [None if each is None else each.median for each in held],
        benchmark.parameters,
        benchmark.version,
        _milliseconds(started),
        None,
        [None if each is None else each.low for each in sure],
        [None if each is None else each.high for each in sure],
        [None if each is None else _quantile(each.numbers, 0.25) for each in spread],
        [None if each is None else _quantile(each.numbers, 0.75) for each in spread],
        [None if each is None else 1 for each in held],
        [None if each is None else len(each.values) for each in held],
        [None if each is None else list(each.numbers) for each in held],
    ]


def _sure(numbers: Sequence[float]) -> Estimate | None:
    """Give the interval that asv keeps, of 99 %; nothing where values are too few to reach that."""
    found = estimate(numbers, confidence=0.99)
    return found if found.confidence == 0.99 else None


def _quantile(numbers: Sequence[float], share: float) -> float:
    ordered = sorted(numbers)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _milliseconds(moment: str) -> int | None:
    """Give a moment as asv does; nothing of a text that is none."""
    try:
        return round(datetime.fromisoformat(moment).timestamp() * 1000)
    except ValueError:
        return None


def _written(value: Value) -> str:
    return repr(value)


def _settings(study: Study) -> dict[str, Json]:
    """What asv publish needs beside results: whose they are, and where the history lies."""
    return {
        "version": 1,
        "project": study.title,
        "project_url": "",
        "repo": study.walked.location if study.walked.kind == "git" else "",
        "branches": [_branch(study.walked.range or "")],
        "show_commit_url": "#",
        "results_dir": "results",
        "html_dir": "html",
    }


def _branch(range: str) -> str:
    """Name what asv is to walk back from: the newer end of the range, if it is written with ends."""
    _, dots, new = range.partition("..")
    return new if dots and new else "HEAD"


def _json(value: Mapping[str, Json]) -> bytes:
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()
