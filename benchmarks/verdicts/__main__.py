"""`python -m benchmarks.verdicts`: equal programs and different ones, judged by every tool in one run.

With `--busy` (the default) one CPU is kept busy meanwhile. Each trial asks every tool in turn about the same two
commands, so that all of them see the same machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.verdicts.tools import Judged, Tool, installed

SOURCE = Path(__file__).with_name("loop.c")
CALIBRATION_STEPS = 20_000_000


@click.command()
@click.option("--trials", default=200, help="Comparisons for each effect.")
@click.option("--effect", "effects", multiple=True, type=float, default=(0.0, 0.05), help="True differences.")
@click.option("--milliseconds", default=10.0, help="How long the program takes.")
@click.option("--busy/--quiet", default=True, help="Whether a CPU is kept busy meanwhile.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(trials: int, effects: tuple[float, ...], milliseconds: float, busy: bool, as_json: bool) -> None:
    """Judge a program against itself and against a slower one, with every tool that is installed."""
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory, "loop"))
        subprocess.run(["cc", "-O2", "-o", program, str(SOURCE)], check=True)
        steps = _calibrate(program, milliseconds)
        tools = installed()
        with _busy(program, wanted=busy):
            rows = [row for effect in effects for row in _campaign(program, steps, effect, trials, tools)]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo(
            f"{row['effect']:>6.1%}  {row['tool']:<26} {row['metric']:<5} "
            f"right {row['right']:>3}  wrong {row['wrong']:>3}  undecided {row['undecided']:>3}  "
            f"of {row['trials']}; pairs {row['pairs']:.0f}, {row['seconds']:.1f} s each"
        )


def _campaign(
    program: str, steps: int, effect: float, trials: int, tools: list[Tool]
) -> list[dict[str, object]]:
    first, second = f"{program} {steps}", f"{program} {round(steps * (1 + effect))}"
    judged: dict[str, list[Judged]] = {tool.name: [] for tool in tools}
    seconds: Counter[str] = Counter()
    for number in range(trials):
        for tool in tools:
            begun = time.monotonic()
            judged[tool.name].append(tool.judge(first, second))
            seconds[tool.name] += time.monotonic() - begun  # type: ignore[assignment] # seconds are no whole numbers
        sys.stderr.write(f"\r{effect:.0%}: {number + 1} of {trials} trials")
    sys.stderr.write("\n")
    return [
        _row(effect, tool.name, metric, judged[tool.name], seconds[tool.name] / trials)
        for tool in tools
        for metric in judged[tool.name][0].verdicts
    ]


def _row(effect: float, tool: str, metric: str, judged: list[Judged], seconds: float) -> dict[str, object]:
    """Count verdicts: of equal programs any difference is wrong, of different ones the other direction."""
    verdicts = Counter(each.verdicts[metric] for each in judged)
    called = {"faster": verdicts["faster"], "slower": verdicts["slower"]}
    right = verdicts["same"] + verdicts["unclear"] if effect == 0.0 else called["slower"]
    wrong = called["faster"] + called["slower"] if effect == 0.0 else called["faster"]
    return {
        "effect": effect,
        "tool": tool,
        "metric": metric,
        "trials": len(judged),
        "right": right,
        "wrong": wrong,
        "undecided": len(judged) - right - wrong,
        "verdicts": dict(verdicts),
        "pairs": sum(each.pairs for each in judged) / len(judged),
        "seconds": seconds,
    }


def _calibrate(program: str, milliseconds: float) -> int:
    """How many steps take so long here, by the fastest of several runs."""
    fastest = min(_seconds([program, str(CALIBRATION_STEPS)]) for _ in range(7))
    return round(CALIBRATION_STEPS * milliseconds / 1000.0 / fastest)


def _seconds(command: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - begun


@contextmanager
def _busy(program: str, *, wanted: bool) -> Iterator[None]:
    """Keep the last CPU busy, if there is another one left."""
    cpus = sorted(os.sched_getaffinity(0))
    if not wanted or len(cpus) < 2:
        yield
        return
    hog = subprocess.Popen([program, str(2**62)])
    os.sched_setaffinity(hog.pid, {cpus[-1]})
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


if __name__ == "__main__":
    main()
