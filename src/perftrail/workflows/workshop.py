"""Making subjects, once each: what the store knows to have been made, or to fail, is not done again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import UNDRAWN, Runnable
from perftrail.model.source import ALONE
from perftrail.workflows.clock import now
from perftrail.workflows.eras import eras_of
from perftrail.workflows.events import (
    BuilderSaid,
    BuildFinished,
    BuildStarted,
    LinkFailed,
    Relinked,
    RelinkedAlike,
)
from perftrail.workflows.makings import Makings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.build import Workplace
    from perftrail.model.measurement import Draw, InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Builder, Source, Store
    from perftrail.workflows.eras import LeftOut
    from perftrail.workflows.events import Event
    from perftrail.workflows.linking import Link

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
