"""Trials: measurements without a study. Commands, groups, limits, and the values of each run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.sandbox import Sandbox

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
"""Measured metrics of every run, with their units."""

SPLIT = ("user", "system")
"""The kernel's split of CPU time by its tick: stored for other tools' formats, not shown to people."""

COMPARED = ("wall", "cpu", "peak_memory")
"""Metrics with their own verdict when commands are compared."""

LEAST_RUNS = 10
MOST_RUNS = 150
BUDGET_SECONDS = 60.0
PRECISION = 0.01
THRESHOLD = 0.01
"""Defaults of a trial's `StoppingRule`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One command of a trial: its name, its text, and the arguments to start.

    Parameters are filled in, except in `written`, which is the original text. `prepare` runs before each run and
    `conclude` after it, `setup` once before the first and `cleanup` once after the last. None of them is measured;
    empty means none.
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
    """Entries to compare, by number: each of `others` with the reference."""

    reference: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """How often to measure, and when to stop.

    Each entry has at least `least` and at most `most` runs (or pairs of a comparison), without warm-ups. The
    budget can end measuring earlier, but not before `guaranteed_runs`. A single command stops when the half width
    of its interval is at most `precision` of its wall time. `threshold` is the change below which two
    commands count as the same. `warmups` of None: detected from the values.
    """

    least: int = LEAST_RUNS
    most: int = MOST_RUNS
    guaranteed_runs: int = 1
    budget_seconds: float = BUDGET_SECONDS
    precision: float = PRECISION
    threshold: float = THRESHOLD
    warmups: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"least {self.least} and most {self.most}: not a valid range of runs")
        if self.guaranteed_runs > self.least:
            raise ValueError(f"guaranteed_runs {self.guaranteed_runs}: must be at most least ({self.least})")
        if self.warmups is not None and self.warmups < 0:
            raise ValueError(f"warmups {self.warmups}: must be 0 or more")
        for name in ("budget_seconds", "precision", "threshold"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} {getattr(self, name)}: must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Common settings of all runs of a trial.

    `padding_bytes` limits the random size of one additional environment variable, so that no single stack
    layout decides the result; hash seeds of interpreters are drawn with it. 0: nothing is drawn. `stdin` and
    `output` are paths, or None for /dev/null. `tolerant`: any exit code is accepted. A `sandbox` contains all
    processes, including unmeasured ones.
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
    """A request to `measure`: entries, groups, limits and settings.

    `shell` is an entry that only starts the shell, if entries use one. It is measured and shown with the others, but
    never subtracted.
    """

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    stopping_rule: StoppingRule
    run_settings: RunSettings
    shell: Entry | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        members = [number for group in self.groups for number in (group.reference, *group.others)]
        if sorted(members) != list(range(len(self.entries))):
            raise ValueError(f"groups {members} must contain each of the {len(self.entries)} entries once")

    @property
    def comparisons(self) -> int:
        """Number of verdicts of the trial, which share one family-wise error rate."""
        return sum(len(group.others) for group in self.groups) * len(COMPARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSample:
    """One successful run: its entry, its unit of adjacent runs, and its values.

    `seconds` is its total cost including preparation. `exit_code` is None after a signal.
    """

    entry: int
    unit: int
    values: Mapping[str, float]
    seconds: float
    exit_code: int | None = 0
    methods: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
