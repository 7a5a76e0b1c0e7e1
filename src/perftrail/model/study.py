"""A study: one question about a program's performance, as its file asks it.

What is said of a field in its `Key`, here and in the modules of its parts, is the reference of the study file:
its JSON Schema, its messages and its documentation are made from it.

How to measure and what to look for, where a study says more than the usual.

Claims: sentences about a study's figures, each with what would bear it out.

How a branch is watched and who is told, as the study file says it.

What a sandbox lets builds and runs do: whether it is used, what it is opened for and why, its limits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perftrail.model.benchmark import Benchmark, Value
from perftrail.model.field import AXIS, Key
from perftrail.model.measurement import Quiet
from perftrail.model.metrics import Derived
from perftrail.model.quantity import format_size
from perftrail.model.recipe import PLAIN, Build, Variant
from perftrail.model.source import MAIN, Source

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


Order = Literal["interleaved", "random", "sequential"]
Prior = Literal["suspect", "size", "notes", "measured"]
"""What may make a revision a likelier culprit before anything is measured."""


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
    order: Annotated[
        Order,
        Key(
            "In which order subjects are run; interleaved: side by side in random order, points there and back."
        ),
    ] = "interleaved"
    warmups: Annotated[int, Key("Invocations before the first that counts.", least=0)] = 1
    seed: Annotated[int, Key("Makes every random choice repeatable.", least=0)] = 1
    vary_path: Annotated[
        bool,
        Key(
            "Show each invocation its build, {build} and {out}, at a path of another length; false: for programs "
            "that must run where they were built."
        ),
    ] = True
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
    threshold: Annotated[float, Key("The smallest change worth finding, relative.", above=0)] = 0.05
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
            "files it touches), notes (its message speaks of speed or memory), measured (near a change that "
            "earlier measurements show)."
        ),
    ] = ("suspect", "size", "notes", "measured")


# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


_BAND = re.compile(r"\s*(-?\d+(?:\.\d+)?)?\s*\.\.\s*(-?\d+(?:\.\d+)?)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence that is to be judged: by a ratio, an exponent, how far something goes, or not at all.

    One of `ratio`, `exponent`, `reaches` and `cannot` says how; the first three are bands, as `read_band` reads
    them. `at` are the points that count, all where it says nothing.
    """

    says: Annotated[str, Key("The sentence, as its author has it.", stand_in="-")]
    metric: Annotated[
        str, Key("The metric it is about: NAME, or BENCHMARK.NAME where several benchmarks have it.")
    ] = ""
    variant: Annotated[str, Key("The variant it is about.")] = ""
    against: Annotated[str, Key("With ratio: the variant that it is held against.")] = ""
    at: Annotated[
        Mapping[str, tuple[Value, ...]],
        Key("The points that count: for each parameter, the values; without it, all.", names=AXIS),
    ] = field(default_factory=dict)
    along: Annotated[str, Key("With exponent or reaches: the parameter along which it is looked at.")] = ""
    ratio: Annotated[
        str, Key('It is borne out when variant / against lies in this band: "1.5..3", "1.2.." or "..1".')
    ] = ""
    exponent: Annotated[
        str, Key('It is borne out when the metric grows with a power in this band: "1.7..2.3".')
    ] = ""
    reaches: Annotated[
        str,
        Key('It is borne out when the largest value of along that can be had lies in this band: "..300".'),
    ] = ""
    cannot: Annotated[str, Key("Why it cannot be judged here.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """From one number to another, both included; an open end is infinite."""

    low: float
    high: float

    def holds(self, low: float, high: float) -> bool:
        """Whether a whole interval lies in it."""
        return self.low <= low and high <= self.high

    def misses(self, low: float, high: float) -> bool:
        """Whether an interval has nothing in common with it."""
        return high < self.low or low > self.high


def read_band(text: str) -> Band:
    """Read ``LOW..HIGH``, either of which may be left out. Raises `ValueError`, which says what is wrong.

    >>> read_band("1.5..3"), read_band("..0.9")
    (Band(low=1.5, high=3.0), Band(low=-inf, high=0.9))
    """
    found = _BAND.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        raise ValueError('is no band; write "LOW..HIGH", "LOW.." or "..HIGH"')
    band = Band(
        low=float(found[1]) if found[1] else -math.inf, high=float(found[2]) if found[2] else math.inf
    )
    if band.low > band.high:
        raise ValueError("has its ends the wrong way round")
    return band


# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """Who is told of a change. Passwords and secrets are no part of it: they come from the environment."""

    webhook: Annotated[
        tuple[str, ...],
        Key("Addresses that JSON is posted to; PERFTRAIL_WEBHOOK_SECRET signs it.", form="texts"),
    ] = ()
    command: Annotated[
        tuple[str, ...],
        Key("Commands that get the JSON on their standard input; words, no shell.", form="texts"),
    ] = ()
    mail: Annotated[tuple[str, ...], Key("Addresses that a mail is sent to.", form="texts")] = ()
    smtp: Annotated[
        str,
        Key(
            "The mail server, HOST:PORT; elsewhere than on this machine it must offer STARTTLS, or be at port 465."
        ),
    ] = "localhost:25"
    sender: Annotated[str, Key("Who mails are from.")] = "perftrail@localhost"
    user: Annotated[str, Key("The mail server's user; PERFTRAIL_SMTP_PASSWORD is the password.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """What `watch` follows and how often it looks."""

    branch: Annotated[
        str | None, Key("The branch that is followed; without it, what the source's range ends at if open.")
    ] = None
    every_seconds: Annotated[
        float, Key("How often to look for new revisions.", name="every", form="duration", above=0)
    ] = 300.0
    notify: Annotated[Receivers, Key("Who is told of a change.")] = field(default_factory=Receivers)


# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


Network = Literal["none", "build", "run", "both"]
"""Who may reach the network."""

Phase = Literal["build", "run"]
"""What goes on in a sandbox: making something usable, or measuring it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What builds and runs may see and use when they are kept in a sandbox.

    Without `always` it is used where the command line asks for it.
    """

    always: Annotated[
        bool, Key("Build and run in a sandbox always, as --sandbox does; --no-sandbox says otherwise once.")
    ] = False
    network: Annotated[
        Network, Key("Who reaches the network: none, only the build, only the run, or both.")
    ] = "none"
    readable: Annotated[
        tuple[str, ...],
        Key("What of the home directory, or of /run or /tmp, can be read nevertheless: ~/PATH or /PATH."),
    ] = ()
    why: Annotated[str, Key("Why the sandbox is opened; required with network or readable.")] = ""
    memory_bytes: Annotated[
        int | None,
        Key(
            "The memory that a build line or an invocation may use, all its processes together; without it four "
            "fifths of the machine's, where control groups can limit it.",
            name="memory",
            form="size",
            least=1 << 24,
        ),
    ] = None
    processes: Annotated[
        int, Key("How many processes and threads a build line or an invocation may have.", least=8)
    ] = 4096
    disk_bytes: Annotated[
        int,
        Key(
            "How much a build line or an invocation may write to disk.",
            name="disk",
            form="size",
            least=1 << 20,
        ),
    ] = 16 << 30

    def has_network(self, phase: Phase) -> bool:
        """Whether what goes on in this phase reaches the network."""
        return self.network in {phase, "both"}

    def sees(self, phase: Phase) -> list[object]:
        """What of it may change what comes out, for a content key; a limit only decides whether it ends."""
        return ["sandbox", self.has_network(phase), sorted(self.readable)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """Words by which programs say that something was refused, and what that was."""

    words: re.Pattern[str]
    refused: str


def _sign(words: str, refused: str) -> _Sign:
    return _Sign(words=re.compile(words, re.IGNORECASE), refused=refused)


_NETWORK = _sign(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known"
    r"|no route to host|connection refused|getaddrinfo|failed to establish a new connection",
    "the network",
)
_WRITING = _sign(
    r"read-only file system|EROFS|OSError: \[Errno 30\]", "writing anywhere but in its own directories"
)
_ROOM = _sign(r"file size limit exceeded|file too large|EFBIG", "more than {disk} on disk (sandbox.disk)")
_FORKS = _sign(
    r"fork[^\n]*(resource temporarily unavailable|cannot|failed)|cannot fork|can't fork|unable to fork"
    r"|BlockingIOError: \[Errno 11\]",
    "more than {processes} processes (sandbox.processes)",
)


def refused_by(sandbox: Sandbox, phase: Phase, said: str) -> tuple[str, ...]:
    """Guess from what a failed program said what the sandbox refused it.

    A program may say such words for other reasons: they are told beside what it said, not instead.

    >>> refused_by(Sandbox(), "build", "curl: (6) Could not resolve host: example.org")
    ('the network (sandbox.network = "none")',)
    """
    limits: Mapping[str, str] = {
        "disk": format_size(sandbox.disk_bytes),
        "processes": str(sandbox.processes),
    }
    found = [sign.refused.format(**limits) for sign in (_WRITING, _ROOM, _FORKS) if sign.words.search(said)]
    if not sandbox.has_network(phase) and _NETWORK.words.search(said):
        found.insert(0, f'{_NETWORK.refused} (sandbox.network = "{sandbox.network}")')
    return tuple(found)


def with_refusals(message: str, refused: Sequence[str]) -> str:
    """Add to why something failed what the sandbox refused it.

    >>> with_refusals("exit code 2", ["the network"])
    'exit code 2 (the sandbox refused the network)'
    """
    if not refused:
        return message
    said = f"the sandbox refused {'; '.join(refused)}"
    return f"{message} ({said})" if message else said


# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question, read from one file; `directory` is where that file lies.

    `sources` are those beside `source`; `along` names the one whose history is walked.
    """

    title: str
    file: str
    directory: str
    source: Source
    benchmarks: Mapping[str, Benchmark]
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

    @property
    def every_source(self) -> Mapping[str, Source]:
        """Every source by its name, that of `[source]` first."""
        return {MAIN: self.source, **self.sources}

    @property
    def walked(self) -> Source:
        """The source whose history is walked."""
        return self.every_source[self.along]
