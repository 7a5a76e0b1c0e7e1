"""What `find` answers, with revisions in place of positions; its JSON form is a contract."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.model.build import Failure
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.model.trail import Json
    from perftrail.search.answer import Answer, Change


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableRevision:
    """A revision that was tried and gave no usable sample, and why."""

    revision: Revision
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class FindAnswer:
    """A search's answer and what it cost. `builds` counts failed ones too; `seconds` is of all."""

    answer: Answer
    target: Target
    revisions: tuple[Revision, ...]
    builds: int
    unusable: tuple[UnusableRevision, ...]
    invocations: int
    seconds: float
    machine: str

    def candidates(self, change: Change) -> tuple[Revision, ...]:
        """The revisions that may be the culprit of a change, oldest first."""
        return tuple(self.revisions[position] for position in change.positions)

    def as_json(self) -> dict[str, Json]:
        """The answer as `find --json` prints it: ids are full, numbers that do not exist are null."""
        return {
            "verdict": str(self.answer.verdict),
            "metric": self.target.text,
            "benchmark": self.target.benchmark,
            "variant": self.target.variant,
            "unit": self.target.unit,
            "better": self.target.better,
            "revisions": len(self.revisions),
            "builds": self.builds,
            "unbuildable": [each.revision.id for each in self.unusable],
            "failures": [
                {
                    "revision": each.revision.id,
                    "stage": each.failure.stage,
                    "message": each.failure.message,
                    "log": each.failure.log,
                }
                for each in self.unusable
            ],
            "invocations": self.invocations,
            "seconds": round(self.seconds, 3),
            "confidence": self.answer.confidence,
            "smallest_seen": _finite(self.answer.smallest_seen),
            "machine": self.machine,
            "reason": self.answer.reason,
            "changes": [self._change(change) for change in self.answer.changes],
        }

    def _change(self, change: Change) -> dict[str, Json]:
        effect = change.effect
        return {
            "revisions": [revision.id for revision in self.candidates(change)],
            "confidence": change.confidence,
            "before": change.before,
            "after": change.after,
            "effect": None
            if effect is None
            else {"value": effect.value, "low": effect.low, "high": effect.high, "interval": 0.95},
            "inside": None,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
