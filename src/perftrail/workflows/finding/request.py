"""What `find` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.search.question import Question

if TYPE_CHECKING:
    from perftrail.model.policies import Prior
    from perftrail.model.working import Goal
    from perftrail.search.question import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """What to find: of which figures, over which part of the history, how small, how sure, at what cost.

    `thorough` also looks for changes that were taken back. `priors` are used, of those that have something
    to go on; `suspect` are the paths of the first.
    """

    goal: Goal
    range: str | None
    smallest: float
    confidence: float
    budget: Budget
    thorough: bool = False
    priors: tuple[Prior, ...] = ()
    suspect: tuple[str, ...] = ()

    def question(
        self, revisions: int, *, points: int = 1, prior: tuple[float, ...] | None = None
    ) -> Question:
        """Put the request to a search over so many revisions, one reading of which takes so many invocations."""
        return Question(
            revisions=revisions,
            smallest=self.smallest,
            confidence=self.confidence,
            budget=self.budget,
            prior=prior,
            invocations_per_reading=points,
        )
