"""Campaigns: many trials of one promise of perftrail each, and how often it was broken.

Each module is one campaign with a function `run(seconds: float, seed: int) -> Result`. `python -m campaign` runs them
and prints the table of benchmarks/results/campaigns.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a campaign found: the number of trials, and a sentence for each trial that broke the promise.

    `notes` say what the trials cover, and what they leave out on this machine.
    """

    trials: int
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
