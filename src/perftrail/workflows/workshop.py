"""Making subjects, once each: what the store knows to have been made, or to fail, is not done again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import Runnable
from perftrail.model.placeholders import study_files
from perftrail.model.plan import benchmark_steps, mentioning, recipe, runnable_key
from perftrail.workflows.clock import now
from perftrail.workflows.events import BuildFinished, BuildStarted, LinkFailed

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from perftrail.model.build import Recipe
    from perftrail.model.measurement import InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.recipe import Era
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Builder, Source, Store
    from perftrail.workflows.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A cell that can be started: what it stands for in the store and what it was made of."""

    cell: Cell
    runnable: Runnable
    prepared: Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A job: start this, as that invocation."""

    ready: Ready
    key: InvocationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """What a benchmark's own build takes, placeholders of the machine still open."""

    steps: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[str, ...]


class Workshop:
    """Makes each subject, and each benchmark on it, at most once, and keeps what came of it.

    A failed build is a fact. With `retry_failed` each failure that the store knows is tried once more.
    """

    def __init__(
        self, study: Study, source: Source, builder: Builder, store: Store, *, retry_failed: bool = False
    ) -> None:
        self._study = study
        self._builder = builder
        self._store = store
        self._retry_failed = retry_failed
        self._made: dict[str, Built | Prepared | Failure] = {}
        self._eras: tuple[tuple[Era, frozenset[str]], ...] = tuple(
            (era, source.within(era.range)) for era in study.build.when
        )

    def recipe(self, subject: Subject) -> Recipe:
        """The recipe that makes a subject, its eras and its variant considered."""
        eras = [era for era, ids in self._eras if subject.revision.id in ids]
        return recipe(self._study, subject.variant, eras)

    def known_build(self, subject: Subject) -> Built | Failure | None:
        """What is known of a subject's build, `None` when it is to be made yet. Makes nothing."""
        outcome = self._known(self._builder.key(subject, self.recipe(subject)))
        assert not isinstance(outcome, Prepared)
        return outcome

    def known_runnable(self, cell: Cell) -> Runnable | Failure | None:
        """What a cell is known by, `None` when something is to be made yet. Makes nothing."""
        built = self.known_build(cell.subject)
        if not isinstance(built, Built):
            return built
        link = self._link(cell)
        outcome = self._known(self._builder.link_key(built, steps=link.steps, env=link.env, files=link.files))
        return self._runnable(cell, outcome) if isinstance(outcome, Prepared) else None

    def build(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Make a subject, or give what is known to come of it."""
        how = self.recipe(subject)
        key = self._builder.key(subject, how)
        made = self._made.get(key)
        if made is not None:
            assert not isinstance(made, Prepared)
            return made
        known = self._known(key)
        if known is None:
            yield BuildStarted(subject=subject)
        outcome = known if isinstance(known, Failure) else self._builder.make(subject, how)
        if known is None:
            self._record(key, subject, outcome)
        self._made[key] = outcome
        yield BuildFinished(subject=subject, outcome=outcome, known=known is not None)
        return outcome

    def ready(self, cell: Cell) -> Generator[Event, None, Ready | Failure]:
        """Make a cell's subject and its benchmark, or say what failed."""
        built = yield from self.build(cell.subject)
        if isinstance(built, Failure):
            return built
        link = self._link(cell)
        key = self._builder.link_key(built, steps=link.steps, env=link.env, files=link.files)
        outcome = self._made.get(key)
        if outcome is None:
            known = self._known(key)
            outcome = known if isinstance(known, Failure) else self._prepare(built, link)
            if known is None:
                self._record(key, cell.subject, outcome, benchmark=cell.benchmark)
            self._made[key] = outcome
            if isinstance(outcome, Failure):
                yield LinkFailed(subject=cell.subject, benchmark=cell.benchmark, failure=outcome)
        if isinstance(outcome, Failure):
            return outcome
        assert isinstance(outcome, Prepared)
        runnable = self._runnable(cell, outcome)
        self._store.add_runnable(runnable)
        return Ready(cell=cell, runnable=runnable, prepared=outcome)

    def _known(self, key: str) -> Built | Prepared | Failure | None:
        made = self._made.get(key)
        if made is not None:
            return made
        record = self._store.build(key)
        if record is None or (isinstance(record.outcome, Failure) and self._retry_failed):
            return None
        return record.outcome

    def _prepare(self, built: Built, link: _Link) -> Prepared | Failure:
        return self._builder.prepare(
            built,
            steps=link.steps,
            env=link.env,
            files=link.files,
            timeout_seconds=self._study.build.timeout_seconds,
        )

    def _record(
        self, key: str, subject: Subject, outcome: Built | Prepared | Failure, *, benchmark: str = ""
    ) -> None:
        record = BuildRecord(
            key=key,
            revision=subject.revision.id,
            variant=subject.variant,
            benchmark=benchmark,
            outcome=outcome,
            finished=now(),
        )
        self._store.add_build(record)

    def _link(self, cell: Cell) -> _Link:
        return _Link(
            steps=benchmark_steps(self._study, cell),
            env=self.recipe(cell.subject).env,
            files=tuple(
                str(Path(self._study.directory, name))
                for name in study_files(mentioning(self._study, cell), cell.point.as_dict())
            ),
        )

    def _runnable(self, cell: Cell, prepared: Prepared) -> Runnable:
        return Runnable(
            key=runnable_key(self._study, cell, prepared),
            revision=cell.subject.revision.id,
            variant=cell.subject.variant,
            benchmark=cell.benchmark,
            point=cell.point,
            artefact=prepared.artefact,
        )
