"""Suites: benchmarks that a project maintains for another tool, which perftrail lists, starts and reads.

`Suite` is a table of the study file. `SuiteItem` is one of its benchmarks as the built suite lists it, and `Listing`
all of them. `SuiteBenchmark` is such a benchmark in a study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from perftrail.model.benchmark import Benchmark, Point, Value
from perftrail.model.build import ContentKeys
from perftrail.model.field import ENVIRONMENT, Key

if TYPE_CHECKING:
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import MeasuredMetric


SuiteKind = Literal["asv", "criterion", "divan", "go", "google-benchmark", "jmh", "pytest-benchmark"]
"""Tools whose suites perftrail can list and start."""

RESIDENT_KINDS: tuple[SuiteKind, ...] = ("asv", "jmh", "pytest-benchmark")
"""Tools whose benchmarks a resident process can measure."""

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A benchmark suite of the project: perftrail lists its benchmarks once per build and measures each of them."""

    kind: Annotated[SuiteKind, Key("The tool of the suite.", stand_in="go")]
    program: Annotated[
        tuple[str, ...],
        Key(
            "What starts the suite, relative to the build, with * and ?: its built programs (criterion, divan, go, "
            "google-benchmark), the jar (jmh), or Python (asv, pytest-benchmark; default: python3 of the PATH).",
            form="texts",
        ),
    ] = ()
    path: Annotated[
        str,
        Key(
            "Directory of the suite, relative to the build: tests (pytest-benchmark), benchmarks (asv), or the working "
            "directory of its programs. Default: the build."
        ),
    ] = ""
    select: Annotated[
        str, Key("A regular expression: only benchmarks whose name it matches somewhere are measured.")
    ] = ""
    arguments: Annotated[
        tuple[str, ...], Key("More words for the suite's program, or for the build of its programs.")
    ] = ()
    env: Annotated[
        Mapping[str, str], Key("Variables added to the suite's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    resident: Annotated[
        bool | None,
        Key(
            "true: base and head each keep one process, which measures every benchmark once before the next process "
            "replaces it; false: one process for each invocation. Default: true for asv, jmh and pytest-benchmark, "
            "which start slowly; the other tools have no resident process."
        ),
    ] = None
    seconds: Annotated[
        float,
        Key(
            "Time that one invocation measures a benchmark; the number of iterations is chosen once.",
            form="duration",
            above=0,
        ),
    ] = 0.1
    timeout_seconds: Annotated[
        float, Key("Longest time of one invocation.", name="timeout", form="duration", above=0)
    ] = 300.0
    memory_limit_bytes: Annotated[
        int | None, Key("Largest memory of one invocation.", name="memory_limit", form="size", above=0)
    ] = None

    @property
    def content(self) -> str:
        """The content key of what this suite lists and how it starts benchmarks."""
        return ContentKeys(
            self.kind,
            list(self.program),
            self.path,
            list(self.arguments),
            dict(self.env),
            self.seconds,
        ).key("")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteItem:
    """A benchmark at one point, as a built suite lists it.

    `selector` is the text with which the suite starts it alone. `iterations` is the number of iterations of one
    invocation; 0 if the tool chooses it. Without `is_calibrated`, the number is still to be chosen. `metric` is what
    it measures: ``time`` in s, ``memory`` in B, or ``value`` in `unit`; `printed` is that metric's name in the tool's
    output.
    """

    name: str
    selector: str
    point: Point = field(default_factory=Point)
    iterations: int = 0
    is_calibrated: bool = True
    metric: str = "time"
    unit: str = "s"
    printed: str = "wall"

    def as_json(self) -> dict[str, Json]:
        """Return the item as a listing stores it."""
        return {
            "name": self.name,
            "selector": self.selector,
            "point": [[name, value] for name, value in self.point.values],
            "iterations": self.iterations,
            "calibrated": self.is_calibrated,
            "metric": self.metric,
            "unit": self.unit,
            "printed": self.printed,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> SuiteItem:
        """Return an item from its JSON. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        point, iterations = data["point"], data["iterations"]
        if not isinstance(point, list) or not isinstance(iterations, int):
            raise TypeError("not the JSON of a suite's benchmark")
        return cls(
            name=str(data["name"]),
            selector=str(data["selector"]),
            point=Point(tuple((str(name), value) for name, value in point)),
            iterations=iterations,
            is_calibrated=data.get("calibrated", True) is True,
            metric=str(data["metric"]),
            unit=str(data["unit"]),
            printed=str(data["printed"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBenchmark(Benchmark):
    """A benchmark of a suite: each point has its own command, and the suite measures the time.

    `suite` is the name of the suite's table. `commands` are shell lines. With `server`, a shell line that starts a
    resident process, `requests` are the lines that this process reads; one invocation is one request.
    """

    suite: str
    commands: Mapping[Point, str]
    server: str = ""
    requests: Mapping[Point, str] = field(default_factory=dict)

    @property
    def measured(self) -> Mapping[str, MeasuredMetric]:
        """Nothing: a process of a suite also starts the tool, so its own time and memory mean little."""
        return {}

    @property
    def leading(self) -> tuple[str, ...]:
        """The metric that the suite reports."""
        return tuple(self.metrics)[:1]

    def command_at(self, point: Point) -> str:
        """Return the shell line of a point."""
        return self.commands[point]


def with_iterations_of(
    items: tuple[SuiteItem, ...], earlier: Mapping[tuple[str, Point], SuiteItem]
) -> tuple[SuiteItem, ...]:
    """Return items with the iterations of an earlier listing, so that all builds run equally many."""
    found = []
    for each in items:
        known = earlier.get((each.name, each.point))
        if known is None or not known.is_calibrated:
            found.append(each)
        elif each.is_calibrated:
            found.append(replace(each, iterations=known.iterations))
        else:
            found.append(replace(known, metric=each.metric, unit=each.unit, printed=each.printed))
    return tuple(found)


def axes_of(points: tuple[Point, ...]) -> dict[str, tuple[Value, ...]]:
    """Return the parameters of points that all have the same ones, each with its values in order of appearance."""
    axes: dict[str, dict[Value, None]] = {}
    for point in points:
        for name, value in point.values:
            axes.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in axes.items()}
