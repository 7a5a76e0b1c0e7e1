"""The values of one strategy over all trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.search.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The values of a strategy. Shares are those of all trials, but `exact_right` is that of the exact answers.

    `claimed` and `held` compare the mean claimed confidence of the answers that name candidates with the share of them
    that are right. `sure` counts all answers that claim at least the required confidence; `sure_held` is the share of
    them that are right. `None` means that there is nothing to count.
    """

    strategy: str
    trials: int
    correct: float
    exact: float
    exact_correct: float
    exact_right: float | None
    wrong: float
    verdicts: dict[str, int]
    builds: float
    builds_p95: float
    invocations: float
    invocations_median: float
    invocations_p95: float
    claimed: float | None
    held: float | None
    sure: int
    sure_held: float | None
    ask_milliseconds_median: float | None
    ask_milliseconds_p95: float | None

    def as_json(self) -> dict[str, object]:
        """Return the values by name."""
        return asdict(self)


NAMING = frozenset({"found", "range", "several"})


def summarise(strategy: str, outcomes: Sequence[Outcome], confidence: float) -> Summary:
    """Return the summary of the outcomes of a strategy with this required confidence."""
    exact = [outcome for outcome in outcomes if outcome.exact]
    claims = [outcome for outcome in outcomes if outcome.verdict in NAMING]
    confidences = [outcome.confidence for outcome in claims if outcome.confidence is not None]
    sure = [
        outcome for outcome in outcomes if outcome.confidence is not None and outcome.confidence >= confidence
    ]
    times = np.array([time for outcome in outcomes for time in outcome.ask_milliseconds])
    builds = np.array([outcome.builds for outcome in outcomes])
    invocations = np.array([outcome.invocations for outcome in outcomes])
    return Summary(
        strategy=strategy,
        trials=len(outcomes),
        correct=_share([outcome.right for outcome in outcomes]) or 0.0,
        exact=len(exact) / len(outcomes),
        exact_correct=_share([outcome.right and outcome.exact for outcome in outcomes]) or 0.0,
        exact_right=_share([outcome.right for outcome in exact]),
        wrong=_share([outcome.wrong for outcome in outcomes]) or 0.0,
        verdicts=dict(Counter(outcome.verdict for outcome in outcomes)),
        builds=float(builds.mean()),
        builds_p95=float(np.percentile(builds, 95)),
        invocations=float(invocations.mean()),
        invocations_median=float(np.median(invocations)),
        invocations_p95=float(np.percentile(invocations, 95)),
        claimed=float(np.mean(confidences)) if confidences else None,
        held=_share([outcome.held for outcome in claims]) if confidences else None,
        sure=len(sure),
        sure_held=_share([outcome.held for outcome in sure]),
        ask_milliseconds_median=float(np.median(times)) if len(times) else None,
        ask_milliseconds_p95=float(np.percentile(times, 95)) if len(times) else None,
    )


def _share(hits: list[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None
