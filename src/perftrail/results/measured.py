"""Read all samples of a study on this machine: look up cells once, read samples once.

`Recollection` finds the runnables of all cells of a history from known builds, and shares work between
revisions. `uncollected` and `kept_out` limit the garbage collector, which otherwise takes a third of the
time.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

from perftrail.model.build import Built, Prepared
from perftrail.model.measurement import Runnable, Samples
from perftrail.model.plan import Cell, RunnableKeys, cells, mentioning, subjects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.measure.subjects import Link
    from perftrail.model.benchmark import Point
    from perftrail.model.build import Recipe
    from perftrail.model.subject import Revision, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class _Like:
    """A benchmark at a point in a variant, for every revision; `link` is `None` if it depends on the revision."""

    benchmark: str
    point: Point
    link: Link | None
    keys: RunnableKeys


class Recollection:
    """Finds the runnables of cells from the builds in the store. Builds nothing."""

    def __init__(self, view: View) -> None:
        self._view = view
        view.workshop.recall()
        self._known: dict[tuple[str, int], tuple[Recipe, list[_Like]]] = {}

    def cells(self, revisions: Sequence[Revision]) -> Iterator[tuple[Cell, str]]:
        """Yield every built cell of some revisions, with the key of its runnable."""
        for subject in subjects(self._view.study, revisions):
            built = self._view.workshop.known_build(subject)
            if isinstance(built, Built):
                yield from self._of(subject, built)

    def _of(self, subject: Subject, built: Built) -> Iterator[tuple[Cell, str]]:
        workshop = self._view.workshop
        made: dict[int, Prepared | None] = {}
        for like in self._alike(subject):
            cell = Cell(subject=subject, benchmark=like.benchmark, point=like.point)
            if like.link is None:
                known = workshop.known_runnable(cell)
                if isinstance(known, Runnable):
                    yield cell, known.key
                continue
            name = id(like.link)
            if name not in made:
                made[name] = workshop.known_link(built, like.link)
            prepared = made[name]
            if prepared is not None:
                yield cell, like.keys.key(prepared, subject.revision)

    def _alike(self, subject: Subject) -> list[_Like]:
        how = self._view.workshop.makings.recipe(subject)
        if how.sources:
            return self._likes_of(subject, how)
        name = (subject.variant, id(how))
        if name not in self._known:
            # Keep a reference to the recipe, because its id could otherwise be reused.
            self._known[name] = (how, self._likes_of(subject, how))
        return self._known[name][1]

    def _likes_of(self, subject: Subject, how: Recipe) -> list[_Like]:
        links: list[Link] = []
        likes = []
        for cell in cells(self._view.study, subject):
            link = None if self._differs(cell, how) else self._view.workshop.makings.link(cell)
            if link is not None and link in links:
                link = links[links.index(link)]
            elif link is not None:
                links.append(link)
            keys = RunnableKeys(self._view.study, cell)
            likes.append(_Like(benchmark=cell.benchmark, point=cell.point, link=link, keys=keys))
        return likes

    def _differs(self, cell: Cell, how: Recipe) -> bool:
        """Whether the inputs of a benchmark build contain the revision, or another source's tree."""
        study = self._view.study
        lines = study.benchmarks[cell.benchmark].build
        parts = study.variants[cell.subject.variant].run.parts.values()
        texts = (*lines, *parts, *how.env.values(), *mentioning(study, cell))
        return bool(how.sources) or any("{revision}" in text or "{source." in text for text in texts)


class MeasuredHere:
    """The measured cells of a study, in the order of `history`, each with the key of its runnable."""

    def __init__(self, view: View) -> None:
        self._view = view
        known = view.store.revisions()
        self.history = view.source.history()
        revisions = [revision for revision in self.history if revision.id in known]
        self.cells = tuple(Recollection(view).cells(revisions))
        self._of: dict[str, list[tuple[Cell, str]]] = {}
        for measured in self.cells:
            self._of.setdefault(measured[0].benchmark, []).append(measured)
        self._metrics: dict[str, frozenset[str]] = {}
        self._samples: dict[str, Samples] = {}

    @cached_property
    def by_subject(self) -> Mapping[Subject, Mapping[tuple[str, Point], str]]:
        """The key of the runnable of each benchmark at each point, by subject."""
        found: dict[Subject, dict[tuple[str, Point], str]] = {}
        for cell, key in self.cells:
            found.setdefault(cell.subject, {})[cell.benchmark, cell.point] = key
        return found

    def of(self, benchmark: str) -> Sequence[tuple[Cell, str]]:
        """Return the cells of one benchmark."""
        return self._of.get(benchmark, ())

    @property
    def read(self) -> Collection[Samples]:
        """All samples that were read so far."""
        return self._samples.values()

    def samples(self, benchmark: str, metrics: Collection[str]) -> Mapping[str, Samples]:
        """Return the samples of a benchmark's cells with at least these metrics, by runnable; only cells that ran.

        The result also contains samples of other benchmarks that were read before.
        """
        return self.all_samples({benchmark: metrics})

    def all_samples(self, wanted: Mapping[str, Collection[str]]) -> Mapping[str, Samples]:
        """Return samples of several benchmarks, each with at least its metrics, in as few queries as possible."""
        asked: dict[frozenset[str], list[str]] = {}
        for name, metrics in wanted.items():
            lacking = frozenset(metrics) - self._metrics.get(name, frozenset())
            if lacking or name not in self._metrics:
                asked.setdefault(lacking, []).append(name)
        for lacking, names in asked.items():
            keys = {key for name in names for _, key in self.of(name)}
            self._add(self._view.store.samples(keys, self._view.machine.id, lacking))
            for name in names:
                self._metrics[name] = lacking | self._metrics.get(name, frozenset())
        return self._samples

    def _add(self, read: Mapping[str, Samples]) -> None:
        """Merge samples that were just read with known samples of the same runnables."""
        again = {key: _joined(self._samples[key], read[key]) for key in self._samples.keys() & read.keys()}
        self._samples.update(read)
        self._samples.update(again)


def _joined(one: Samples, other: Samples) -> Samples:
    return replace(other, values={**one.values, **other.values})


COSTLY_SECONDS = 1.0
"""A collection of objects made in less CPU time than this delays no other thread noticeably."""

ALL_EVERY = 100
"""Number of costly calls before a full collection, because the cycles of each call are lost until then."""

_NEVER = 1_000_000_000
_costly = count(1)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector meanwhile; objects without cycles are still freed."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def kept_out() -> Iterator[None]:
    """Create long-lived values without blocking other threads in the garbage collector.

    Meanwhile only young objects are collected, and objects created here are never scanned: scanning the
    values of ten million samples takes more than a second, in which no other thread runs. They are freed with
    their last reference. Only one thread may use this at a time.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    began = time.thread_time()
    try:
        yield
    finally:
        if time.thread_time() - began > COSTLY_SECONDS:
            if next(_costly) % ALL_EVERY == 0:
                gc.unfreeze()
                gc.collect()
            gc.collect(1)
            gc.freeze()
        gc.set_threshold(young, middle, old)


def crumble(pieces: list[list[object]], *, at_once: int = 500) -> None:
    """Free objects that only these lists reference, in steps of `at_once`, so that other threads can run."""
    for piece in pieces:
        while piece:
            del piece[-at_once:]
