"""Inside a merge that is the culprit: where its change came from, and which revision of a branch made it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.search.answer import Kind
from perftrail.search.inside import Inside, Origin
from perftrail.workflows.finding.blocks import InBlocks
from perftrail.workflows.finding.probe import Probe
from perftrail.workflows.finding.pursuit import pursue
from perftrail.workflows.found import InsideMerge

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from perftrail.model.merge import Merge
    from perftrail.model.subject import Revision
    from perftrail.search.answer import Answer, Change
    from perftrail.search.question import Budget
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.journal import Journal, Ledger
    from perftrail.workflows.finding.request import FindRequest
    from perftrail.workflows.session import Session

DEEPEST = 8
"""Merges inside merges are followed so far; beyond, the innermost one found is named."""

COMBINED = 0.1
"""How likely only the combination of trunk and branch makes a merge's change, beforehand."""

MOVED = 0.05
"""How likely the branch differs from the trunk because the trunk moved since, beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The positions of `Inside`: their revisions, what each weighs beforehand, how long each branch is.

    `absent` are the places of bases that cannot be told from the first parent, or that there are not.
    """

    revisions: tuple[Revision, ...]
    prior: tuple[float, ...]
    branches: tuple[int, ...]
    absent: tuple[int, ...]


class InsideMerges:
    """The searches inside culprits, merge by merge; what one has measured the others know."""

    def __init__(
        self, session: Session, request: FindRequest, probe: Probe, *, ledger: Ledger, journal: Journal
    ) -> None:
        self._session = session
        self._request = request
        self._outer = probe
        self._ledger = ledger
        self._journal = journal

    def each(self, answer: Answer) -> Generator[Event, None, dict[int, InsideMerge]]:
        """Go into every merge that an answer names as a culprit; give what was found by the change's number."""
        found: dict[int, InsideMerge] = {}
        if self._session.study.walked.walk == "tags":
            return found
        for number, change in enumerate(answer.changes):
            if len(change.positions) == 1 and change.kind is Kind.STEP:
                revision = self._outer.revisions[change.positions[0]]
                inside = yield from self._into(revision, self._outer.known, depth=1)
                if inside is not None:
                    found[number] = inside
        return found

    def _into(
        self, revision: Revision, known: Mapping[str, int | Failure], *, depth: int
    ) -> Generator[Event, None, InsideMerge | None]:
        """Go into a revision, and into what it leads to; `None` when it joined nothing."""
        merge = self._session.source.merge(revision)
        if merge is None or depth > DEEPEST:
            return None
        layout = _lay_out(merge)
        probe = Probe(self._session, self._outer.target, layout.revisions, self._ledger)
        search = yield from self._begin(layout, probe, known)
        asking = InBlocks(search, probe, self._journal)
        answer = yield from pursue(asking, probe, self._journal, part={"inside": revision.id})
        found = search.found
        assert found is not None, "a search that is settled says where the change came from"
        result = InsideMerge(
            merge=merge, origin=found.origin, confidence=answer.confidence, reason=found.reason
        )
        change = _largest(answer)
        if found.origin is not Origin.BRANCH or change is None:
            return result
        deeper: InsideMerge | None = None
        if len(change.positions) == 1:
            culprit = layout.revisions[change.positions[0]]
            deeper = yield from self._into(culprit, {**known, **probe.known}, depth=depth + 1)
        return replace(result, revisions=layout.revisions, change=change, inside=deeper)

    def _begin(
        self, layout: _Layout, probe: Probe, known: Mapping[str, int | Failure]
    ) -> Generator[Event, None, _Unspoken]:
        """Begin a search by telling it what is known of its revisions already."""
        told = {
            position: known[revision.id]
            for position, revision in enumerate(layout.revisions)
            if revision.id in known and position not in layout.absent
        }
        readings = sum(count for count in told.values() if isinstance(count, int))
        points = len(self._outer.target.points)
        question = self._request.question(len(layout.revisions), points=points, prior=layout.prior)
        left = self._left(builds=len(told) + len(layout.absent), invocations=readings * points)
        search = _Unspoken(replace(question, budget=left), branches=layout.branches)
        block = probe.move(self._journal.boot)
        if block is not None:
            search.tell(block)
        for position in layout.absent:
            same = Failure(stage="checkout", message="is no revision of its own")
            search.tell(probe.give_up(position, same, seconds=0.0))
        for position, outcome in told.items():
            if isinstance(outcome, Failure):
                search.tell(probe.give_up(position, outcome, seconds=0.0))
            else:
                search.tell((yield from probe.take(position, outcome)))
        return search

    def _left(self, *, builds: int, invocations: int) -> Budget:
        """Give what of the budget is left, and as much more as what is known already will be counted as."""
        budget, ledger = self._request.budget, self._ledger
        return replace(
            budget,
            builds=None if budget.builds is None else max(0, budget.builds - len(ledger.attempted)) + builds,
            invocations=None
            if budget.invocations is None
            else max(0, budget.invocations - len(ledger.invocations)) + invocations,
            seconds=None if budget.seconds is None else max(0.0, budget.seconds - ledger.seconds),
        )


class _Unspoken(Inside):
    """The search inside a merge; its belief is one about a line of its own, which no step can put in words."""

    @property
    def belief(self) -> None:
        """Nothing that could be said."""
        return


def _lay_out(merge: Merge) -> _Layout:
    revisions = [merge.trunk]
    prior = [0.0]
    absent: list[int] = []
    for branch in merge.branches:
        if branch.base is None or branch.base.id == merge.trunk.id:
            absent.append(len(revisions))
        revisions += [branch.base or merge.trunk, *branch.revisions]
        each = (1 - COMBINED - MOVED) / len(branch.revisions)
        prior += [0.0 if absent[-1:] == [len(prior)] else MOVED, *[each] * len(branch.revisions)]
    return _Layout(
        revisions=(*revisions, merge.revision),
        prior=(*prior, COMBINED),
        branches=tuple(len(branch.revisions) for branch in merge.branches),
        absent=tuple(absent),
    )


def _largest(answer: Answer) -> Change | None:
    """Give the change with the largest effect of those that a branch made."""
    return max(
        answer.changes,
        key=lambda change: abs(math.log(change.effect.value)) if change.effect is not None else 0.0,
        default=None,
    )
