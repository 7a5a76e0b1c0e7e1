"""Measure the smallest change that this machine can detect now, by comparing a program with itself."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import NoAnswer
from perftrail.model.process import Command, Exited

if TYPE_CHECKING:
    from perftrail.model.process import Ran
    from perftrail.ports import Starter
    from perftrail.stats.comparison import Comparison

PAIRS = 20
SECONDS = 0.05
LOOP = "i=0; while [ $i -lt {count} ]; do i=$((i+1)); done"
"""A shell loop, because every machine can run it: it needs no memory, no files and one CPU."""

FIRST_COUNT = 2000
LARGEST_COUNT = 1 << 27
SCALABLE_SHARE = 0.4
"""Share of the wanted time from which the loop's time is precise enough to scale the count."""

ONE_PERCENT = 0.01


class ResolutionJson(TypedDict):
    """The smallest changes that interleaved pairs of a program with itself can detect."""

    pairs: int
    seconds: float
    wall: Annotated[float, "minimum detectable relative change of the wall time"]
    cpu: Annotated[float, "minimum detectable relative change of the CPU time"]
    pairs_for_one_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The minimum detectable changes of wall and CPU time, for a number of pairs of a program with this duration.

    `pairs_for_one_percent` is for wall time: the number of pairs grows with the square of the noise.
    """

    pairs: int
    seconds: float
    wall: float
    cpu: float

    @property
    def pairs_for_one_percent(self) -> int:
        """Number of pairs that would detect 1 % in wall time, at the present noise."""
        return max(1, round(self.pairs * (self.wall / ONE_PERCENT) ** 2))

    def as_json(self) -> ResolutionJson:
        """Return the resolution as `doctor --json` prints it."""
        return {
            "pairs": self.pairs,
            "seconds": self.seconds,
            "wall": self.wall,
            "cpu": self.cpu,
            "pairs_for_one_percent": self.pairs_for_one_percent,
        }


def measure_resolution(starter: Starter, *, seconds: float = SECONDS) -> Resolution:
    """Compare a program of this duration with itself in ABBA pairs; return the minimum detectable changes.

    Raises `NoAnswer` if the program, a loop of /bin/sh, does not run.
    """
    from perftrail.stats.comparison import Rule, compare_once  # noqa: PLC0415 - numpy is not needed otherwise

    count = _calibrate(starter, seconds)
    first: list[Ran] = []
    second: list[Ran] = []
    for number in range(PAIRS):
        one, other = _run(starter, count), _run(starter, count)
        first.append(one if number % 2 == 0 else other)
        second.append(other if number % 2 == 0 else one)
    rule = Rule(most=PAIRS)
    return Resolution(
        pairs=PAIRS,
        seconds=median(ran.wall_seconds for ran in (*first, *second)),
        wall=_minimum_detectable(
            compare_once([ran.wall_seconds for ran in first], [ran.wall_seconds for ran in second], rule)
        ),
        cpu=_minimum_detectable(
            compare_once([ran.cpu_seconds for ran in first], [ran.cpu_seconds for ran in second], rule)
        ),
    )


def _minimum_detectable(compared: Comparison) -> float:
    assert compared.minimum_detectable is not None, f"{PAIRS} pairs are enough for a verdict"
    return compared.minimum_detectable


def _calibrate(starter: Starter, seconds: float) -> int:
    """Return the loop count that takes this long; by CPU time, which other processes disturb least."""
    count = FIRST_COUNT
    while _run(starter, count).cpu_seconds < seconds * SCALABLE_SHARE and count < LARGEST_COUNT:
        count *= 2
    seconds_of_count = median(_run(starter, count).cpu_seconds for _ in range(3))
    return max(1, round(count * seconds / max(seconds_of_count, 1e-6)))


def _run(starter: Starter, count: int) -> Ran:
    command = Command(
        arguments=("/bin/sh", "-c", LOOP.format(count=count)),
        environment={},
        directory="/",
        tree_memory="off",
        timeout_seconds=60.0,
    )
    ran = starter.run(command)
    if ran.ended != Exited(code=0):
        raise NoAnswer(
            f"cannot run a loop of /bin/sh: {ran.ended}; skip this measurement with perftrail doctor --quick"
        )
    return ran
