"""Study: one question about a program's performance, as its file describes it.

The tables of the file are `MeasurePolicy`, `FindPolicy`, `Claim`, `Receivers`, `WatchPolicy`, and those of `sandbox`,
`source`, `recipe`, `benchmark` and `metrics`. Each field's `Key` is the reference of the study file: its JSON Schema,
messages and documentation are generated from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perftrail.model.benchmark import Benchmark, Value
from perftrail.model.field import AXIS, Key
from perftrail.model.measurement import Quiet
from perftrail.model.metrics import Derived, MetricScale
from perftrail.model.recipe import PLAIN, Build, Variant
from perftrail.model.sandbox import Sandbox
from perftrail.model.service import Service
from perftrail.model.source import MAIN, Source
from perftrail.model.suite import Suite

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.


Order = Literal["interleaved", "random", "sequential"]
Prior = Literal["suspect", "profile", "instructions", "notes", "measured"]
"""Evidence, known before the search measures, that a revision is the culprit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocations:
    """How often to run a point: at least, and at most while the interval is too wide."""

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
        Invocations,
        Key("Number of invocations of each point: at least..at most, or one number.", form="invocations"),
    ] = field(default_factory=Invocations)
    precision: Annotated[
        float,
        Key(
            "Half width of a point's interval, relative to its value, that suffices.",
            form="fraction",
            above=0,
            below=1,
        ),
    ] = 0.02
    order: Annotated[
        Order,
        Key(
            "Order of the subjects. interleaved: point after point, all subjects of a point in random order; every "
            "second round reverses the points."
        ),
    ] = "interleaved"
    warmups: Annotated[int, Key("Number of warm-up invocations, which do not count.", least=0)] = 1
    seed: Annotated[int, Key("Seed of every random choice.", least=0)] = 1
    vary_path: Annotated[
        bool,
        Key(
            "true: each invocation sees its build, {build} and {out}, at a path of another length; false: for programs "
            "that must run where they were built."
        ),
    ] = True
    quiet: Annotated[
        Quiet,
        Key(
            "If other processes use the CPUs: flag the sample as noisy, refuse to measure, or wait up to this "
            "long before each invocation and then flag it.",
            form="quiet",
        ),
    ] = field(default_factory=Quiet)
    quiet_threshold: Annotated[
        float,
        Key(
            "Share of one CPU that other processes may use before the machine counts as busy.",
            form="fraction",
            above=0,
        ),
    ] = 0.25


THRESHOLD = 0.05
"""The smallest change worth finding of a study that sets none."""

RATE_THRESHOLD = 0.1
"""The smallest change of a rate that is worth finding, in shares of all runs, unless the study has a threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPolicy:
    """What `find` searches. A metric is ``NAME``, ``BENCHMARK.NAME``, either with ``[parameter=value]``.

    ``works`` searches for the revision that began to fail. Without any metric, it searches all metrics of the
    study together.
    """

    metric: Annotated[
        tuple[str, ...],
        Key(
            "Metrics to search: NAME or BENCHMARK.NAME, with [parameter=value] if several points remain, or works "
            "for the revision that began to fail. Several metrics share one search. Default: all.",
            form="texts",
        ),
    ] = ()
    variant: Annotated[str | None, Key("The variant to search.")] = None
    threshold: Annotated[
        float | None,
        Key(
            "The smallest change worth finding: 0.05 is 5 %, 5 percentage points of a rate, or 0.05 of a difference's "
            "unit. Default: 0.05. If it is set, perftrail compare uses it too, instead of [measure] precision.",
            form="fraction",
            above=0,
        ),
    ] = None
    confidence: Annotated[
        float, Key("Required probability of the answer.", form="fraction", above=0.5, below=1)
    ] = 0.99
    budget_seconds: Annotated[
        float | None,
        Key(
            "Longest time of one command. Default: 1 h, or the time of 24 builds if that is longer.",
            name="budget",
            form="duration",
            above=0,
        ),
    ] = None
    budget_invocations: Annotated[int | None, Key("Largest number of invocations of a search.", least=1)] = (
        None
    )
    budget_builds: Annotated[int | None, Key("Largest number of builds of a search.", least=1)] = None
    suspect: Annotated[
        tuple[str, ...],
        Key("Paths, ** and * allowed: revisions that touch none of them are less likely the culprit."),
    ] = ()
    prior: Annotated[
        tuple[Prior, ...],
        Key(
            "Evidence for the prior: suspect (the revision touches those paths), profile (it touches a function "
            "whose cost moved between both ends), instructions (its instructions differ from those of its parent), "
            "notes (its message mentions speed or memory), measured (near a change in earlier samples). "
            "Default: all."
        ),
    ] = ("suspect", "profile", "instructions", "notes", "measured")

    @property
    def smallest_change(self) -> float:
        """The smallest change worth finding, also if the study does not set it."""
        return THRESHOLD if self.threshold is None else self.threshold

    def threshold_for(self, scales: Iterable[MetricScale | None]) -> float | None:
        """Return the threshold for metrics with these stated scales; `None` if the study sets none.

        From 1 on it is in the unit of a metric, and only one of differences.
        """
        is_relative = self.threshold is not None and self.threshold < 1.0
        return self.threshold if is_relative or all(each == "difference" for each in scales) else None


_BAND = re.compile(r"\s*(-?\d+(?:\.\d+)?)?\s*\.\.\s*(-?\d+(?:\.\d+)?)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence to judge: by a ratio, an exponent, the largest reachable value, or not at all.

    Exactly one of `ratio`, `exponent`, `reaches` and `cannot` decides how. The first three are bands, in the
    notation of `read_band`. `at` limits the points; empty means all points.
    """

    says: Annotated[str, Key("The sentence, as its author wrote it.", stand_in="-")]
    metric: Annotated[
        str, Key("The claim's metric: NAME, or BENCHMARK.NAME if several benchmarks have it.")
    ] = ""
    variant: Annotated[str, Key("The claim's variant.")] = ""
    against: Annotated[str, Key("With ratio: the variant to compare with.")] = ""
    at: Annotated[
        Mapping[str, tuple[Value, ...]],
        Key("The points of the claim: for each parameter, its values. Default: all.", names=AXIS),
    ] = field(default_factory=dict)
    along: Annotated[str, Key("With exponent or reaches: the parameter of the axis.")] = ""
    ratio: Annotated[
        str, Key('Reproduced if variant / against is in this band: "1.5..3", "1.2.." or "..1".')
    ] = ""
    exponent: Annotated[
        str, Key('Reproduced if the metric grows with an exponent in this band: "1.7..2.3".')
    ] = ""
    reaches: Annotated[
        str,
        Key('Reproduced if the largest value of along with a result is in this band: "..300".'),
    ] = ""
    cannot: Annotated[str, Key("Why the claim cannot be judged here.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A range of numbers, both ends included; an open end is infinite."""

    low: float
    high: float

    def contains(self, low: float, high: float) -> bool:
        """Return whether it contains a whole interval."""
        return self.low <= low and high <= self.high

    def is_disjoint_from(self, low: float, high: float) -> bool:
        """Return whether it does not overlap an interval."""
        return high < self.low or low > self.high


def read_band(text: str) -> Band:
    """Parse ``LOW..HIGH``, either of which is optional. Raises `ValueError` with the mistake.

    >>> read_band("1.5..3"), read_band("..0.9")
    (Band(low=1.5, high=3.0), Band(low=-inf, high=0.9))
    """
    found = _BAND.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        raise ValueError('is not a valid band; write "LOW..HIGH", "LOW.." or "..HIGH"')
    band = Band(
        low=float(found[1]) if found[1] else -math.inf, high=float(found[2]) if found[2] else math.inf
    )
    if band.low > band.high:
        raise ValueError("has its ends in the wrong order; write the smaller one first")
    return band


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """Receivers of notices about changes. Passwords and secrets come from the environment."""

    webhook: Annotated[
        tuple[str, ...],
        Key("Addresses to post JSON to; PERFTRAIL_WEBHOOK_SECRET signs it.", form="texts"),
    ] = ()
    command: Annotated[
        tuple[str, ...],
        Key("Commands that read the JSON from standard input; words, no shell.", form="texts"),
    ] = ()
    mail: Annotated[tuple[str, ...], Key("Mail addresses to notify.", form="texts")] = ()
    smtp: Annotated[
        str,
        Key("The mail server, HOST:PORT; a remote server must offer STARTTLS, or use port 465."),
    ] = "localhost:25"
    sender: Annotated[str, Key("Sender address of mails.")] = "perftrail@localhost"
    user: Annotated[str, Key("The mail server's user; PERFTRAIL_SMTP_PASSWORD is the password.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """What `watch` follows, and how often it checks."""

    branch: Annotated[
        str | None, Key("The branch to follow. Default: the tip at which the source's open range ends.")
    ] = None
    every_seconds: Annotated[
        float, Key("Time between two checks for new revisions.", name="every", form="duration", above=0)
    ] = 300.0
    notify: Annotated[Receivers, Key("Whom to notify of a change.")] = field(default_factory=Receivers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question, read from one file; `directory` is the directory of that file.

    `sources` are the sources other than `source`; `along` names the one whose history is searched. `benchmarks`
    contains the benchmarks of `suites` only after these were listed, and only those that `selected` matches, a regular
    expression.
    """

    title: str
    file: str
    directory: str
    source: Source
    benchmarks: Mapping[str, Benchmark]
    suites: Mapping[str, Suite] = field(default_factory=dict)
    build: Build = field(default_factory=Build)
    variants: Mapping[str, Variant] = field(default_factory=lambda: {PLAIN: Variant()})
    derived: Mapping[str, Derived] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    measure: MeasurePolicy = field(default_factory=MeasurePolicy)
    find: FindPolicy = field(default_factory=FindPolicy)
    sandbox: Sandbox = field(default_factory=Sandbox)
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    sources: Mapping[str, Source] = field(default_factory=dict)
    along: str = MAIN
    services: Mapping[str, Service] = field(default_factory=dict)
    selected: str = ""

    @property
    def every_source(self) -> Mapping[str, Source]:
        """Every source by its name, that of `[source]` first."""
        return {MAIN: self.source, **self.sources}

    @property
    def searched_source(self) -> Source:
        """The source whose history is searched."""
        return self.every_source[self.along]
