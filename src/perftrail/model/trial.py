"""A measurement without a study: which commands, how often, in which groups, and what each start gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.study import Sandbox

UNITS: Mapping[str, str] = {
    "wall": "s",
    "cpu": "s",
    "user": "s",
    "system": "s",
    "peak_memory": "B",
    "peak_memory_tree": "B",
    "voluntary_switches": "",
    "involuntary_switches": "",
    "page_faults": "",
}
"""What is measured of every start, and in which unit."""

SPLIT = ("user", "system")
"""The kernel's own split of CPU time, by its tick: kept for other tools' formats, no figure for people."""

COMPARED = ("wall", "cpu", "peak_memory")
"""The metrics that get a verdict of their own when commands are compared."""

LEAST_RUNS = 10
MOST_RUNS = 150
BUDGET_SECONDS = 60.0
PRECISION = 0.01
SMALLEST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One command of a trial: what people call it, how it was written, and what is started.

    Parameters are filled in, but in `written`, which is the text as it was given. `prepare` is started before
    each run and `conclude` after, `setup` once before the first and `cleanup` once after the last; none of them
    is measured, empty means none.
    """

    name: str
    command: str
    arguments: tuple[str, ...]
    written: str = ""
    point: Point = field(default_factory=Point)
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Entries that are compared, by their numbers: each of `others` with the reference."""

    reference: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to measure and when to stop.

    At least `least` and at most `most` runs of each entry, or pairs of each comparison, warm-ups not counted.
    The budget ends it earlier, yet never before `sure` runs. One command alone stops when its interval's half
    width is at most `precision` of its wall time. `threshold` is the change below which two count as the same.
    `warmups` of None: found from the values.
    """

    least: int = LEAST_RUNS
    most: int = MOST_RUNS
    sure: int = 1
    budget_seconds: float = BUDGET_SECONDS
    precision: float = PRECISION
    threshold: float = SMALLEST
    warmups: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"at least {self.least} and at most {self.most} runs: not a range")
        if self.sure > self.least:
            raise ValueError(f"{self.sure} runs are sure where {self.least} are enough")
        if self.warmups is not None and self.warmups < 0:
            raise ValueError(f"{self.warmups} warm-ups: a number from 0 on")
        for name in ("budget_seconds", "precision", "threshold"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} {getattr(self, name)}: must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every start of a trial has in common.

    `padding_bytes` bounds the random size of one more variable of the environment, so that no layout of the
    stack is measured for the whole truth; hash seeds of interpreters are drawn with it. 0: nothing is drawn.
    `stdin` and `output` are paths or None for /dev/null. A `sandbox` is what everything is started in, also what
    is not measured.
    """

    environment: Mapping[str, str]
    directory: str
    stdin: str | None = None
    output: str | None = None
    timeout_seconds: float | None = None
    memory_limit_bytes: int | None = None
    cpus: tuple[int, ...] | None = None
    padding_bytes: int = 4096
    tolerant: bool = False
    sandbox: Sandbox | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What `measure` is asked: entries, who is compared with whom, how often, in which surroundings.

    `shell` is the entry that starts the shell with nothing to do, where entries run through one; it is
    measured among the others and shown beside them, never subtracted.
    """

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    pace: Pace
    surroundings: Surroundings
    shell: Entry | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        members = [number for group in self.groups for number in (group.reference, *group.others)]
        if sorted(members) != list(range(len(self.entries))):
            raise ValueError(f"groups {members} do not hold each of {len(self.entries)} entries once")

    @property
    def comparisons(self) -> int:
        """How many verdicts the trial gives: they share one error."""
        return sum(len(group.others) for group in self.groups) * len(COMPARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One start that gave values: which entry's, in which unit of adjacent starts, and the figures.

    `seconds` is what it cost in all, preparation included. `exit_code` is None after a signal.
    """

    entry: int
    unit: int
    values: Mapping[str, float]
    seconds: float
    exit_code: int | None = 0
    methods: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
