"""Run `find`: connect the search with builds, samples and the store, and build the answer."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, StudyError
from perftrail.find.answer import FindAnswer, FindTable, UnusableRevision
from perftrail.find.broken_ranges import find_broken_ranges
from perftrail.find.end_profiles import profile_ends
from perftrail.find.inside_merge import InsideMerges
from perftrail.find.instruction_search import (
    NO_COUNTS,
    InstructionCounts,
    count_builds,
    instruction_priors,
)
from perftrail.find.journal import Journal, Ledger, other_machines
from perftrail.find.loop import (
    BUILD_STAGES,
    Loop,
    built_before,
    decisive_subjects,
    included_positions,
    prior_from_samples,
)
from perftrail.find.other_metrics import also_changed
from perftrail.find.priors import (
    ProfiledFunctions,
    RevisionPriors,
    combined,
    path_priors,
    profile_priors,
    with_measured,
    with_notes,
)
from perftrail.find.sampler import Sampler
from perftrail.measure.events import HistoryRead, Skipped, now, stop_at_fault_of_machine
from perftrail.measure.failure_groups import study_line
from perftrail.model.build import content_key
from perftrail.model.json_data import from_plain, json_of, to_plain
from perftrail.model.measurement import seed_of
from perftrail.model.plan import same_everywhere
from perftrail.model.store_records import SearchRecord
from perftrail.model.subject import Subject
from perftrail.model.target import Target, Working
from perftrail.model.wording import counted
from perftrail.ports import FunctionSource
from perftrail.results.measured import MeasuredHere
from perftrail.search import ManySearch
from perftrail.search.answer import Verdict
from perftrail.studyfile import mistake

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from perftrail.find.answer import FindRequest
    from perftrail.measure.events import Event, Outdated
    from perftrail.measure.session import Session
    from perftrail.model.build import Failure
    from perftrail.model.json_data import Json
    from perftrail.model.subject import Revision
    from perftrail.search import Answer, Question


SEARCH_VERSION = "rounds"
"""The version of the search's assumptions, part of its name: a search of an earlier version starts again."""

MOST_INVOCATIONS = 300
"""Budget of each metric with separate invocations, if there are several and no budget is set: a noisy metric then does
not delay the others."""

MOST_COMPARED = 20_000
"""A longer history is not compared file by file, which would take minutes."""

LEAST_PROFILED = 6
"""Number of revisions from which on a profile of both ends can save a build."""

MOST_PROFILED = 10
"""Largest number of benchmarks that are profiled: more benchmarks share the saved builds, and need a profile each."""


class Find:
    """One search through a history. It resumes by itself: stored samples are read, not repeated."""

    def __init__(self, session: Session, request: FindRequest) -> None:
        self._session = session
        self._request = request
        self._ledger = Ledger(session)
        self._revisions: tuple[Revision, ...] = ()
        self._prior = RevisionPriors(weights=None, reasons=())
        self._profile_priors: Mapping[str, RevisionPriors] = {}
        self._counts = NO_COUNTS
        self._profiling_seconds = 0.0
        self._distance: tuple[float, ...] | None = None
        self._first_started = ""
        self._other_machines: tuple[str, ...] = ()

    def events(self) -> Generator[Event, None, FindAnswer | FindTable]:
        """Search; yield events and return the answer, or a table of answers if there are several."""
        return (yield from stop_at_fault_of_machine(self._events(), keep_going=self._session.keep_going))

    def _events(self) -> Generator[Event, None, FindAnswer | FindTable]:
        self._refuse_one_program()
        self._revisions = self._session.source.history(self._request.range)
        metrics = 1 if isinstance(self._request.goal, Working) else len(self._request.goal)
        yield replace(
            HistoryRead.of(self._session.source, self._revisions),
            metrics=metrics,
            most_seconds=self._request.budget.seconds,
            builds_in_time=self._request.budget.builds_in_time,
        )
        if len(self._revisions) < 2:
            raise NoAnswer("the range has one revision, so it contains no change; widen source.range")
        yield from (
            Skipped(skipped=each) for each in self._session.subject_builder.skipped_revisions(self._revisions)
        )
        yield from self._outdated()
        self._prior = self._prior_weights()
        functions = yield from self._profiled()
        self._profile_priors = self._priors_from(functions)
        yield from self._count_builds()
        record = self._record(functions)
        self._first_started = self._read_first_started(record)
        goal = self._request.goal
        journal = Journal(self._session, record, self._ledger, per_boot_session=not isinstance(goal, Working))
        self._other_machines = other_machines(self._session.store, self._session.machine, record)
        result: FindAnswer | FindTable
        if isinstance(goal, Working):
            result = yield from self._failing(goal, journal)
        else:
            answers = yield from self._changed(goal, journal)
            result = answers[0] if len(answers) == 1 else self._table(answers)
        yield from self._session.subject_builder.confirm(decisive_subjects(result, self._ledger.attempted))
        result = replace(result, pins=self._session.pins, shown_as=self._shown_as(record))
        journal.end(json_of(result.as_json()))
        return result

    def _refuse_one_program(self) -> None:
        """Raise `StudyError` for benchmarks that run the same program at every revision: no change could be found."""
        study, goal = self._session.study, self._request.goal
        wanted = (
            [name for name, _ in goal.benchmark_points]
            if isinstance(goal, Working)
            else [t.benchmark for t in goal]
        )
        variant = goal.variant if isinstance(goal, Working) else goal[0].variant
        mistakes = [
            mistake(study.file, ("benchmark", name, "command"), why)
            for name in dict.fromkeys(wanted)
            if (why := same_everywhere(study, name, variant))
        ]
        if mistakes:
            raise StudyError(mistakes)

    def _outdated(self) -> Iterator[Outdated]:
        """Yield an event if the range has samples that the present study would take again."""
        if isinstance(self._request.goal, Working):
            return
        names = {(target.benchmark, target.variant) for target in self._request.goal}
        known = {revision.id for revision in self._revisions}
        yield from MeasuredHere(self._session).outdated_of(
            lambda cell: (cell.benchmark, cell.subject.variant) in names and cell.subject.revision.id in known
        )

    def _changed(
        self, targets: tuple[Target, ...], journal: Journal
    ) -> Generator[Event, None, tuple[FindAnswer, ...]]:
        """Search for changes of several metrics in one pass, with shared builds and, if possible, invocations."""
        groups = _groups(targets)
        request = self._request
        if len(groups) > 1 and request.budget.has_usual_limits:
            most = MOST_INVOCATIONS * len(groups)
            request = replace(request, budget=replace(request.budget, invocations=most))
        samplers = [
            Sampler(self._session, group, self._revisions, self._ledger, name=journal.name)
            for group in groups
        ]
        known = {named(target): self._prior_of(target) for target in targets}
        questions = {
            name: self._question(
                request, sampler, target, known[name], seed=seed_of("find", journal.name, name)
            )
            for sampler in samplers
            for name, target in sampler.targets.items()
        }
        search = ManySearch(
            {named(target): questions[named(target)] for target in targets},
            together=[frozenset(sampler.targets) for sampler in samplers],
        )
        found = yield from Loop(
            self._session,
            search,
            samplers,
            journal,
            self._ledger,
            budget=request.budget,
            metrics=len(targets),
        ).events()
        sampler_of = {name: sampler for sampler in samplers for name in sampler.targets}
        answers: list[FindAnswer] = []
        for target in targets:
            name = named(target)
            answers.append(
                (yield from self._answer_for(found[name], sampler_of[name], name, known[name], journal))
            )
        return tuple(answers)

    def _question(
        self, request: FindRequest, sampler: Sampler, target: Target, known: RevisionPriors, *, seed: int
    ) -> Question:
        return request.question(
            len(self._revisions),
            sampler,
            target,
            prior=known.weights,
            built=self._built_before(sampler),
            distance=self._distance,
            seed=seed,
        )

    def _built_before(self, sampler: Sampler) -> frozenset[int]:
        """Return the positions that were built before this search began: they cost nothing."""
        return built_before(self._session, sampler.variant, self._revisions, before=self._first_started)

    def _table(self, answers: tuple[FindAnswer, ...]) -> FindTable:
        return FindTable(
            answers=answers,
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            new=self._ledger.new,
            machine=self._session.machine.id,
        )

    def _answer_for(
        self, answer: Answer, sampler: Sampler, name: str, known: RevisionPriors, journal: Journal
    ) -> Generator[Event, None, FindAnswer]:
        """Return a metric's answer with its revisions, after searching inside the merges that it names."""
        benchmark = self._session.study.benchmarks[sampler.benchmark]
        also = {
            number: also_changed(benchmark, name, sampler, change)
            for number, change in enumerate(answer.changes)
            if change.certificate is not None
        }
        merges = InsideMerges(
            self._session, self._request, sampler, name, ledger=self._ledger, journal=journal
        )
        inside = yield from merges.each(answer)
        failures, timed_out = sampler.failures(name), sampler.timed_out(name)
        found = FindAnswer(
            answer=_unless_timed_out(answer, len(timed_out)),
            target=sampler.targets[name],
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            unusable=self._unusable(failures, sampler.variant, sampler.benchmark),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            new=self._ledger.new,
            machine=self._session.machine.id,
            repeated=self._session.runner.repeated,
            tools=self._ledger.tools,
            inside=inside,
            also=also,
            timed_out=timed_out,
            broken_ranges=find_broken_ranges(sampler.usable(name), failures, answer.changes),
            priors=known.reasons,
            counts=self._counts if sampler.targets[name].text == self._counts.metric else NO_COUNTS,
            discarded=sampler.discarded,
            noisy=sampler.noisy,
            with_notes="notes" in self._request.priors,
            boots=journal.boots,
            other_machines=self._other_machines,
            linked=sampler.is_linked,
            can_relink=sampler.can_relink,
            pinned=sampler.pins and sampler.can_relink,
            unpinned=sampler.unpinned,
        )
        return replace(found, priors=(*found.priors, *_searched_by(found)))

    def _failing(self, working: Working, journal: Journal) -> Generator[Event, None, FindAnswer]:
        wanted = self._session.subject_builder.wanted(self._revisions)
        if not wanted:
            raise NoAnswer("source.skip excludes every revision of the range; no revision is left to try")
        included = included_positions(self._revisions, wanted)
        prior = included.weights(self._prior.weights)
        target = working.as_target()
        name, budget = working.name, self._request.budget
        sampler = Sampler(self._session, {name: target}, wanted, self._ledger, name=journal.name)
        seed = seed_of("find", journal.name, name)
        question = self._request.question(len(wanted), sampler, target, prior=prior, seed=seed)
        search = ManySearch({name: question})
        for built, batch in sampler.stored(before=self._first_started):
            search.tell(built)
            search.tell_batch({name: batch})
        loop = Loop(self._session, search, [sampler], journal, self._ledger, budget=budget)
        answer = (yield from loop.events())[name]
        return FindAnswer(
            answer=included.answer(answer),
            target=working,
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            unusable=self._unusable(
                {included.positions[at]: why for at, why in sampler.reasons(answer).items()},
                working.variant,
                target.benchmark if len(set(target.benchmarks)) == 1 else None,
            ),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            new=self._ledger.new,
            machine=self._session.machine.id,
            repeated=self._session.runner.repeated,
            tools=self._ledger.tools,
            inside={},
            priors=self._prior.reasons,
            with_notes="notes" in self._request.priors,
        )

    def _unusable(
        self, failures: Mapping[int, Failure], variant: str, benchmark: str | None
    ) -> tuple[UnusableRevision, ...]:
        """Return the unusable revisions; `benchmark` is the failed one, `None` if it is unknown."""
        return tuple(
            UnusableRevision(
                revision=self._revisions[position],
                failure=failure,
                study_line=self._study_line(self._revisions[position], failure, variant, benchmark),
            )
            for position, failure in failures.items()
        )

    def _study_line(self, revision: Revision, failure: Failure, variant: str, benchmark: str | None) -> str:
        """Return the line of the study that a failure is about; empty if it is unknown."""
        if failure.stage == "skipped" or (benchmark is None and failure.stage not in BUILD_STAGES):
            return ""
        subject = Subject(revision=revision, variant=variant)
        eras = self._session.subject_builder.build_inputs.eras_of(subject)
        return study_line(failure, self._session.study, benchmark, subject, eras)

    def _prior_weights(self) -> RevisionPriors:
        """Return the prior from touched paths and messages; store path distances for incremental builds."""
        request = self._request
        small = len(self._revisions) <= MOST_COMPARED
        wanted = "suspect" in request.priors and bool(request.suspect)
        known = RevisionPriors(weights=None, reasons=())
        if len(self._revisions) < 2:
            return known
        incremental = small and self._session.study.build.incremental
        touched = self._session.source.touched(self._revisions) if wanted or incremental else ()
        if incremental:
            self._distance = tuple(float(sum_) for sum_ in accumulate(len(paths) for paths in touched))
        if wanted:
            known = path_priors(touched, suspect=request.suspect)
        return with_notes(known, self._revisions) if "notes" in request.priors else known

    def _profiled(self) -> Generator[Event, None, Mapping[str, ProfiledFunctions] | None]:
        """Profile both ends with each benchmark; return the functions by the name of the first of its targets.

        `None` if that is not wanted. A resumed search reads what it stored.
        """
        source, goal = self._session.source, self._request.goal
        if (
            "profile" not in self._request.priors
            or isinstance(goal, Working)
            or not isinstance(source, FunctionSource)
            or self._has_only_memory(goal)
            or len(_groups(goal)) > MOST_PROFILED
            or not LEAST_PROFILED <= len(self._revisions) <= MOST_COMPARED
        ):
            return None
        begun = self._begun(self._record(None))
        if begun:
            return _stored_functions(begun[0].question)
        groups = _groups(goal)
        functions: dict[str, ProfiledFunctions] = {}
        most = self._request.budget.seconds_before_search
        began, building = time.monotonic(), self._ledger.new.seconds
        for group in groups:
            functions[next(iter(group))] = yield from profile_ends(
                self._session,
                tuple(group.values()),
                self._revisions,
                self._ledger,
                benchmarks=len(groups),
                limit=None if most is None else most / len(groups),
            )
        self._profiling_seconds = time.monotonic() - began - (self._ledger.new.seconds - building)
        return functions

    def _has_only_memory(self, goal: Sequence[Target]) -> bool:
        """Whether all targets are amounts that no profile shows: it shows time, or what the benchmark counts alone."""
        benchmarks = self._session.study.benchmarks
        return all(each.is_amount and benchmarks[each.benchmark].counted_alone is None for each in goal)

    def _priors_from(self, functions: Mapping[str, ProfiledFunctions] | None) -> Mapping[str, RevisionPriors]:
        """Return the priors from profiled functions, by the names of all targets that have one."""
        source, goal = self._session.source, self._request.goal
        if (
            isinstance(goal, Working)
            or not isinstance(source, FunctionSource)
            or not any(each.moved for each in (functions or {}).values())
        ):
            return {}
        assert functions is not None
        touched = source.touched_functions(self._revisions)
        found: dict[str, RevisionPriors] = {}
        for group in _groups(goal):
            known = functions.get(next(iter(group)))
            if known is not None:
                found |= dict.fromkeys(group, profile_priors(touched, known))
        return found

    def _count_builds(self) -> Generator[Event, None, None]:
        """Locate a change of time by instructions, if that is wanted and pays. A resumed search reads the counts."""
        request, goal = self._request, self._request.goal
        if (
            "instructions" not in request.priors
            or isinstance(goal, Working)
            or self._has_only_memory(goal)
            or len(_groups(goal)) > 1
            or len(self._revisions) < LEAST_PROFILED
            or request.budget.builds is not None
            or request.budget.invocations is not None
        ):
            return
        begun = self._begun(self._record(None))
        left = request.budget.seconds_before_search
        if begun:
            self._counts = _stored_counts(begun[0].question)
        else:
            self._counts = yield from count_builds(
                self._session,
                goal,
                self._revisions,
                self._ledger,
                weights=self._known_prior(goal[0]).weights,
                threshold=request.threshold,
                limit=None if left is None else max(0.0, left - self._profiling_seconds),
            )
        variant = goal[0].variant
        for position in (*dict(self._counts.counts), *self._counts.unusable):
            revision = self._revisions[position]
            built = self._session.subject_builder.known_build(Subject(revision=revision, variant=variant))
            if built is not None:
                self._ledger.attempted.add(revision.id)
                self._ledger.count_build(revision, variant, built.seconds)

    def _begun(self, record: SearchRecord) -> list[SearchRecord]:
        """Return this search as the store has it, if it began before."""
        return [
            each
            for each in self._session.store.searches()
            if (each.key, each.machine) == (record.key, record.machine)
        ]

    def _prior_of(self, target: Target) -> RevisionPriors:
        """Return the prior over culprits for one metric's change."""
        known = self._known_prior(target)
        if self._counts.counts and target.text == self._counts.metric:
            known = combined(known, instruction_priors(self._counts, self._revisions))
        if "measured" not in self._request.priors or len(self._revisions) < 2:
            return known
        from_samples = prior_from_samples(self._session, target, self._revisions, before=self._first_started)
        return with_measured(known, from_samples)

    def _known_prior(self, target: Target) -> RevisionPriors:
        """Return the prior from paths, messages and the profile of a metric's benchmark."""
        if named(target) in self._profile_priors:
            return combined(self._prior, self._profile_priors[named(target)])
        return self._prior

    def _read_first_started(self, record: SearchRecord) -> str:
        """Return when this search first began, so that a resumed search does not use its samples as a prior."""
        begun = self._begun(record)
        return begun[0].started if begun else record.started

    def _shown_as(self, record: SearchRecord) -> str:
        """Return the number of this search on this machine; empty if no later search began."""
        keys = [each.key for each in self._session.store.searches() if each.machine == record.machine]
        return "" if keys[-1] == record.key else str(keys.index(record.key) + 1)

    def _record(self, functions: Mapping[str, ProfiledFunctions] | None) -> SearchRecord:
        request, goal = self._request, self._request.goal
        ids = [revision.id for revision in self._revisions]
        targets: tuple[Target | Working, ...] = (goal,) if isinstance(goal, Working) else goal
        named = [[each.name, each.variant, *([each.scale] if each.scale else [])] for each in targets]
        reasons = dict.fromkeys(reason for each in self._profile_priors.values() for reason in each.reasons)
        # Empty for one source, so that the names of existing searches stay valid.
        pinned: list[object] = [pins] if (pins := self._session.pins.as_json()) else []
        pinned += [] if self._session.study.build.pin else ["as linked"]
        return SearchRecord(
            key=content_key(
                ids, named, request.threshold, request.confidence, request.thorough, SEARCH_VERSION, *pinned
            ),
            machine=self._session.machine.id,
            started=now(),
            question={
                "metric": ", ".join(target.text for target in targets),
                "variant": ", ".join(dict.fromkeys(target.variant for target in targets)),
                "benchmark": ", ".join(dict.fromkeys(target.benchmark for target in targets)),
                "revisions": len(ids),
                "first": ids[0],
                "last": ids[-1],
                "threshold": request.threshold,
                "confidence": request.confidence,
                "thorough": request.thorough,
                "prior_kinds": list(request.priors),
                **json_of(self._session.pins.as_json()),
                "priors": [
                    *self._prior.reasons,
                    *reasons,
                    *instruction_priors(self._counts, self._revisions).reasons,
                ],
                **({"instructions": to_plain(self._counts)} if self._counts.counts else {}),
                **({} if functions is None else {"profile": to_plain(dict(functions))}),
            },
        )


def _unless_timed_out(answer: Answer, revisions: int) -> Answer:
    """Return an answer; "unclear" instead of "none" if runs timed out, as equal medians do not show how often."""
    if answer.verdict is not Verdict.NONE or not revisions:
        return answer
    reason = (
        f"runs of {counted(revisions, 'revision')} timed out, and medians do not show whether more do; --metric works "
        "compares how often"
    )
    return replace(answer, verdict=Verdict.UNCLEAR, confidence=0.0, certificate=None, reason=reason)


def _searched_by(answer: FindAnswer) -> Iterator[str]:
    """Yield which metric located the changes and which one certified them, if perftrail counted instructions."""
    counts, requested = answer.counts, answer.target.text
    if not counts.counts:
        return
    if answer.searched_metric == "instructions":
        certified = f"certified by {requested}" if answer.certified_metric else "not certified"
        yield f"searched by instructions and {certified}"
    else:
        yield f"the counts did not locate the answer, so perftrail searched and certified by {requested}"


def _stored_counts(question: Mapping[str, Json]) -> InstructionCounts:
    """Return the counts of a stored search; none if it has none, as those of other versions."""
    stored = question.get("instructions")
    try:
        return from_plain(InstructionCounts, stored) if isinstance(stored, dict) else NO_COUNTS
    except ValueError:
        return NO_COUNTS


def _stored_functions(question: Mapping[str, Json]) -> Mapping[str, ProfiledFunctions] | None:
    """Return the profiled functions of a stored search; `None` if it has none, as those of other versions."""
    stored = question.get("profile")
    if not isinstance(stored, dict):
        return None
    try:
        return {
            name: from_plain(ProfiledFunctions, each)
            for name, each in stored.items()
            if isinstance(each, dict)
        }
    except ValueError:
        return None


def named(target: Target) -> str:
    """Return a target's name, with its variant if it is not the plain one."""
    return target.name if target.variant == "plain" else f"{target.name} ({target.variant})"


def _groups(targets: Sequence[Target]) -> list[dict[str, Target]]:
    """Group the targets that share their invocations, in the order of the first of each group."""
    groups: dict[tuple[object, ...], dict[str, Target]] = {}
    for target in targets:
        key = (target.benchmark, target.variant, frozenset(target.points))
        groups.setdefault(key, {})[named(target)] = target
    return list(groups.values())
