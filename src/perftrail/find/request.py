"""What `find` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from perftrail.search import Costs, Question

if TYPE_CHECKING:
    from typing import Unpack

    from perftrail.find.sampler import Sampler
    from perftrail.model.study import Prior
    from perftrail.model.target import Goal
    from perftrail.search import Budget


GUESSED = Costs()


class Known(TypedDict, total=False):
    """What is known of a history before it is searched, by the names of a question."""

    built: frozenset[int]
    distance: tuple[float, ...] | None
    seed: int


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
        self,
        revisions: int,
        sampler: Sampler | None = None,
        *,
        prior: tuple[float, ...] | None = None,
        costs: Costs = GUESSED,
        **more: Unpack[Known],
    ) -> Question:
        """Return the search's question over `revisions` revisions, whose samples a sampler takes."""
        return Question(
            revisions=revisions,
            threshold=self.smallest,
            confidence=self.confidence,
            budget=self.budget,
            prior=prior,
            costs=costs,
            thorough=self.thorough,
            invocations_per_sample=1 if sampler is None else len(sampler.points),
            relinks=sampler is not None and sampler.can_relink,
            counted=sampler is not None and sampler.is_counted,
            **more,
        )
