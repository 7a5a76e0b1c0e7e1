"""Loop of every search: ask the search, build, measure, report the results, and record the step.

`IncludedPositions` maps a search over the revisions that may be built to the whole history. `decisive_subjects`
returns the subjects on both sides of each change. `prior_from_samples` returns a prior from stored samples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perftrail.errors import NoAnswer
from perftrail.find import step_record
from perftrail.find.answer import FindTable
from perftrail.find.journal import SearchProgress
from perftrail.measure.events import BuilderMessage
from perftrail.measure.failed_invocation import NO_INPUT
from perftrail.measure.failure_groups import same_reason
from perftrail.measure.pairs import logarithm
from perftrail.model.build import Built as KnownBuild
from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement, Runnable
from perftrail.model.noisy_samples import FlaggedSample, select_samples
from perftrail.model.placeholders import names
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.model.wording import duration
from perftrail.results.changes import equal_neighbours
from perftrail.search import AllSettled, Built, CannotRelink, ManySearch, Unusable
from perftrail.search.answer import Verdict
from perftrail.stats.changepoints import search_weights

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.find.answer import FindAnswer, InsideMerge
    from perftrail.find.journal import Journal, Ledger
    from perftrail.find.sampler import Sampler
    from perftrail.measure.events import Event, Stepped
    from perftrail.measure.session import BuildView, Session
    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.search import Answer, Batch, BatchRequest, Belief, BootSession, Budget
    from perftrail.search.answer import Change


BUILD_STAGES = ("checkout", "build", "skipped")
"""Stages at which a revision fails for all metrics of its variant."""


class MetricSearch(Protocol):
    """A search for one metric or several: receives the results that it asked for, until all are settled."""

    def tell(
        self,
        observation: Built | Unusable | BootSession | CannotRelink,
        names: Iterable[str] | None = None,
        /,
    ) -> None:
        """Record an observation for some metrics, or for all."""
        ...

    def tell_batch(self, batches: Mapping[str, Batch], /) -> None:
        """Record one batch of samples, for each metric of its invocations."""
        ...

    def spend(self, seconds: float, /) -> None:
        """Record the total cost so far, in seconds."""
        ...

    def allow(self, budget: Budget, /) -> None:
        """Replace the budget."""
        ...

    def ask(self) -> BatchRequest | AllSettled:
        """Return what to measure next, or the answers."""
        ...

    def builds_ahead(self, begun: Collection[int], count: int, /) -> tuple[int, ...]:
        """Return up to `count` positions that are worth building along with those begun."""
        ...

    def belief(self, name: str, /) -> Belief | None:
        """Return the current belief about a metric."""
        ...


class Loop:
    """Runs until a search is settled; reuses everything that the store has.

    `samplers` take the samples, one for the metrics of each group of invocations. `budget` limits new steps.
    `merge` labels the steps of a search inside it. `metrics` is the number of metrics of the whole search.
    """

    def __init__(
        self,
        session: Session,
        search: MetricSearch,
        samplers: Sequence[Sampler],
        journal: Journal,
        ledger: Ledger,
        *,
        budget: Budget,
        merge: Revision | None = None,
        metrics: int = 1,
    ) -> None:
        self._session = session
        self._budget = budget
        self._search = search
        self._samplers = samplers
        self._sampler_of = {name: sampler for sampler in samplers for name in sampler.targets}
        self._journal = journal
        self._ledger = ledger
        self._part: Mapping[str, Json] = {} if merge is None else {"inside": merge.id}
        self._metrics = metrics
        self._requested: set[tuple[int, str]] = set()
        self._words = step_record.StepWords(merge=merge)

    def events(self) -> Generator[Event, None, Mapping[str, Answer]]:
        """Search; yield events and return each metric's answer."""
        while not isinstance(batch_request := self._next(), AllSettled):
            yield from self._perform(batch_request)
        return batch_request.answers

    def _next(self) -> BatchRequest | AllSettled:
        """Ask what to do next, in the journal's boot session for it."""
        while not isinstance(batch_request := self._ask(), AllSettled):
            if not self._enter_boot_session() and self._journal.accepts(*self._request(batch_request)):
                break
        return batch_request

    def _ask(self) -> BatchRequest | AllSettled:
        """Ask for the next step, with the budget that applies to it."""
        for budget in self._journal.budgets(self._budget):
            self._search.allow(budget)
            batch_request = self._search.ask()
            if isinstance(batch_request, AllSettled) or self._journal.is_recorded(
                *self._request(batch_request)
            ):
                break
        return batch_request

    def _request(self, batch_request: BatchRequest) -> tuple[list[str], int]:
        """Return a request as the journal records it: the ids of the revisions in their order, and the layout."""
        sampler = self._sampler_of[batch_request.names[0]]
        return [
            sampler.revisions[position].id for position in batch_request.measure.order
        ], batch_request.measure.layout

    def _enter_boot_session(self) -> bool:
        """Report samples from a new boot session to the search; return whether there are any."""
        is_new = False
        for sampler in self._samplers:
            observation = sampler.enter_boot_session(self._journal.boot)
            if observation is not None:
                self._search.tell(observation, sampler.targets)
                is_new = True
        return is_new

    def _perform(self, batch_request: BatchRequest) -> Generator[Event, None, None]:
        """Build and measure what the search asked for, report the results, and record the step."""
        sampler, measure = self._sampler_of[batch_request.names[0]], batch_request.measure
        yield from self._build_ahead(sampler, measure.positions)
        for position in measure.positions:
            observation = yield from sampler.prepare(position)
            if observation is None:
                continue
            self._report_build(sampler, observation)
            if isinstance(observation, Unusable) or observation.same_as is not None:
                yield self._record_step(
                    batch_request, sampler, dict.fromkeys(batch_request.names, observation)
                )
                yield from self._stop_if_all_fail(sampler)
                return
        measured = yield from sampler.take(measure, self._journal.next_step)
        if isinstance(measured, CannotRelink):
            failed = "layouts are not pinned" if sampler.pins else "relinking failed"
            yield BuilderMessage(text=f"{failed}, so perftrail draws no more layouts: {measured.reason}")
            self._search.tell(measured, sampler.targets)
            return
        self._search.tell_batch(measured.batches)
        for name, unusable in measured.unusable.items():
            for each in unusable:
                self._search.tell(each, (name,))
        yield self._record_step(batch_request, sampler, measured.batches)
        yield from self._stop_if_all_fail(sampler)

    def _report_build(self, sampler: Sampler, observation: Built | Unusable) -> None:
        """Report the outcome of a build to all metrics that it concerns."""
        self._search.tell(observation, sampler.targets)
        failure = None
        if isinstance(observation, Unusable):
            failure = next(
                why
                for name in sampler.targets
                if (why := sampler.failures(name).get(observation.position)) is not None
            )
        for other in self._samplers:
            if other is sampler or other.variant != sampler.variant:
                continue
            if failure is None:
                self._search.tell(
                    Built(position=observation.position, seconds=observation.seconds), other.targets
                )
            elif failure.stage in BUILD_STAGES:
                self._search.tell(other.record_failure(observation.position, failure), other.targets)

    def _build_ahead(self, sampler: Sampler, positions: Sequence[int]) -> Generator[Event, None, None]:
        """Build positions that are requested for the first time, in parallel with positions that are likely to follow.

        The search also receives the likely ones. Their choice does not depend on which builds the store already has.
        """
        subject_builder, variant = self._session.subject_builder, sampler.variant
        fresh = [position for position in positions if (position, variant) not in self._requested]
        self._requested |= {(position, variant) for position in fresh}
        if subject_builder.parallel_builds == 1 or not fresh:
            return
        ahead = [
            position
            for position in self._search.builds_ahead(positions, subject_builder.parallel_builds - len(fresh))
            if (position, variant) not in self._requested
        ]
        self._requested |= {(position, variant) for position in ahead}
        revisions = [sampler.revisions[position] for position in (*fresh, *ahead)]
        yield from self._ledger.build_all(revisions, variant=variant)
        for position in ahead:
            revision = sampler.revisions[position]
            outcome = subject_builder.known_build(Subject(revision=revision, variant=variant))
            if outcome is None:
                continue
            self._ledger.attempted.add(revision.id)
            self._ledger.count_build(revision, variant, outcome.seconds)
            if sampler.works or not isinstance(outcome, Failure):
                self._report_build(sampler, Built(position=position, seconds=outcome.seconds))
            elif outcome.stage in BUILD_STAGES:
                self._report_build(
                    sampler, sampler.record_failure(position, outcome, seconds=outcome.seconds)
                )

    def _record_step(
        self,
        batch_request: BatchRequest,
        sampler: Sampler,
        observation: Mapping[str, Batch | Built | Unusable],
    ) -> Stepped:
        """Record a step, with the belief after it."""
        self._search.spend(self._journal.seconds)
        # The belief is computed for the next request; in the other order it would be computed twice.
        self._search.ask()
        name = batch_request.names[0]
        subject = step_record.measured_position(batch_request.measure, observation[name])
        revisions = sampler.revisions
        data = {
            name: step_record.observation_json(each, subject, sampler, name)
            for name, each in observation.items()
        }
        beliefs = {name: self._search.belief(name) for name in observation}
        plain = {name: step_record.belief_json(belief, revisions) for name, belief in beliefs.items()}
        alone = len(self._sampler_of) == 1
        words, purpose = self._words.describe(
            batch_request,
            observation,
            sampler,
            {each: self._search.belief(each) for each in self._sampler_of},
            alone=alone,
        )
        action = step_record.action_json(batch_request, subject, revisions, alone=alone, purpose=purpose)
        return self._journal.step(
            action={**action, **self._part},
            observation=data[name] if alone else data,
            belief=({} if self._part else plain[name]) if alone else plain,
            words=words,
            purpose=purpose,
            progress=self._progress(),
        )

    def _progress(self) -> SearchProgress:
        """Return how many metrics are decided, and the time left; a search inside a merge has no forecast."""
        if not isinstance(self._search, ManySearch):
            return SearchProgress(metrics=self._metrics, decided=self._metrics)
        left, ledger, budget = self._search.work_left(), self._ledger, self._budget
        runs = left.runs
        if budget.invocations is not None:
            rest = max(0, budget.invocations - len(ledger.invocations))
            runs = (min(runs[0], rest), min(runs[1], rest))
        least, most = (
            count * ledger.mean_invocation + builds * ledger.mean_build
            for count, builds in zip(runs, left.builds, strict=True)
        )
        rest_seconds = ledger.seconds_left(budget)
        return SearchProgress(
            metrics=self._metrics,
            decided=self._search.decided,
            seconds_left=(min(least, rest_seconds), min(most, rest_seconds)),
        )

    def _stop_if_all_fail(self, sampler: Sampler) -> Generator[Event, None, None]:
        """Raise `NoAnswer` if all revisions so far failed for one reason, and the newest one fails for it too.

        If only the study can cause the failure, perftrail does not try the newest revision.
        """
        if self._session.keep_going:
            return
        if not self._part and all(map(sampler.only_timed_out, sampler.targets)):
            limit = duration(self._session.study.benchmarks[sampler.benchmark].timeout_seconds)
            raise NoAnswer(
                f"every run so far exceeded its time limit of {limit}, at both ends: write a larger timeout into "
                f"[benchmark.{sampler.benchmark}], or --timeout"
            )
        if not (reason := self._same_reason(sampler)):
            return
        newest = len(sampler.revisions) - 1
        if not all(self._is_study_mistake(sampler, name) for name in sampler.targets):
            observation = yield from sampler.prepare(newest)
            if observation is not None:
                self._report_build(sampler, observation)
            if any(newest not in sampler.failures(name) for name in sampler.targets):
                return
            reason = self._same_reason(sampler)
        if reason:
            raise NoAnswer(reason)

    def _same_reason(self, sampler: Sampler) -> str:
        """Return why all revisions so far failed; empty if one is usable, and if they have several reasons."""
        failures: dict[Subject, Failure] = {}
        study, eras_of = self._session.study, self._session.subject_builder.build_inputs.eras_of
        for name in sampler.targets:
            if sampler.usable(name):
                return ""
            failures = {
                Subject(revision=sampler.revisions[position], variant=sampler.variant): failure
                for position, failure in sampler.failures(name).items()
            }
            if not same_reason(failures, study, sampler.benchmark, eras_of=eras_of):
                return ""
        return same_reason(failures, study, sampler.benchmark, eras_of=eras_of)

    def _is_study_mistake(self, sampler: Sampler, name: str) -> bool:
        """Whether a failure belongs to the study and not to a revision: its own program or input file is missing."""
        failure = next(iter(sampler.failures(name).values()))
        benchmark = self._session.study.benchmarks[sampler.benchmark]
        command = benchmark.command.replace("{study}", self._session.study.directory)
        if failure.stage == "start":
            program = command.split(maxsplit=1)[0]
            return not (names(program) or benchmark.is_built(program)) or (
                failure.message.startswith(NO_INPUT) and "{build}" not in failure.message
            )
        if failure.stage != "crash":
            return False
        named = re.findall(r"(?<![\w.])/[^\s'\"`:,;()]+", failure.message)
        return any(path in command and not Path(path).exists() for path in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedPositions:
    """The positions in a history of the revisions that are not skipped, ascending."""

    positions: tuple[int, ...]

    def weights(self, prior: Sequence[float] | None) -> tuple[float, ...] | None:
        """Return a prior over the whole history as one over these positions: a skipped revision adds to the next.

        Without a prior, all revisions of the history have equal weights.

        >>> IncludedPositions(positions=(0, 3, 4)).weights(None)
        (1.0, 3.0, 1.0)
        """
        if not self._any:
            return None if prior is None else tuple(prior)
        each = prior or [1.0] * (self.positions[-1] + 1)
        ends = (-1, *self.positions)
        return tuple(sum(each[low + 1 : high + 1]) for low, high in pairwise(ends))

    def answer(self, found: Answer) -> Answer:
        """Return an answer about these positions as one about the history: a skipped revision may be the culprit."""
        if not self._any:
            return found
        changes = tuple(map(self._change, found.changes))
        answer = replace(
            found,
            changes=changes,
            below_threshold=tuple(map(self._change, found.below_threshold)),
            suspected=tuple(
                replace(each, positions=self._candidates(each.positions)) for each in found.suspected
            ),
            unseen=None
            if found.unseen is None
            else (self.positions[found.unseen[0]], self.positions[found.unseen[1]]),
        )
        isolated = found.verdict is not Verdict.FOUND or all(len(each.positions) == 1 for each in changes)
        if isolated:
            return answer
        reason = f"{found.reason}; the study skips the revisions between"
        return replace(answer, verdict=Verdict.RANGE, reason=reason)

    @property
    def _any(self) -> bool:
        return self.positions != tuple(range(len(self.positions)))

    def _change(self, change: Change) -> Change:
        return replace(change, positions=self._candidates(change.positions))

    def _candidates(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of candidates; a skipped revision before one is a candidate, too."""
        before = (-1, *self.positions)
        return tuple(
            position for index in indices for position in range(before[index] + 1, self.positions[index] + 1)
        )


def included_positions(revisions: Sequence[Revision], wanted: Sequence[Revision]) -> IncludedPositions:
    """Return the positions of the wanted revisions in a history."""
    ids = {revision.id for revision in wanted}
    return IncludedPositions(
        positions=tuple(position for position, each in enumerate(revisions) if each.id in ids)
    )


def decisive_subjects(result: FindAnswer | FindTable, attempted: Collection[str]) -> tuple[Subject, ...]:
    """Return the subjects on both sides of the changes, on which the answer depends; inside merges too, each once.

    `attempted` are the ids of revisions that the search asked for.
    """
    found: dict[Subject, None] = {}
    for answer in result.answers if isinstance(result, FindTable) else (result,):
        usable = set(attempted) - {each.revision.id for each in answer.unusable}
        for revision in _revisions(answer, usable):
            found[Subject(revision=revision, variant=answer.target.variant)] = None
    return tuple(found)


def _revisions(answer: FindAnswer, usable: Collection[str]) -> Iterator[Revision]:
    for number, change in enumerate(answer.answer.changes):
        yield from _revisions_around(answer.revisions, change, usable)
        inside: InsideMerge | None = answer.inside.get(number)
        while inside is not None:
            if inside.change is not None:
                yield from _revisions_around(inside.revisions, inside.change, usable)
            inside = inside.inside


def _revisions_around(
    revisions: Sequence[Revision], change: Change, usable: Collection[str]
) -> Iterator[Revision]:
    first, last = change.positions[0], change.positions[-1]
    before = (each for each in reversed(revisions[:first]) if each.id in usable)
    after = (each for each in revisions[last:] if each.id in usable)
    for side in (before, after):
        nearest = next(side, None)
        if nearest is not None:
            yield nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """The natural logarithms of the values at a position, and their runnables."""

    position: int
    runnables: frozenset[str]
    logs: Sequence[float]


def prior_from_samples(
    view: BuildView, target: Target, revisions: Sequence[Revision], *, before: str
) -> tuple[float, ...] | None:
    """Return prior weights of the revisions from this machine's samples, for `Question.prior`.

    Only samples that started before `before` count (ISO 8601, as the store writes it). Use the time when the
    search began (`SearchRecord.started` of a resumed search). A resumed search then asks the same again, and
    its own samples do not become its prior. Returns `None` without samples. Builds and measures nothing.
    """
    stored = {runnable.revision for runnable in view.store.runnables(target.benchmark)}
    # A revision that the search itself built may share the samples of an earlier one.
    built = built_before(view, target.variant, revisions, before=before) if stored else frozenset()
    keys = {
        position: found
        for position in sorted(built)
        if revisions[position].id in stored
        and (found := _keys(view, target, revisions[position])) is not None
    }
    every = {key for of_points in keys.values() for key in of_points.values()}
    outcomes = view.store.outcomes(every, view.machine.id)
    earlier = {key: _earlier(stored, before) for key, stored in outcomes.items()}
    least = view.study.measure.invocations.least
    measured = [
        _Measured(position=position, runnables=frozenset(of_points.values()), logs=logs)
        for position, of_points in keys.items()
        if (logs := _logs(target, {point: earlier.get(key, {}) for point, key in of_points.items()}, least))
    ]
    firsts = [
        measured[neighbours[0]] for neighbours in equal_neighbours([each.runnables for each in measured])
    ]
    return search_weights([(each.position, each.logs) for each in firsts], len(revisions))


def built_before(
    view: BuildView, variant: str, revisions: Sequence[Revision], *, before: str
) -> frozenset[int]:
    """Return the positions whose present build of a variant was first stored before a time.

    The first record counts: a search stores an old build again if it links that build in another layout, or if
    another revision has the same build. So a resumed search gets the same positions.
    """
    earlier: dict[str, set[str]] = {}
    for (revision, of_variant, key), finished in view.store.first_finished().items():
        if of_variant == variant and finished < before:
            earlier.setdefault(revision, set()).add(key)
    found: set[int] = set()
    for position, each in enumerate(revisions):
        if each.id in earlier:
            known = view.subject_builder.known_build(Subject(revision=each, variant=variant))
            if isinstance(known, KnownBuild) and known.key in earlier[each.id]:
                found.add(position)
    return frozenset(found)


def _keys(view: BuildView, target: Target, revision: Revision) -> dict[Point, str] | None:
    """Return the runnable's key at each point of a target, or `None` if one was never built."""
    subject = Subject(revision=revision, variant=target.variant)
    keys: dict[Point, str] = {}
    for point in target.points:
        cell = Cell(subject=subject, benchmark=target.benchmark, point=point)
        runnable = view.subject_builder.known_runnable(cell)
        if not isinstance(runnable, Runnable):
            return None
        keys[point] = runnable.key
    return keys


def _logs(
    target: Target, earlier: Mapping[Point, Mapping[int, Measurement]], least: int
) -> tuple[float, ...]:
    """Evaluate a target for each ordinal that every point has; a flag of any point applies to the value."""
    flagged: list[FlaggedSample] = []
    for ordinal in sorted(set.intersection(*(set(each) for each in earlier.values()))):
        measurements = {point: each[ordinal] for point, each in earlier.items()}
        value = logarithm(target, measurements)
        if isinstance(value, float):
            flags = {flag: None for each in measurements.values() for flag in each.flags}
            flagged.append(FlaggedSample(value=value, flags=tuple(flags)))
    return select_samples(flagged, least=least).values


def _earlier(outcomes: Sequence[Outcome], before: str) -> dict[int, Measurement]:
    """Return the samples that started before a time, by ordinal."""
    return {
        outcome.key.ordinal: outcome
        for outcome in outcomes
        if isinstance(outcome, Measurement) and outcome.key.phase == "sample" and outcome.started < before
    }
