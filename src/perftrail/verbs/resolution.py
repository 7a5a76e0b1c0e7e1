"""Measure the smallest change that this machine can show now: a program compared with itself."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import NoAnswer
from perftrail.model.process import Command, Exited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.process import Ran
    from perftrail.ports import Starter
    from perftrail.stats.comparison import Comparison

PAIRS = 20
SECONDS = 0.05
LOOP = "i=0; while [ $i -lt {count} ]; do i=$((i+1)); done"
"""A shell loop, available on every machine: no memory, no files, one CPU."""

FIRST_COUNT = 2000
LARGEST_COUNT = 1 << 27
LONG_ENOUGH = 0.4
"""From this share of the wanted time on, the loop's time is precise enough to scale it."""

PRECISE = 0.01


class ResolutionJson(TypedDict):
    """The spread of interleaved pairs of a program with itself."""

    pairs: int
    seconds: float
    wall: Annotated[float, "relative standard deviation of the wall time's pairs"]
    cpu: Annotated[float, "relative standard deviation of the CPU time's pairs"]
    pairs_for_one_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The smallest relative changes that a number of pairs of a program with this duration can show.

    `pairs_for_one_percent` is derived for wall time: the number grows with the square of the noise.
    """

    pairs: int
    seconds: float
    wall: float
    cpu: float

    @property
    def pairs_for_one_percent(self) -> int:
        """Number of pairs that would detect 1 % in wall time, at the present noise."""
        return max(1, round(self.pairs * (self.wall / PRECISE) ** 2))

    def as_json(self) -> ResolutionJson:
        """Return the resolution as `doctor --json` prints it."""
        return {
            "pairs": self.pairs,
            "seconds": self.seconds,
            "wall": self.wall,
            "cpu": self.cpu,
            "pairs_for_one_percent": self.pairs_for_one_percent,
        }


def resolve(starter: Starter, *, seconds: float = SECONDS) -> Resolution:
    """Compare a program with itself in ABBA pairs and return the minimum detectable change of that many pairs.

    Raises `NoAnswer` when the program, a loop of /bin/sh, does not run.
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
        wall=_seen(compare_once(_walls(first), _walls(second), rule)),
        cpu=_seen(compare_once(_cpus(first), _cpus(second), rule)),
    )


def _seen(compared: Comparison) -> float:
    assert compared.minimum_detectable is not None, f"{PAIRS} pairs are more than a verdict needs"
    return compared.minimum_detectable


def _calibrate(starter: Starter, seconds: float) -> int:
    """Return the loop count that takes this long; by CPU time, which other processes disturb least."""
    count = FIRST_COUNT
    while _run(starter, count).cpu_seconds < seconds * LONG_ENOUGH and count < LARGEST_COUNT:
        count *= 2
    took = median(_run(starter, count).cpu_seconds for _ in range(3))
    return max(1, round(count * seconds / max(took, 1e-6)))


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
            f"/bin/sh — cannot run a loop of it: {ran.ended}; skip it with perftrail doctor --quick"
        )
    return ran


def _walls(runs: Sequence[Ran]) -> list[float]:
    return [ran.wall_seconds for ran in runs]


def _cpus(runs: Sequence[Ran]) -> list[float]:
    return [ran.cpu_seconds for ran in runs]
