"""What else a machine did during an invocation: the figures, the words that mark a sample, what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perftrail.model.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
