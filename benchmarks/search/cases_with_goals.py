"""The cases with a goal: their simulations and their goals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.search.goals import (
    Goal,
    ask_at_most,
    builds_at_most,
    calibrated,
    exact_at_least,
    none_at_least,
    reported_as_ramp,
    right_at_least,
    run_ratio_at_most,
    runs_at_most,
    wrong_at_most,
)
from benchmarks.search.histories import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = Settings(
    revisions=1000,
    effect=0.10,
    cv=0.03,
    unbuildable=0.15,
    layout=0.3,
    outliers=0.03,
    drift=0.0,
    threshold=0.05,
    confidence=0.99,
    build_cost=10.0,
    most_invocations=1000,
    most_builds=80,
)
"""N = 1000, 15 % unbuildable in clusters, 3 % outliers, tau = 0.3 sigma, d / sigma = 3.2."""

SEARCH, THOROUGH, INSIDE = "perftrail", "perftrail, thorough", "perftrail inside"


PEER_TRIALS = 50
"""Trials of the peers. perftrail has more trials, which also show rarer errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One simulation, with the strategy and the trials of perftrail and the trials of the peers.

    `seconds` and `peer_seconds` are the approximate CPU seconds of one trial of perftrail and of all peers.
    """

    label: str
    settings: Settings
    strategy: str
    trials: int
    peer_trials: int
    seconds: float
    peer_seconds: float = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: a name for the command line, a title, the cells, the goals."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    goals: tuple[Goal, ...]


def _cell(label: str, settings: Settings, trials: int, seconds: float, strategy: str = SEARCH) -> Cell:
    return Cell(
        label=label,
        settings=settings,
        strategy=strategy,
        trials=trials,
        peer_trials=min(trials, PEER_TRIALS),
        seconds=seconds,
    )


def _step(effect: float, cv: float, trials: int, seconds: float, *, note: str = "", **changes: float) -> Cell:
    """Return the cell of a single step; the threshold is half of it, at most 5 %."""
    settings = replace(PLAIN, effect=effect, cv=cv, threshold=min(0.05, effect / 2))
    settings = replace(settings, **changes)  # type: ignore[arg-type]  # all are numbers, some whole
    return _cell(f"d/σ = {settings.distance:.1f}{note}", settings, trials, seconds)


def _null(sigmas: float, trials: int, seconds: float) -> Cell:
    settings = replace(PLAIN, effect=0.0, threshold=sigmas * PLAIN.cv)
    return _cell(f"threshold {sigmas:.1f} σ", settings, trials, seconds)


def _several(
    label: str, count: int, signs: tuple[int, ...], trials: int, seconds: float, strategy: str = SEARCH
) -> Cell:
    settings = replace(PLAIN, effect=0.15, changes=count, signs=signs)
    return _cell(label, settings, trials, seconds, strategy)


ROWS: tuple[Row, ...] = (
    Row(
        name="large",
        title="d/σ ≥ 3",
        cells=(
            _step(0.10, 0.03, 1000, 0.25),
            _step(0.20, 0.03, 300, 0.25),
            _step(0.50, 0.03, 300, 0.25),
            _step(1.00, 0.03, 300, 0.25),
        ),
        goals=(right_at_least(0.995), builds_at_most(14), runs_at_most(30), calibrated(0.985)),
    ),
    Row(
        name="small",
        title="d/σ 1.4 to 3",
        cells=(
            _step(0.08, 0.03, 300, 0.4),
            _step(0.02, 0.01, 300, 2.0),
            _step(0.05, 0.03, 100, 2.0),
            _step(0.043, 0.03, 100, 2.5),
        ),
        goals=(right_at_least(0.99), exact_at_least(0.90), runs_at_most(300), calibrated(0.985)),
    ),
    Row(
        name="null",
        title="no change",
        cells=(_null(1.5, 400, 0.3), _null(2.0, 400, 0.1), _null(3.0, 400, 0.1)),
        goals=(wrong_at_most(0.005), none_at_least(0.95), calibrated(0.985)),
    ),
    Row(
        name="drift",
        title="drift of 0.3 σ a run",
        cells=(_step(0.10, 0.03, 150, 0.35, note=", no drift"), _step(0.10, 0.03, 150, 1.8, drift=0.3)),
        goals=(right_at_least(0.985), run_ratio_at_most(1.5), calibrated(0.985)),
    ),
    Row(
        name="jump",
        title="the machine's level jumps once",
        cells=(
            _step(0.50, 0.02, 60, 1.0, note=", a jump of -10 σ", jump=-10.0),
            _step(0.50, 0.02, 60, 1.0, note=", a jump of 4 σ", jump=4.0),
            replace(
                _null(3.0, 60, 0.5),
                label="no change, a jump of -10 σ",
                settings=replace(PLAIN, effect=0.0, threshold=0.09, jump=-10.0),
            ),
        ),
        goals=(right_at_least(0.985), calibrated(0.985)),
    ),
    Row(
        name="several",
        title="two and three changes",
        cells=(
            _several("2 in one direction", 2, (1, 1), 60, 5.0),
            _several("3 in one direction", 3, (1, 1, 1), 30, 14.0),
            _several("2 that cancel, thorough", 2, (1, -1), 30, 6.0, THOROUGH),
            _several("3 up and down, thorough", 3, (), 16, 10.0, THOROUGH),
        ),
        goals=(right_at_least(0.97), calibrated(0.985)),
    ),
    Row(
        name="hidden",
        title="changes up and down, not thorough",
        cells=(
            _several("2 up and down", 2, (), 20, 4.0),
            _several("3 up and down", 3, (), 20, 4.0),
        ),
        goals=(calibrated(0.985),),
    ),
    Row(
        name="merge",
        title="culprit inside a merge of 50",
        cells=(_cell("50 revisions", replace(PLAIN, branch=50), 80, 2.0, INSIDE),),
        goals=(right_at_least(0.98), calibrated(0.985)),
    ),
    Row(
        name="long",
        title="N = 100,000",
        cells=(
            replace(_step(0.10, 0.03, 30, 2.0, revisions=100_000), peer_trials=10, peer_seconds=8.0),
            replace(_step(0.50, 0.03, 30, 2.0, revisions=100_000), peer_trials=10, peer_seconds=8.0),
        ),
        # Fourteen builds cannot distinguish 100,000 revisions, so their number is not a goal.
        goals=(right_at_least(0.995), ask_at_most(50), calibrated(0.985)),
    ),
    Row(
        name="ramp",
        title="ramp over 200 commits",
        cells=(
            _cell("10 % in all", replace(PLAIN, ramp=200), 16, 10.0),
            _cell("30 % in all", replace(PLAIN, effect=0.3, ramp=200), 16, 10.0),
        ),
        goals=(right_at_least(0.98), reported_as_ramp(), calibrated(0.985)),
    ),
    Row(
        name="stress",
        title="other costs, layouts and priors",
        cells=(
            _step(0.10, 0.03, 20, 0.4, note=", a build costs one run", build_cost=1.0),
            _step(0.10, 0.03, 20, 0.5, note=", a build costs 100 runs", build_cost=100.0),
            _step(0.10, 0.03, 20, 0.3, note=", no layout noise", layout=0.0),
            _step(0.10, 0.03, 20, 1.0, note=", τ = 0.7 σ", layout=0.7),
            _step(0.10, 0.03, 20, 1.0, note=", τ = 0.7 σ, relinked", layout=0.7, relinks=True),
            _step(0.10, 0.03, 20, 0.4, note=", a wrong prior of ten to one", suspects=10.0),
        ),
        goals=(right_at_least(0.98), calibrated(0.985)),
    ),
)


def chosen(names: Sequence[str] | None) -> tuple[Row, ...]:
    """Return the rows with these names, all rows without names; raise `ValueError` for an unknown name."""
    known = {row.name: row for row in ROWS}
    for name in names or ():
        if name not in known:
            raise ValueError(f"no row {name!r}; the names are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else ROWS
