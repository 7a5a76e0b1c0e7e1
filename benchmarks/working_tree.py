"""`python -m benchmarks.working_tree`: uncommitted changes of C, Python and Go programs, compared with HEAD.

Each trial is a new check-out with one commit and one uncommitted edit: the program does 5 % more or less work, or only
a comment is changed. `perftrail compare HEAD .` judges it by CPU time, or with `--metric instructions` by
executed instructions, which noise does not change. A trial is right if the verdict is the truth's.
It is wrong if the verdict is the opposite, or any difference where only a comment changed. With `--into DIR` each
finished trial is stored there, and an interrupted campaign continues from there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.machine import measured_on
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EDITS = ("slower", "faster", "comment")
CALIBRATION_STEPS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A program with {steps} of work and a {comment}, its file, its build and its command."""

    file: str
    source: str
    steps: str
    command: str
    output: str
    tool: str

    def text(self, steps: int, comment: str) -> str:
        """Return the program's source."""
        return self.source.replace("{steps}", str(steps)).replace("{comment}", comment)


LANGUAGES: Mapping[str, Language] = {
    "C": Language(
        file="work.c",
        source="""\
#include <stdint.h>
#include <stdio.h>

/* {comment} */
int main(void)
{
    uint64_t state = 1;
    for (uint64_t step = 0; step < {steps}; step++)
        state = state * 6364136223846793005u + 1442695040888963407u;
    printf("%llu\\n", (unsigned long long)state);
    return 0;
}
""",
        steps='"cc -O2 -o work work.c"',
        command="{build}/work",
        output="work",
        tool="cc",
    ),
    "Python": Language(
        file="work.py",
        source="""\
# {comment}
def work():
    state = 1
    for step in range({steps}):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state


print(work())
""",
        steps="",
        command=f"{sys.executable} -E -s {{build}}/work.py",
        output="work.py",
        tool=sys.executable,
    ),
    "Go": Language(
        file="work.go",
        source="""\
package main

import "fmt"

// {comment}
func main() {
	state := uint64(1)
	for step := 0; step < {steps}; step++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	fmt.Println(state)
}
""",
        steps='"go build -o work work.go"',
        command="{build}/work",
        output="work",
        tool="go",
    ),
}

STUDY = """\
[source]
kind = "git"
location = "checkout"

[build]
steps = [%(steps)s]
outputs = ["%(output)s"]

[benchmark.work]
command = "%(command)s"
counters = %(counters)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One comparison: the language, the edit, the verdict, the estimated change with its interval, and the costs."""

    language: str
    edit: str
    verdict: str
    one_build: bool
    change: float | None
    low: float | None
    high: float | None
    pairs: int
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the verdict is the truth."""
        return self.verdict == ("same" if self.edit == "comment" else self.edit)

    @property
    def wrong(self) -> bool:
        """Whether the verdict contradicts the truth."""
        return self.verdict in {"slower", "faster", "different"} and not self.right


@click.command()
@click.option(
    "--trials", default=10, help="Trials of each language with 5 %, and as many with only a comment."
)
@click.option("--effect", default=0.05, help="How much more or less the program works.")
@click.option("--milliseconds", default=60.0, help="How long the program works, beyond its start.")
@click.option("--metric", type=click.Choice(["cpu", "instructions"]), default="cpu", help="What is compared.")
@click.option("--language", "languages", type=click.Choice(list(LANGUAGES)), multiple=True)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store each trial here; continue from the stored trials.",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(
    trials: int,
    effect: float,
    milliseconds: float,
    metric: str,
    languages: tuple[str, ...],
    into: Path | None,
    markdown: bool,
) -> None:
    """Compare uncommitted changes with HEAD, and count right and wrong verdicts."""
    wanted = [name for name in languages or LANGUAGES if shutil.which(LANGUAGES[name].tool)]
    with tempfile.TemporaryDirectory() as scratch:
        directory = into or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        ledger = directory / "trials.jsonl"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        done = [Trial(**json.loads(line)) for line in lines]
        steps = {
            name: calibrate(LANGUAGES[name], directory, milliseconds, counted=metric == "instructions")
            for name in wanted
        }
        for number in range(trials):
            for name in wanted:
                for edit in (EDITS[number % 2], "comment"):
                    kinds = [kind_of(each) for each in done]
                    if kinds.count((name, edit == "comment")) <= number:
                        done.append(
                            _trial(name, edit, directory, steps=steps[name], effect=effect, metric=metric)
                        )
                        with ledger.open("a") as file:
                            file.write(json.dumps(asdict(done[-1])) + "\n")
            sys.stderr.write(f"\r{number + 1} of {trials} rounds")
        sys.stderr.write("\n")
    head = ("language", "edit", "trials", "right", "unclear", "wrong", "equal builds", "seconds, median")
    rows = [_row(done, name, comment=comment) for name in wanted for comment in (False, True)]
    if markdown:
        click.echo(f"{measured_on()}.\n\n{table([head, *rows])}")
        return
    for line in (head, *rows):
        click.echo("  ".join(cell.ljust(14) for cell in line))


def kind_of(trial: Trial) -> tuple[str, bool]:
    """Return the language of a trial, and whether only a comment changed."""
    return trial.language, trial.edit == "comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A program's steps, and its whole cost in steps: it also starts, which no edit changes."""

    steps: int
    whole: float

    def changed(self, effect: float) -> int:
        """Return the steps with which the whole program takes longer by this share."""
        return round(self.steps + effect * self.whole)


def calibrate(language: Language, directory: Path, milliseconds: float, *, counted: bool = False) -> Work:
    """Return the steps that take this long beyond the start of the program, and its whole time or instructions."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        place = Path(scratch)
        one, two = (_seconds(language, place, CALIBRATION_STEPS * times) for times in (1, 2))
        per_step = max((two - one) / CALIBRATION_STEPS, 1e-10)
        start = max(one - per_step * CALIBRATION_STEPS, 0.0)
        steps = max(1, round(milliseconds / 1000.0 / per_step))
        if counted:
            few, many = (_instructions(language, place, steps * times) for times in (1, 2))
            return Work(steps=steps, whole=steps * few / (many - few))
    return Work(steps=steps, whole=steps + start / per_step)


def _command(language: Language, directory: Path, steps: int) -> list[str]:
    """Build a program and return its command."""
    (directory / language.file).write_text(language.text(steps, "calibration"))
    for line in json.loads(f"[{language.steps}]"):
        subprocess.run(line, shell=True, cwd=directory, check=True)
    return language.command.replace("{build}", str(directory)).split()


def _seconds(language: Language, directory: Path, steps: int) -> float:
    command = _command(language, directory, steps)
    seconds = []
    for _ in range(5):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        seconds.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    return min(seconds)


def _instructions(language: Language, directory: Path, steps: int) -> int:
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [*valgrind, *_command(language, directory, steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", ""))


def _trial(name: str, edit: str, directory: Path, *, steps: Work, effect: float, metric: str) -> Trial:
    language = LANGUAGES[name]
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        root, checkout = Path(scratch), Path(scratch, "checkout")
        checkout.mkdir()
        counters = json.dumps([] if metric == "cpu" else [metric])
        (root / "perftrail.toml").write_text(STUDY % {**asdict(language), "counters": counters})
        file = checkout / language.file
        file.write_text(language.text(steps.steps, "base"))
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "base")):
            identity = ("-c", "user.name=A U Thor", "-c", "user.email=author@example.invalid")
            subprocess.run(["git", *identity, *words], cwd=checkout, check=True)
        sign = {"slower": 1.0, "faster": -1.0, "comment": 0.0}[edit]
        file.write_text(
            language.text(steps.changed(sign * effect), "another comment" if not sign else "base")
        )
        began = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "perftrail",
            "compare",
            "HEAD",
            ".",
            str(root),
            "--metric",
            metric,
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
    if done.returncode:
        raise click.ClickException(f"exit {done.returncode}: {done.stderr}")
    (found,) = json.loads(done.stdout)["comparisons"]
    ratio = found["effect"] or {}
    return Trial(
        language=name,
        edit=edit,
        verdict=found["verdict"],
        one_build=found["one_build"],
        change=ratio.get("value"),
        low=ratio.get("low"),
        high=ratio.get("high"),
        pairs=found["pairs"],
        seconds=seconds,
    )


def _row(trials: Sequence[Trial], language: str, *, comment: bool) -> tuple[str, ...]:
    mine = [each for each in trials if kind_of(each) == (language, comment)]
    seconds = sorted(each.seconds for each in mine)
    return (
        language,
        "comment only" if comment else "more or less work",
        str(len(mine)),
        str(sum(each.right for each in mine)),
        str(sum(each.verdict == "unclear" for each in mine)),
        str(sum(each.wrong for each in mine)),
        str(sum(each.one_build for each in mine)),
        f"{seconds[len(seconds) // 2]:.1f}" if seconds else "",
    )


if __name__ == "__main__":
    main()
