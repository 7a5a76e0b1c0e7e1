"""Build subjects and benchmarks, once each, and reuse what the store already knows.

`Link` is a benchmark build. `BuildInputs` returns recipes, benchmark builds and runnables from the study alone.
`Workshop` builds them and records each outcome, failures included. `afresh` repeats work whose builds were
wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import StaleBuilds
from perftrail.measure.clock import now
from perftrail.measure.events import (
    BuilderSaid,
    BuildFinished,
    BuildStarted,
    LinkFailed,
    Relinked,
    RelinkedAlike,
)
from perftrail.measure.sources import eras_of
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import UNDRAWN, Runnable
from perftrail.model.placeholders import sources_named, study_files
from perftrail.model.plan import benchmark_steps, mentioning, named_sources, recipe, runnable_key
from perftrail.model.source import ALONE, MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.sources import Eras, LeftOut
    from perftrail.model.build import Recipe, Workplace
    from perftrail.model.measurement import Draw, InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Builder, Source, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The inputs of a benchmark build, with the machine's placeholders still open."""

    steps: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[str, ...]
    sources: Mapping[str, Revision]

    def key(self, builder: Builder, built: Built) -> str:
        """Return the key of the benchmark build on a built subject."""
        return builder.link_key(built, steps=self.steps, env=self.env, files=self.files, sources=self.sources)

    def prepare(self, builder: Builder, built: Built, *, timeout_seconds: float) -> Prepared | Failure:
        """Run the benchmark build on a built subject."""
        return builder.prepare(
            built,
            steps=self.steps,
            env=self.env,
            files=self.files,
            sources=self.sources,
            timeout_seconds=timeout_seconds,
        )


class BuildInputs:
    """Returns the inputs of each subject and cell of a study; builds nothing and does not use the store."""

    def __init__(self, study: Study, eras: Eras, pins: Pins, others: Mapping[str, Source]) -> None:
        self._study = study
        self._eras = eras
        self._pins = pins
        self._others = others
        self._recipes: dict[tuple[object, ...], tuple[Recipe, tuple[str, ...]]] = {}

    def recipe(self, subject: Subject) -> Recipe:
        """Return the recipe of a subject, with its eras and its variant applied."""
        eras = self._eras.of(self._pins.revision(MAIN, subject.revision))
        name = (subject.variant, *map(id, eras))
        if name not in self._recipes:
            found = recipe(self._study, subject.variant, eras)
            self._recipes[name] = (found, named_sources(found))
        how, named = self._recipes[name]
        return replace(how, sources=self._used(subject, named)) if named else how

    def own(self, subject: Subject) -> Subject:
        """Return a subject as it is built: with the revision of the study's own source, or of its folder."""
        folder = self._study.variants[subject.variant].directory
        if folder is not None:
            return replace(subject, revision=self._pins.folders[folder])
        return replace(subject, revision=self._pins.revision(MAIN, subject.revision))

    def _used(self, subject: Subject, names: Sequence[str]) -> Mapping[str, Revision]:
        return {name: self._pins.revision(name, subject.revision) for name in names}

    def link(self, cell: Cell, *, layout: int = 0) -> Link:
        """Return the inputs of a cell's benchmark build, with the recipe's relink lines for a layout."""
        steps, env = benchmark_steps(self._study, cell, layout=layout), self.recipe(cell.subject).env
        named = sources_named((*steps, *env.values(), *mentioning(self._study, cell)))
        return Link(
            steps=steps,
            env=env,
            sources=self._used(cell.subject, named),
            files=tuple(
                str(Path(self._study.directory, name))
                for name in study_files(mentioning(self._study, cell), cell.point.as_dict())
            ),
        )

    def _other_contents(self, cell: Cell, built: Built, link: str) -> Mapping[str, str]:
        """Return the content keys of the other sources' trees that a cell runs, or of their builds.

        `link` is the key of the benchmark build. If nothing names the built files, the key of all build
        inputs represents them.
        """
        how, lines = self.recipe(cell.subject), self.link(cell)
        linked = sources_named((*lines.steps, *lines.env.values()))
        contents: dict[str, str] = {}
        for name in sources_named(mentioning(self._study, cell)):
            if name in how.sources:
                told = any(name in sources_named([output]) for output in how.outputs)
                contents[name] = built.artefact if told else built.key
            elif name in linked:
                contents[name] = link
            else:
                contents[name] = self._others[name].content(lines.sources[name])
        return contents

    def runnable(self, cell: Cell, prepared: Prepared, link: str) -> Runnable:
        """Return what a cell starts; `link` is the key of the benchmark build."""
        return Runnable(
            key=runnable_key(
                self._study, cell, prepared, beside=self._other_contents(cell, prepared.built, link)
            ),
            revision=cell.subject.revision.id,
            variant=cell.subject.variant,
            benchmark=cell.benchmark,
            point=cell.point,
            artefact=prepared.artefact,
        )


TELLING_LAYOUTS = 3
"""Number of equal layouts that show that relinking has no effect: three objects have six orders."""

NO_OTHERS: Mapping[str, Source] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A cell that is ready to start: its runnable in the store and its builds.

    `layout` is the seed of its relinking; 0: as its recipe links it. The samples of every layout belong to
    one runnable. `content` is the content key of the program: equal for two layouts with equal files. It is
    the key of `runnable` as linked, and another key with a layout.
    """

    cell: Cell
    runnable: Runnable
    prepared: Prepared
    layout: int = 0
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An invocation to perform, with its key and draw; the recorded layout is that of `ready`."""

    ready: Ready
    key: InvocationKey
    draw: Draw = UNDRAWN


class Workshop:
    """Builds each subject, and each benchmark on it, at most once, and records the outcome.

    A failed build is an outcome. With `retry_failed` each failure that the store knows is tried once more.
    `makings` returns the inputs of each build. `source` is the study's own source. `pins` hold the revision
    of each source, and `others` are the other sources.
    """

    def __init__(
        self,
        study: Study,
        source: Source,
        builder: Builder,
        store: Store,
        *,
        retry_failed: bool = False,
        pins: Pins = ALONE,
        others: Mapping[str, Source] = NO_OTHERS,
    ) -> None:
        self._study = study
        self._builder = builder
        self._store = store
        self.retry_failed = retry_failed
        self._recalled: Mapping[str, BuildRecord] | None = None
        self._recalled_keys: dict[tuple[str, str], str] = {}
        self._made: dict[str, Built | Prepared | Failure] = {}
        self._contents: dict[str, dict[int, str]] = {}
        self._eras = eras_of(study, source, walked=others.get(study.along, source))
        self.makings = BuildInputs(study, self._eras, pins, others)

    def left_out(self, revisions: Sequence[Revision]) -> tuple[LeftOut, ...]:
        """Return the skipped revisions among these, by reason."""
        return self._eras.left_out(revisions)

    def wanted(self, revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        """Return the revisions that the study does not skip."""
        return tuple(revision for revision in revisions if revision.id not in self._eras.skipped)

    def known_build(self, subject: Subject) -> Built | Failure | None:
        """Return what is known of a subject's build, or `None`; a skipped revision counts as failed."""
        if (skipped := self._skipped(subject)) is not None:
            return skipped
        name = (subject.revision.id, subject.variant)
        key = None if self._recalled is None else self._recalled_keys.get(name)
        if key is None:
            key = self._builder.key(self.makings.own(subject), self.makings.recipe(subject))
            self._recalled_keys[name] = key
        outcome = self._known(key)
        assert not isinstance(outcome, Prepared)
        return outcome

    def known_runnable(self, cell: Cell) -> Runnable | Failure | None:
        """Return the runnable of a cell, or `None` if a build is missing. Builds nothing."""
        built = self.known_build(cell.subject)
        if not isinstance(built, Built):
            return built
        key = self.makings.link(cell).key(self._builder, built)
        outcome = self._known(key)
        return self.makings.runnable(cell, outcome, key) if isinstance(outcome, Prepared) else None

    def known_link(self, built: Built, link: Link) -> Prepared | None:
        """Return the known benchmark build on a built subject, or `None`."""
        outcome = self._known(link.key(self._builder, built))
        return outcome if isinstance(outcome, Prepared) else None

    def build(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Build a subject, or return its known outcome; a skipped revision fails."""
        skipped = self._skipped(subject)
        return skipped if skipped is not None else (yield from self.make(subject))

    def make(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Build a subject, skipped or not, or return its known outcome."""
        how = self.makings.recipe(subject)
        own = self.makings.own(subject)
        key = self._builder.key(own, how)
        made = self._made.get(key)
        if made is not None:
            assert not isinstance(made, Prepared)
            return made
        known = self._known(key)
        if known is None:
            yield BuildStarted(subject=subject)
        outcome = known if isinstance(known, Failure) else self._builder.make(own, how)
        if known is None or _differ(known, outcome):
            self._record(key, subject, outcome)
        self._made[key] = outcome
        yield BuildFinished(subject=subject, outcome=outcome, known=known is not None)
        yield from self._news()
        return outcome

    def need(self, subjects: Iterable[Subject]) -> None:
        """Protect the builds of subjects that are used later from removal for disk space."""
        asked = (subject for subject in subjects if self._skipped(subject) is None)
        self._builder.need((self.makings.own(subject), self.makings.recipe(subject)) for subject in asked)

    @property
    def hands(self) -> int:
        """Number of parallel builds."""
        return self._builder.hands

    def ahead(self, subjects: Iterable[Subject]) -> Generator[Event, None, None]:
        """Build subjects in parallel if the builder can; do nothing if it builds one at a time.

        All builds have ended when this returns: nothing is built during a measurement.
        """
        if self._builder.hands > 1:
            fresh = [each for each in subjects if not isinstance(self.known_build(each), Failure)]
            self._builder.begin((self.makings.own(each), self.makings.recipe(each)) for each in fresh)
            yield from self._news()
            for subject in fresh:
                yield from self.make(subject)

    def confirm(self, witnesses: Iterable[Subject] = ()) -> Generator[Event, None, None]:
        """Compare builds from reused trees with clean builds, and those of each witness too.

        Raises `StaleBuilds` when they differ.
        """
        self._builder.confirm((self.makings.own(each), self.makings.recipe(each)) for each in witnesses)
        yield from self._news()

    def recall(self) -> None:
        """Read all builds from the store at once, for a caller that only reads; later calls do not query it again."""
        self._recalled = self._store.builds()

    def forget(self) -> None:
        """Forget all builds: they are read from the store again, and reverted builds are repeated."""
        self._made.clear()

    def _news(self) -> Generator[Event, None, None]:
        yield from (BuilderSaid(text=text) for text in self._builder.news())

    def ready(self, cell: Cell, *, layout: int = 0) -> Generator[Event, None, Ready | Failure]:
        """Build a cell's subject and benchmark, linked with a seed if `layout` is not 0, or return the failure.

        Each layout uses the runnable of the build as linked. Raises `ValueError` if no recipe says how to
        relink the cell. Several layouts cost less when `relink` links them together first.
        """
        built = yield from self.build(cell.subject)
        linked = yield from self._linked(cell, built)
        if isinstance(linked, Failure):
            return linked
        self._store.add_runnable(linked.runnable)
        if not layout:
            return linked
        if not self.can_relink(cell):
            raise ValueError(f"{cell}: the study does not say how to relink it")
        if self.makings.recipe(cell.subject).relink:
            built = (yield from self._relink(cell.subject, linked.prepared.built, (layout,)))[layout]
        relinked = yield from self._linked(cell, built, layout=layout)
        if isinstance(relinked, Failure):
            return relinked
        yield from self._compare_layouts(linked, relinked)
        return replace(relinked, runnable=linked.runnable)

    def can_relink(self, cell: Cell) -> bool:
        """Whether the recipe says how to link the cell's program in another order."""
        return bool(self.makings.recipe(cell.subject).relink or self._study.benchmarks[cell.benchmark].relink)

    def relink(self, cells: Iterable[Cell], layouts: Sequence[int]) -> Generator[Event, None, None]:
        """Link the subjects of cells with several seeds, in one pass over the objects of each, for `ready` to use.

        Does nothing for cells whose recipe cannot relink, and for subjects that cannot be built.
        """
        for subject in dict.fromkeys(cell.subject for cell in cells):
            if self.makings.recipe(subject).relink:
                built = yield from self.build(subject)
                if isinstance(built, Built):
                    yield from self._relink(subject, built, layouts)

    def _relink(
        self, subject: Subject, built: Built, layouts: Sequence[int]
    ) -> Generator[Event, None, Mapping[int, Built | Failure]]:
        """Return the outcome of each layout; layouts after a failure may be missing."""
        how = self.makings.recipe(subject)
        keys = {layout: self._builder.layout_key(built, how, layout) for layout in layouts}
        found: dict[int, Built | Failure] = {}
        for layout, key in keys.items():
            known = self._made.get(key) or self._known(key)
            if isinstance(known, Failure) or key in self._made:
                assert known is not None
                assert not isinstance(known, Prepared)
                found[layout] = known
        missing = [layout for layout in layouts if layout not in found]
        if not missing:
            return found
        made = self._builder.relink(self.makings.own(subject), how, built, missing)
        for layout, outcome in made.items():
            known = self._known(keys[layout])
            if known is None or _differ(known, outcome):
                self._record(keys[layout], subject, outcome)
            self._made[keys[layout]] = outcome
        yield Relinked(subject=subject, outcomes=made)
        yield from self._news()
        return {**found, **made}

    def _linked(
        self, cell: Cell, built: Built | Failure, *, layout: int = 0
    ) -> Generator[Event, None, Ready | Failure]:
        """Run the benchmark build on a built subject, or return its known outcome."""
        if isinstance(built, Failure):
            return built
        link = self.makings.link(cell, layout=layout)
        key = link.key(self._builder, built)
        outcome = self._made.get(key)
        if outcome is None:
            known = self._known(key)
            outcome = known if isinstance(known, Failure) else self._prepared(built, link)
            if layout and isinstance(outcome, Failure):
                outcome = replace(outcome, stage="relink")
            if known is None or _differ(known, outcome):
                self._record(key, cell.subject, outcome, benchmark=cell.benchmark)
            self._made[key] = outcome
            if isinstance(outcome, Failure):
                yield LinkFailed(subject=cell.subject, benchmark=cell.benchmark, failure=outcome)
        if isinstance(outcome, Failure):
            return outcome
        assert isinstance(outcome, Prepared)
        runnable = self.makings.runnable(cell, outcome, key)
        return Ready(cell=cell, runnable=runnable, prepared=outcome, layout=layout, content=runnable.key)

    def _compare_layouts(self, linked: Ready, relinked: Ready) -> Iterator[RelinkedAlike]:
        """Report once that several layouts have equal files, so that relinking has no effect."""
        known = self._contents.setdefault(linked.runnable.key, {})
        if relinked.layout in known:
            return
        known[relinked.layout] = relinked.content
        if len(known) == TELLING_LAYOUTS and len(set(known.values())) == 1:
            cell = linked.cell
            yield RelinkedAlike(subject=cell.subject, benchmark=cell.benchmark, layouts=tuple(sorted(known)))

    def lay_out(self, subject: Subject, directory: str) -> Workplace:
        """Write a subject's tree, repaired, below a directory, so that a person can run its recipe."""
        return self._builder.lay_out(self.makings.own(subject), self.makings.recipe(subject), directory)

    def _skipped(self, subject: Subject) -> Failure | None:
        reason = self._eras.skipped.get(subject.revision.id)
        return None if reason is None else Failure(stage="skipped", message=reason)

    def _known(self, key: str) -> Built | Prepared | Failure | None:
        made = self._made.get(key)
        if made is not None:
            return made
        record = self._store.build(key) if self._recalled is None else self._recalled.get(key)
        if record is None or (isinstance(record.outcome, Failure) and self.retry_failed):
            return None
        return record.outcome

    def _prepared(self, built: Built, link: Link) -> Prepared | Failure:
        return link.prepare(self._builder, built, timeout_seconds=self._study.build.timeout_seconds)

    def _record(
        self, key: str, subject: Subject, outcome: Built | Prepared | Failure, *, benchmark: str = ""
    ) -> None:
        revision, variant = subject.revision.id, subject.variant
        self._store.add_build(
            BuildRecord(
                key=key,
                revision=revision,
                variant=variant,
                benchmark=benchmark,
                outcome=outcome,
                finished=now(),
            )
        )


def _differ(known: Built | Prepared | Failure, outcome: Built | Prepared | Failure) -> bool:
    """Whether a known build is out of date: it was removed or reverted, and built again."""
    if isinstance(known, Failure) or isinstance(outcome, Failure):
        return type(known) is not type(outcome)
    if isinstance(known, Prepared) and isinstance(outcome, Prepared):
        return known.artefact != outcome.artefact or known.built.artefact != outcome.built.artefact
    return known.artefact != outcome.artefact


Result = TypeVar("Result")


def afresh(
    workshop: Workshop, work: Callable[[], Generator[Event, None, Result]]
) -> Generator[Event, None, Result]:
    """Run work, and repeat it from the start each time that builds which it used were wrong.

    Correct results stay, and samples too, because their keys name what was measured. The repetition ends,
    because perftrail then uses clean trees only for the recipe of such builds.
    """
    while True:
        try:
            return (yield from work())
        except StaleBuilds as stale:
            yield BuilderSaid(
                text=f"{len(stale.keys)} builds may contain stale objects, because they differ from a clean build: "
                "perftrail repeats them in clean trees; samples of builds that do not change stay valid"
            )
            workshop.forget()
