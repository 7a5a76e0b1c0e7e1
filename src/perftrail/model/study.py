"""A study: one question about a program's performance, as its file asks it.

What is said of a field in its `Key` is the reference of the study file: its JSON Schema, its messages and
its documentation are made from it.
"""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perftrail.model.conditions import Quiet
from perftrail.model.key import AXIS, ENVIRONMENT, FIGURE, Key
from perftrail.model.parameters import Point, Value, every_point

SourceKind = Literal["git", "fossil", "release", "directory"]
Walk = Literal["first-parent", "all", "merges", "tags"]
Better = Literal["lower", "higher"]
Order = Literal["interleaved", "random", "sequential"]
Pick = Literal["first", "last", "min", "max", "sum", "median"]
Counter = Literal["locks", "instructions"]
Prior = Literal["suspect", "size", "measured"]
"""What may make a revision a likelier culprit before anything is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Where a revision's human name (its release, say) is written: a file and a pattern with one group."""

    file: Annotated[str, Key("A file of the revision, relative to its root.", stand_in="-")]
    pattern: Annotated[str, Key("A regular expression whose only group is the label.", stand_in="()")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A branch that was squashed: which one, and the revision that its work went into."""

    branch: Annotated[str, Key("The branch, its tip, or a tag on it.", stand_in="-")]
    merge: Annotated[str, Key("The revision that the branch was squashed into.", stand_in="-")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One release as an archive, tar or zip: its version, where it lies and what it must be."""

    version: Annotated[str, Key("The name of this release.", stand_in="-")]
    file: Annotated[str, Key("The archive: a path below source.location, or an address.", stand_in="-")]
    sha256: Annotated[
        str, Key("Its checksum, SHA-256 in 64 digits; of a file of this machine it may be left out.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where revisions come from.

    `location` is a path, made absolute against the study's directory, or an address; of releases it is
    ``ECOSYSTEM:NAME``, for instance ``pypi:packaging``, or where the `archives` lie. `range` is ``A..B`` with A
    the known-old end, part of the history. `requires`, `index`, `prereleases` and `yanked` are for packages.
    """

    kind: Annotated[SourceKind, Key("What the history is kept in.", stand_in="git")]
    location: Annotated[
        str,
        Key(
            "A repository's path, relative to this file, or its address; of releases, pypi:NAME, "
            "or the directory or address that their archives lie below.",
            stand_in=".",
        ),
    ]
    range: Annotated[
        str | None, Key("The stretch of history, A..B; A is the known-old end and belongs to it.")
    ] = None
    walk: Annotated[Walk, Key("Which revisions of a git or Fossil history; always in topological order.")] = (
        "first-parent"
    )
    touching: Annotated[
        tuple[str, ...], Key("Only revisions that change one of these files, relative to the root.")
    ] = ()
    label: Annotated[Label | None, Key("Where a revision says which release it belongs to.")] = None
    link: Annotated[
        tuple[Link, ...],
        Key("Squashed branches: when the culprit is such a revision, the search goes into its branch."),
    ] = ()
    requires: Annotated[
        tuple[str, ...], Key("Releases only: what else to install beside each release, as for pip.")
    ] = ()
    index: Annotated[str | None, Key("Releases only: the address of another package index.")] = None
    prereleases: Annotated[bool, Key("Releases only: whether pre-releases belong to the history.")] = False
    yanked: Annotated[bool, Key("Releases only: whether yanked releases belong to the history.")] = False
    archives: Annotated[
        tuple[Archive, ...],
        Key("Releases only: instead of a package, an archive for each version, the oldest first."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Another recipe for a stretch of the history; what it leaves out stays as in `[build]`."""

    range: Annotated[str, Key("The stretch, A..B; either end may be left open.", stand_in="..")]
    directory: Annotated[str | None, Key("Where the steps run, relative to the revision's root.")] = None
    steps: Annotated[tuple[str, ...] | None, Key("Shell lines that build a revision.")] = None
    env: Annotated[
        Mapping[str, str], Key("Variables added to the build's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    timeout_seconds: Annotated[
        float | None, Key("How long a build may take.", name="timeout", form="duration", above=0)
    ] = None
    outputs: Annotated[
        tuple[str, ...] | None, Key("Files a benchmark may use, relative to the revision's root.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a revision is made usable: shell lines, run in `directory` of a clean tree."""

    directory: Annotated[str, Key("Where the steps run, relative to the revision's root.")] = "."
    steps: Annotated[tuple[str, ...], Key("Shell lines (sh -eu) that build a revision.")] = ()
    env: Annotated[
        Mapping[str, str], Key("Variables added to the build's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    timeout_seconds: Annotated[
        float, Key("How long a build may take.", name="timeout", form="duration", above=0)
    ] = 1800.0
    outputs: Annotated[
        tuple[str, ...],
        Key(
            "Files a benchmark may use, relative to the revision's root, * and ? allowed. "
            "Builds with equal outputs are one build, measured once."
        ),
    ] = ()
    when: Annotated[
        tuple[Era, ...], Key("Other recipes for eras of the history; the last that fits wins.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBuild:
    """What a variant changes of the build."""

    steps: Annotated[tuple[str, ...] | None, Key("Shell lines instead of those of [build].")] = None
    env: Annotated[
        Mapping[str, str], Key("Variables added to the build's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRun:
    """What a variant changes of the run: environment, and words put before the command."""

    env: Annotated[
        Mapping[str, str], Key("Variables added to the command's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    prefix: Annotated[tuple[str, ...], Key("Words put before the command, one item each.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A named way to build or to run; `rebuild = false` shares the plain build."""

    rebuild: Annotated[bool, Key("false: this variant only changes how the command is run.")] = True
    build: Annotated[VariantBuild, Key("What this variant changes of the build.")] = field(
        default_factory=VariantBuild
    )
    run: Annotated[VariantRun, Key("What this variant changes of the run.")] = field(
        default_factory=VariantRun
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure read from what a benchmark prints: the pattern's only group, as a number."""

    pattern: Annotated[
        str, Key("A regular expression, by lines, whose only group is the number.", stand_in="()")
    ]
    unit: Annotated[str, Key("The metric's unit; s and B are scaled for people.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"
    pick: Annotated[Pick, Key("Which number counts when the pattern is found several times.")] = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A command to run at each point of its parameters, and what to read from it.

    `build` holds shell lines that make what the command needs in ``{out}``. `command` is split into words
    unless `shell`. `give_up`: after a point fails on time or memory, larger values of that axis are skipped.
    """

    command: Annotated[
        str,
        Key("What is run and measured, split into words; {parameter} stands for its value.", stand_in="-"),
    ]
    build: Annotated[
        tuple[str, ...], Key("Shell lines (sh -eu) that make what the command needs in {out}.")
    ] = ()
    parameters: Annotated[
        Mapping[str, tuple[Value, ...]], Key("The axes: for each parameter, its values.", names=AXIS)
    ] = field(default_factory=dict)
    exclude: Annotated[
        tuple[Mapping[str, Value], ...],
        Key("Points to leave out: each rule gives values of parameters, or a variant.", names=AXIS),
    ] = ()
    env: Annotated[
        Mapping[str, str], Key("Variables added to the command's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    stdin: Annotated[str | None, Key("A file that the command reads as its standard input.")] = None
    shell: Annotated[bool, Key("true: the command is one shell line.")] = False
    timeout_seconds: Annotated[
        float, Key("How long one invocation may take.", name="timeout", form="duration", above=0)
    ] = 300.0
    memory_limit_bytes: Annotated[
        int | None,
        Key("How much memory one invocation may take.", name="memory_limit", form="size", above=0),
    ] = None
    give_up: Annotated[
        bool, Key("true: after a point fails on time or memory, larger values of that axis are skipped.")
    ] = False
    counters: Annotated[
        tuple[Counter, ...],
        Key(
            "What else is counted: locks (pthread locks, through a preloaded object, beside all else), or "
            "instructions (executed, which noise does not reach; nothing else is measured then)."
        ),
    ] = ()
    metrics: Annotated[
        Mapping[str, Metric], Key("Figures read from what the command prints.", names=FIGURE)
    ] = field(default_factory=dict)

    @property
    def measured(self) -> Mapping[str, MeasuredMetric]:
        """Every metric of this benchmark that needs no declaration."""
        if "instructions" in self.counters:
            return COUNTED["instructions"]
        return {**MEASURED, **(COUNTED["locks"] if "locks" in self.counters else {})}

    @property
    def leading(self) -> tuple[str, ...]:
        """The metrics that tables show and that `run` measures until they are precise enough."""
        return tuple(self.metrics) or tuple(self.measured)[:1]

    def points(self, variant: str) -> tuple[Point, ...]:
        """Every point at which this benchmark runs for a variant, exclusions left out."""
        return tuple(point for point in every_point(self.parameters) if not self._excludes(point, variant))

    def _excludes(self, point: Point, variant: str) -> bool:
        known = {**point.as_dict(), "variant": variant}
        return any(all(known.get(name) == value for name, value in rule.items()) for rule in self.exclude)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A metric computed from others of one benchmark, for instance ``real[threads=2] / real[threads=8]``."""

    value: Annotated[
        str,
        Key(
            "An expression over the benchmark's metrics, as real[threads=2] / real[threads=8].", stand_in="1"
        ),
    ]
    benchmark: Annotated[str, Key("The benchmark it belongs to; may be left out when there is one.")] = ""
    unit: Annotated[str, Key("The metric's unit; empty for a ratio.")] = ""
    better: Annotated[Better, Key("Which direction is an improvement.")] = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocations:
    """How often a point is run: at least, and at most when the interval stays too wide."""

    least: int = 5
    most: int = 30

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"invocations {self.least}..{self.most}: write AT_LEAST..AT_MOST, from 1")

    def __str__(self) -> str:
        return f"{self.least}..{self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePolicy:
    """How `run` measures: how often, how precisely, in which order."""

    invocations: Annotated[
        Invocations, Key("How often each point is run: at least..at most, or a number.", form="invocations")
    ] = field(default_factory=Invocations)
    precision: Annotated[
        float, Key("A point is done when its interval is this narrow, relative to it.", above=0, below=1)
    ] = 0.02
    order: Annotated[Order, Key("In which order subjects are run; interleaved is ABBA.")] = "interleaved"
    warmups: Annotated[int, Key("Invocations before the first that counts.", least=0)] = 1
    seed: Annotated[int, Key("Makes every random choice repeatable.", least=0)] = 1
    quiet: Annotated[
        Quiet,
        Key(
            "When others use the CPUs: mark the sample, refuse to measure, or wait that long before each "
            "invocation and then mark.",
            form="quiet",
        ),
    ] = field(default_factory=Quiet)
    quiet_threshold: Annotated[
        float, Key("How much of one CPU others may use before the machine counts as busy.", above=0)
    ] = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPolicy:
    """What `find` looks for. A metric is ``NAME``, ``BENCHMARK.NAME``, either with ``[parameter=value]``.

    ``works`` asks where it began to fail. Without any, all metrics of the study are followed together.
    """

    metric: Annotated[
        tuple[str, ...],
        Key(
            "What changed: NAME or BENCHMARK.NAME, with [parameter=value] where several remain; works for "
            "where it began to fail; several share one walk; without it, all.",
            form="texts",
        ),
    ] = ()
    variant: Annotated[str | None, Key("In which variant.")] = None
    smallest: Annotated[float, Key("The smallest change worth finding, relative.", above=0)] = 0.05
    confidence: Annotated[float, Key("How sure an answer must be.", above=0.5, below=1)] = 0.99
    budget_seconds: Annotated[
        float | None, Key("How long a search may take.", name="budget", form="duration", above=0)
    ] = None
    budget_invocations: Annotated[int | None, Key("How many invocations a search may make.", least=1)] = None
    budget_builds: Annotated[int | None, Key("How many builds a search may make.", least=1)] = None
    suspect: Annotated[
        tuple[str, ...],
        Key("Paths, ** and * allowed: revisions that touch none of them are less likely the culprit."),
    ] = ()
    prior: Annotated[
        tuple[Prior, ...],
        Key(
            "What is believed beforehand, all of it unless said: suspect (touches those paths), size (how many "
            "files it touches), measured (near a change that earlier measurements show)."
        ),
    ] = ("suspect", "size", "measured")


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
    "foreign_cpu": MeasuredMetric(unit="CPUs"),
    "stolen_cpu": MeasuredMetric(unit="CPUs"),
    "cpu_pressure": MeasuredMetric(unit=""),
    "memory_pressure": MeasuredMetric(unit=""),
    "io_pressure": MeasuredMetric(unit=""),
    "cpu_frequency": MeasuredMetric(unit="Hz", better="higher"),
    "cpu_temperature": MeasuredMetric(unit="°C"),
}
"""Every metric of every benchmark that needs no declaration, unless it counts instructions."""

COUNTED: Mapping[Counter, Mapping[str, MeasuredMetric]] = {
    "locks": {
        "locks": MeasuredMetric(unit=""),
        "contended_locks": MeasuredMetric(unit=""),
        "lock_wait": MeasuredMetric(unit="s"),
    },
    "instructions": {"instructions": MeasuredMetric(unit="")},
}
"""The metrics that a benchmark has when its `counters` ask for them."""

OWN_METRICS: Mapping[str, MeasuredMetric] = {
    **MEASURED,
    **{name: metric for each in COUNTED.values() for name, metric in each.items()},
}
"""Every name that no metric of a study may have."""
