"""Compare searches of simulated histories: correct answers, builds and invocations of each.

`python -m benchmarks.search rows` runs all cases with a goal. `python -m benchmarks.search noise` runs cases with noise
that no model assumes, with all of perftrail. `python -m benchmarks.search paths` runs real programs whose time depends
on their path. See their --help.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.search import campaign, noise, paths, rates, scales
from benchmarks.search.bound import fewest_runs
from benchmarks.search.histories import Settings
from benchmarks.search.strategies import PEERS, STRATEGIES, fitting
from benchmarks.search.trials import run_trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.summary import Summary


def main() -> None:
    """Run the trials and print the results."""
    others = {
        "rows": campaign.main,
        "noise": noise.main,
        "paths": paths.main,
        "rates": rates.main,
        "scales": scales.main,
    }
    if len(sys.argv) > 1 and sys.argv[1] in others:
        others[sys.argv[1]](sys.argv[2:])
        return
    options = _parser().parse_args()
    settings = _settings(options)
    began = perf_counter()
    names = _names(options, settings)
    summaries = run_trials(settings, options.seed, options.trials, names, options.processes)
    bound = fewest_runs(settings)
    seconds = perf_counter() - began
    if options.json:
        print(json.dumps(_as_json(settings, options.seed, summaries, bound, seconds), indent=2))
    else:
        _print_table(settings, summaries, bound)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    add = parser.add_argument
    add("--revisions", type=int, default=1000)
    add("--effect", type=float, default=0.10, help="relative change; 0: nothing changed")
    add("--cv", type=float, default=0.03, help="coefficient of variation of a run")
    add("--unbuildable", type=float, default=0.15, help="share of revisions, in clusters of three")
    add("--layout", type=float, default=0.3, help="scatter between builds, in units of cv")
    add("--outliers", type=float, default=0.03, help="share of runs that take twice as long")
    add("--drift", type=float, nargs="?", const=0.3, default=0.0, help="random walk per run, in units of cv")
    add("--threshold", type=float, help="smallest change to find [half the effect, at most 0.05]")
    add("--confidence", type=float, default=0.99)
    add("--build-cost", type=float, default=10.0, help="seconds for a build; a run takes one")
    add("--most-invocations", type=int, default=1000)
    add("--most-builds", type=int, default=80)
    add("--changes", type=int, default=1, help="number of steps, up or down at random")
    add("--signs", type=int, nargs="+", default=(), help="the direction of each step: 1 or -1")
    add("--ramp", type=int, default=0, help="number of revisions over which the change is spread")
    add(
        "--branch",
        type=int,
        default=0,
        help="put the culprit into a merged branch with this number of revisions",
    )
    add("--suspects", type=float, default=1.0, help="weight of a tenth of the revisions in a wrong prior")
    add("--relinks", action="store_true", help="builds can be linked in other layouts")
    add("--trials", type=int, default=300)
    add("--seed", type=int, default=1)
    add("--processes", type=int, default=1)
    add(
        "--only",
        action="append",
        help="only the strategy of this name, or all whose names contain this; may be repeated",
    )
    add("--json", action="store_true")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    threshold = options.threshold
    if threshold is None:
        threshold = min(0.05, abs(options.effect) / 2) if options.effect else 0.05
    return Settings(
        revisions=options.revisions,
        effect=options.effect,
        cv=options.cv,
        unbuildable=options.unbuildable,
        layout=options.layout,
        outliers=options.outliers,
        drift=options.drift,
        threshold=threshold,
        confidence=options.confidence,
        build_cost=options.build_cost,
        most_invocations=options.most_invocations,
        most_builds=options.most_builds,
        changes=options.changes,
        signs=tuple(options.signs),
        ramp=options.ramp,
        branch=options.branch,
        suspects=options.suspects,
        relinks=options.relinks,
    )


def _names(options: argparse.Namespace, settings: Settings) -> list[str]:
    """Return the chosen strategies; by default the search that fits the simulation, and all peers."""
    if not options.only:
        return [fitting(settings), *PEERS]
    exact = [name for name in STRATEGIES if name in options.only]
    parts = [part for part in options.only if part not in exact]
    return [name for name in STRATEGIES if name in exact or any(part in name for part in parts)]


def _as_json(
    settings: Settings, seed: int, summaries: Sequence[Summary], bound: float | None, seconds: float
) -> dict[str, object]:
    return {
        "settings": asdict(settings),
        "seed": seed,
        "seconds": seconds,
        "information_bound_invocations": bound,
        "strategies": {summary.strategy: summary.as_json() for summary in summaries},
    }


def _print_table(settings: Settings, summaries: Sequence[Summary], bound: float | None) -> None:
    limit = "none" if bound is None else f"{bound:.0f} runs"
    table = Table(
        title=f"N = {settings.revisions}, effect {settings.effect:.0%}, cv {settings.cv:.0%}; bound: {limit}"
    )
    columns = (
        "strategy",
        "correct",
        "exact",
        "wrong",
        "builds (p95)",
        "runs (p95)",
        "claimed/held",
        "ask ms (p95)",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "strategy" else "right")
    for row in summaries:
        claim = "" if row.claimed is None or row.held is None else f"{row.claimed:.3f}/{row.held:.3f}"
        ask_times = "" if row.ask_milliseconds_median is None else f"{row.ask_milliseconds_median:.1f}"
        if row.ask_milliseconds_p95 is not None:
            ask_times += f" ({row.ask_milliseconds_p95:.1f})"
        table.add_row(
            row.strategy,
            f"{row.correct:.1%}",
            f"{row.exact_correct:.1%}",
            f"{row.wrong:.1%}",
            f"{row.builds:.1f} ({row.builds_p95:.0f})",
            f"{row.invocations:.0f} ({row.invocations_p95:.0f})",
            claim,
            ask_times,
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
