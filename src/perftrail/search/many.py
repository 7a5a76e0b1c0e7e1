"""Search for changes of several metrics over one history, with shared builds and, if possible, invocations.

Positions without a missing build are measured first. Otherwise the search builds the revision with the most
information over all metrics that are not settled. A metric may ask for another build. It uses an existing one, or one
that others need, if that splits its candidates nearly as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.answer import Measure, Settled
from perftrail.search.forecast import USUAL_ROUNDS, WorkLeft
from perftrail.search.observation import BootSession, Built, CannotRelink, Unusable
from perftrail.search.search import Search

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from perftrail.search.answer import Answer
    from perftrail.search.budget import Budget
    from perftrail.search.observation import Batch
    from perftrail.search.posterior import Belief
    from perftrail.search.question import Question

REPLACEABLE_BITS = 0.5
"""If a build splits the candidates of one search by this many bits, a better one for all may replace it."""

REPLACEMENT_SHARE = 0.6
"""The share of the bits that a position must reach to replace another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """One batch, whose invocations are samples of the metrics with these names."""

    names: tuple[str, ...]
    measure: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSettled:
    """All metrics are settled and need no more samples."""

    answers: Mapping[str, Answer]


class ManySearch:
    """The searches for several metrics, or one, as one ask/tell object.

    `together` names metrics that share their invocations (time and memory of one benchmark): a sample of
    one is a sample of all. A revision that failed to build is `Unusable` for all metrics. One that is
    unusable for one metric (its benchmark crashes) is `Unusable` for that one only. The questions' budgets
    are one common budget: a build counts once, and so do invocations of several metrics.
    """

    def __init__(
        self, questions: Mapping[str, Question], *, together: Collection[frozenset[str]] = ()
    ) -> None:
        if len({question.revisions for question in questions.values()}) != 1:
            raise ValueError("a search needs one metric or more, all over the same history")
        self._questions = dict(questions)
        self._searches = {name: Search(question) for name, question in questions.items()}
        self._groups = _groups(questions, together)
        self._budget = next(iter(questions.values())).budget
        self._seconds = 0.0
        self._next: BatchRequest | AllSettled | None = None

    def tell(
        self, observation: Built | Unusable | BootSession | CannotRelink, names: Iterable[str] | None = None
    ) -> None:
        """Record an observation for some metrics, or for all."""
        for name in self._searches if names is None else names:
            self._searches[name].tell(observation)
        self._next = None

    def tell_batch(self, batches: Mapping[str, Batch]) -> None:
        """Record one batch: the same invocations as samples of each of their metrics."""
        for name, batch in batches.items():
            self._searches[name].tell(batch)
        self._next = None

    def spend(self, seconds: float) -> None:
        """Record the total cost so far; above the time budget, no metric asks for more."""
        self._seconds = seconds
        self._next = None

    def allow(self, budget: Budget) -> None:
        """Replace the budget of all questions."""
        if budget != self._budget:
            self._budget = budget
            self._next = None

    def ask(self) -> BatchRequest | AllSettled:
        """Return what to measure next, or the answers; the same until new results are added."""
        if self._next is None:
            self._next = self._decide()
        return self._next

    def builds_ahead(self, begun: Collection[int], count: int) -> tuple[int, ...]:
        """Return up to `count` positions with the most informative builds while those `begun` are being built."""
        batch_request = self.ask()
        if isinstance(batch_request, AllSettled):
            return ()
        return self._searches[batch_request.names[0]].builds_ahead(begun, count)

    @property
    def decided(self) -> int:
        """Number of settled metrics."""
        return sum(isinstance(search.ask(), Settled) for search in self._searches.values())

    def work_left(self) -> WorkLeft:
        """Forecast the work until all metrics are settled.

        Metrics of the same invocations share their runs, and all metrics share builds. Each further change may need a
        certificate.
        """
        forecasts = {name: search.work_left() for name, search in self._searches.items()}
        least = most = 0
        for group in self._groups:
            each = [forecasts[name].runs for name in group]
            beliefs = [self._searches[name].belief for name in group if forecasts[name].runs[1]]
            changes = sum(belief is not None and belief.no_change < 0.5 for belief in beliefs)
            least += max(fewest for fewest, _ in each)
            most += max(largest for _, largest in each) + 4 * USUAL_ROUNDS[1] * max(0, changes - 1)
        builds = [forecast.builds for forecast in forecasts.values()]
        return WorkLeft(
            runs=(least, most),
            builds=(max(fewest for fewest, _ in builds), max(largest for _, largest in builds)),
        )

    def search(self, name: str) -> Search:
        """Return the search for one metric."""
        return self._searches[name]

    def belief(self, name: str) -> Belief | None:
        """Return the belief about a metric, `None` before two revisions were measured for it."""
        return self._searches[name].belief

    @property
    def builds(self) -> int:
        """Number of revisions that were attempted for any metric, failed ones included."""
        return len(self._attempted())

    @property
    def invocations(self) -> int:
        """Number of invocations; those of several metrics count once."""
        return sum(max(self._searches[name].evidence.invocations for name in group) for group in self._groups)

    def _attempted(self) -> frozenset[int]:
        return frozenset().union(*(search.evidence.attempted for search in self._searches.values()))

    def _decide(self) -> BatchRequest | AllSettled:
        self._share_budgets()
        actions = {name: search.ask() for name, search in self._searches.items()}
        wanted = {name: action for name, action in actions.items() if isinstance(action, Measure)}
        if not wanted:
            return AllSettled(
                answers={
                    name: action.answer for name, action in actions.items() if isinstance(action, Settled)
                }
            )
        built = self._built()
        ready = [name for name, action in wanted.items() if built.issuperset(action.positions)]
        name = ready[0] if ready else self._best_to_build(wanted, built)
        return BatchRequest(names=self._group_of(name), measure=wanted[name])

    def _built(self) -> frozenset[int]:
        unusable = [search.evidence.unusable for search in self._searches.values()]
        broken = set.intersection(*unusable) if unusable else set()
        return self._attempted() - broken

    def _best_to_build(self, wanted: Mapping[str, Measure], built: frozenset[int]) -> str:
        """Return the metric whose build has the most information per second over all metrics."""
        beliefs = {name: self._searches[name].belief for name in wanted}
        fresh = {
            name: next(position for position in action.positions if position not in built)
            for name, action in wanted.items()
        }

        def bits(name: str) -> float:
            return sum(_gain(beliefs[other], fresh[name], fresh[other]) for other in wanted)

        costs = {name: self._searches[name].expected_seconds(wanted[name]) for name in wanted}
        return max(wanted, key=lambda name: (bits(name) / costs[name], -fresh[name]))

    def _group_of(self, name: str) -> tuple[str, ...]:
        group = next(group for group in self._groups if name in group)
        return (name, *(other for other in self._questions if other in group and other != name))

    def _share_budgets(self) -> None:
        """Set the budget of each search to what the others have not spent."""
        builds, invocations, budget = self.builds, self.invocations, self._budget
        for search in self._searches.values():
            own = search.evidence
            over = budget.seconds is not None and self._seconds >= budget.seconds
            search.allow(
                budget.without(
                    builds=builds - own.builds,
                    invocations=invocations - own.invocations,
                    seconds=self._seconds if over else 0.0,
                )
            )


def _groups(names: Iterable[str], together: Collection[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Return which metrics come from the same invocations; groups that share a name are joined."""
    groups = [frozenset({name}) for name in names]
    for ties in together:
        touched = [group for group in groups if group & ties]
        groups = [group for group in groups if not group & ties]
        if touched:
            groups.append(frozenset().union(*touched))
    return tuple(groups)


def _gain(belief: Belief | None, position: int, wanted: int) -> float:
    """Return the information of a build about one metric, in bits; zero if the metric's own request is much better."""
    own = _split(belief, wanted)
    if position == wanted:
        return max(own, REPLACEABLE_BITS)
    other = _split(belief, position)
    return other if own >= REPLACEABLE_BITS and other >= REPLACEMENT_SHARE * own else 0.0


def _split(belief: Belief | None, position: int) -> float:
    """Return the bits from knowing the side of a position, with equally likely candidates in a gap."""
    if belief is None:
        return 0.0
    positions = [position for position, _ in belief.at_or_before]
    shares = [share for _, share in belief.at_or_before]
    if not positions[0] < position < positions[-1] or shares[-1] <= 0:
        return 0.0
    share = float(np.interp(position, positions, shares)) / shares[-1]
    if not 0 < share < 1:
        return 0.0
    return float(policy.entropy(np.array(share)))
