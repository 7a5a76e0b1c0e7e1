"""Benchmarks: a command, its parameters, and the points that they span."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from perftrail.model.field import AXIS, ENVIRONMENT, METRIC, Key
from perftrail.model.metrics import (
    COUNTED,
    COUNTED_ALONE,
    MEASURED,
    OF_THE_COMMAND,
    Counter,
    MeasuredMetric,
    Metric,
)
from perftrail.model.service import CPUS, NICE, NUMA, Placement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Value = int | float | str
"""Value of a parameter."""

MOST_POINTS = 100_000
"""Maximum number of points of a benchmark."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value for each parameter of a benchmark, in the order of the study file."""

    values: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, parameter: str) -> Value:
        for name, value in self.values:
            if name == parameter:
                return value
        raise KeyError(parameter)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of this point."""
        return tuple(name for name, _ in self.values)

    def as_dict(self) -> dict[str, Value]:
        """The point as a plain mapping, for JSON and for placeholders."""
        return dict(self.values)

    def matches(self, wanted: Mapping[str, Value]) -> bool:
        """Return whether this point has the wanted value of each parameter that it shares with `wanted`."""
        return all(value == wanted[name] for name, value in self.values if name in wanted)

    def without(self, names: Sequence[str]) -> Point:
        """Return this point without some parameters, for example those that a derived metric fixes."""
        return Point(tuple((name, value) for name, value in self.values if name not in names))

    def exceeds(self, other: Point) -> bool:
        """Return whether no number is smaller, at least one is larger, and every text is the same."""
        return self != other and all(
            value >= than
            if isinstance(value, int | float) and isinstance(than, int | float)
            else value == than
            for (_, value), (_, than) in zip(self.values, other.values, strict=True)
        )

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values)


def every_point(parameters: Mapping[str, Sequence[Value]]) -> Iterator[Point]:
    """Yield the product of all axes, the last axis changing fastest.

    >>> [str(point) for point in every_point({"threads": [1, 2], "size": [5]})]
    ['threads=1 size=5', 'threads=2 size=5']
    """
    for combination in itertools.product(*parameters.values()):
        yield Point(tuple(zip(parameters, combination, strict=True)))


# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A command to run at each point of its parameters, and the metrics to read from its output.

    `build` contains shell lines that build the command's files in ``{out}``. The `relink` lines run after them
    and link in another order. `command` is split into words unless `shell`. `give_up`: after a point fails on
    time or memory, larger values of that axis are skipped.
    """

    command: Annotated[
        str,
        Key("The command to measure, split into words; {parameter} is replaced by its value.", stand_in="-"),
    ]
    build: Annotated[
        tuple[str, ...], Key("Shell lines (sh -eu) that build the command's files in {out}.")
    ] = ()
    relink: Annotated[
        tuple[str, ...],
        Key(
            "Shell lines that link the files in {out} in another order for each {layout} seed (1, 2, …); they run "
            "after build. Not needed if build.relink alone changes the command's program."
        ),
    ] = ()
    parameters: Annotated[
        Mapping[str, tuple[Value, ...]], Key("The axes: for each parameter, its values.", names=AXIS)
    ] = field(default_factory=dict)
    exclude: Annotated[
        tuple[Mapping[str, Value], ...],
        Key("Points to skip: each rule names values of parameters, or a variant.", names=AXIS),
    ] = ()
    directory: Annotated[
        str | None,
        Key(
            "Where the command runs, relative to the revision's root. Default: an empty directory, new for each "
            "invocation."
        ),
    ] = None
    env: Annotated[
        Mapping[str, str],
        Key(
            "Variables added to the command's environment, which has only LANG=C.UTF-8, TZ=UTC and your PATH, HOME, "
            "USER and LOGNAME.",
            names=ENVIRONMENT,
        ),
    ] = field(default_factory=dict)
    stdin: Annotated[
        str | None,
        Key("File for the command's standard input; a relative path is relative to this file."),
    ] = None
    shell: Annotated[bool, Key("true: the command is one shell line.")] = False
    timeout_seconds: Annotated[
        float, Key("Longest time of one invocation.", name="timeout", form="duration", above=0)
    ] = 300.0
    memory_limit_bytes: Annotated[
        int | None,
        Key("Largest memory of one invocation.", name="memory_limit", form="size", above=0),
    ] = None
    retry_on: Annotated[
        tuple[str, ...],
        Key(
            'Ends that are no result, for example ["exit 77", "SIGKILL"]: such an invocation is repeated, at most 20 '
            "times."
        ),
    ] = ()
    give_up: Annotated[
        bool, Key("true: after a point fails on time or memory, larger values of that axis are skipped.")
    ] = False
    services: Annotated[
        tuple[str, ...],
        Key(
            "Services that run during the invocations, in the order of their start: names of [service.NAME]."
        ),
    ] = ()
    setup: Annotated[
        tuple[str, ...],
        Key(
            "Shell lines (sh -eu) that run once for each build, before its first invocation, with its services up; "
            "once for each value of a {parameter} that they use. Not measured."
        ),
    ] = ()
    prepare: Annotated[
        tuple[str, ...],
        Key("Shell lines that run before each invocation, in the command's directory. Not measured."),
    ] = ()
    conclude: Annotated[
        tuple[str, ...], Key("Shell lines that run after each invocation. Not measured.")
    ] = ()
    cleanup: Annotated[
        tuple[str, ...],
        Key(
            "Shell lines that run once after setup, when perftrail ends, also after failures and interrupts."
        ),
    ] = ()
    measure: Annotated[
        Literal["command", "server"],
        Key(
            "Whose CPU time and memory are measured: those of the command, or those of the services during the "
            "command. wall is always the command's time."
        ),
    ] = "command"
    drop_caches: Annotated[
        bool,
        Key(
            "true: write changed files to disk and drop the kernel's caches before each invocation; needs root."
        ),
    ] = False
    cpus: Annotated[tuple[int, ...] | None, CPUS] = None
    nice: Annotated[int | None, NICE] = None
    numa: Annotated[tuple[int, ...] | None, NUMA] = None
    counters: Annotated[
        tuple[Counter, ...],
        Key(
            "Additional counters: locks (pthread and C11 locks, and waits of threads for each other, counted by a "
            "preloaded object), hardware (cycles, instructions, cache and branch misses of the processor, where the "
            "machine provides them), allocations (heap allocations, their bytes and their peak), or instructions "
            "(executed instructions). Allocations and instructions are independent of noise, and each of them "
            "excludes all other metrics."
        ),
    ] = ()
    metrics: Annotated[Mapping[str, Metric], Key("Metrics read from the command's output.", names=METRIC)] = (
        field(default_factory=dict)
    )

    def is_built(self, word: str) -> bool:
        """Return whether a word of the command, with its placeholders, is a path of the build."""
        if "{build}" in word or "{out}" in word:
            return True
        return self.directory is not None and "/" in word and not word.startswith(("/", "-", "{"))

    @property
    def measured(self) -> Mapping[str, MeasuredMetric]:
        """Metrics of this benchmark that need no declaration."""
        if self.counted_alone is not None:
            return COUNTED[self.counted_alone]
        if self.measure == "server":
            return {name: metric for name, metric in MEASURED.items() if name not in OF_THE_COMMAND}
        counted = {name: metric for each in self.counters for name, metric in COUNTED[each].items()}
        return {**MEASURED, **counted}

    @property
    def counted_alone(self) -> Counter | None:
        """The counter of its invocations, if they measure nothing else."""
        return next((counter for counter in COUNTED_ALONE if counter in self.counters), None)

    @property
    def placement(self) -> Placement:
        """Where its command runs."""
        return Placement(cpus=self.cpus, nice=self.nice, numa=self.numa)

    @property
    def leading(self) -> tuple[str, ...]:
        """Metrics that tables show and that `run` measures to the requested precision."""
        compared = (name for name, metric in self.metrics.items() if not metric.same)
        if self.counted_alone == "allocations":
            return ("allocations", "allocated_bytes", "heap_peak")
        return tuple(compared) or tuple(self.measured)[:1]

    @property
    def server(self) -> str:
        """The shell line of a resident process, which only benchmarks of suites have; empty for none."""
        return ""

    def command_at(self, point: Point) -> str:  # noqa: ARG002 - benchmarks of suites have another one for each point
        """Return the command at a point, with open placeholders."""
        return self.command

    def points(self, variant: str) -> tuple[Point, ...]:
        """Return every point at which this benchmark runs for a variant, without excluded points."""
        return tuple(self.each_point(variant))

    def each_point(self, variant: str) -> Iterator[Point]:
        """Yield what `points` returns, on demand."""
        points = every_point(self.parameters)
        return (point for point in points if not self._excludes(point, variant)) if self.exclude else points

    def point_count(self, variant: str) -> int:
        """Return the number of points at which this benchmark runs for a variant."""
        if not self.exclude:
            return math.prod(map(len, self.parameters.values()))
        return sum(1 for _ in self.each_point(variant))

    def runs_for(self, variant: str) -> bool:
        """Return whether this benchmark runs at any of its first `MOST_POINTS` points for a variant."""
        some = itertools.islice(every_point(self.parameters), MOST_POINTS)
        return any(not self._excludes(point, variant) for point in some)

    def _excludes(self, point: Point, variant: str) -> bool:
        known = {**point.as_dict(), "variant": variant}
        return any(all(known.get(name) == value for name, value in rule.items()) for rule in self.exclude)
