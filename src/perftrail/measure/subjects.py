"""Build subjects and benchmarks, once each, and reuse what the store already knows.

`SubjectBuilder` builds them and records each outcome, failures included. `retry_stale_builds` repeats work whose builds
were wrong.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perftrail.builds.artefact import (
    content_of_input,
    covers,
    has_linked_files,
    is_linked,
    outermost,
)
from perftrail.builds.observing import CALLS as OBSERVED_CALLS
from perftrail.errors import REPEAT, InputChanged, SourceError, StaleBuilds
from perftrail.measure.build_inputs import NO_OTHERS, BenchmarkBuild, BuildInputs
from perftrail.measure.events import (
    BenchmarkBuildFailed,
    BuilderMessage,
    BuildFinished,
    BuildStarted,
    OutputsRead,
    Relinked,
    RelinkedWithoutEffect,
    now,
)
from perftrail.measure.opened_inputs import OpenedInputs
from perftrail.measure.sources import eras_of
from perftrail.measure.stored_outputs import missing_metrics, with_metrics
from perftrail.model.build import BenchmarkLines, BuildRecord, Built, Failure, Prepared, content_key
from perftrail.model.measurement import UNDRAWN, Runnable
from perftrail.model.placeholders import DATE, names
from perftrail.model.plan import cells, texts_with_files
from perftrail.model.program import has_layout_of_service, may_be_linked
from perftrail.model.reads import BuildReads
from perftrail.model.source import NO_PINS
from perftrail.model.store_records import ReadsRecord
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.ports import ListableSource, ObservingBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.builds.toolchain import Toolchain
    from perftrail.measure.events import Event
    from perftrail.measure.sources import SkippedRevisions
    from perftrail.model.build import ManualBuild, Recipe
    from perftrail.model.measurement import Draw, InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Builder, Source, Store


EQUAL_LAYOUTS = 3
"""Number of equal layouts that show that relinking has no effect: three objects have six orders."""


def _observation_key(
    builder: ObservingBuilder, recipe: Recipe, lines: Sequence[BenchmarkLines], named: BuildReads
) -> str:
    """Return the content key of everything that an observation depends on except the tree."""
    builds = [[list(each.steps), dict(each.env)] for each in lines]
    return content_key(OBSERVED_CALLS, builder.inputs_key(recipe), builds, sorted(named.opened))


_IN_TREE = re.compile(r"\{build\}([^\s\"';|&<>()]*)")
"""A path of the build's tree in a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A cell that is ready to start: its runnable in the store and its builds.

    `layout` is the seed of its relinking; 0: as its recipe links it. The samples of every layout belong to
    one runnable. `content` is the content key of the program: equal for two layouts with equal files. It is
    the key of `runnable` as linked, and another key with a layout. `inputs` are the files and directories that the
    benchmark names, each with the digest of its content; a directory includes the files below it.
    """

    cell: Cell
    runnable: Runnable
    prepared: Prepared
    layout: int = 0
    content: str = ""
    inputs: tuple[tuple[str, str], ...] = ()

    def check_inputs(self) -> None:
        """Raise `InputChanged` if a file changed since this cell became ready."""
        for path, content in self.inputs:
            if content_of_input(Path(path)) != content:
                raise InputChanged(
                    f"{path}: changed while perftrail measured, so it discarded the last sample; {REPEAT}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInvocation:
    """An invocation to perform, with its key and draw; the recorded layout is that of `ready`."""

    ready: Ready
    key: InvocationKey
    draw: Draw = UNDRAWN


class SubjectBuilder:
    """Builds each subject, and each benchmark on it, at most once, and records the outcome.

    A failed build is an outcome, unless this machine caused it: then the store has nothing, and the next command tries
    again. With `retry_failed` each failure that the store knows is tried once more.
    `build_inputs` returns the inputs of each build. `source` is the study's own source. `pins` are the pinned
    revisions of the sources, and `others` are the other sources. `machine` is the id of the machine that
    measures, `logs` the directory of its logs. `opened` are the files that benchmarks open on it by themselves.
    """

    def __init__(  # noqa: PLR0913 - each is a part of a session
        self,
        study: Study,
        source: Source,
        builder: Builder,
        store: Store,
        *,
        retry_failed: bool = False,
        machine: str = "",
        logs: Path = Path(),
        pins: Pins = NO_PINS,
        others: Mapping[str, Source] = NO_OTHERS,
        tools: Toolchain | None = None,
    ) -> None:
        self._study = study
        self._builder = builder
        self._store = store
        self.retry_failed = retry_failed
        self._machine = machine
        self._logs = logs
        self._searched = others.get(study.along, source)
        self._positions: dict[str, int] | None = None
        self._recorded_revisions: set[str] = set()
        self._last_runnables: dict[tuple[object, ...], Runnable] | None = None
        self._key_by_subject: dict[tuple[str, str], str] | None = None
        self._known_outcomes: dict[str, Built | Prepared | Failure] = {}
        self._stored_outcomes: dict[str, Built | Prepared | Failure] = {}
        self._contents: dict[str, dict[int, str]] = {}
        self._source = source
        self._observations: dict[str, Sequence[ReadsRecord]] = {}
        self.eras = eras_of(study, source, searched=self._searched)
        self.opened = OpenedInputs(study, store, machine=machine)
        self.build_inputs = BuildInputs(study, self.eras, pins, others, tools, self.opened)

    def skipped_revisions(self, revisions: Sequence[Revision]) -> tuple[SkippedRevisions, ...]:
        """Return the skipped revisions among these, by reason."""
        return self.eras.skipped_revisions(revisions)

    def wanted(self, revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        """Return the revisions that the study does not skip."""
        return self.eras.wanted(revisions)

    def known_build(self, subject: Subject) -> Built | Failure | None:
        """Return what is known of a subject's build, or `None`; a skipped revision counts as failed."""
        if (skipped := self._skipped(subject)) is not None:
            return skipped
        outcome = self._known(
            self._builder.key(self.build_inputs.built_subject(subject), self.build_inputs.recipe(subject))
        )
        assert not isinstance(outcome, Prepared)
        return outcome

    def known_runnable(self, cell: Cell) -> Runnable | Failure | None:
        """Return the runnable of a cell, or `None` if a build is missing. Builds nothing."""
        built = self.known_build(cell.subject)
        if not isinstance(built, Built):
            return built
        key = self.build_inputs.benchmark_build(cell).key(self._builder, built)
        outcome = self._known(key)
        return self.build_inputs.runnable(cell, outcome, key) if isinstance(outcome, Prepared) else None

    def build(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Build a subject, or return its known outcome; a skipped revision fails."""
        skipped = self._skipped(subject)
        return skipped if skipped is not None else (yield from self.build_even_skipped(subject))

    def build_even_skipped(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Build a subject, skipped or not, or return its known outcome."""
        recipe = self.build_inputs.recipe(subject)
        own = self.build_inputs.built_subject(subject)
        key = self._builder.key(own, recipe)
        earlier = self._known_outcomes.get(key)
        if earlier is not None:
            assert not isinstance(earlier, Prepared)
            self._share(key, subject, earlier)
            return earlier
        known = self._known(key)
        if known is None and (twin := self._observed_twin(own, recipe)) is not None:
            outcome = self._builder.build(twin, recipe)
            if isinstance(outcome, Built):
                self._known_outcomes[key] = outcome
                self._share(outcome.key, subject, outcome)
                yield BuilderMessage(
                    text=f"{subject} is the same build as {twin}: no file that it reads differs"
                )
                yield BuildFinished(subject=subject, outcome=outcome, known=True)
                yield from self._messages()
                return outcome
        if known is None:
            yield BuildStarted(subject=subject)
        outcome = known if isinstance(known, Failure) else self._builder.build(own, recipe)
        if known is None or _differ(known, outcome):
            self._record(key, subject, outcome)
        else:
            self._share(key, subject, outcome)
        self._known_outcomes[key] = outcome
        yield BuildFinished(subject=subject, outcome=outcome, known=known is not None)
        yield from self._messages()
        return outcome

    @property
    def can_observe(self) -> bool:
        """Whether strace can observe builds here."""
        return isinstance(self._builder, ObservingBuilder) and self._builder.can_observe

    def observe(self, subject: Subject) -> Generator[Event, None, BuildReads]:
        """Return the paths that the builds of a subject and of its benchmarks use, and those that a command names.

        Unless the store knows them, the subject is built once more under strace.
        """
        recipe, own = self.build_inputs.recipe(subject), self.build_inputs.built_subject(subject)
        named = self._paths_of_benchmarks(subject)
        if named.incomplete:
            return named
        if not (isinstance(self._builder, ObservingBuilder) and self._builder.can_observe):
            return BuildReads(incomplete="strace is not installed, or the builds are in a sandbox")
        lines = self._benchmark_lines(subject)
        inputs = _observation_key(self._builder, recipe, lines, named)
        key = content_key(inputs, self._builder.key(own, recipe))
        for record in self._observations_of(inputs):
            if record.key == key:
                return record.reads
        yield BuilderMessage(text=f"builds {subject} once more, to observe which files the build reads")
        reads = named | self._builder.observe(own, recipe, lines)
        self._store.add_build_reads(
            ReadsRecord(key=key, recipe=inputs, revision=own.revision.id, finished=now(), reads=reads)
        )
        self._observations.pop(inputs)
        return reads

    def _observations_of(self, inputs: str) -> Sequence[ReadsRecord]:
        if inputs not in self._observations:
            self._observations[inputs] = self._store.build_reads(inputs)
        return self._observations[inputs]

    def _observed_twin(self, own: Subject, recipe: Recipe) -> Subject | None:
        """Return a built subject whose observed build sees no difference between its tree and that of `own`."""
        builder, source = self._builder, self._source
        texts = (*recipe.steps, *recipe.env.values())
        if not (isinstance(builder, ObservingBuilder) and isinstance(source, ListableSource)):
            return None
        if recipe.root or recipe.incremental or recipe.repairs.patches or not recipe.outputs:
            return None
        if any(name in ("revision", DATE) for text in texts for name in names(text)):
            return None
        named = self._paths_of_benchmarks(own)
        if named.incomplete:
            return None
        for record in self._observations_of(
            _observation_key(builder, recipe, self._benchmark_lines(own), named)
        ):
            if record.reads.incomplete or record.revision == own.revision.id:
                continue
            try:
                (revision,) = source.history(f"{record.revision}..{record.revision}")
            except SourceError:
                continue  # the history no longer has this revision
            twin = replace(own, revision=revision)
            if isinstance(self._known(builder.key(twin, recipe)), Built):
                before, after = source.files(revision), source.files(own.revision)
                differing = {path for path in {*before, *after} if before.get(path) != after.get(path)}
                is_output = any(covers(recipe.outputs, path) for path in differing)
                if not is_output and record.reads.key(before) == record.reads.key(after):
                    return twin
        return None

    def _benchmark_lines(self, subject: Subject) -> tuple[BenchmarkLines, ...]:
        builds = [self.build_inputs.benchmark_build(cell) for cell in cells(self._study, subject)]
        named = {(each.steps, tuple(sorted(each.env.items()))): each for each in builds if each.steps}
        return tuple(BenchmarkLines(steps=each.steps, env=each.env) for each in named.values())

    def _paths_of_benchmarks(self, subject: Subject) -> BuildReads:
        """Return the paths of the tree that the study's commands name; whole directories before a placeholder."""
        found: set[str] = set()
        for cell in cells(self._study, subject):
            if self._study.benchmarks[cell.benchmark].directory is not None:
                found.add("")
            if self.build_inputs.benchmark_build(cell).sources:
                return BuildReads(incomplete="a benchmark is built with the trees of other sources")
            for text in texts_with_files(self._study, cell):
                for path in _IN_TREE.findall(text):
                    fixed = path.partition("{")[0]
                    found.add((fixed if fixed == path else posixpath.dirname(fixed)).strip("/"))
        if "" in found or self._study.suites:
            return BuildReads(incomplete="a benchmark may use every file of the tree")
        return BuildReads(opened=frozenset(found))

    def protect(self, subjects: Iterable[Subject]) -> None:
        """Protect the builds of subjects that are used later from removal for disk space."""
        wanted = (subject for subject in subjects if self._skipped(subject) is None)
        self._builder.protect(
            (self.build_inputs.built_subject(subject), self.build_inputs.recipe(subject))
            for subject in wanted
        )

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds."""
        return self._builder.parallel_builds

    def build_in_parallel(self, subjects: Iterable[Subject]) -> Generator[Event, None, None]:
        """Build subjects in parallel if the builder can; do nothing if it builds one at a time.

        All builds have ended when this returns: nothing is built during a measurement.
        """
        if self._builder.parallel_builds > 1:
            fresh = [each for each in subjects if not isinstance(self.known_build(each), Failure)]
            self._builder.begin(
                (self.build_inputs.built_subject(each), self.build_inputs.recipe(each)) for each in fresh
            )
            yield from self._messages()
            for subject in fresh:
                yield from self.build_even_skipped(subject)

    def confirm(self, decisive: Iterable[Subject] = ()) -> Generator[Event, None, None]:
        """Compare builds from reused trees with clean builds.

        `decisive` subjects, on which an answer depends, are compared even if a later build in their tree was correct.
        Raises `StaleBuilds` when builds differ.
        """
        self._builder.confirm(
            (self.build_inputs.built_subject(each), self.build_inputs.recipe(each)) for each in decisive
        )
        yield from self._messages()

    def forget(self) -> None:
        """Forget all builds: they are read from the store again, and discarded builds are built again."""
        self._known_outcomes.clear()
        self._stored_outcomes.clear()

    def _messages(self) -> Generator[Event, None, None]:
        yield from (BuilderMessage(text=text) for text in self._builder.messages())

    def ready(self, cell: Cell, *, layout: int = 0) -> Generator[Event, None, Ready | Failure]:
        """Build a cell's subject and benchmark, linked with a seed if `layout` is not 0, or return the failure.

        Each layout uses the runnable of the build as linked. Raises `ValueError` if no recipe states how to relink the
        cell, and links are not recorded. Several layouts cost less when `relink` links them together first.
        """
        built = yield from self.build(cell.subject)
        linked = yield from self._linked(cell, built)
        if isinstance(linked, Failure):
            return linked
        self._record_revision(cell.subject.revision)
        earlier = self._record_runnable(linked.runnable)
        if earlier is not None:
            yield from self._reuse_outputs(linked, earlier)
        if not layout:
            return linked
        if not (self._has_relink_lines(cell) or self.pins(cell)):
            raise ValueError(f"{cell}: the study does not state how to relink it")
        if self.pins(cell) and (reason := self.unpinned(cell)):
            return Failure(stage="relink", message=reason)
        if self._relinks_build(cell):
            built = (yield from self._relink(cell.subject, linked.prepared.built, (layout,)))[layout]
        relinked = yield from self._linked(cell, built, layout=layout)
        if isinstance(relinked, Failure):
            return relinked
        yield from self._compare_layouts(linked, relinked)
        return replace(relinked, runnable=linked.runnable)

    def prepared(self, cell: Cell) -> Generator[Event, None, Ready | Failure]:
        """Build a cell's subject and benchmark, or return the failure; record no runnable: it is not a benchmark."""
        built = yield from self.build(cell.subject)
        return (yield from self._linked(cell, built))

    def _reuse_outputs(self, ready: Ready, earlier: Runnable) -> Iterator[OutputsRead]:
        """Store the outcomes of a cell's earlier runnable for the present one, if only metrics were added since.

        Their values come from the stored outputs. The earlier key proves that nothing else differs.
        """
        cell, key = ready.cell, ready.runnable.key
        stored = self._store.outcomes((earlier.key, key), self._machine)
        outcomes = stored.get(earlier.key, ())
        declared = self._study.benchmarks[cell.benchmark].metrics
        added = missing_metrics(declared, outcomes)
        if not added or stored.get(key):
            return
        inputs = self.build_inputs.without(cell, added)
        build = self.build_inputs.benchmark_build(cell).key(self._builder, ready.prepared.built)
        if inputs.runnable(cell, ready.prepared, build).key != earlier.key:
            return
        metrics = {name: metric for name, metric in declared.items() if name in added}
        found = with_metrics(outcomes, metrics, runnable=key, logs=self._logs)
        for outcome in found:
            self._store.add(outcome)
        yield OutputsRead(
            cell=cell, metrics=tuple(metrics), read=len(found), missing=len(outcomes) - len(found)
        )

    def _record_runnable(self, runnable: Runnable) -> Runnable | None:
        """Store a runnable as the last one of its cell; return the earlier one if that has another key."""
        if self._last_runnables is None:
            self._last_runnables = {_cell_of(each): each for each in self._store.runnables()}
        known = self._last_runnables.get(_cell_of(runnable))
        if known is None or (known.key, known.origin) != (runnable.key, runnable.origin):
            self._store.add_runnable(runnable, last=known is not None and known.key != runnable.key)
            self._last_runnables[_cell_of(runnable)] = runnable
        return known if known is not None and known.key != runnable.key else None

    def _record_revision(self, revision: Revision) -> None:
        """Store a measured revision with its position; at the first one, renew the positions of all others."""
        if revision.id in self._recorded_revisions:
            return
        if self._positions is None:
            history = self._searched.history()
            self._positions = {each.id: position for position, each in enumerate(history)}
            known = {each.id for each in self._store.history()}
            again = [(self._positions[each.id], each) for each in history if each.id in known]
        else:
            again = []
        self._recorded_revisions.add(revision.id)
        if revision.id in self._positions:
            self._store.add_revisions([*again, (self._positions[revision.id], revision)])

    def can_relink(self, cell: Cell) -> bool:
        """Whether the cell's program can be linked in several layouts, for all that is known of its builds."""
        return self._has_relink_lines(cell) or (self.pins(cell) and not self.unpinned(cell))

    def pins(self, cell: Cell) -> bool:
        """Whether layouts of the cell's program come from recorded links, if these can be repeated."""
        recipe, benchmark = self.build_inputs.recipe(cell.subject), self._study.benchmarks[cell.benchmark]
        is_counted = benchmark.counted_alone is not None
        return (
            recipe.pin and not is_counted and self._builder.records_links and not self._has_relink_lines(cell)
        )

    def unpinned(self, cell: Cell) -> str:
        """Return why recorded links cannot place the code of the cell's program; empty if no reason is known."""
        if not self.is_linked(cell):
            return "no linker produced this program"
        built = self.known_build(cell.subject)
        if not isinstance(built, Built):
            return ""
        prepared = self._known(self.build_inputs.benchmark_build(cell).key(self._builder, built))
        if not isinstance(prepared, Prepared):
            return ""
        recipe = self.build_inputs.recipe(cell.subject)
        for text in texts_with_files(self._study, cell) if recipe.outputs else ():
            for path in _IN_TREE.findall(text):
                name = posixpath.normpath(path.strip("/"))
                if not covers(recipe.outputs, name) and is_linked(Path(built.directory, name)):
                    return f"{quoted(name)} is used, but it is not among build.outputs"
        return self._builder.unpinned(prepared, recipe)

    def _has_relink_lines(self, cell: Cell) -> bool:
        return bool(
            self.build_inputs.recipe(cell.subject).relink or self._study.benchmarks[cell.benchmark].relink
        )

    def _relinks_build(self, cell: Cell) -> bool:
        return bool(self.build_inputs.recipe(cell.subject).relink) or (
            self.pins(cell) and not self.unpinned(cell)
        )

    def is_linked(self, cell: Cell) -> bool:
        """Whether a linker produced the cell's program, judged by the command and the files of existing builds."""
        if has_layout_of_service(self._study, cell.benchmark):
            return True
        if not may_be_linked(self._study, cell):
            return False
        recipe = self.build_inputs.recipe(cell.subject)
        built = self._known_outcomes.get(
            self._builder.key(self.build_inputs.built_subject(cell.subject), recipe)
        )
        if not isinstance(built, Built) or not Path(built.directory).is_dir():
            return True
        if has_linked_files(Path(built.directory), recipe.outputs or None):
            return True
        outs = {
            each.out
            for each in self._known_outcomes.values()
            if isinstance(each, Prepared) and each.built == built and each.out
        }
        return any(has_linked_files(Path(out), None) for out in outs)

    def relink(self, cells: Iterable[Cell], layouts: Sequence[int]) -> Generator[Event, None, None]:
        """Link the subjects of cells with several seeds, in one pass over the objects of each, for `ready` to use.

        Does nothing for cells whose recipe cannot relink, and for subjects that cannot be built.
        """
        for subject in dict.fromkeys(cell.subject for cell in cells if self._relinks_build(cell)):
            built = yield from self.build(subject)
            if isinstance(built, Built):
                yield from self._relink(subject, built, layouts)

    def _relink(
        self, subject: Subject, built: Built, layouts: Sequence[int]
    ) -> Generator[Event, None, Mapping[int, Built | Failure]]:
        """Return the outcome of each layout; layouts after a failure may be missing."""
        recipe = self.build_inputs.recipe(subject)
        keys = {layout: self._builder.layout_key(built, recipe, layout) for layout in layouts}
        found: dict[int, Built | Failure] = {}
        for layout, key in keys.items():
            known = self._known_outcomes.get(key) or self._known(key)
            if isinstance(known, Failure) or key in self._known_outcomes:
                assert known is not None
                assert not isinstance(known, Prepared)
                found[layout] = known
        missing = [layout for layout in layouts if layout not in found]
        if not missing:
            return found
        relinked = self._builder.relink(self.build_inputs.built_subject(subject), recipe, built, missing)
        for layout, outcome in relinked.items():
            known = self._known(keys[layout])
            if known is None or _differ(known, outcome):
                self._record(keys[layout], subject, outcome)
            self._known_outcomes[keys[layout]] = outcome
        yield Relinked(subject=subject, outcomes=relinked)
        yield from self._messages()
        return {**found, **relinked}

    def _linked(
        self, cell: Cell, built: Built | Failure, *, layout: int = 0
    ) -> Generator[Event, None, Ready | Failure]:
        """Run the benchmark build on a built subject, or return its known outcome."""
        if isinstance(built, Failure):
            return built
        benchmark_build = self.build_inputs.benchmark_build(cell, layout=layout)
        key = benchmark_build.key(self._builder, built)
        outcome = self._known_outcomes.get(key)
        if outcome is None:
            known = self._known(key)
            outcome = known if isinstance(known, Failure) else self._prepared(built, benchmark_build)
            if layout and isinstance(outcome, Failure):
                outcome = replace(outcome, stage="relink")
            if known is None or _differ(known, outcome):
                self._record(key, cell.subject, outcome, benchmark=cell.benchmark)
            self._known_outcomes[key] = outcome
            if isinstance(outcome, Failure):
                yield BenchmarkBuildFailed(subject=cell.subject, benchmark=cell.benchmark, failure=outcome)
        if isinstance(outcome, Failure):
            return outcome
        assert isinstance(outcome, Prepared)
        runnable = self.build_inputs.runnable(cell, outcome, key)
        opened = [str(Path(self._study.directory, name)) for name in self.opened.files(runnable.key)]
        return Ready(
            cell=cell,
            runnable=runnable,
            prepared=outcome,
            layout=layout,
            content=runnable.key,
            inputs=tuple(
                (path, content_of_input(Path(path)))
                for path in outermost((*benchmark_build.files, *opened))
                if Path(path).is_relative_to(self._study.directory)
            ),
        )

    def _compare_layouts(self, linked: Ready, relinked: Ready) -> Iterator[RelinkedWithoutEffect]:
        """Report once that several layouts have equal files, so that relinking has no effect."""
        known = self._contents.setdefault(linked.runnable.key, {})
        if relinked.layout in known:
            return
        known[relinked.layout] = relinked.content
        if len(known) == EQUAL_LAYOUTS and len(set(known.values())) == 1:
            cell = linked.cell
            yield RelinkedWithoutEffect(
                subject=cell.subject, benchmark=cell.benchmark, layouts=tuple(sorted(known))
            )

    def check_out(self, subject: Subject, directory: str) -> ManualBuild:
        """Write a subject's tree, repaired, below a directory, so that a person can run its recipe."""
        return self._builder.check_out(
            self.build_inputs.built_subject(subject), self.build_inputs.recipe(subject), directory
        )

    def _skipped(self, subject: Subject) -> Failure | None:
        reason = self.eras.skipped.get(subject.revision.id)
        return None if reason is None else Failure(stage="skipped", message=reason)

    def _known(self, key: str) -> Built | Prepared | Failure | None:
        outcome = self._known_outcomes.get(key)
        if outcome is not None:
            return outcome
        outcome = self._stored_outcomes.get(key)
        if outcome is None and (record := self._store.build(key)) is not None:
            outcome = self._stored_outcomes[key] = record.outcome
        if isinstance(outcome, Failure) and (self.retry_failed or outcome.may_pass):
            return None
        return outcome

    def _prepared(self, built: Built, benchmark_build: BenchmarkBuild) -> Prepared | Failure:
        return benchmark_build.prepare(
            self._builder, built, timeout_seconds=self._study.build.timeout_seconds
        )

    def _share(self, key: str, subject: Subject, outcome: Built | Failure) -> None:
        """Record that a subject has the build of another one, whose inputs are the same."""
        name = (subject.revision.id, subject.variant)
        if self._key_by_subject is None:
            self._key_by_subject = {name: record.key for name, record in self._store.subject_builds().items()}
        if self._key_by_subject.get(name) != key:
            self._record(key, subject, outcome)

    def _record(
        self, key: str, subject: Subject, outcome: Built | Prepared | Failure, *, benchmark: str = ""
    ) -> None:
        if isinstance(outcome, Failure) and outcome.may_pass:
            return
        revision, variant = subject.revision.id, subject.variant
        self._stored_outcomes.pop(key, None)
        self._store.add_build(
            BuildRecord(
                key=key,
                revision=revision,
                variant=variant,
                benchmark=benchmark,
                outcome=outcome,
                finished=now(),
                recipe="" if benchmark else self.build_inputs.recipe_key(self.build_inputs.recipe(subject)),
            )
        )
        if self._key_by_subject is not None and not benchmark:
            self._key_by_subject[revision, variant] = key


def _cell_of(runnable: Runnable) -> tuple[object, ...]:
    return (runnable.revision, runnable.variant, runnable.benchmark, runnable.point)


def _differ(known: Built | Prepared | Failure, outcome: Built | Prepared | Failure) -> bool:
    """Whether a new outcome differs from the known one: another artefact, or a failure instead of a build."""
    if isinstance(known, Failure) or isinstance(outcome, Failure):
        return type(known) is not type(outcome)
    if isinstance(known, Prepared) and isinstance(outcome, Prepared):
        return known.artefact != outcome.artefact or known.built.artefact != outcome.built.artefact
    return known.artefact != outcome.artefact


Result = TypeVar("Result")


def retry_stale_builds(
    subject_builder: SubjectBuilder, work: Callable[[], Generator[Event, None, Result]]
) -> Generator[Event, None, Result]:
    """Run work, and repeat it from the start each time that builds which it used were wrong.

    Correct results stay, and samples too, because their keys name what was measured. The repetition ends,
    because perftrail then uses only clean trees for the recipe of such builds.
    """
    while True:
        try:
            return (yield from work())
        except StaleBuilds as stale:
            yield BuilderMessage(text=stale.repeats)
            subject_builder.forget()
