"""Histories with a planted culprit, each searched with a profile of both ends as prior, and without.

Each history is a C program of six files with 24 functions that call each other. Each revision changes a constant in
one to three functions, or a text. The culprit makes one function work more (`own`), or call another one more often
(`calls`): then a profile helps. Or it changes a constant of a header (`header`) or a flag of the build (`flag`), which
belongs to no function: then a profile misleads. `perftrail find` searches each history twice, with counted
instructions. A build also waits, as the build of a larger program takes longer.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.profile_prior.studies import Found, search_study

FUNCTIONS, FILES = 24, 6
KINDS = ("own", "calls", "header", "flag")

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["make", "sleep %(build_seconds)g"]
outputs = ["work"]

[benchmark.work]
command = "{build}/work"
counters = ["instructions"]

[find]
threshold = "2%%"
"""


class Program:
    """The program of one history, which changes from revision to revision."""

    def __init__(self, rng: random.Random) -> None:
        self.loops = [rng.randrange(2000, 20_000) for _ in range(FUNCTIONS)]
        self.constants = [0] * FUNCTIONS
        self.calls = [[rng.randrange(each + 1, FUNCTIONS)] for each in range(FUNCTIONS - 1)] + [[]]
        self.scale, self.flag, self.text = 4, "-O1", 0

    def change(self, rng: random.Random) -> None:
        """Change one to three functions without effect on their cost, or a text."""
        if rng.random() < 0.2:
            self.text += 1
        for number in rng.sample(range(FUNCTIONS), rng.choice((1, 1, 2, 3))):
            self.constants[number] += 1

    def make_slower(self, kind: str, rng: random.Random) -> None:
        """Make one change that costs instructions."""
        number = rng.randrange(FUNCTIONS - 1)
        if kind == "own":
            self.loops[number] *= 10
        elif kind == "calls":
            self.calls[number] = [*self.calls[number], self.calls[number][0]]
        elif kind == "header":
            self.scale += 1
        else:
            self.flag = "-O1 -ftrapv"

    def files(self) -> Mapping[str, str]:
        """Return the sources."""
        names = [f"part{number}.c" for number in range(FILES)]
        declarations = "".join(f"long f{number}(long value);\n" for number in range(FUNCTIONS))
        sources = {
            name: '#include "work.h"\n'
            + "".join(self._function(each) for each in range(number, FUNCTIONS, FILES))
            for number, name in enumerate(names)
        }
        return {
            **sources,
            "main.c": '#include <stdio.h>\n#include "work.h"\n\nint main(void)\n{\n'
            f'    printf("%ld\\n", {" + ".join(f"f{each}(1)" for each in range(FUNCTIONS))});\n    return 0;\n}}\n',
            "work.h": f"#define SCALE {self.scale}\n{declarations}",
            "Makefile": f"work: main.c {' '.join(names)} work.h\n\tcc -g {self.flag} -o $@ main.c {' '.join(names)}\n",
            "NOTES": f"{self.text}\n",
        }

    def _function(self, number: int) -> str:
        calls = "".join(f"    value += f{each}(value);\n" for each in self.calls[number])
        return (
            f"\nlong f{number}(long value)\n{{\n    value ^= {self.constants[number]};\n"
            f"    for (long step = 0; step < {self.loops[number]} * SCALE / 4; step++)\n"
            f"        value += step ^ (value >> 3);\n{calls}    return value;\n}}\n"
        )


@click.command("planted")
@click.option("--trials", default=3, help="Histories of each kind of culprit.")
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Kinds of culprits. Default: all."
)
@click.option("--revisions", default=100, help="Revisions of a history.")
@click.option("--build-seconds", default=4.0, help="How long a build waits.")
@click.option("--jobs", default=4, help="Searches at a time; instructions do not depend on other programs.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def planted(
    trials: int, kinds: tuple[str, ...], revisions: int, build_seconds: float, jobs: int, markdown: bool
) -> None:
    """Search histories with a profile of both ends as prior and without, and print builds, time and right answers."""
    wanted = kinds or KINDS
    tasks = [(kind, seed) for seed in range(trials) for kind in wanted]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:

        def search(task: tuple[str, int]) -> tuple[str, Found, Found]:
            kind, seed = task
            directory = Path(scratch, f"{kind}-{seed}")
            culprit = _history(directory / "repository", kind, seed, revisions)
            study = STUDY % {"build_seconds": build_seconds}
            (directory / "perftrail.toml").write_text(study)
            found = tuple(
                search_study(directory, directory / name, culprit, profile=name == "with")
                for name in ("with", "without")
            )
            sys.stderr.write(f"{kind} {seed}: {found[0]} {found[1]}\n")
            return kind, found[0], found[1]

        found = list(pool.map(search, tasks))
    head = (
        "culprit",
        "histories",
        "right",
        "builds: profile",
        "none",
        "saved",
        "minutes: profile",
        "none",
        "profiled",
    )
    rows = [_row(kind, [(one, other) for of_kind, one, other in found if of_kind == kind]) for kind in wanted]
    rows.append(_row("all", [(one, other) for _, one, other in found]))
    if markdown:
        click.echo(f"{measured_on()}.\n\n{table([head, *rows])}")
        return
    for line in (head, *rows):
        click.echo("  ".join(cell.ljust(16) for cell in line))


def _row(name: str, found: Sequence[tuple[Found, Found]]) -> tuple[str, ...]:
    builds = [statistics.mean(pair[side].builds for pair in found) for side in (0, 1)]
    minutes = [statistics.mean(pair[side].seconds for pair in found) / 60.0 for side in (0, 1)]
    ratio = math.exp(statistics.mean(math.log(one.builds / other.builds) for one, other in found))
    return (
        name,
        str(len(found)),
        f"{sum(one.right + other.right for one, other in found)} of {2 * len(found)}",
        *(f"{each:.1f}" for each in builds),
        f"{1.0 - ratio:.0%}",
        *(f"{each:.2f}" for each in minutes),
        str(sum(one.profiled for one, _ in found)),
    )


def _history(path: Path, kind: str, seed: int, revisions: int) -> str:
    """Write a repository; return the culprit's id."""
    rng = random.Random(f"{kind} {seed}")
    path.mkdir(parents=True)
    culprit = rng.randrange(1, revisions)
    program, ids = Program(rng), []
    git = ("git", "-c", "user.name=A U Thor", "-c", "user.email=author@example.invalid", "-c", "gc.auto=0")
    subprocess.run([*git, "init", "-q"], cwd=path, check=True)
    for number in range(revisions):
        if number == culprit:
            program.make_slower(kind, rng)
        else:
            program.change(rng)
        for name, text in program.files().items():
            (path / name).write_text(text)
        subprocess.run([*git, "add", "-A"], cwd=path, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"n {number}"], cwd=path, check=True)
        shown = subprocess.run(
            [*git, "rev-parse", "HEAD"], cwd=path, check=True, capture_output=True, text=True
        )
        ids.append(shown.stdout.strip())
    return ids[culprit]
