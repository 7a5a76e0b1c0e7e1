"""Making subjects, once each: what the store knows to have been made, or to fail, is not done again.

A benchmark's own build: what goes into it, and having it made.

What subjects and cells are made of and known by: recipes with their eras, links, runnables.

Starting over when builds that were used turn out to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import StaleBuilds
from perftrail.measure.events import (
    BuilderSaid,
    BuildFinished,
    BuildStarted,
    LinkFailed,
    Relinked,
    RelinkedAlike,
)
from perftrail.measure.session import now
from perftrail.measure.sources import eras_of
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import UNDRAWN, Runnable
from perftrail.model.placeholders import sources_named, study_files
from perftrail.model.plan import benchmark_steps, mentioning, named_sources, recipe, runnable_key
from perftrail.model.source import ALONE, MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
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
    """What a benchmark's own build takes, placeholders of the machine still open."""

    steps: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[str, ...]
    sources: Mapping[str, Revision]

    def key(self, builder: Builder, built: Built) -> str:
        """Name what goes into it on a built subject."""
        return builder.link_key(built, steps=self.steps, env=self.env, files=self.files, sources=self.sources)

    def prepare(self, builder: Builder, built: Built, *, timeout_seconds: float) -> Prepared | Failure:
        """Have it made on a built subject."""
        return builder.prepare(
            built,
            steps=self.steps,
            env=self.env,
            files=self.files,
            sources=self.sources,
            timeout_seconds=timeout_seconds,
        )


class Makings:
    """Says of each subject and cell of a study what goes into it; makes nothing and asks no store."""

    def __init__(self, study: Study, eras: Eras, pins: Pins, others: Mapping[str, Source]) -> None:
        self._study = study
        self._eras = eras
        self._pins = pins
        self._others = others
        self._recipes: dict[tuple[object, ...], tuple[Recipe, tuple[str, ...]]] = {}

    def recipe(self, subject: Subject) -> Recipe:
        """The recipe that makes a subject, its eras and its variant considered."""
        eras = self._eras.of(self._pins.revision(MAIN, subject.revision))
        name = (subject.variant, *map(id, eras))
        if name not in self._recipes:
            found = recipe(self._study, subject.variant, eras)
            self._recipes[name] = (found, named_sources(found))
        how, named = self._recipes[name]
        return replace(how, sources=self._used(subject, named)) if named else how

    def own(self, subject: Subject) -> Subject:
        """Give a subject as it is built: with the revision of the study's own source, or of its folder."""
        folder = self._study.variants[subject.variant].directory
        if folder is not None:
            return replace(subject, revision=self._pins.folders[folder])
        return replace(subject, revision=self._pins.revision(MAIN, subject.revision))

    def _used(self, subject: Subject, names: Sequence[str]) -> Mapping[str, Revision]:
        return {name: self._pins.revision(name, subject.revision) for name in names}

    def link(self, cell: Cell, *, layout: int = 0) -> Link:
        """What a benchmark's own build takes in a cell, for a layout with the lines that relink it."""
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

    def _beside(self, cell: Cell, built: Built, link: str) -> Mapping[str, str]:
        """Name what is in each other source's tree that a cell runs: its content, or what was built in it.

        `link` is the key of the benchmark's build. Where nothing says which files are made, the whole of what
        went into the build stands for them.
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
        """Name what a cell starts; `link` is the key of the benchmark's build."""
        return Runnable(
            key=runnable_key(self._study, cell, prepared, beside=self._beside(cell, prepared.built, link)),
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
    """A cell that can be started: what it stands for in the store and what it was made of.

    `layout` is the seed with which it was relinked; 0: as its recipe links it. The samples of every layout belong to
    one runnable. `content` names what is started: two layouts with one content came out the same. It is the key of
    `runnable` as linked, and another key with a layout.
    """

    cell: Cell
    runnable: Runnable
    prepared: Prepared
    layout: int = 0
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A job: start this, as that invocation, with this draw; the layout that is recorded is that of `ready`."""

    ready: Ready
    key: InvocationKey
    draw: Draw = UNDRAWN


class Workshop:
    """Makes each subject, and each benchmark on it, at most once, and keeps what came of it.

    A failed build is a fact. With `retry_failed` each failure that the store knows is tried once more.
    `makings` say what goes into each. `source` is the study's own, whichever is walked; `pins` say at which
    revision each source is used, and `others` are the sources beside it.
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
        self.makings = Makings(study, self._eras, pins, others)

    def left_out(self, revisions: Sequence[Revision]) -> tuple[LeftOut, ...]:
        """Those of some revisions that the study says are not to be built, by reason."""
        return self._eras.left_out(revisions)

    def wanted(self, revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        """Those of some revisions that are not left out."""
        return tuple(revision for revision in revisions if revision.id not in self._eras.skipped)

    def known_build(self, subject: Subject) -> Built | Failure | None:
        """What is known of a subject's build, `None` when it is to be made yet; one that is left out fails so."""
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
        """What a cell is known by, `None` when something is to be made yet. Makes nothing."""
        built = self.known_build(cell.subject)
        if not isinstance(built, Built):
            return built
        key = self.makings.link(cell).key(self._builder, built)
        outcome = self._known(key)
        return self.makings.runnable(cell, outcome, key) if isinstance(outcome, Prepared) else None

    def known_link(self, built: Built, link: Link) -> Prepared | None:
        """What is known of a benchmark's build on a built subject, `None` unless it is made."""
        outcome = self._known(link.key(self._builder, built))
        return outcome if isinstance(outcome, Prepared) else None

    def build(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Make a subject, or give what is known to come of it; one that is left out fails so."""
        skipped = self._skipped(subject)
        return skipped if skipped is not None else (yield from self.make(subject))

    def make(self, subject: Subject) -> Generator[Event, None, Built | Failure]:
        """Make a subject, also one that is left out, or give what is known to come of it."""
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
        """Keep the builds of subjects that are used later from being removed to make room."""
        asked = (subject for subject in subjects if self._skipped(subject) is None)
        self._builder.need((self.makings.own(subject), self.makings.recipe(subject)) for subject in asked)

    @property
    def hands(self) -> int:
        """How many subjects are made at once."""
        return self._builder.hands

    def ahead(self, subjects: Iterable[Subject]) -> Generator[Event, None, None]:
        """Make subjects several at once where the builder can; does nothing where it makes one at a time.

        All of it has come to its end afterwards: while something is measured, nothing is built.
        """
        if self._builder.hands > 1:
            fresh = [each for each in subjects if not isinstance(self.known_build(each), Failure)]
            self._builder.begin((self.makings.own(each), self.makings.recipe(each)) for each in fresh)
            yield from self._news()
            for subject in fresh:
                yield from self.make(subject)

    def confirm(self, witnesses: Iterable[Subject] = ()) -> Generator[Event, None, None]:
        """Compare what went on in used trees with clean builds, each of the witnesses too.

        Raises `StaleBuilds` when they differ.
        """
        self._builder.confirm((self.makings.own(each), self.makings.recipe(each)) for each in witnesses)
        yield from self._news()

    def recall(self) -> None:
        """Read all that the store knows of builds at once, for who only looks from now on; it is not asked again."""
        self._recalled = self._store.builds()

    def forget(self) -> None:
        """Forget what was made: it is looked at again, and what was taken back is made again."""
        self._made.clear()

    def _news(self) -> Generator[Event, None, None]:
        yield from (BuilderSaid(text=text) for text in self._builder.news())

    def ready(self, cell: Cell, *, layout: int = 0) -> Generator[Event, None, Ready | Failure]:
        """Make a cell's subject and its benchmark, linked with a seed if one is given, or say what failed.

        A layout from 1 on has the runnable of the build as linked. Raises `ValueError` where nothing says how to
        relink the cell. Several layouts cost less when `relink` makes them together first.
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
        """Whether the study says how to link what a cell runs in another order."""
        return bool(self.makings.recipe(cell.subject).relink or self._study.benchmarks[cell.benchmark].relink)

    def relink(self, cells: Iterable[Cell], layouts: Sequence[int]) -> Generator[Event, None, None]:
        """Link the subjects of cells with several seeds in one visit to the objects of each; `ready` finds them then.

        Does nothing for cells whose recipe does not relink, and for subjects that cannot be built.
        """
        for subject in dict.fromkeys(cell.subject for cell in cells):
            if self.makings.recipe(subject).relink:
                built = yield from self.build(subject)
                if isinstance(built, Built):
                    yield from self._relink(subject, built, layouts)

    def _relink(
        self, subject: Subject, built: Built, layouts: Sequence[int]
    ) -> Generator[Event, None, Mapping[int, Built | Failure]]:
        """Return the outcome of each layout; after a failure the others may be missing."""
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
        """Make a benchmark on a built subject, or give what is known to come of it."""
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
        """Tell once when several layouts came out the same, as they do when relinking has no effect."""
        known = self._contents.setdefault(linked.runnable.key, {})
        if relinked.layout in known:
            return
        known[relinked.layout] = relinked.content
        if len(known) == TELLING_LAYOUTS and len(set(known.values())) == 1:
            cell = linked.cell
            yield RelinkedAlike(subject=cell.subject, benchmark=cell.benchmark, layouts=tuple(sorted(known)))

    def lay_out(self, subject: Subject, directory: str) -> Workplace:
        """Put a subject's tree, repaired, below a directory, for its recipe to be gone through by hand."""
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
    """Whether what is known of a build is no longer so: it was removed or taken back, and made again."""
    if isinstance(known, Failure) or isinstance(outcome, Failure):
        return type(known) is not type(outcome)
    if isinstance(known, Prepared) and isinstance(outcome, Prepared):
        return known.artefact != outcome.artefact or known.built.artefact != outcome.built.artefact
    return known.artefact != outcome.artefact


Result = TypeVar("Result")


def afresh(
    session: Session, work: Callable[[], Generator[Event, None, Result]]
) -> Generator[Event, None, Result]:
    """Do work, and once more from its start each time that builds which it used were taken back.

    What is right is kept, samples too: they are named by what was measured. It comes to an end, since each
    time the recipe of such builds is from then on followed in clean trees only.
    """
    while True:
        try:
            return (yield from work())
        except StaleBuilds as stale:
            yield BuilderSaid(
                text=f"{len(stale.keys)} builds may hold stale objects, as a check against a clean build shows: "
                "they are made again in clean trees; measurements of those that come out the same stay"
            )
            session.workshop.forget()
