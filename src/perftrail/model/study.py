"""A study: one question about a program's performance, as its file asks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from perftrail.model.parameters import Point, Value, every_point

if TYPE_CHECKING:
    from collections.abc import Mapping

SourceKind = Literal["git", "fossil", "release", "directory"]
Walk = Literal["first-parent", "all", "merges", "tags"]
Better = Literal["lower", "higher"]
Order = Literal["interleaved", "random", "sequential"]
Pick = Literal["first", "last", "min", "max", "sum", "median"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Where a revision's human name (its release, say) is written: a file and a pattern with one group."""

    file: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where revisions come from.

    `location` is a path, made absolute against the study's directory, or an address; of releases it is
    ``ECOSYSTEM:NAME``, for instance ``pypi:packaging``. `range` is ``A..B`` with A the known-old end, part
    of the history. `requires`, `index`, `prereleases` and `yanked` are for releases only.
    """

    kind: SourceKind
    location: str
    range: str | None = None
    walk: Walk = "first-parent"
    touching: tuple[str, ...] = ()
    label: Label | None = None
    requires: tuple[str, ...] = ()
    index: str | None = None
    prereleases: bool = False
    yanked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Another recipe for a stretch of the history; what it leaves out stays as in `[build]`."""

    range: str
    directory: str | None = None
    steps: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    outputs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a revision is made usable: shell lines, run in `directory` of a clean tree."""

    directory: str = "."
    steps: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 1800.0
    outputs: tuple[str, ...] = ()
    when: tuple[Era, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBuild:
    """What a variant changes of the build."""

    steps: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRun:
    """What a variant changes of the run: environment, and words put before the command."""

    env: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A named way to build or to run; `rebuild = false` shares the plain build."""

    rebuild: bool = True
    build: VariantBuild = field(default_factory=VariantBuild)
    run: VariantRun = field(default_factory=VariantRun)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure read from what a benchmark prints: the pattern's only group, as a number."""

    pattern: str
    unit: str = ""
    better: Better = "lower"
    pick: Pick = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A command to run at each point of its parameters, and what to read from it.

    `build` holds shell lines that make what the command needs in ``{out}``. `command` is split into words
    unless `shell`. `give_up`: after a point fails on time or memory, larger values of that axis are skipped.
    """

    command: str
    build: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    exclude: tuple[Mapping[str, Value], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    shell: bool = False
    timeout_seconds: float = 300.0
    memory_limit_bytes: int | None = None
    give_up: bool = False
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    def points(self, variant: str) -> tuple[Point, ...]:
        """Every point at which this benchmark runs for a variant, exclusions left out."""
        return tuple(point for point in every_point(self.parameters) if not self._excludes(point, variant))

    def _excludes(self, point: Point, variant: str) -> bool:
        known = {**point.as_dict(), "variant": variant}
        return any(all(known.get(name) == value for name, value in rule.items()) for rule in self.exclude)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A metric computed from others of one benchmark, for instance ``real[threads=2] / real[threads=8]``."""

    benchmark: str
    value: str
    unit: str = ""
    better: Better = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocations:
    """How often a point is run: at least, and at most when the interval stays too wide."""

    least: int = 5
    most: int = 30

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"invocations {self.least}..{self.most}: write AT_LEAST..AT_MOST, from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePolicy:
    """How `run` measures: how often, how precisely, in which order."""

    invocations: Invocations = field(default_factory=Invocations)
    precision: float = 0.02
    order: Order = "interleaved"
    warmups: int = 1
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPolicy:
    """What `find` looks for. `metric` is ``NAME``, ``BENCHMARK.NAME``, either with ``[parameter=value]``."""

    metric: str | None = None
    variant: str | None = None
    smallest: float = 0.05
    confidence: float = 0.99
    budget_seconds: float | None = None
    budget_invocations: int | None = None
    budget_builds: int | None = None


PLAIN = "plain"
"""The variant of a study that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question, read from one file; `directory` is where that file lies."""

    title: str
    file: str
    directory: str
    source: Source
    benchmarks: Mapping[str, Benchmark]
    build: Build = field(default_factory=Build)
    variants: Mapping[str, Variant] = field(default_factory=lambda: {PLAIN: Variant()})
    derived: Mapping[str, Derived] = field(default_factory=dict)
    measure: MeasurePolicy = field(default_factory=MeasurePolicy)
    find: FindPolicy = field(default_factory=FindPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMetric:
    """A metric that the launcher takes of every invocation: its unit and which way is better."""

    unit: str
    better: Better = "lower"


MEASURED: Mapping[str, MeasuredMetric] = {
    "wall": MeasuredMetric(unit="s"),
    "cpu": MeasuredMetric(unit="s"),
    "user": MeasuredMetric(unit="s"),
    "system": MeasuredMetric(unit="s"),
    "peak_memory": MeasuredMetric(unit="B"),
    "peak_memory_tree": MeasuredMetric(unit="B"),
    "voluntary_switches": MeasuredMetric(unit=""),
    "involuntary_switches": MeasuredMetric(unit=""),
    "page_faults": MeasuredMetric(unit=""),
}
"""Every metric of every benchmark that needs no declaration."""
