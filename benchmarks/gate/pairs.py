"""`python -m benchmarks.gate.pairs`: how many pairs a gate needs on a machine with a known scatter.

Simulated pairs of an unchanged branch have log-ratios with normal noise. perftrail's own rule compares them, as
`compare` does: after each planned number of pairs, until the verdict is settled. The result is the smallest number of
pairs with which 95 of 100 verdicts are "same". Equal seeds give equal results.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from benchmarks.markdown import table
from perftrail.stats.comparison import Rule, Verdict, compare

PAGE = Path(__file__).parents[1] / "results" / "gate-pairs.md"
SCATTERS = (0.01, 0.02, 0.05, 0.10)
"""Standard deviations of the log-ratio of a pair."""

PAIRS = (12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200, 250, 300)
WANTED = 0.95

TEXT = """\
The log-ratios of the pairs of an unchanged branch have normal noise; *scatter* is its standard deviation. The threshold
is {threshold:.0%}, and {comparisons} verdicts share the error rate. *Pairs* is the smallest simulated number with which
95 of 100 verdicts are "same", from {trials} trials each; *half* is the share with half as many pairs.
"""


def share_same(
    scatter: float, most: int, *, threshold: float, comparisons: int, trials: int, seed: int
) -> float:
    """Return the share of verdicts "same" on an unchanged branch."""
    rule = Rule(most=most, comparisons=comparisons, threshold=threshold)
    draws = np.random.default_rng([seed, most])
    same = 0
    for _ in range(trials):
        ratios = np.exp(draws.normal(0.0, scatter, most))
        found = None
        for count in rule.analyses:
            found = compare([1.0] * count, ratios[:count].tolist(), rule)
            if found.settled:
                break
        same += found is not None and found.verdict is Verdict.SAME
    return same / trials


@click.command()
@click.option("--threshold", default=0.05, help="Smallest difference that counts.")
@click.option("--comparisons", default=4, help="Number of metrics with a verdict.")
@click.option("--trials", default=400, help="Simulated branches for each number of pairs.")
@click.option("--seed", default=1)
@click.option("--write", is_flag=True, help=f"Write the page {PAGE.name}.")
def main(threshold: float, comparisons: int, trials: int, seed: int, write: bool) -> None:
    """Print the pairs that each scatter needs."""
    head = ("scatter of a pair", "pairs", "same", "half")
    rows = []
    for scatter in SCATTERS:
        shares = {0: 0.0}
        for most in PAIRS:
            shares[most] = share_same(
                scatter, most, threshold=threshold, comparisons=comparisons, trials=trials, seed=seed
            )
            if shares[most] >= WANTED:
                break
        most = max(shares)
        half = max((each for each in shares if each <= most / 2), default=0)
        rows.append(
            (f"{scatter:.0%}", str(most), f"{shares[most]:.0%}", f"{shares[half]:.0%}" if half else "none")
        )
        click.echo("  ".join(rows[-1]))
    if write:
        text = TEXT.format(threshold=threshold, comparisons=comparisons, trials=trials)
        PAGE.write_text(
            "<!-- made by `python -m benchmarks.gate.pairs --write`: do not edit -->\n\n# Pairs of a gate\n\n"
            f"{text}\n{table([head, *rows])}\n"
        )


if __name__ == "__main__":
    main()
