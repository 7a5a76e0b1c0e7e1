"""Runs every tool on every target, and pairs the sample of the tool with the values that the target recorded."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measure.tools import Tool, ToolSample

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A program whose time or memory is known. `part` is the part of the rounds in which it runs."""

    name: str
    arguments: tuple[str, ...]
    repeats: bool
    part: float


TARGETS = (
    Target(name="wall5", arguments=("wall", "5"), repeats=True, part=1.0),
    Target(name="wall50", arguments=("wall", "50"), repeats=True, part=0.25),
    Target(name="touch2", arguments=("touch", "2"), repeats=False, part=0.15),
    Target(name="touch20", arguments=("touch", "20"), repeats=False, part=0.15),
    Target(name="touch200", arguments=("touch", "200"), repeats=False, part=0.15),
    Target(name="fork200", arguments=("fork", "200"), repeats=False, part=0.15),
    Target(name="two100", arguments=("two", "100"), repeats=False, part=0.15),
    Target(name="daemon200", arguments=("daemon", "200"), repeats=False, part=0.15),
    Target(name="threads4", arguments=("threads", "4"), repeats=False, part=0.15),
)
"""All but the program without a C library, which measures the floor and the cost of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The values that a target recorded of one run, in seconds."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Record:
    """The samples of one tool for each target, each with the truth; its cost; and its failures."""

    tool: str
    samples: dict[str, list[tuple[ToolSample, Truth]]] = field(default_factory=dict)
    floor: list[float] = field(default_factory=list)
    nothing: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def build_targets(directory: Path) -> None:
    """Compile the targets."""
    for name, options in (("targets", ("-pthread",)), ("nothing", ("-nostdlib", "-static"))):
        line = ["cc", "-O1", *options, "-o", str(directory / name), str(HERE / f"{name}.c")]
        subprocess.run(line, check=True)


def run_all(
    tools: Sequence[Tool], directory: Path, *, rounds: int, seed: int, on_progress: Callable[[str], None]
) -> list[Record]:
    """Run every tool on every target, in a new random order for each round."""
    chance = random.Random(seed)
    records = {tool.name: Record(tool.name) for tool in tools}
    for number in range(rounds):
        on_progress(f"round {number + 1} of {rounds}")
        targets = [target for target in TARGETS if _has_turn(number, rounds, target.part)]
        for target in targets:
            for tool in chance.sample(tools, len(tools)):
                _try_on(tool, target, directory, records[tool.name])
        for tool in chance.sample(tools, len(tools)):
            _cost(tool, directory, records[tool.name])
    return list(records.values())


def _has_turn(number: int, rounds: int, part: float) -> bool:
    """Whether a round is in the part of the rounds, which is evenly distributed and includes the first."""
    wanted = max(1, round(part * rounds))
    return number * wanted % rounds < wanted


def _try_on(tool: Tool, target: Target, directory: Path, record: Record) -> None:
    truths = directory / "truth"
    truths.unlink(missing_ok=True)
    environment = {**os.environ, "TRUTH": str(truths)}
    runs = tool.runs_per_call if target.repeats else 1
    try:
        samples = tool.run((str(directory / "targets"), *target.arguments), environment, runs)
        known = [_truth(line) for line in truths.read_text().splitlines()]
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        record.failures[target.name] = str(error)
        return
    # A tool may run the program before it measures: the measured runs are the last.
    pairs = list(zip(samples, known[-len(samples) :], strict=True))
    record.samples.setdefault(target.name, []).extend(pairs)
    if target.name.startswith("daemon"):
        time.sleep(0.3)  # if the tool did not wait for it, it must not disturb the next tool


def _truth(line: str) -> Truth:
    start, end, cpu = map(int, line.split())
    return Truth(wall=(end - start) / 1e9, cpu=cpu / 1e9)


def _cost(tool: Tool, directory: Path, record: Record) -> None:
    """Measure the time of runs of a program that does nothing, without the start of a tool that repeats."""
    program = (str(directory / "nothing"),)
    many = 10 * tool.runs_per_call if tool.runs_per_call > 3 else 3
    few = tool.runs_per_call if tool.runs_per_call > 3 else 0
    try:
        first = _timed(lambda: tool.run(program, os.environ, few)) if few else 0.0
        samples: list[ToolSample] = []
        second = _timed(lambda: samples.extend(tool.run(program, os.environ, many)))
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        record.failures["nothing"] = str(error)
        return
    record.own.extend(each.own for each in samples if each.own is not None)
    record.costs.append((second - first) / (many - few))
    if tool.resolves:
        record.nothing.extend(each.wall for each in samples if each.wall is not None)
    record.floor.extend(each.memory for each in samples if each.memory is not None)


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(values: Sequence[float]) -> float | None:
    """Return the median, None without values."""
    return statistics.median(values) if values else None
