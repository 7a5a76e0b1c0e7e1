"""Search inside a merge that is a culprit, for the branch and the revision that caused the change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.find.answer import InsideMerge
from perftrail.find.loop import BUILD_STAGES, Loop
from perftrail.find.sampler import Sampler
from perftrail.model.build import Failure
from perftrail.model.target import Working
from perftrail.search import AllSettled, BatchRequest, Built, Costs, Kind, MergeSearch, Origin, Settled
from perftrail.search.merges import COMBINED, TRUNK_CHANGED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence

    from perftrail.find.answer import FindRequest
    from perftrail.find.journal import Journal, Ledger
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.subject import Merge, Revision
    from perftrail.search import Answer, Batch, Belief, BootSession, Budget, CannotRelink, Change, Unusable

MOST_DEPTH = 8
"""Maximum depth of merges inside merges; at this depth the answer names the innermost merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BranchPositions:
    """The positions of `MergeSearch`: their revisions, their prior weights, and the length of each branch.

    `absent` are the positions of bases that equal the first parent or do not exist.
    """

    revisions: tuple[Revision, ...]
    prior: tuple[float, ...]
    branches: tuple[int, ...]
    absent: tuple[int, ...]


class InsideMerges:
    """The searches inside culprits, merge by merge; each search reuses the samples of the others."""

    def __init__(
        self,
        session: Session,
        request: FindRequest,
        sampler: Sampler,
        name: str,
        *,
        ledger: Ledger,
        journal: Journal,
    ) -> None:
        self._session = session
        self._request = request
        self._outer = sampler
        self._target = sampler.targets[name]
        self._name = name
        self._ledger = ledger
        self._journal = journal

    def each(self, answer: Answer) -> Generator[Event, None, dict[int, InsideMerge]]:
        """Search every merge that an answer names as a culprit; return the results by the change's number."""
        found: dict[int, InsideMerge] = {}
        if self._session.study.searched_source.walk == "tags":
            return found
        self._target = replace(self._target, scale=answer.scale.value)
        for number, change in enumerate(answer.changes):
            if change.kind is not Kind.STEP:
                continue
            if len(change.positions) == 1:
                revision = self._outer.revisions[change.positions[0]]
                inside = yield from self._search_revision(revision, (self._outer,), depth=1)
            else:
                inside = yield from self._search_unbuildable(change)
            if inside is not None:
                found[number] = inside
        return found

    def _search_revision(
        self, revision: Revision, known: tuple[Sampler, ...], *, depth: int
    ) -> Generator[Event, None, InsideMerge | None]:
        """Search inside a revision, and recursively inside the culprit found; `None` if it is not a merge."""
        merge = self._session.source.merge(revision)
        if merge is None or depth > MOST_DEPTH:
            return None
        return (
            yield from self._search(
                merge, _positions_of(merge, merge.trunk, merge.revision), known, depth=depth
            )
        )

    def _search_unbuildable(self, change: Change) -> Generator[Event, None, InsideMerge | None]:
        """Search the branch of a merge that cannot be built, between the usable revisions around it."""
        usable, failures = self._outer.usable(self._name), self._outer.failures(self._name)
        before = max((at for at in usable if at < change.positions[0]), default=None)
        if before is None or change.positions[-1] not in usable:
            return None
        first, last = self._outer.revisions[before], self._outer.revisions[change.positions[-1]]
        for position in change.positions[:-1]:
            if position in failures and failures[position].stage in BUILD_STAGES:
                merge = self._session.source.merge(self._outer.revisions[position])
                if merge is None:
                    continue
                found = yield from self._search(
                    merge, _positions_of(merge, first, last), (self._outer,), depth=1
                )
                if found.origin is Origin.BRANCH:
                    return found
        return None

    def _search(
        self, merge: Merge, line: _BranchPositions, known: tuple[Sampler, ...], *, depth: int
    ) -> Generator[Event, None, InsideMerge]:
        targets = {self._name: self._target}
        sampler = Sampler(self._session, targets, line.revisions, self._ledger, name=self._journal.name)
        search = self._begin(line, sampler, known)
        loop = Loop(
            self._session,
            search,
            [sampler],
            self._journal,
            self._ledger,
            budget=self._request.budget,
            merge=merge.revision,
            metrics=1 if isinstance(self._request.goal, Working) else len(self._request.goal),
        )
        answer = (yield from loop.events())[self._name]
        found = search.merge.found
        assert found is not None, "a search that is settled states where the change came from"
        result = InsideMerge(
            merge=merge, origin=found.origin, confidence=answer.confidence, reason=found.reason
        )
        change = _largest(answer)
        if found.origin is not Origin.BRANCH or change is None:
            return result
        deeper: InsideMerge | None = None
        if len(change.positions) == 1:
            culprit = line.revisions[change.positions[0]]
            deeper = yield from self._search_revision(culprit, (*known, sampler), depth=depth + 1)
        return replace(result, revisions=line.revisions, change=change, inside=deeper)

    def _begin(self, line: _BranchPositions, sampler: Sampler, known: Sequence[Sampler]) -> _OneMetricMerge:
        """Start a search with everything that is already known of its revisions."""
        positions = {
            revision.id: position
            for position, revision in enumerate(line.revisions)
            if position not in line.absent
        }
        batches = [batch for each in known for batch in each.known_batches(self._name, positions)]
        failures = {id_: why for each in known for id_, why in each.known_failures(self._name).items()}
        measured = {sample.position for batch in batches for sample in batch.samples}
        broken = {
            positions[id_]: why
            for id_, why in failures.items()
            if id_ in positions and positions[id_] not in measured
        }
        samples = sum(len(batch.samples) for batch in batches)
        question = self._request.question(
            len(line.revisions),
            sampler,
            sampler.targets[self._name],
            prior=line.prior,
            costs=Costs(build=self._ledger.mean_build, sample=self._ledger.mean_invocation),
        )
        left = self._left(
            builds=len(measured) + len(broken) + len(line.absent), invocations=samples * len(sampler.points)
        )
        search = _OneMetricMerge(MergeSearch(question, branches=line.branches), self._name, left)
        session = sampler.enter_boot_session(self._journal.boot)
        if session is not None:
            search.tell(session)
        same = Failure(stage="checkout", message="is not a separate revision")
        for position, failure in (*((at, same) for at in line.absent), *broken.items()):
            search.tell(sampler.record_failure(position, failure))
        for position in sorted(measured):
            search.tell(Built(position=position))
        for batch in batches:
            search.tell_batch({self._name: batch})
        return search

    def _left(self, *, builds: int, invocations: int) -> Callable[[Budget], Budget]:
        """Return a function from a budget to the budget left, to which the work of known results is added."""
        tried, ran, seconds = len(self._ledger.attempted), len(self._ledger.invocations), self._ledger.seconds

        def left(budget: Budget) -> Budget:
            rest = budget.without(builds=tried, invocations=ran, seconds=seconds)
            return replace(
                rest,
                builds=None if rest.builds is None else rest.builds + builds,
                invocations=None if rest.invocations is None else rest.invocations + invocations,
            )

        return left


class _OneMetricMerge:
    """The search inside one merge, for one metric, with the interface of a search for several.

    `left` returns the part of the whole search's budget that is left for this one.
    """

    def __init__(self, merge: MergeSearch, name: str, left: Callable[[Budget], Budget]) -> None:
        self.merge = merge
        self._name = name
        self._left = left

    def tell(
        self, observation: Built | Unusable | BootSession | CannotRelink, _names: Iterable[str] | None = None
    ) -> None:
        self.merge.tell(observation)

    def tell_batch(self, batches: Mapping[str, Batch]) -> None:
        self.merge.tell(batches[self._name])

    def spend(self, _seconds: float) -> None:
        """Do nothing: the merge's own batches count against what was left when this search began."""

    def allow(self, budget: Budget) -> None:
        self.merge.allow(self._left(budget))

    def ask(self) -> BatchRequest | AllSettled:
        action = self.merge.ask()
        if isinstance(action, Settled):
            return AllSettled(answers={self._name: action.answer})
        return BatchRequest(names=(self._name,), measure=action)

    def builds_ahead(self, _begun: Collection[int], _count: int) -> tuple[int, ...]:
        return ()

    def belief(self, _name: str) -> Belief | None:
        return self.merge.belief


def _positions_of(merge: Merge, first: Revision, last: Revision) -> _BranchPositions:
    """Return a merge's branches between two revisions of the trunk: its first parent and itself, or usable ones."""
    revisions = [first]
    prior = [0.0]
    absent: list[int] = []
    for branch in merge.branches:
        if branch.base is None or branch.base.id == first.id:
            absent.append(len(revisions))
        revisions += [branch.base or first, *branch.revisions]
        each = (1 - COMBINED - TRUNK_CHANGED) / len(branch.revisions)
        prior += [0.0 if absent[-1:] == [len(prior)] else TRUNK_CHANGED, *[each] * len(branch.revisions)]
    return _BranchPositions(
        revisions=(*revisions, last),
        prior=(*prior, COMBINED),
        branches=tuple(len(branch.revisions) for branch in merge.branches),
        absent=tuple(absent),
    )


def _largest(answer: Answer) -> Change | None:
    """Return the change of an answer with the largest effect; `None` without a change."""
    return max(
        answer.changes,
        key=lambda change: abs(change.effect.size) if change.effect is not None else 0.0,
        default=None,
    )
