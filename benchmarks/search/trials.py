"""Trials: every strategy searches the same histories, in parallel."""

from __future__ import annotations

import multiprocessing
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.histories import draw
from benchmarks.search.outcome import judge
from benchmarks.search.simulator import Machine
from benchmarks.search.strategies import STRATEGIES
from benchmarks.search.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.histories import Settings
    from benchmarks.search.outcome import Outcome
    from benchmarks.search.summary import Summary


def run_trial(number: int, settings: Settings, seed: int, names: Sequence[str]) -> dict[str, Outcome]:
    """Search one history with each strategy; all random numbers depend only on the seed and the number."""
    history = draw(settings, np.random.default_rng([seed, number]))
    outcomes = {}
    for name in names:
        machine = Machine(history, np.random.default_rng([seed, number, *name.encode()]))
        outcomes[name] = judge(STRATEGIES[name](machine), history, machine)
    return outcomes


def run_trials(
    settings: Settings, seed: int, trials: int, names: Sequence[str] = tuple(STRATEGIES), processes: int = 1
) -> tuple[Summary, ...]:
    """Run all trials; return one summary for each strategy."""
    work = partial(run_trial, settings=settings, seed=seed, names=names)
    if processes > 1:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            results = pool.map(work, range(trials), chunksize=5)
    else:
        results = [work(number) for number in range(trials)]
    return tuple(summarise(name, [result[name] for result in results], settings.confidence) for name in names)
