"""`python -m benchmarks.layout`: commits that change only the layout, compared by perftrail and by its peers.

    git clone https://github.com/lz4/lz4
    python -m benchmarks.layout --project lz4=lz4 --into DIR --commits 67 --slower 30 --seconds 1800

creates a history from a project's sources: each commit only reorders functions, adds dead code or lengthens a text.
Every method compares each commit with the previous one. The first commits get an additional commit, in which `main`
computes longer by `--effect` of the program's time. It is compared with its parent.

Every commit and every verdict is stored in `--into` immediately, and an interrupted run continues from there. Without
`--project`, the command only prints the table of the stored verdicts; `--write` writes it as a page.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.layout.counts import HEAD, Entry, Ledger, rows
from benchmarks.layout.history import History
from benchmarks.layout.methods import Interleaved, Pair, methods
from benchmarks.layout.projects import PROJECTS
from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.planted import SOURCE, calibrate
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.layout.counts import Truth
    from benchmarks.layout.history import Step
    from benchmarks.layout.methods import Method

PAGE = Path(__file__).parents[1] / "results" / "layout-noise.md"
CALIBRATION_RUNS = 15

TEXT = """\
The projects are real C programs. Some commits change only their layout: they reorder functions in a file,
add a function without a caller, or lengthen a text. All other functions keep their size, and the output is
the same. Each method compares each commit with the previous one. **False** counts "slower" and "faster".

Other commits compute longer by {effect:.0%} of the program's time. **Found** counts "slower" for these, and
**wrong way** "faster". Intervals are Wilson's. **Runs** (of each program), **layouts** and **seconds** are
means of one comparison. They include relinking, but not building. The metric is {metric}.

perftrail takes at most {pairs} pairs and ignores changes below {threshold:.1%}, once with `relink` and once
without. The tests of other tools use interleaved runs from a launcher that adds little noise, which favours
these tests. Welch's test decides at p < .05 as in hyperfine's own script. Pinpoint's rule decides at p ≤
.01 after 10 to 30 runs. `hyperfine` itself runs one program after the other.
"""


def _project(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for text in values:
        name, _equals, directory = text.partition("=")
        if name not in PROJECTS or not Path(directory).is_dir() or not directory:
            raise click.BadParameter(f"{text}: write NAME=DIRECTORY with NAME one of {', '.join(PROJECTS)}")
        found[name] = Path(directory)
    return found


@click.command()
@click.option("--project", "projects", multiple=True, callback=_project, help="NAME=DIRECTORY of a clone.")
@click.option(
    "--into", required=True, type=click.Path(file_okay=False, path_type=Path), help="Store all here; resume."
)
@click.option("--commits", default=67, show_default=True, help="Commits of each project.")
@click.option("--slower", default=30, show_default=True, help="Commits that also get a slower version.")
@click.option("--effect", default=0.03, show_default=True, help="How much slower.")
@click.option("--seconds", default=float("inf"), help="Stop after this time in each project.")
@click.option("--metric", type=click.Choice(["wall", "cpu"]), default="wall", show_default=True)
@click.option("--pairs", default=30, show_default=True, help="Maximum number of pairs for perftrail.")
@click.option("--threshold", default=0.01, show_default=True, help="The smallest change perftrail looks for.")
@click.option("--method", "only", multiple=True, help="Only methods whose names contain this.")
@click.option("--seed", default=1, show_default=True, help="Seed of the edits.")
@click.option("--write", is_flag=True, help=f"Write the page {PAGE.name}.")
@click.option("--remark", default="", help="A sentence for the page, such as how quiet the machine was.")
def main(  # noqa: PLR0913, PLR0917 - click gives one argument for each option
    projects: dict[str, Path],
    into: Path,
    commits: int,
    slower: int,
    effect: float,
    seconds: float,
    metric: str,
    pairs: int,
    threshold: float,
    only: tuple[str, ...],
    seed: int,
    write: bool,
    remark: str,
) -> None:
    """Compare commits that change only the layout, and slower ones, with every method."""
    into.mkdir(parents=True, exist_ok=True)
    settings = {"effect": effect, "metric": metric, "pairs": pairs, "threshold": threshold, "seed": seed}
    _refuse_other_settings(into / "settings.json", settings)
    ledger = Ledger(into / "verdicts.jsonl")
    with Launcher() as launcher:
        chosen = [
            method
            for method in methods(launcher, pairs=pairs, threshold=threshold, metric=metric)
            if not only or any(part in method.name for part in only)
        ]
        for name, source in projects.items():
            until = time.monotonic() + seconds
            history = History(PROJECTS[name], source, into / name, seed=seed)
            busy = _busy(history, launcher, effect)
            for step in _steps(history, commits, slower, busy):
                _compare(history, step, chosen, ledger, until)
                sys.stderr.write(f"\r{name}: {step.number} of {commits} commits")
                if time.monotonic() > until:
                    break
            sys.stderr.write("\n")
    lines = [HEAD, *rows(ledger.entries)]
    if write:
        text = TEXT.format(effect=effect, metric=metric, pairs=pairs, threshold=threshold)
        PAGE.write_text(
            "<!-- made by `python -m benchmarks.layout --write`: do not edit -->\n\n"
            f"# Results of layout noise\n\n{measured_on()}. {remark}\n\n{text}\n{table(lines)}\n"
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _refuse_other_settings(file: Path, settings: Mapping[str, object]) -> None:
    """Store the settings of a directory's verdicts. Raises `click.UsageError` for other settings."""
    if not file.exists():
        file.write_text(json.dumps(settings))
    elif (stored := json.loads(file.read_text())) != settings:
        raise click.UsageError(f"{file} has other settings, {stored}; use them, or another --into")


def _busy(history: History, launcher: Launcher, effect: float) -> int:
    """Return the number of loop steps that take the `effect` part of the program's time; computed once."""
    file = history.directory / "busy"
    if not file.exists():
        base = history.steps[0].commit
        runs = Interleaved(launcher, Pair(history=history, base=base, head=base), metric="wall")
        seconds = float(runs.values(CALIBRATION_RUNS, CALIBRATION_RUNS)[0].min())
        loop = history.directory / "loop"
        subprocess.run(["cc", "-O2", "-o", loop, SOURCE], check=True)
        file.write_text(str(calibrate(str(loop), seconds * effect * 1000.0)))
    return int(file.read_text())


def _steps(history: History, commits: int, slower: int, busy: int) -> Iterator[Step]:
    """Return the commits except the first; create missing ones."""
    for number in range(1, commits + 1):
        if number == len(history.steps):
            history.extend(busy=busy if number <= slower else 0)
        yield history.steps[number]


def _compare(history: History, step: Step, chosen: Sequence[Method], ledger: Ledger, until: float) -> None:
    """Compare a commit with the one before, and its slower commit with it, by every method, in changing order."""
    before = history.steps[step.number - 1].commit
    pairs: dict[Truth, Pair] = {"layout": Pair(history=history, base=before, head=step.commit)}
    if step.slower:
        pairs["slower"] = Pair(history=history, base=step.commit, head=step.slower)
    first = step.number % len(chosen)
    for truth, pair in pairs.items():
        for method in (*chosen[first:], *chosen[:first]):
            if ledger.has(history.directory.name, step.number, truth, method.name):
                continue
            if time.monotonic() > until:
                return
            method.prepare(pair)
            began = time.monotonic()
            judgement = method.judge(pair)
            ledger.add(
                Entry(
                    project=history.directory.name,
                    number=step.number,
                    kind=step.kind,
                    truth=truth,
                    method=method.name,
                    verdict=judgement.verdict,
                    runs=judgement.runs,
                    layouts=judgement.layouts,
                    seconds=round(time.monotonic() - began, 3),
                )
            )


if __name__ == "__main__":
    main()
