"""`python -m benchmarks.verdicts`: equal and different programs, compared by every tool in one run.

With `--busy` (the default) one CPU is kept busy meanwhile. In each trial, every tool compares the same two commands, so
all tools get the same conditions. With `--into FILE` each finished trial is stored there, and an interrupted run
continues from the file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.planted import SOURCE, busy_cpu, calibrate
from benchmarks.verdicts.counts import count
from benchmarks.verdicts.ledger import Entry, Ledger
from benchmarks.verdicts.page import PAGE, page
from benchmarks.verdicts.tools import Tool, installed

TIMES = ("wall", "cpu")
"""What differs when the program computes longer; its memory stays the same."""


@click.command()
@click.option("--trials", default=200, help="Comparisons for each effect.")
@click.option("--effect", "effects", multiple=True, type=float, default=(0.0, 0.05), help="True differences.")
@click.option("--milliseconds", default=10.0, help="How long the program takes.")
@click.option("--busy/--quiet", default=True, help="Whether a CPU is kept busy meanwhile.")
@click.option("--most", default=150, help="The maximum number of pairs for perftrail.")
@click.option(
    "--threshold", default=None, help="The smallest change that perftrail looks for, such as `0.5`."
)
@click.option(
    "--into",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store each trial here; continue from the stored trials.",
)
@click.option("--write", is_flag=True, help=f"Write the page {PAGE.name}.")
def main(
    trials: int,
    effects: tuple[float, ...],
    milliseconds: float,
    busy: bool,
    most: int,
    threshold: str | None,
    into: Path | None,
    write: bool,
) -> None:
    """Compare a program with itself and with a slower one, with every installed tool."""
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory, "loop"))
        subprocess.run(["cc", "-O2", "-o", program, str(SOURCE)], check=True)
        steps = calibrate(program, milliseconds)
        tools = installed(most, threshold)
        ledger = Ledger(into)
        with busy_cpu(program, wanted=busy):
            for effect in effects:
                _campaign(program, steps, effect, trials, tools, ledger)
    counts = [
        count(entries, metric)
        for effect in effects
        for tool in tools
        if (entries := ledger.of(effect, tool.name)[:trials])
        for metric in entries[0].verdicts
        if not effect or metric in TIMES
    ]
    if write:
        PAGE.write_text(page(counts, milliseconds=milliseconds, busy=busy, most=most))
    for row in counts:
        click.echo(
            f"{row.effect:>6.1%}  {row.tool:<26} {row.metric:<11} "
            f"right {row.right:>3}  wrong {row.wrong:>3}  undecided {row.undecided:>3}  "
            f"of {row.trials}; pairs {row.pairs:.0f}, {row.seconds:.1f} s each"
        )


def _campaign(
    program: str, steps: int, effect: float, trials: int, tools: list[Tool], ledger: Ledger
) -> None:
    first, second = f"{program} {steps}", f"{program} {round(steps * (1 + effect))}"
    for number in range(trials):
        for tool in tools:
            if len(ledger.of(effect, tool.name)) > number:
                continue
            began = time.monotonic()
            judgement = tool.judge(first, second)
            ledger.add(
                Entry(
                    effect=effect,
                    tool=tool.name,
                    verdicts=judgement.verdicts,
                    pairs=judgement.pairs,
                    seconds=time.monotonic() - began,
                )
            )
        sys.stderr.write(f"\r{effect:.0%}: {number + 1} of {trials} trials")
    sys.stderr.write("\n")


if __name__ == "__main__":
    main()
