"""One start of one process: which, and what came of it.

What else a machine did during an invocation: the figures, the words that mark a sample, what they mean.

What an invocation's seed decides: the path of its build, the size of its environment, interpreters' hash seeds.

Where a build lies and how large the environment is can change a program's speed though its code is the same
(Mytkowicz et al., ASPLOS 2009). Drawn again for each block, they become noise that repetition averages out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from perftrail.model.benchmark import Point
from perftrail.model.build import Failure, Stage, content_key
from perftrail.model.quantity import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Phase = Literal["warmup", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationKey:
    """Which start this is: of what (a content key), on which machine, in which phase, the how manieth.

    `runnable` is the content of everything that can matter: artefact, command, environment, point and
    what is read from it. The store holds each key at most once.
    """

    runnable: str
    machine: str
    phase: Phase
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What was drawn at random for one invocation, and which invocations it belongs with.

    Invocations of one `block` ran directly one after another, with the same `seed`; only these may be compared
    as pairs. An empty block belongs with no other invocation. `turn` is the place in the block's order, from 0.
    `seed` decides the build's path, the environment's size and the interpreters' hash seeds; 0: nothing was
    drawn, as in older samples. `layout` is the seed with which the build was relinked; 0: as its recipe links it.
    """

    block: str = ""
    turn: int = 0
    seed: int = 0
    layout: int = 0


UNDRAWN = Draw()
"""The draw of an invocation for which nothing was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one invocation gave: a value for each metric, in the metric's unit.

    `methods` says of a metric how it was got where several ways exist. `flags` are words such as
    ``busy`` or ``output-cut`` that limit what the values mean.
    """

    key: InvocationKey
    started: str
    seconds: float
    values: Mapping[str, float]
    methods: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    log: str = ""
    draw: Draw = UNDRAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedInvocation:
    """An invocation that gave no usable value, and why. It counts as done: it is not run again."""

    key: InvocationKey
    started: str
    seconds: float
    failure: Failure
    draw: Draw = UNDRAWN


Outcome = Measurement | FailedInvocation
"""What performing a job ends in; both are facts that the store keeps."""


@dataclass(slots=True, kw_only=True)
class Samples:
    """What a runnable gave on a machine, without its warm-ups: for who reads very many. Not to be changed.

    It is not frozen, only because each takes longer to make then.
    `values` are those of each metric by ordinal; `flags` are those of the samples that have any, by ordinal.
    `failures` are the stages of the starts that failed, warm-ups too. `blocks` and `turns` are those of the
    draws of samples that belong to a block, by ordinal: only samples of one block may be compared as pairs.
    """

    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    flags: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    failures: tuple[Stage, ...] = ()
    blocks: Mapping[int, str] = field(default_factory=dict)
    turns: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where invocations ran: a fingerprint of what matters for speed, and the facts behind it."""

    id: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """A subject at one point of one benchmark, ready to start; `key` is the content that can matter.

    Two revisions whose artefacts are equal share their key, and so their samples.
    """

    key: str
    revision: str
    variant: str
    benchmark: str
    point: Point
    artefact: str


ForeignMethod = Literal["cpuacct", "proc-stat"]
"""How foreign CPU use was found: exact to the nanosecond, or to the kernel's tick of 10 ms."""

QuietAction = Literal["mark", "refuse", "wait"]

NOISE = ("busy", "stolen", "throttled", "swapped", "suspended")
"""The flags that say of a sample that something else than the program is in its figures."""

STOLEN_SHARE = 0.2
"""The part of the threshold that stolen time may reach: a hypervisor takes it from whoever was running."""

PRESSED = 0.01
"""The share of the time that somebody must have waited for memory before swapped pages count."""

SUSPENDED_SECONDS = 0.001
"""Below this, a difference of two clocks that are read one after the other is no suspend."""

ENOUGH_QUIET = 10
"""So many unmarked samples suffice, however many were asked for at least: ten give a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What happens when the machine is not quiet: samples are marked, or waited with, or refused.

    `seconds` is the longest wait before one invocation; after it, the sample is taken and marked.
    """

    action: QuietAction = "mark"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.action == "wait") != (self.seconds > 0.0):
            raise ValueError(f"quiet {self.action} for {self.seconds} s: a wait, and only it, takes time")

    def __str__(self) -> str:
        return f"wait {format_duration(self.seconds)}" if self.action == "wait" else self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What else went on during an invocation; `None` is what this machine does not tell.

    `foreign_cpus` and `stolen_cpus` are means in CPUs: 0.5 is half of one CPU. They are of the last
    `window_seconds`, which is the invocation's own time unless that was too short to be resolved. Pressures
    are the share of the invocation's time in which somebody waited for a CPU, for memory, for a disk (our
    own processes too).
    `throttled_seconds` is what the limits of our control groups took, `throttled` counts them and the times
    the CPU cut itself down for heat. `cpu_hertz` and `celsius` are the highest of all, at the end.
    """

    window_seconds: float = 0.0
    foreign_cpus: float | None = None
    foreign_method: ForeignMethod | None = None
    stolen_cpus: float | None = None
    cpu_pressure: float | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    throttled: int = 0
    throttled_seconds: float = 0.0
    swapped_pages: int = 0
    suspended_seconds: float = 0.0
    cpu_hertz: float | None = None
    celsius: float | None = None

    def values(self) -> dict[str, float]:
        """The figures by the names under which a measurement keeps them; what is not known is left out."""
        known = {
            "foreign_cpu": self.foreign_cpus,
            "stolen_cpu": self.stolen_cpus,
            "cpu_pressure": self.cpu_pressure,
            "memory_pressure": self.memory_pressure,
            "io_pressure": self.io_pressure,
            "cpu_frequency": self.cpu_hertz,
            "cpu_temperature": self.celsius,
        }
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A process that takes CPU time: its id, the name it gives itself (hostile text), and how many CPUs."""

    pid: int
    name: str
    cpus: float


def flags(conditions: Conditions, threshold: float) -> tuple[str, ...]:
    """Say in words what spoils a sample; `threshold` is in CPUs.

    >>> flags(Conditions(foreign_cpus=0.4), 0.25)
    ('busy',)
    """
    pressed = conditions.memory_pressure is None or conditions.memory_pressure >= PRESSED
    said = {
        "busy": (conditions.foreign_cpus or 0.0) > threshold,
        "stolen": (conditions.stolen_cpus or 0.0) > threshold * STOLEN_SHARE,
        "throttled": conditions.throttled > 0 or conditions.throttled_seconds > 0.0,
        "swapped": conditions.swapped_pages > 0 and pressed,
        "suspended": conditions.suspended_seconds > SUSPENDED_SECONDS,
    }
    return tuple(word for word in NOISE if said[word])


def weight(marks: Iterable[str]) -> float:
    """Give what a sample counts beside unmarked ones: nothing when noise marks it, else all.

    >>> weight(("output-cut",)), weight(("busy",))
    (1.0, 0.0)
    """
    return 0.0 if any(mark in NOISE for mark in marks) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A value with the flags of the sample that it is of."""

    value: float
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """The values that an estimate uses, and what must be said of it: empty when nothing was marked."""

    values: tuple[float, ...]
    note: str = ""


def sift(samples: Sequence[Marked], *, least: int) -> Sifted:
    """Choose which samples an estimate uses: the unmarked ones when they are enough, else all of them.

    Enough are `least`, or `ENOUGH_QUIET` when that is fewer. It assumes that whether a sample is marked tells
    nothing of what the program itself took; the marks say what others did.

    >>> sift([Marked(value=1.0), Marked(value=9.0, flags=("busy",))], least=1)
    Sifted(values=(1.0,), note='1 of 2 marked busy, left out')
    >>> sift([Marked(value=1.0), Marked(value=9.0, flags=("busy",))], least=2)
    Sifted(values=(1.0, 9.0), note='1 of 2 marked busy, all used')
    """
    quiet = [sample.value for sample in samples if weight(sample.flags) > 0.0]
    marked = len(samples) - len(quiet)
    if marked == 0:
        return Sifted(values=tuple(quiet))
    words = {mark for sample in samples for mark in sample.flags}
    said = f"{marked} of {len(samples)} marked {', '.join(word for word in NOISE if word in words)}"
    if enough_quiet(len(quiet), least=least):
        return Sifted(values=tuple(quiet), note=f"{said}, left out")
    return Sifted(values=tuple(sample.value for sample in samples), note=f"{said}, all used")


def enough_quiet(count: int, *, least: int) -> bool:
    """Tell whether so many unmarked samples make an estimate by themselves."""
    return count >= min(least, ENOUGH_QUIET)


PADDING = "PERFTRAIL_PADDING"
"""A variable that only takes room: what lies above a program's stack decides how its data are aligned."""

PADDING_BYTES = 4096
"""The size of an environment varies by up to a page: the stack's place within its page decides alignment."""

PATH_LENGTHS = range(20, 201)
"""How many characters of a build's path are drawn: enough to cross every size class of an allocator up to 256."""

LONGEST_NAME = 100
"""Longer paths consist of two names: some encrypted file systems refuse names above 143 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What surrounds an invocation: `path` names a link to the build, `environment` is added to the study's."""

    path: tuple[str, ...]
    environment: Mapping[str, str]


def circumstances(seed: int, *, padding_bytes: int = PADDING_BYTES) -> Circumstances:
    """Return what a seed decides; the same seed decides the same for every build.

    >>> circumstances(7) == circumstances(7) != circumstances(8)
    True
    """
    return Circumstances(path=_path(seed), environment=MappingProxyType(_environment(seed, padding_bytes)))


def seed_of(*parts: object) -> int:
    """Return a seed above 0 that is the same for the same parts; it fits into 53 bits, as numbers in JSON do."""
    return 1 + _number(2**52, "seed", *parts)


def _environment(seed: int, padding_bytes: int) -> dict[str, str]:
    """Return the variables; Python reads a decimal number below 2**32, Perl 16 hexadecimal digits; 0 means off."""
    size = _number(padding_bytes, "padding", seed) if padding_bytes else 0
    return {
        PADDING: "x" * size,
        "PYTHONHASHSEED": str(1 + _number(2**32 - 1, "python", seed)),
        "PERL_HASH_SEED": f"{1 + _number(2**52, 'perl', seed):016x}",
    }


def _path(seed: int) -> tuple[str, ...]:
    length = PATH_LENGTHS[_number(len(PATH_LENGTHS), "path length", seed)]
    letters = "".join(content_key("path", seed, part) for part in range(-(-length // 32)))[:length]
    if length <= LONGEST_NAME:
        return (letters,)
    return letters[: length // 2], letters[length // 2 + 1 :]


def _number(below: int, *parts: object) -> int:
    return int(content_key(*parts)[:15], 16) % below
