"""Simulated searches with the prior of a right profile, of wrong profiles, and without a prior.

The weights are those of `perftrail.find.priors`, and `perftrail.search` searches. Only builds and runs are simulated.
The functions that each revision touches come from a real history (`studies --into`), or are drawn: functions in files,
of which a few are touched often, and some run.

- `right`: the functions whose cost moved, as profiled.
- `exchanged`: as many other functions that ran; the culprit touches none of them.
- `elsewhere`: the functions moved that revisions other than the culprit touch, and the culprit touches nothing that
  ran: the change is in data, a dependency, or a flag.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import random
import statistics
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from benchmarks.markdown import table
from benchmarks.search.cases_with_goals import PLAIN
from benchmarks.search.histories import draw
from benchmarks.search.outcome import judge
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies import STRATEGIES
from perftrail.find.priors import ProfiledFunctions, plain_name, profile_priors
from perftrail.model.patch import TouchedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.histories import History

Profiled = Literal["none", "right", "exchanged", "elsewhere"]
PROFILES: tuple[Profiled, ...] = ("none", "right", "exchanged", "elsewhere")

SETTINGS = replace(PLAIN, revisions=200, effect=math.expm1(0.15), cv=0.03)
"""15 % unbuildable in clusters, 3 % outliers, layouts of 0.3 sigma, d / sigma = 5."""

FUNCTIONS, FILES, RUNS, MOVED = 300, 20, 80, 4
"""Functions of a drawn program, its files, the functions that run, and those whose cost moved."""

WITHOUT_FUNCTIONS = 0.3
"""Share of drawn revisions that touch documentation, tests or texts only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledHistory:
    """What each revision of a history touches, the functions of a profile of both ends, and the culprit's position."""

    name: str
    touched: tuple[tuple[TouchedFile, ...], ...]
    functions: ProfiledFunctions
    culprit: int

    def as_json(self) -> str:
        """Return the history as JSON."""
        return json.dumps(
            {
                "name": self.name,
                "touched": [[[each.path, sorted(each.names)] for each in of_one] for of_one in self.touched],
                "moved": self.functions.moved,
                "runs": self.functions.runs,
                "culprit": self.culprit,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ProfiledHistory:
        """Return a history that `as_json` wrote."""
        stored = json.loads(text)
        return cls(
            name=stored["name"],
            touched=tuple(
                tuple(TouchedFile(path=path, names=frozenset(names)) for path, names in of_one)
                for of_one in stored["touched"]
            ),
            functions=ProfiledFunctions(
                moved=tuple((name, file) for name, file in stored["moved"]),
                runs=tuple((name, file) for name, file in stored["runs"]),
            ),
            culprit=stored["culprit"],
        )

    def weights(self, profiled: Profiled, rng: random.Random) -> tuple[float, ...] | None:
        """Return the prior weights with a right or a wrong profile; `None` without one."""
        if profiled == "none":
            return None
        if profiled == "right":
            return profile_priors(self.touched, self.functions).weights
        return profile_priors(*self._wrong(profiled, rng)).weights

    def _wrong(
        self, profiled: Profiled, rng: random.Random
    ) -> tuple[tuple[tuple[TouchedFile, ...], ...], ProfiledFunctions]:
        """Return the touched files, and functions of which the culprit touches no one that moved."""
        guilty = {name for each in self.touched[self.culprit] for name in each.names}
        every = [*self.functions.moved, *self.functions.runs]
        by_others = {
            name
            for number, of_one in enumerate(self.touched)
            if number not in (0, self.culprit)
            for each in of_one
            for name in each.names
        }
        innocent = [each for each in every if plain_name(each[0]) in by_others - guilty]
        moved = tuple(rng.sample(innocent, min(len(innocent), max(1, len(self.functions.moved)))))
        touched = self.touched
        if profiled == "elsewhere":
            elsewhere = (TouchedFile(path="data/elsewhere.txt", names=frozenset()),)
            touched = (*touched[: self.culprit], elsewhere, *touched[self.culprit + 1 :])
        return touched, ProfiledFunctions(
            moved=moved, runs=tuple(each for each in every if each not in moved)
        )


def drawn_history(rng: random.Random, revisions: int, culprit: int) -> ProfiledHistory:
    """Draw a history: some functions are touched often, and the culprit touches one whose cost moved."""
    names = [(f"function_{number}", f"part_{number % FILES}.c") for number in range(FUNCTIONS)]
    rng.shuffle(names)
    popularity = [1.0 / (rank + 5) for rank in range(FUNCTIONS)]
    running = rng.sample(names, RUNS)
    touched = [_touched(rng, names, popularity) for _ in range(revisions)]
    changed = rng.choices(names, popularity)[0]
    moved = [changed, *rng.sample([each for each in running if each != changed], MOVED - 1)]
    touched[culprit] = (TouchedFile(path=changed[1], names=frozenset({changed[0]})), *touched[culprit][:1])
    runs = tuple(each for each in running if each not in moved)
    return ProfiledHistory(
        name="drawn",
        touched=tuple(touched),
        functions=ProfiledFunctions(moved=tuple(moved), runs=runs),
        culprit=culprit,
    )


def _touched(
    rng: random.Random, names: Sequence[tuple[str, str]], popularity: Sequence[float]
) -> tuple[TouchedFile, ...]:
    if rng.random() < WITHOUT_FUNCTIONS:
        return (TouchedFile(path="doc/text.md", names=frozenset()),)
    chosen = rng.choices(names, popularity, k=rng.choice((1, 1, 2, 3, 5)))
    return tuple(
        TouchedFile(path=file, names=frozenset(name for name, of_file in chosen if of_file == file))
        for file in sorted({file for _, file in chosen})
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One simulated search: its builds and runs, and whether its answer is right or names a wrong revision."""

    builds: int
    runs: int
    right: bool
    wrong: bool


def run_trial(number: int, history: ProfiledHistory | None, seed: int) -> dict[Profiled, Searched]:
    """Search one simulated history with each prior; random numbers depend only on the seed and the number."""
    drawn = draw(
        replace(SETTINGS, revisions=SETTINGS.revisions if history is None else len(history.touched)),
        np.random.default_rng([seed, number]),
    )
    if history is None:
        history = drawn_history(random.Random(f"{seed} {number}"), SETTINGS.revisions, drawn.culprits[0])
    else:
        drawn = _with_culprit(drawn, history.culprit)
    return {
        profiled: _searched(drawn, history.weights(profiled, random.Random(f"{seed} {number}")), seed, number)
        for profiled in PROFILES
    }


def _with_culprit(drawn: History, culprit: int) -> History:
    """Return the history with its step at this revision, which builds."""
    broken = drawn.broken.copy()
    broken[culprit] = False
    level = np.where(np.arange(len(broken)) >= culprit, drawn.settings.step, 0.0)
    return replace(drawn, broken=broken, level=level, culprits=(culprit,))


def _searched(drawn: History, weights: tuple[float, ...] | None, seed: int, number: int) -> Searched:
    history = replace(drawn, weights=None if weights is None else np.array(weights))
    machine = Machine(history, np.random.default_rng([seed, number, 1]))
    outcome = judge(STRATEGIES["perftrail"](machine), history, machine)
    return Searched(builds=outcome.builds, runs=outcome.invocations, right=outcome.right, wrong=outcome.wrong)


@click.command()
@click.argument("histories", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--trials", default=300, help="Searches with each prior.")
@click.option("--seed", default=1)
@click.option("--processes", default=1)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def simulation(histories: tuple[Path, ...], trials: int, seed: int, processes: int, markdown: bool) -> None:
    """Simulate searches with right and wrong profiles, and without; HISTORIES are files of `studies --into`.

    Without HISTORIES, each search has another drawn history of 200 revisions.
    """
    known: list[ProfiledHistory | None] = [ProfiledHistory.from_json(path.read_text()) for path in histories]
    rows: list[tuple[str, ...]] = [("history", "profile", "right", "wrong", "builds", "saved", "runs")]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for history in known or [None]:
            work = partial(run_trial, history=history, seed=seed)
            found = pool.map(work, range(trials), chunksize=5)
            name = "drawn" if history is None else history.name
            rows += [_row(name, profiled, found) for profiled in PROFILES]
            if not markdown:
                click.echo("\n".join("  ".join(cell.ljust(14) for cell in row) for row in rows[-4:]))
    if markdown:
        click.echo(table(rows))


def _row(name: str, profiled: Profiled, found: Sequence[dict[Profiled, Searched]]) -> tuple[str, ...]:
    """Return a row: the saved share is the geometric mean over the searches, with its 95 % interval."""
    logs = [math.log(each[profiled].builds / each["none"].builds) for each in found]
    mean, spread = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = (1.0 - math.exp(mean + side * spread) for side in (1, -1))
    return (
        name,
        profiled,
        f"{sum(each[profiled].right for each in found)} of {len(found)}",
        str(sum(each[profiled].wrong for each in found)),
        f"{statistics.mean(each[profiled].builds for each in found):.1f}",
        "" if profiled == "none" else f"{1.0 - math.exp(mean):.0%} [{low:.0%}, {high:.0%}]",
        f"{statistics.mean(each[profiled].runs for each in found):.0f}",
    )
