"""`watch`: what is new on a branch is measured beside what was known, and a change that shows is searched for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, UsageError
from perftrail.model.build import content_key
from perftrail.model.quantity import change as relative
from perftrail.model.quantity import probability
from perftrail.model.span import Ends, read_span
from perftrail.ports import Growing
from perftrail.search.question import Budget
from perftrail.workflows.backporting.patch import find_revision
from perftrail.workflows.events import BuilderSaid, HistoryRead
from perftrail.workflows.find import Find
from perftrail.workflows.finding.request import FindRequest
from perftrail.workflows.found import FindAnswer
from perftrail.workflows.watching.alarms import Alarm, by_history, by_pairs
from perftrail.workflows.watching.batch import level, measured_batch
from perftrail.workflows.watching.state import MOST_REMEMBERED, Level, Pending, WatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.model.trail import Json
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.watching.batch import Measured

AT_ONCE = 4
"""So many new revisions are measured in one unit with the reference: more would lie far apart in time."""

CHANGED = ("found", "range", "several")
"""The verdicts of a search that confirm a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a look at the branch came to: the revisions that were new, and the searches that they gave rise to."""

    fresh: tuple[Revision, ...]
    answers: tuple[FindAnswer, ...]
    state: WatchState

    def as_json(self) -> dict[str, Json]:
        """The look as `watch --json` prints it in a line."""
        return {
            "reference": self.state.reference,
            "last": self.state.last,
            "new": [revision.id for revision in self.fresh],
            "searches": [answer.as_json() for answer in self.answers],
            "pending": len(self.state.pending),
        }


def watched_range(study: Study, branch: str | None) -> str | None:
    """Give the study's range with its end moved to a branch's tip; `None` for the study's own.

    Raises `UsageError` for a range whose end is not to be moved.
    """
    text = study.walked.range
    span = Ends(old="", new="") if text is None else read_span(text)
    if not isinstance(span, Ends):
        if branch is not None:
            raise UsageError(f'--branch {branch}: source.range = "{text}" has no end to be moved there')
        return text
    if not span.old and not branch:
        return None if text is None else f"{span.old}..{span.new}"
    return f"{span.old}..{branch or ''}"


class Look:
    """One look at a branch: everything that is new on it, measured and judged.

    `save` is called whenever more is known, each time with all of it. `receivers` are who is to be told.
    """

    def __init__(
        self,
        session: Session,
        state: WatchState,
        *,
        branch: str | None,
        receivers: Sequence[str],
        save: Callable[[WatchState], None],
    ) -> None:
        self._session = session
        self._state = state
        self._branch = branch
        self._receivers = tuple(receivers)
        self._save = save
        self._answers: list[FindAnswer] = []

    def events(self) -> Generator[Event, None, Watched]:
        """Look; yields what happens and returns what was seen."""
        source = self._session.source
        if isinstance(source, Growing):
            source.refresh()
        revisions = source.history(watched_range(self._session.study, self._branch))
        fresh = self._fresh(revisions)
        if fresh is None:
            yield BuilderSaid(text=f"watching from {revisions[-1].short}")
            self._keep(self._anew(revisions[-1]))
            fresh = ()
        if fresh:
            yield HistoryRead(revisions=fresh)
        wanted = self._session.workshop.wanted(fresh)
        for start in range(0, len(wanted), AT_ONCE):
            yield from self._batch(wanted[start : start + AT_ONCE])
        if fresh and self._state.last != fresh[-1].id:  # what the study leaves out
            self._keep(replace(self._state, last=fresh[-1].id))
        return Watched(fresh=tuple(fresh), answers=tuple(self._answers), state=self._state)

    def _fresh(self, revisions: Sequence[Revision]) -> tuple[Revision, ...] | None:
        """The revisions after the one seen last; `None` where that is not among them: the branch was rewritten."""
        ids = [revision.id for revision in revisions]
        return tuple(revisions[ids.index(self._state.last) + 1 :]) if self._state.last in ids else None

    def _batch(self, fresh: Sequence[Revision]) -> Generator[Event, None, None]:
        reference = self._reference()
        if reference is None:
            yield BuilderSaid(
                text="the revision that others were compared with is gone; watching goes on from here"
            )
            self._keep(self._anew(fresh[-1]))
            return
        measured = yield from measured_batch(self._session, reference, fresh)
        state = self._with_levels(measured, fresh)
        order = [revision.id for revision in fresh]
        smallest = self._session.study.find.smallest
        confirmed: list[Alarm] = []
        told: list[Pending] = []
        for each in measured:
            name = _figure(each.target)
            known = dict.fromkeys([*self._known(name, state), *(alarm.at for alarm in confirmed)])
            alarms = by_pairs(each, order, smallest=smallest)
            alarms = alarms or by_history(
                each.target, state.levels.get(name, ()), smallest=smallest, known=known
            )
            for alarm in alarms:
                pending = yield from self._searched(alarm)
                if pending is None:
                    state = replace(state, doubted=(*state.doubted, f"{name} {alarm.at}"))
                    continue
                confirmed.append(alarm)
                if pending.id not in {*state.told, *(other.id for other in told)}:
                    told.append(pending)
        state = replace(
            state,
            last=order[-1],
            told=(*state.told, *(each.id for each in told)),
            pending=(*state.pending, *(each for each in told if each.left)),
        )
        # a change that only the whole history shows lies further back: the last revision has the new level
        changed = [alarm.at if alarm.at in order else order[-1] for alarm in confirmed]
        self._keep(self._moved(state, measured, sorted(changed, key=order.index)))

    def _anew(self, revision: Revision) -> WatchState:
        """Begin at a revision; what was told and is to be told stays."""
        return WatchState(
            reference=revision.id, last=revision.id, told=self._state.told, pending=self._state.pending
        )

    def _reference(self) -> Revision | None:
        try:
            return find_revision(self._session.study, self._session.source, self._state.reference)
        except SourceError:
            return None

    def _with_levels(self, measured: Sequence[Measured], fresh: Sequence[Revision]) -> WatchState:
        """Add where each figure lies at each new revision, on the scale of where watching began."""
        levels = dict(self._state.levels)
        for each in measured:
            name = _figure(each.target)
            offset = self._state.offsets.get(name, 0.0)
            known = list(levels.get(name, ()))
            if not known:
                known.append(Level(revision=self._state.reference, logs=each.own))
            known += [
                Level(revision=revision.id, logs=tuple(offset + log for log in each.logs[revision.id]))
                for revision in fresh
                if each.logs.get(revision.id)
            ]
            levels[name] = tuple(known[-MOST_REMEMBERED:])
        return replace(self._state, levels=levels)

    def _moved(self, state: WatchState, measured: Sequence[Measured], changed: Sequence[str]) -> WatchState:
        """Let the last revision that changed something be the one that later ones are compared with."""
        if not changed:
            return state
        offsets = dict(state.offsets)
        for each in measured:
            name = _figure(each.target)
            offsets[name] = offsets.get(name, 0.0) + level(each.logs.get(changed[-1], ()))
        return replace(state, reference=changed[-1], offsets=offsets)

    def _known(self, name: str, state: WatchState) -> list[str]:
        """The revisions at which a change of a figure is known already, or was looked for in vain."""
        doubted = [each.rpartition(" ")[2] for each in state.doubted if each.startswith(f"{name} ")]
        levels = state.levels.get(name, ())
        return [*doubted, *(each.revision for each in levels if _id(name, each.revision) in state.told)]

    def _searched(self, alarm: Alarm) -> Generator[Event, None, Pending | None]:
        """Search for what changed a figure; give the message about it, `None` when nothing did."""
        target, policy = alarm.target, self._session.study.find
        yield BuilderSaid(
            text=f"{target.name} seems to have changed at {alarm.at[:10]}: searching from {alarm.before[:10]} on"
        )
        part = self._part(alarm)
        if part is None:
            return None
        request = FindRequest(
            goal=(target,),
            range=part,
            smallest=policy.smallest,
            confidence=policy.confidence,
            budget=Budget(
                seconds=policy.budget_seconds,
                invocations=policy.budget_invocations,
                builds=policy.budget_builds,
            ),
            priors=policy.prior,
            suspect=policy.suspect,
        )
        answer = yield from Find(self._session, request).events()
        assert isinstance(answer, FindAnswer)
        self._answers.append(answer)
        if str(answer.answer.verdict) not in CHANGED or not answer.answer.changes:
            return None
        return self._message(alarm, answer)

    def _part(self, alarm: Alarm) -> str | None:
        """The part of the history that an alarm is about; `None` where nothing leads from the one end to the other."""
        for old in dict.fromkeys((alarm.before, self._state.reference)):
            try:
                revisions = self._session.source.history(f"{old}..{alarm.at}")
            except SourceError:
                continue
            if len(revisions) > 1:
                return f"{old}..{alarm.at}"
        return None

    def _message(self, alarm: Alarm, answer: FindAnswer) -> Pending:
        change = answer.answer.changes[0]
        culprits = answer.candidates(change)
        who = (
            culprits[-1].short if len(culprits) == 1 else f"one of {len(culprits)} up to {culprits[-1].short}"
        )
        what = "" if change.effect is None else f" {relative(change.effect.value)}"
        lower = alarm.target.better == "lower"
        good = change.effect is not None and (change.effect.value < 1.0) == lower
        study = self._session.study.title
        lines = [
            f"{answer.name}:{what} since {who}, which is {'better' if good else 'worse'}.",
            *(f"  {each.short}  {each.time[:10]}  {each.summary}" for each in culprits[:10]),
            f"Probability {probability(change.confidence)}; {answer.invocations} invocations on {answer.machine}.",
            f"{answer.answer.reason}",
        ]
        return Pending(
            id=_id(_figure(alarm.target), culprits[-1].id),
            subject=f"{study}: {answer.name}{what} ({'better' if good else 'worse'})",
            text="\n".join(lines) + "\n",
            data={
                "study": study,
                "metric": alarm.target.name,
                "variant": alarm.target.variant,
                "better": good,
                "at": alarm.at,
                "answer": answer.as_json(),
            },
            left=self._receivers,
        )

    def _keep(self, state: WatchState) -> None:
        self._state = state
        self._save(state)


def _figure(target: Target) -> str:
    """Name a figure with its variant, without blanks."""
    return f"{target.name}@{target.variant}".replace(" ", "_")


def _id(figure: str, revision: str) -> str:
    """Name the change of a figure at a revision: the same however often it is found."""
    return content_key("watch", figure, revision)[:32]
