"""Observe a running command of another process through the store: last invocations, progress, search."""

from __future__ import annotations

import statistics
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.measurement import FailedInvocation, Measurement
from perftrail.model.noisy_samples import weight
from perftrail.model.subject import Revision
from perftrail.model.target import TargetError, parse_metric
from perftrail.model.wording import counted, duration, escaped, quantity
from perftrail.present.dashboard.subjects import units
from perftrail.present.report.answer import search_section
from perftrail.present.report.words import revision_mark
from perftrail.search.words import no_change_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.measurement import Outcome, Runnable
    from perftrail.model.store_records import SearchRecord, StepRecord, StoreProgress
    from perftrail.model.study import Study
    from perftrail.ports import Store
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.present.html_page import Section
    from perftrail.store import Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentInvocation:
    """An invocation that ended: its name, its result, whether it failed, and its end (ISO 8601, or empty)."""

    name: str
    key: str
    value: str
    flags: tuple[str, ...]
    failed: bool
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """Progress of the whole plan: invocations, and the fewest and most remaining seconds.

    `seconds` is `None` while the pace is unknown. `is_partial`: the running command covers only a part of the plan.
    """

    done: int
    left_least: int
    left_most: int
    builds: int
    seconds: tuple[float, float] | None
    is_partial: bool = False

    @property
    def share(self) -> float:
        """The share of the least necessary work that is done."""
        total = self.done + self.left_least
        return self.done / total if total else 1.0

    @property
    def words(self) -> str:
        """The remaining work in words."""
        if not self.left_most and not self.builds:
            return "nothing is left to measure"
        scope = " (of the whole plan; this command covers only a part of it)" if self.is_partial else ""
        least = "" if self.left_least == self.left_most else f"{self.left_least:,} to "
        invocations = f"{least}{counted(self.left_most, 'invocation')}" if self.left_most else ""
        builds = counted(self.builds, "build") if self.builds else ""
        left = f"left: {' and '.join(each for each in (invocations, builds) if each)}{scope}"
        if self.seconds is None:
            return f"{left}; the remaining time is not known yet"
        spans = dict.fromkeys(duration(each) for each in self.seconds)
        return f"{left}, {' to '.join(spans)} at the present pace"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSearch:
    """A search that has not ended: its question, last step and belief."""

    key: str
    metric: str
    steps: int
    words: str
    belief: str
    section: Section | None


class LatestJson(TypedDict):
    """One of the last invocations."""

    name: Annotated[str, "the invocation: revision, variant, benchmark and point"]
    runnable: str
    value: Annotated[str, "in words, with its metric"]
    failed: bool


class ProgressJson(TypedDict):
    """Invocations and builds done and left."""

    done: int
    left_least: int
    left_most: int
    builds: int
    seconds_least: Annotated[float | None, "null: unknown"]
    seconds_most: Annotated[float | None, "null: unknown"]


class RunningSearchJson(TypedDict):
    """A search that has not ended."""

    metric: str
    steps: int
    last: Annotated[str, "the last step in words"]
    believed: Annotated[str, "the belief after it in words"]


class LiveJson(TypedDict):
    """What runs on a study now."""

    running: Annotated[str | None, "the process that measures; null: none"]
    since: str | None
    invocations: int
    latest: list[LatestJson]
    progress: ProgressJson | None
    search: RunningSearchJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The running command of a study, its last invocations, and its progress. `writer` is empty without one.

    `snapshot_time` is that of the data that the pages show. `waiting` and `noisy` are notes, or empty.
    """

    store_progress: StoreProgress
    snapshot_time: str
    writer: str
    since: str
    latest: tuple[RecentInvocation, ...]
    waiting: str
    noisy: str
    progress: RunProgress | None
    searching: RunningSearch | None

    def as_json(self) -> LiveJson:
        """Return the JSON of the API."""
        return {
            "running": self.writer or None,
            "since": self.since or None,
            "invocations": self.store_progress.invocations,
            "latest": [
                {"name": each.name, "runnable": each.key, "value": each.value, "failed": each.failed}
                for each in self.latest
            ],
            "progress": None
            if self.progress is None
            else {
                "done": self.progress.done,
                "left_least": self.progress.left_least,
                "left_most": self.progress.left_most,
                "builds": self.progress.builds,
                "seconds_least": None if self.progress.seconds is None else self.progress.seconds[0],
                "seconds_most": None if self.progress.seconds is None else self.progress.seconds[1],
            },
            "search": None
            if self.searching is None
            else {
                "metric": self.searching.metric,
                "steps": self.searching.steps,
                "last": self.searching.words,
                "believed": self.searching.belief,
            },
        }


MOST_LISTED = 8
"""Maximum number of listed invocations."""

PACE_INVOCATIONS = 40
"""Number of invocations that determine the pace."""

LATELY_SECONDS = 60.0
"""Another machine with an invocation within this time counts as still measuring."""

MANY_NOISY = 0.25
"""Smallest share of noisy invocations at which the page reports a busy machine."""

IDLE = 10.0
"""The page reports a pause if no invocation ended for this multiple of an invocation's time."""


def observe(store: Store, snapshot: Snapshot, holder: Holder | None) -> Live:
    """Return an observation of a study. `holder` is the process that writes to its store, `None` without one."""
    progress = store.progress()
    recent = store.recent(PACE_INVOCATIONS)
    now = datetime.now(tz=UTC)
    pace = _pace(recent)
    return Live(
        store_progress=progress,
        snapshot_time=snapshot.time,
        writer=_other_machine(snapshot, recent, now) if holder is None else _command(holder),
        since="" if holder is None else holder.started,
        latest=tuple(_latest(snapshot, *each) for each in recent[:MOST_LISTED]),
        waiting="" if holder is None else _waiting(recent, pace, now),
        noisy="" if holder is None else noise_note([outcome for _, outcome in recent]),
        progress=_progress(snapshot, progress, pace, holder),
        searching=_searching(store, snapshot, holder),
    )


def _command(holder: Holder) -> str:
    """Return the name of the running command, which is untrusted text."""
    words = [word for word in holder.command[1:] if not word.startswith("-")]
    return f"perftrail {escaped(words[0], longest=20)}" if words else "perftrail"


def _other_machine(snapshot: Snapshot, recent: Sequence[tuple[Runnable, Outcome]], now: datetime) -> str:
    """Return a text if another machine measures: its lock is not visible here, but it stored an outcome recently."""
    here = snapshot.report_data.view.machine.id
    for _, outcome in recent[:1]:
        ended = _ended(outcome)
        if outcome.key.machine != here and ended is not None and now.timestamp() - ended < LATELY_SECONDS:
            return f"A measurement on machine {escaped(outcome.key.machine, longest=12)}"
    return ""


def _runs(holder: Holder, *commands: str) -> bool:
    return holder.command[1:2] != () and holder.command[1] in commands


def _latest(snapshot: Snapshot, runnable: Runnable, outcome: Outcome) -> RecentInvocation:
    position = snapshot.report_data.positions.get(runnable.revision)
    revision = (
        Revision(id=runnable.revision) if position is None else snapshot.report_data.revisions[position]
    )
    variant = "" if runnable.variant == "plain" else f" ({runnable.variant})"
    point = f" {runnable.point}" if runnable.point.values else ""
    phase = ", warm-up" if outcome.key.phase == "warmup" else ""
    ended = _ended(outcome)
    return RecentInvocation(
        name=f"{revision_mark(revision)}{variant} {escaped(runnable.benchmark)}{escaped(point)}{phase}",
        key=runnable.key,
        value=_value(snapshot, runnable, outcome),
        flags=tuple(escaped(flag) for flag in outcome.flags) if isinstance(outcome, Measurement) else (),
        failed=isinstance(outcome, FailedInvocation),
        ended="" if ended is None else _time(ended),
    )


def _value(snapshot: Snapshot, runnable: Runnable, outcome: Outcome) -> str:
    if isinstance(outcome, FailedInvocation):
        return f"{outcome.failure.stage}: {escaped(outcome.failure.message)}"
    study = snapshot.report_data.view.study
    benchmark = study.benchmarks.get(runnable.benchmark)
    names = (*_question_metrics(study), *(benchmark.leading if benchmark else ()), "wall")
    metric = next((name for name in names if name in outcome.values), None)
    if metric is None:
        return ""
    return f"{escaped(metric)} {quantity(outcome.values[metric], units(study, runnable.benchmark).get(metric, ''))}"


def _question_metrics(study: Study) -> Iterator[str]:
    """Yield the metrics of the study's question."""
    for text in study.find.metric:
        with suppress(TargetError):
            yield parse_metric(text).name


def _ended(outcome: Outcome) -> float | None:
    """Return the end of an invocation in seconds since the epoch; `None` if its start is unknown."""
    try:
        began = datetime.fromisoformat(outcome.started)
    except ValueError:
        return None
    return (began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp() + outcome.seconds


def _pace(recent: Sequence[tuple[Runnable, Outcome]]) -> float | None:
    """Return the median seconds between the ends of consecutive invocations. A median ignores the time of builds."""
    ends = [end for _, outcome in recent if (end := _ended(outcome)) is not None]
    intervals = [one - other for one, other in pairwise(ends) if one >= other]
    return statistics.median(intervals) if len(intervals) >= 2 else None


def _waiting(recent: Sequence[tuple[Runnable, Outcome]], pace: float | None, now: datetime) -> str:
    """Return a text if no invocation has ended for a long time; else an empty text."""
    ended = _ended(recent[0][1]) if recent else None
    if ended is None:
        return "no invocation has started yet: perftrail builds first"
    idle_seconds = now.timestamp() - ended
    if idle_seconds > max(2.0, IDLE * (pace or 0.0)):
        return (
            f"no invocation has ended since {_time(ended)[11:19]} UTC: "
            "perftrail builds, a run is long, or other processes use the machine"
        )
    return ""


def noise_note(recent: Sequence[Outcome]) -> str:
    """Return a text if many of the last invocations were noisy; else an empty text."""
    noisy = sum(isinstance(outcome, Measurement) and not weight(outcome.flags) for outcome in recent)
    if noisy < MANY_NOISY * max(len(recent), MOST_LISTED):
        return ""
    return f"{noisy} of the last {len(recent)} invocations were noisy: other processes use the machine"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


def _progress(
    snapshot: Snapshot, progress: StoreProgress, pace: float | None, holder: Holder | None
) -> RunProgress | None:
    """Return the progress: the remaining work of the snapshot, minus the invocations since then."""
    if holder is None or not _runs(holder, "run"):
        return None
    remaining = snapshot.remaining
    since = progress.invocations - snapshot.store_progress.invocations
    least, most = max(0, remaining.least - since), max(0, remaining.most - since)
    new_builds = min(remaining.builds, progress.builds - snapshot.store_progress.builds)
    seconds = None
    if pace is not None:
        build_time = (remaining.builds - new_builds) * remaining.build_seconds
        seconds = (build_time + least * pace, build_time + most * pace)
    return RunProgress(
        done=progress.invocations,
        left_least=least,
        left_most=most,
        builds=remaining.builds - new_builds,
        seconds=seconds,
        is_partial=any(word.startswith("--only") for word in holder.command),
    )


def _searching(store: Store, snapshot: Snapshot, holder: Holder | None) -> RunningSearch | None:
    """Return the latest search without an answer, while a search runs."""
    if holder is None or not _runs(holder, "find", "watch"):
        return None
    here = snapshot.report_data.view.machine.id
    known = [record for record in store.searches() if record.machine == here]
    unfinished = [record for record in known if record.answer is None]
    if not unfinished:
        return None
    steps = store.steps(unfinished[-1].key, here)
    return RunningSearch(
        key=unfinished[-1].key,
        metric=escaped(str(unfinished[-1].question["metric"])),
        steps=len(steps),
        words=escaped(steps[-1].words, longest=400) if steps else "building the first revision",
        belief=_belief_words(steps),
        section=stored_search_section(snapshot, unfinished[-1], steps),
    )


def stored_search_section(
    snapshot: Snapshot, record: SearchRecord, steps: Sequence[StepRecord]
) -> Section | None:
    """Return the section on a search as in the report: its belief and its steps."""
    return search_section(replace(snapshot.report_data, search=record, steps=tuple(steps)))


def _belief_words(steps: Sequence[StepRecord]) -> str:
    """Return the present belief of a search in words, as its steps do: without a number until rounds decide."""
    belief = steps[-1].belief if steps else {}
    nothing, candidates = belief.get("no_change"), belief.get("candidates")
    if isinstance(nothing, float) and nothing > 0.5:
        return no_change_words(nothing)
    return counted(candidates, "candidate") if isinstance(candidates, int) else ""
