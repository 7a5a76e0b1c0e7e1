"""`python -m benchmarks.resident`: suites whose import takes long, in resident processes and in a process each time.

The suite is one of pytest-benchmark. Its import keeps a CPU busy for `--import-seconds`. The head differs from the
base by `--effect` more work in every second benchmark; in the other trial, only comments differ. The verdicts of both
ways to start the suite are compared with the truth, and their times with each other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.machine import measured_on
from benchmarks.markdown import table

STUDY = """\
[source]
kind = "git"
location = "repository"

[suite.bench]
kind = "pytest-benchmark"
resident = %(resident)s
seconds = "%(seconds)gs"
env = { PYTEST_DISABLE_PLUGIN_AUTOLOAD = "1" }

[measure]
quiet_threshold = %(quiet_threshold)g
"""

# Each step of MD5 needs the result of the step before it. Its time hardly depends on addresses, or on other programs on
# the same core: because of both, processes that work with Python's objects differ by several percent.
TESTS = """\
import time
from hashlib import md5

import pytest

until = time.process_time() + %(import_seconds)r
while time.process_time() < until:
    pass


# %(comment)s
@pytest.mark.parametrize("number", range(%(count)d))
def test_work(benchmark, number):
    benchmark(md5, bytes(%(steps)r[number]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The verdicts of one comparison, by the truth of each benchmark, and its time."""

    resident: bool
    planted: bool
    right: int
    unclear: int
    wrong: int
    seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        return (
            "resident" if self.resident else "a process for each invocation",
            "every second benchmark" if self.planted else "comments only",
            *(str(count) for count in (self.right + self.unclear + self.wrong, self.right)),
            str(self.unclear),
            str(self.wrong),
            f"{self.seconds:.0f}",
        )


@click.command()
@click.option("--benchmarks", default=12, help="Number of benchmarks of the suite.")
@click.option("--import-seconds", default=2.0, help="CPU time of the suite's import.")
@click.option("--effect", default=0.05, help="How much more every second benchmark works.")
@click.option("--threshold", default="2.5%", help="Smallest change that counts.")
@click.option(
    "--head",
    type=click.Choice(["planted", "comments", "both"]),
    default="both",
    help="How the head differs from the base.",
)
@click.option("--steps", default=3_000_000, help="Bytes that a benchmark hashes.")
@click.option("--seconds", default=0.1, help="Time that one invocation measures a benchmark.")
@click.option(
    "--quiet-threshold", default=0.1, help="CPU cores that other processes may use while a pair is measured."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each comparison.")
def main(  # noqa: PLR0913, PLR0917 - click gives one argument for each option
    benchmarks: int,
    import_seconds: float,
    effect: float,
    threshold: str,
    head: str,
    steps: int,
    seconds: float,
    quiet_threshold: float,
    as_json: bool,
) -> None:
    """Compare two revisions of a suite with resident processes and without, and print verdicts and times."""
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        for planted in (True, False) if head == "both" else (head == "planted",):
            for resident in (True, False):
                directory = Path(scratch, f"{planted}-{resident}")
                base = [steps] * benchmarks
                changed = [
                    round(each * (1.0 + effect * (1 - number % 2))) for number, each in enumerate(base)
                ]
                _history(directory / "repository", base, changed if planted else base, import_seconds)
                study = {
                    "resident": str(resident).lower(),
                    "quiet_threshold": quiet_threshold,
                    "seconds": seconds,
                }
                (directory / "perftrail.toml").write_text(STUDY % study)
                outcomes.append(_compared(directory, threshold, resident=resident, planted=planted))
                sys.stderr.write(f"{'  '.join(outcomes[-1].row)} s\n")
    if as_json:
        for each in outcomes:
            click.echo(json.dumps({name: getattr(each, name) for name in Outcome.__slots__}))
        return
    head_row = ("suite", "head", "benchmarks", "right", "unclear", "wrong", "seconds")
    rows = [each.row for each in outcomes]
    faster = _times_faster(outcomes)
    summary = f"Verdicts with resident processes: {faster:.1f} times as fast."
    click.echo(f"{measured_on()}.\n\n{table([head_row, *rows])}\n\n{summary}")


def _times_faster(outcomes: Sequence[Outcome]) -> float:
    seconds = {
        resident: sum(each.seconds for each in outcomes if each.resident == resident)
        for resident in (True, False)
    }
    return seconds[False] / seconds[True]


def _history(path: Path, base: Sequence[int], head: Sequence[int], import_seconds: float) -> None:
    path.mkdir(parents=True)
    git = ("git", "-c", "user.name=A U Thor", "-c", "user.email=author@example.invalid")
    subprocess.run([*git, "init", "-q"], cwd=path, check=True)
    for steps, comment in ((base, "the base"), (head, "the head")):
        text = TESTS % {
            "steps": list(steps),
            "count": len(steps),
            "comment": comment,
            "import_seconds": import_seconds,
        }
        (path / "test_work.py").write_text(text)
        subprocess.run([*git, "add", "-A"], cwd=path, check=True)
        subprocess.run([*git, "commit", "-q", "-m", comment], cwd=path, check=True)


def _compared(directory: Path, threshold: str, *, resident: bool, planted: bool) -> Outcome:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "perftrail", "compare", "HEAD~1", "HEAD", str(directory), "--json"]
    command += ["--threshold", threshold]
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    seconds = time.monotonic() - began
    if done.returncode:
        raise click.ClickException(f"exit {done.returncode}: {done.stderr}")
    right = unclear = wrong = 0
    for each in json.loads(done.stdout)["comparisons"]:
        # Only benchmarks with an even number were changed. A single one has no number in its name.
        number = int(each["name"].partition("number=")[2].partition("]")[0].partition(",")[0] or 0)
        truth = "same" if number % 2 or not planted else "slower"
        right += each["verdict"] == truth
        unclear += each["verdict"] == "unclear"
        wrong += each["verdict"] not in (truth, "unclear")
    return Outcome(
        resident=resident, planted=planted, right=right, unclear=unclear, wrong=wrong, seconds=seconds
    )


if __name__ == "__main__":
    main()
