"""`python -m benchmarks.gate`: repeated runs of the gate on an unchanged branch and on a slower one.

Each run is a new `perftrail compare --fail-on slower` without earlier results, which builds, measures and compares.
Unchanged and slower branches alternate, so both get the same conditions. With `--into DIR` each finished run is stored
there, and an interrupted campaign continues from there.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.gate.branches import branches
from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.planted import busy_cpu

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gate.branches import Branches

PAGE = Path(__file__).parents[2] / "benchmarks" / "results" / "gate.md"
TRUTHS = ("unchanged", "slower")

TEXT = """\
Each run is a separate job: `perftrail compare BASE HEAD --fail-on slower`, without earlier results. It
builds both revisions, measures their wall and CPU time in interleaved pairs in random order, and prints a
verdict. It takes at most {most} pairs. The program computes for {milliseconds:g} ms. The unchanged branch
is another build that does the same work. The slower branch computes {effect:.0%} longer.{busy}

A run that **failed** is a false alarm on the unchanged branch. A run that passed is a miss on the slower
branch. **Wrong way** counts verdicts against the truth: "slower" or "faster" on the unchanged branch,
"faster" on the slower one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the gate: the truth, the exit code, the verdict of each metric, the pairs and the seconds."""

    truth: str
    code: int
    verdicts: dict[str, str]
    pairs: int
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether a verdict is against the truth."""
        against = {"slower", "faster"} if self.truth == "unchanged" else {"faster"}
        return not against.isdisjoint(self.verdicts.values())


@click.command()
@click.option("--runs", default=100, help="Runs over each branch.")
@click.option("--effect", default=0.05, help="How much slower the slower branch is.")
@click.option("--milliseconds", default=20.0, help="How long the program takes.")
@click.option("--most", default=150, help="The maximum number of pairs.")
@click.option("--busy/--quiet", default=True, help="Whether a CPU is kept busy meanwhile.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store each run here; continue from the stored runs.",
)
@click.option("--write", is_flag=True, help=f"Write the page {PAGE.name}.")
def main(
    runs: int, effect: float, milliseconds: float, most: int, busy: bool, into: Path | None, write: bool
) -> None:
    """Run the gate on an unchanged and on a slower branch, and count its errors."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = into or Path(scratch)
        repository = branches(directory, milliseconds=milliseconds, effect=effect)
        ledger = directory / "runs.jsonl"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        done = [Run(**json.loads(line)) for line in lines]
        with busy_cpu(str(directory / "loop"), wanted=busy):
            for number in range(runs):
                for truth in TRUTHS:
                    if sum(run.truth == truth for run in done) <= number:
                        done.append(_run(repository, truth, directory / "results", most=most))
                        with ledger.open("a") as file:
                            file.write(json.dumps(asdict(done[-1])) + "\n")
                sys.stderr.write(f"\r{number + 1} of {runs} runs")
        sys.stderr.write("\n")
    rows = [_row([run for run in done if run.truth == truth][:runs]) for truth in TRUTHS]
    head = ("branch", "runs", "failed", "wrong way", "pairs, median", "seconds, median")
    if write:
        busy_text = " Another process keeps the other CPU busy." if busy else ""
        text = TEXT.format(most=most, milliseconds=milliseconds, effect=effect, busy=busy_text)
        PAGE.write_text(
            "<!-- made by `python -m benchmarks.gate --write`: do not edit -->\n\n# Error rates of a gate\n\n"
            f"{measured_on()}.\n\n{text}\n{table([head, *rows])}\n"
        )
    for line in (head, *rows):
        click.echo("  ".join(cell.ljust(12) for cell in line))


def _run(repository: Branches, truth: str, results: Path, *, most: int) -> Run:
    shutil.rmtree(results, ignore_errors=True)
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable, "-m", "perftrail", "compare", repository.base, repository.head(truth), repository.study,
            "--fail-on", "slower", "--json", "--store", str(results), "--max-pairs", str(most),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode not in (0, 3):
        raise click.ClickException(f"exit {done.returncode}: {done.stderr}")
    found = json.loads(done.stdout)["comparisons"]
    return Run(
        truth=truth,
        code=done.returncode,
        verdicts={each["metric"]: each["verdict"] for each in found},
        pairs=max(each["pairs"] for each in found),
        seconds=seconds,
    )


def _row(runs: Sequence[Run]) -> tuple[str, ...]:
    if not runs:
        return ("", "0", "", "", "", "")
    return (
        runs[0].truth,
        str(len(runs)),
        str(sum(run.code == 3 for run in runs)),
        str(sum(run.wrong for run in runs)),
        f"{statistics.median(run.pairs for run in runs):.0f}",
        f"{statistics.median(run.seconds for run in runs):.1f}",
    )


if __name__ == "__main__":
    main()
