"""`python -m benchmarks.instruction_search`: simulated searches for time, with counts of instructions and without.

The counted builds, the weights and the search are perftrail's; builds and runs are simulated, with skewed noise,
outliers, layouts and unbuildable revisions. Counts have no noise. Every search of a row has the same histories.

- `none`: no counts.
- `right`: instructions change at the culprit.
- `elsewhere`: instructions change as much as the time, at another revision that builds.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from benchmarks.markdown import table
from benchmarks.search.cases_with_goals import PLAIN
from benchmarks.search.histories import draw
from benchmarks.search.outcome import judge
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies.running import question, report, run_search
from perftrail.find.instruction_search import InstructionCounts, instruction_priors, next_to_count
from perftrail.model.subject import Revision
from perftrail.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.histories import History, Settings

Counted = Literal["none", "right", "elsewhere"]
COUNTS: tuple[Counted, ...] = ("none", "right", "elsewhere")

REVISIONS = 200
CASES: tuple[tuple[float, float, float], ...] = (
    (0.02, 0.25, 0.3),
    (0.08, 0.25, 0.3),
    (0.02, 0.25, 1.0),
    (0.02, 0.15, 2.0),
)
"""The noise of a run, the change, and the layouts in units of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One simulated search: its builds with the counted ones, its runs without counts, and its answer.

    `right`: the culprit is named. `wrong`: another revision is named. `gradual`: the step is called a gradual change.
    """

    builds: int
    counts: int
    runs: int
    right: bool
    wrong: bool
    gradual: bool


def settings_of(noise: float, change: float, layout: float) -> Settings:
    """Return the settings of a case: 15 % of the revisions do not build, 3 % of the runs take twice as long."""
    return replace(PLAIN, revisions=REVISIONS, cv=noise, effect=change, layout=layout)


def count(machine: Machine, place: int, step: float) -> InstructionCounts:
    """Count builds as `find` does, where instructions change by `step`, a logarithm, at revision `place`."""

    def instructions(position: int) -> float:
        return math.exp(step) if position >= place else 1.0

    last = machine.revisions - 1
    counts = {position: instructions(position) for position in (0, last) if machine.build(position)}
    unusable: set[int] = set()
    while (position := next_to_count(counts, unusable)) is not None:
        if machine.build(position):
            counts[position] = instructions(position)
        else:
            unusable.add(position)
    return InstructionCounts(
        metric="cpu", counts=tuple(sorted(counts.items())), unusable=tuple(sorted(unusable))
    )


def run_trial(number: int, settings: Settings, seed: int) -> dict[Counted, Searched]:
    """Search one simulated history with each kind of counts."""
    rng = np.random.default_rng([seed, number])
    history = draw(settings, rng)
    (culprit,) = history.culprits
    others = [each for each in range(1, REVISIONS) if each != culprit and not history.broken[each]]
    places = {"none": 0, "right": culprit, "elsewhere": int(rng.choice(others))}
    return {counted: _searched(history, counted, places[counted], [seed, number]) for counted in COUNTS}


def _searched(history: History, counted: Counted, place: int, seed: Sequence[int]) -> Searched:
    machine = Machine(history, np.random.default_rng([*seed, 1]))
    asked = question(machine)
    counts = 0
    if counted != "none":
        found = count(machine, place, history.settings.step)
        counts = len(found.counts)
        revisions = [Revision(id=f"{number:040x}") for number in range(machine.revisions)]
        built = frozenset(dict(found.counts))
        asked = replace(asked, prior=instruction_priors(found, revisions).weights, built=built)
    answer = report(run_search(Search(asked), machine), machine)
    (culprit,) = history.culprits
    return Searched(
        builds=machine.builds,
        counts=counts,
        runs=machine.invocations,
        right=judge(answer, history, machine).right,
        wrong=any(culprit not in candidates for candidates in answer.named),
        gradual=bool(answer.ramps),
    )


@click.command()
@click.option("--trials", default=100, show_default=True, help="Searches with each kind of counts.")
@click.option("--seed", default=1)
@click.option("--processes", default=1)
def main(trials: int, seed: int, processes: int) -> None:
    """Simulate searches with right and misleading counts, and without, and print a table in Markdown."""
    rows: list[tuple[str, ...]] = [
        ("noise, change, layouts", "counts", "right", "wrong", "gradual", "builds", "counted", "runs")
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for noise, change, layout in CASES:
            work = partial(run_trial, settings=settings_of(noise, change, layout), seed=seed)
            found = pool.map(work, range(trials), chunksize=5)
            name = f"{noise:.0%}, {change:.0%}, {layout * noise:.1%}"
            rows += [_row(name, counted, [each[counted] for each in found]) for counted in COUNTS]
    click.echo(table(rows))


def _row(name: str, counted: Counted, found: Sequence[Searched]) -> tuple[str, ...]:
    return (
        name,
        counted,
        f"{sum(each.right for each in found)} of {len(found)}",
        str(sum(each.wrong for each in found)),
        str(sum(each.gradual for each in found)),
        *(
            f"{statistics.mean(values):.1f}"
            for values in (
                [each.builds for each in found],
                [each.counts for each in found],
                [each.runs for each in found],
            )
        ),
    )


if __name__ == "__main__":
    main()
