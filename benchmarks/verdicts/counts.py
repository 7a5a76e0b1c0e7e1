"""The counts of verdicts against the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.verdicts.ledger import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCounts:
    """The verdicts of one tool on one metric at one true difference; `pairs` and `seconds` are means of the trials."""

    effect: float
    tool: str
    metric: str
    trials: int
    right: int
    wrong: int
    verdicts: dict[str, int]
    pairs: float
    seconds: float

    @property
    def undecided(self) -> int:
        """Trials whose verdict was neither right nor wrong."""
        return self.trials - self.right - self.wrong


def count(entries: Sequence[Entry], metric: str) -> VerdictCounts:
    """Count verdicts: any difference is wrong for equal programs, and the wrong direction for different ones."""
    verdicts = Counter(each.verdicts[metric] for each in entries)
    called = {"faster": verdicts["faster"], "slower": verdicts["slower"]}
    effect = entries[0].effect
    return VerdictCounts(
        effect=effect,
        tool=entries[0].tool,
        metric=metric,
        trials=len(entries),
        right=verdicts["same"] + verdicts["unclear"] if effect == 0.0 else called["slower"],
        wrong=called["faster"] + called["slower"] if effect == 0.0 else called["faster"],
        verdicts=dict(verdicts),
        pairs=sum(each.pairs for each in entries) / len(entries),
        seconds=sum(each.seconds for each in entries) / len(entries),
    )
