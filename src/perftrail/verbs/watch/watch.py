"""Check a branch for new revisions, measure them, and search for changes.

`state_on_branch` adapts the state to a rewritten branch. `BranchCheck` is one check.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import SourceError, UsageError
from perftrail.find.answer import FindAnswer, FindAnswerJson, FindRequest
from perftrail.find.find import Find
from perftrail.measure.events import BuilderMessage, HistoryRead, stop_at_fault_of_machine
from perftrail.model.source import Ends, read_span
from perftrail.model.study import THRESHOLD
from perftrail.ports import GrowingSource
from perftrail.search.budget import Budget
from perftrail.verbs.backport.patch import find_revision
from perftrail.verbs.watch.alarms import Alarm, alarms_by_history, alarms_by_pairs, measured_batch
from perftrail.verbs.watch.messages import change_id, message, metric_key
from perftrail.verbs.watch.state import MOST_LEVELS, Level, WatchState, level, state_on_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.verbs.watch.alarms import WatchedMetric
    from perftrail.verbs.watch.state import PendingMessage


LARGEST_BATCH = 4
"""Maximum number of new revisions in one unit with the reference: in a larger unit, they would be far apart in time."""

CONFIRMED = ("found", "range", "several")
"""Verdicts of a search that confirm a change."""


class WatchedJson(TypedDict):
    """One line of `watch --json`: new revisions, and the searches that they caused."""

    reference: Annotated[str, "the revision that new ones are compared with"]
    last: Annotated[str, "the newest revision seen"]
    new: list[str]
    searches: list[FindAnswerJson]
    pending: Annotated[int, "number of messages that are not sent yet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The result of one check of the branch: new revisions, and the searches that they caused.

    `compared` are the new revisions that were measured with the reference. `began`: this check only recorded the tip.
    """

    fresh: tuple[Revision, ...]
    answers: tuple[FindAnswer, ...]
    state: WatchState
    compared: tuple[Revision, ...] = ()
    began: bool = False

    def as_json(self) -> WatchedJson:
        """Return the result as one line of `watch --json`."""
        return {
            "reference": self.state.reference,
            "last": self.state.last,
            "new": [revision.id for revision in self.fresh],
            "searches": [answer.as_json() for answer in self.answers],
            "pending": len(self.state.pending),
        }


def watched_range(study: Study, branch: str | None) -> str | None:
    """Return the study's range with its end at a branch's tip; `None` for the study's range.

    Raises `UsageError` for a range without a replaceable end.
    """
    text = study.searched_source.range
    span = Ends(old="", new="") if text is None else read_span(text)
    if not isinstance(span, Ends):
        if branch is not None:
            raise UsageError(
                f'--branch {branch}: perftrail cannot replace the end of source.range = "{text}"'
            )
        return text
    if not span.old and not branch:
        return None if text is None else f"{span.old}..{span.new}"
    return f"{span.old}..{branch or ''}"


class BranchCheck:
    """One check of a branch: measures its new revisions, and searches for changes.

    `save` is called with the whole state whenever it changes. `receivers` receive the messages, and
    `describe` words a change for them.
    """

    def __init__(
        self,
        session: Session,
        state: WatchState,
        *,
        branch: str | None,
        receivers: Sequence[str],
        describe: Callable[[FindAnswer, int], str],
        save: Callable[[WatchState], None],
    ) -> None:
        self._session = session
        self._state = state
        self._branch = branch
        self._receivers = tuple(receivers)
        self._describe = describe
        self._save = save
        self._answers: list[FindAnswer] = []
        self._compared: list[Revision] = []

    def events(self) -> Generator[Event, None, Watched]:
        """Check; yield events and return the result."""
        return (yield from stop_at_fault_of_machine(self._events(), keep_going=self._session.keep_going))

    def _events(self) -> Generator[Event, None, Watched]:
        source = self._session.source
        if isinstance(source, GrowingSource):
            source.refresh()
        revisions = source.history(watched_range(self._session.study, self._branch))
        began = not self._state.last
        yield from self._resume(revisions)
        ids = [revision.id for revision in revisions]
        fresh = revisions[ids.index(self._state.last) + 1 :]
        if fresh:
            yield HistoryRead(revisions=fresh, are_new=True)
        wanted = self._session.subject_builder.wanted(fresh)
        for start in range(0, len(wanted), LARGEST_BATCH):
            yield from self._batch(wanted[start : start + LARGEST_BATCH])
        if fresh and self._state.last != fresh[-1].id:  # revisions that the study skips
            self._set_state(replace(self._state, last=fresh[-1].id))
        return Watched(
            fresh=tuple(fresh),
            answers=tuple(self._answers),
            state=self._state,
            compared=tuple(self._compared),
            began=began,
        )

    def _resume(self, revisions: Sequence[Revision]) -> Iterator[Event]:
        """Find the revision seen last on the branch, or adapt the state to a rewritten branch."""
        ids = [revision.id for revision in revisions]
        if self._state.last in ids:
            return
        state = state_on_branch(self._state, ids)
        start = revisions[-1] if state is None else revisions[ids.index(state.last)]
        rewritten = "the branch was rewritten; " if self._state.last else ""
        yield BuilderMessage(
            text=f"{rewritten}the watch begins at {start.short}: the next checks compare newer revisions with it"
        )
        self._set_state(self._restarted(start) if state is None else state)

    def _batch(self, fresh: Sequence[Revision]) -> Generator[Event, None, None]:
        reference = self._reference()
        measured = None if reference is None else (yield from measured_batch(self._session, reference, fresh))
        if measured is None:
            yield from self._replace_reference(
                fresh, "is no longer in the history" if reference is None else "cannot be measured"
            )
            return
        self._compared += fresh
        state = self._with_levels(measured, fresh)
        order = [revision.id for revision in fresh]
        confirmed: list[Alarm] = []
        for each in measured:
            for alarm in self._alarms(each, order, state, confirmed):
                changes = yield from self._searched(alarm)
                if changes:
                    confirmed.append(alarm)
                    state = _with_changes(state, changes)
                else:
                    state = replace(
                        state, unconfirmed=(*state.unconfirmed, f"{metric_key(alarm.target)} {alarm.at}")
                    )
        # A change that only the whole history reveals is older than the batch, so its last revision has the new level.
        changed = [alarm.at if alarm.at in order else order[-1] for alarm in confirmed]
        state = replace(state, last=order[-1])
        self._set_state(self._with_reference(state, measured, sorted(changed, key=order.index)))

    def _replace_reference(self, fresh: Sequence[Revision], why: str) -> Generator[Event, None, None]:
        """Start again at the first new revision, and compare the others with it."""
        yield BuilderMessage(text=f"the reference revision {why}; the watch continues from {fresh[0].short}")
        self._set_state(self._restarted(fresh[0]))
        if len(fresh) > 1:
            yield from self._batch(fresh[1:])

    def _alarms(
        self, measured: WatchedMetric, order: Sequence[str], state: WatchState, confirmed: Sequence[Alarm]
    ) -> list[Alarm]:
        """Return possible changes of metrics, by the pairs of a batch or else by the whole history."""
        name, threshold = (
            metric_key(measured.target),
            self._session.study.find.threshold_for([None]) or THRESHOLD,
        )
        known = dict.fromkeys([*self._known(name, state), *(alarm.at for alarm in confirmed)])
        return alarms_by_pairs(measured, order, threshold=threshold) or alarms_by_history(
            measured.target, state.levels.get(name, ()), threshold=threshold, known=known
        )

    def _restarted(self, revision: Revision) -> WatchState:
        """Return a new state at a revision; messages are retained."""
        return WatchState(
            reference=revision.id,
            last=revision.id,
            reported=self._state.reported,
            pending=self._state.pending,
        )

    def _reference(self) -> Revision | None:
        try:
            return find_revision(self._session.study, self._session.source, self._state.reference)
        except SourceError:
            return None

    def _with_levels(self, measured: Sequence[WatchedMetric], fresh: Sequence[Revision]) -> WatchState:
        """Add the level of each metric at each new revision, relative to the start of the watch."""
        levels = dict(self._state.levels)
        for each in measured:
            name = metric_key(each.target)
            offset = self._state.offsets.get(name, 0.0)
            known = list(levels.get(name, ()))
            if not known:
                known.append(Level(revision=self._state.reference, log_ratios=each.reference_logs))
            known += [
                Level(
                    revision=revision.id,
                    log_ratios=tuple(offset + log for log in each.log_ratios[revision.id]),
                )
                for revision in fresh
                if each.log_ratios.get(revision.id)
            ]
            levels[name] = tuple(known[-MOST_LEVELS:])
        return replace(self._state, levels=levels)

    def _with_reference(
        self, state: WatchState, measured: Sequence[WatchedMetric], changed: Sequence[str]
    ) -> WatchState:
        """Make the last revision with a change the reference for later revisions."""
        if not changed:
            return state
        offsets = dict(state.offsets)
        for each in measured:
            name = metric_key(each.target)
            offsets[name] = offsets.get(name, 0.0) + level(each.log_ratios.get(changed[-1], ()))
        return replace(state, reference=changed[-1], offsets=offsets)

    def _known(self, name: str, state: WatchState) -> list[str]:
        """Return the revisions with a known change of a metric, or with an alarm that a search did not confirm."""
        unconfirmed = [each.rpartition(" ")[2] for each in state.unconfirmed if each.startswith(f"{name} ")]
        levels = state.levels.get(name, ())
        return [
            *unconfirmed,
            *(each.revision for each in levels if change_id(name, each.revision) in state.reported),
        ]

    def _searched(self, alarm: Alarm) -> Generator[Event, None, tuple[PendingMessage, ...]]:
        """Search for the change of a metric; return a message about each change found."""
        target, policy = alarm.target, self._session.study.find
        yield BuilderMessage(
            text=f"{target.name} seems to have changed at {alarm.at[:10]}; "
            f"perftrail searches from {alarm.before[:10]} on"
        )
        range_ = self._range(alarm)
        if range_ is None:
            return ()
        request = FindRequest(
            goal=(target,),
            range=range_,
            threshold=policy.threshold_for([target.scale]) or THRESHOLD,
            confidence=policy.confidence,
            budget=Budget(invocations=policy.budget_invocations, builds=policy.budget_builds).with_time(
                policy.budget_seconds
            ),
            priors=policy.prior,
            suspect=policy.suspect,
        )
        answer = yield from Find(self._session, request).events()
        assert isinstance(answer, FindAnswer)
        self._answers.append(answer)
        if str(answer.answer.verdict) not in CONFIRMED:
            return ()
        study = self._session.study
        return tuple(
            message(study, alarm, answer, number, describe=self._describe, receivers=self._receivers)
            for number in range(len(answer.answer.changes))
        )

    def _range(self, alarm: Alarm) -> str | None:
        """Return the range of an alarm; `None` if no path connects its ends."""
        for old in dict.fromkeys((alarm.before, self._state.reference)):
            try:
                revisions = self._session.source.history(f"{old}..{alarm.at}")
            except SourceError:
                continue
            if len(revisions) > 1:
                return f"{old}..{alarm.at}"
        return None

    def _set_state(self, state: WatchState) -> None:
        self._state = state
        self._save(state)


def _with_changes(state: WatchState, changes: Sequence[PendingMessage]) -> WatchState:
    """Record changes and their messages, except those that are known."""
    fresh = [each for each in changes if each.id not in state.reported]
    return replace(
        state,
        reported=(*state.reported, *(each.id for each in fresh)),
        pending=(*state.pending, *(each for each in fresh if each.left)),
    )
