"""Invocations: their keys, random draws, outcomes, and the conditions on the machine.

`drawn_environment` derives from a seed the build's path, the size of the environment, and interpreters' hash seeds.
The build's path and the environment's size can change a program's speed although its code is the same (Mytkowicz et
al., ASPLOS 2009). Drawn again for each block, they become noise that repetition averages out. `flags` names the
disturbances of a sample.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from perftrail.model.benchmark import Point
from perftrail.model.build import Failure, Stage, content_key
from perftrail.model.noisy_samples import NOISE
from perftrail.model.notation import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


Phase = Literal["warmup", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationKey:
    """Identity of one invocation: its content key, machine, phase and ordinal.

    `runnable` is a digest of everything that can matter: artefact, command, environment, point and metrics. The
    store contains each key at most once.
    """

    runnable: str
    machine: str
    phase: Phase
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Random choices of one invocation, and its block.

    Invocations of one `block` ran directly one after another with the same `seed`; only these are pairs. An
    empty `block`: the invocation ran alone. `turn` is the position in the block, from 0. `seed` decides the
    build's path, the environment's size and the interpreters' hash seeds; 0: nothing was drawn, as in older
    samples. `layout` is the seed of a relinked build; 0 is the link order of the recipe.
    """

    block: str = ""
    turn: int = 0
    seed: int = 0
    layout: int = 0


UNDRAWN = Draw()
"""Draw of an invocation without random choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Result of one invocation: a value for each metric, in the metric's unit.

    `methods` names the measurement method of a metric that has several. `flags`, for example ``busy`` or
    ``output-cut``, limit the meaning of the values.
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
    """An invocation without a usable value, and the reason. It is not repeated, unless this machine caused it."""

    key: InvocationKey
    started: str
    seconds: float
    failure: Failure
    draw: Draw = UNDRAWN


Outcome = Measurement | FailedInvocation
"""Result of an invocation; the store records both kinds."""


@dataclass(slots=True, kw_only=True)
class Samples:
    """Samples of a runnable on a machine, without warm-ups, in a compact form. Do not modify.

    It is not frozen only because frozen values take longer to create. `values` maps metrics to values by
    ordinal; `flags` has the flagged samples by ordinal. `failures` are the stages of failed invocations,
    including warm-ups. `blocks` has the samples in a block, by ordinal: only samples of one block are pairs.
    """

    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    flags: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    failures: tuple[Stage, ...] = ()
    blocks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine of an invocation: a fingerprint of its relevant facts, and the facts."""

    id: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a runnable is built and started: its recipe's lines, and the programs that they and the command name.

    `recipe` is the content key of everything in the study that decides this: lines, variables and files. It
    covers no revision and no tool, so that perftrail can distinguish a change of either from a change of the
    study.
    """

    recipe: str
    lines: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """A subject at one point of one benchmark, ready to start; `key` is its content key.

    Two revisions with equal artefacts share their key, and so their samples. `origin` is `None` in results of
    older versions of perftrail, which did not store it.
    """

    key: str
    revision: str
    variant: str
    benchmark: str
    point: Point
    artefact: str
    origin: Origin | None = None


MISSING_TOOL = ": missing"
"""End of the entry of a tool that is not installed, in `Origin.tools`."""

OLDER_RECIPE = "older recipe"
OTHER_TOOLCHAIN = "other toolchain"
UNKNOWN_ORIGIN = "unknown recipe"
NEW_METRIC = "new metric"
OTHER_FILES = "other files"
"""Why the present study would measure a cell again: `UNKNOWN_ORIGIN` is for results of older versions of perftrail;
with `NEW_METRIC` only metrics were added to the study, and all other values are those of the present study. With
`OTHER_FILES`, a file changed that the benchmark opens by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between the origin of stored samples and the present study: a line, a tool or a file, then and now.

    Both texts are empty if `why` states everything, or if the difference is in a variable or a file.
    """

    why: str
    then: str = ""
    now: str = ""


def difference(why: str, then: Origin | None, now: Origin) -> Difference:
    """Return the first difference between two origins."""
    if then is None or why == UNKNOWN_ORIGIN:
        return Difference(why=why)
    pairs = (
        zip_longest(then.lines, now.lines, fillvalue="")
        if why == OLDER_RECIPE
        else tool_differences(then.tools, now.tools)
    )
    first = next(((one, other) for one, other in pairs if one != other), ("", ""))
    return Difference(why=why, then=first[0], now=first[1])


def tool_name(tool: str) -> str:
    r"""Return the name of a tool from its entry in `Origin.tools`.

    >>> tool_name("cc: cc 12.2.0"), tool_name("glibc 2.36"), tool_name("awk\nawk is /usr/bin/awk, content 1")
    ('cc', 'glibc', 'awk')
    """
    return re.split(r"[:\s]", tool, maxsplit=1)[0]


def tool_version(tool: str) -> str:
    r"""Return the line of an entry in `Origin.tools` that states a version; empty if none is known.

    >>> tool_version("cc: cc 12.2.0\ncc is /usr/bin/cc, content 1"), tool_version("awk\nawk is /usr/bin/awk")
    ('cc: cc 12.2.0', '')
    """
    line, _, rest = tool.partition("\n")
    return "" if tool.endswith(MISSING_TOOL) or (rest and line == tool_name(tool)) else line.strip()


def tool_differences(then: Iterable[str], now: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the first differing line of each tool that differs, by name; empty where the tool was not used."""
    before, after = {tool_name(tool): tool for tool in then}, {tool_name(tool): tool for tool in now}
    for name in (*before, *(name for name in after if name not in before)):
        one, other = before.get(name, ""), after.get(name, "")
        lines = zip_longest(one.splitlines() or [""], other.splitlines() or [""], fillvalue="")
        yield from [(old.strip(), new.strip()) for old, new in lines if old != new][:1]


ForeignMethod = Literal["cpuacct", "proc-stat"]
"""Source of the foreign CPU time: exact to the nanosecond, or to the kernel's tick of 10 ms."""

QuietAction = Literal["flag", "refuse", "wait"]

STOLEN_SHARE = 0.2
"""Stolen time above this share of the threshold is noise: a hypervisor takes it from the running process."""

PRESSED = 0.01
"""Swapped pages count only if processes waited for memory for at least this share of the time."""

SUSPENDED_SECONDS = 0.001
"""Smaller differences of two clocks, read one after the other, are not a suspend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Policy for a busy machine: flag samples, wait, or refuse.

    `seconds` is the longest wait before one invocation; after it, the sample is taken and flagged.
    """

    action: QuietAction = "flag"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.action == "wait") != (self.seconds > 0.0):
            raise ValueError(f"quiet {self.action} for {self.seconds} s: a wait, and only it, takes time")

    def __str__(self) -> str:
        return f"wait {format_duration(self.seconds)}" if self.action == "wait" else self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Other load during an invocation; `None` is unknown on this machine.

    `foreign_cpus` and `stolen_cpus` are means in CPUs: 0.5 is half of one CPU. They cover the last
    `window_seconds`, which is the invocation's own time unless that is too short. Pressures are the share of
    the invocation's time in which any process, including perftrail's, waited for a CPU, memory or a disk.
    `throttled_seconds` is the time lost to the limits of perftrail's control groups; `throttled` counts these
    events and thermal throttling. `cpu_hertz` and `celsius` are maxima over all CPUs and sensors, at the end.
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
        """Return the known conditions by the names of their metrics."""
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
class BusyProcess:
    """A process that uses CPU time: its id, its own name (hostile text), and its number of CPUs."""

    pid: int
    name: str
    cpus: float


def flags(conditions: Conditions, threshold: float) -> tuple[str, ...]:
    """Return the noise flags of a sample; `threshold` is in CPUs.

    >>> flags(Conditions(foreign_cpus=0.4), 0.25)
    ('busy',)
    """
    pressed = conditions.memory_pressure is None or conditions.memory_pressure >= PRESSED
    disturbed = {
        "busy": (conditions.foreign_cpus or 0.0) > threshold,
        "stolen": (conditions.stolen_cpus or 0.0) > threshold * STOLEN_SHARE,
        "throttled": conditions.throttled > 0 or conditions.throttled_seconds > 0.0,
        "swapped": conditions.swapped_pages > 0 and pressed,
        "suspended": conditions.suspended_seconds > SUSPENDED_SECONDS,
    }
    return tuple(flag for flag in NOISE if disturbed[flag])


PADDING = "PERFTRAIL_PADDING"
"""Environment variable that only occupies space: the data above a program's stack decide its alignment."""

PADDING_BYTES = 4096
"""The size of the environment varies by up to one page: the stack's offset in its page decides alignment."""

PATH_LENGTHS = range(20, 201)
"""Drawn lengths of a build's path; they cross every size class of an allocator up to 256."""

LONGEST_NAME = 100
"""Longer paths consist of two names: some encrypted file systems reject names above 143 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEnvironment:
    """Randomly drawn properties of an invocation: `path` is a link to the build, `environment` extends the study's."""

    path: tuple[str, ...]
    environment: Mapping[str, str]


def drawn_environment(seed: int, *, padding_bytes: int = PADDING_BYTES) -> DrawnEnvironment:
    """Return the drawn environment for a seed, the same for every build; `padding_bytes` limits the environment's size.

    >>> drawn_environment(7) == drawn_environment(7) != drawn_environment(8)
    True
    """
    return DrawnEnvironment(path=_path(seed), environment=MappingProxyType(_environment(seed, padding_bytes)))


def seed_of(*parts: object) -> int:
    """Return a positive seed of 53 bits (for JSON) that only depends on the parts."""
    return 1 + _number(2**52, "seed", *parts)


def _environment(seed: int, padding_bytes: int) -> dict[str, str]:
    """Return the variables. Python reads a decimal number below 2**32, Perl 16 hexadecimal digits; 0 means off."""
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
