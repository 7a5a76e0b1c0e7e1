"""Find the measured cells of a study in its store, and read their samples once.

This needs only the store: no builds, no compiler and no source. A cell that the present study would measure again is
`outdated`. `gc_disabled` and `gc_limited` limit the garbage collector,
which otherwise takes a third of the time.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.measure.events import Outdated
from perftrail.measure.opened_inputs import ChangedFiles
from perftrail.measure.stored_outputs import missing_metrics
from perftrail.model.measurement import (
    MISSING_TOOL,
    NEW_METRIC,
    OLDER_RECIPE,
    OTHER_FILES,
    OTHER_TOOLCHAIN,
    UNKNOWN_ORIGIN,
    Difference,
    Samples,
    difference,
    tool_name,
)
from perftrail.model.plan import Cell, cells, subjects
from perftrail.model.wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Point
    from perftrail.model.measurement import Origin, Runnable
    from perftrail.model.subject import Subject


def outdated(view: View, cell: Cell, origin: Origin | None) -> str:
    """Return why the present study would measure a cell again; empty if it would not, or if that is unknown.

    Samples of another machine are compared only by their recipe, because that machine has other tools.
    """
    if view.inputs is None:
        return ""
    if origin is None:
        return UNKNOWN_ORIGIN
    now = view.inputs.origin(cell)
    if not now.recipe or not origin.recipe:
        return ""
    if now.recipe != origin.recipe:
        return OLDER_RECIPE
    return OTHER_TOOLCHAIN if now.tools and _other_tools(origin.tools, now.tools) else ""


def _other_tools(then: Sequence[str], now: Sequence[str]) -> bool:
    """Whether a tool changed. A missing tool is not a change, because nothing is built."""
    here = [tool for tool in now if not tool.endswith(MISSING_TOOL)]
    known = {tool_name(tool) for tool in here}
    return here != [tool for tool in then if tool_name(tool) in known]


class MeasuredHere:
    """The measured cells of a study, in the order of `history`, each with the key of its runnable.

    If a cell has several runnables, the last one that the present study would run counts, else the last of all.
    Runnables that did not run on this machine count only if none did. `outdated` maps a cell to the reason
    why the study would measure it again. `replaced` counts cells that also have samples of another recipe or
    toolchain, which are not shown.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.history = view.source.history()
        self.outdated: dict[Cell, str] = {}
        self._origins: dict[Cell, Origin | None] = {}
        self._known: dict[Cell, Difference] = {}
        self._lacking: dict[tuple[str, str], frozenset[str]] = {}
        self.replaced = 0
        self.cells = tuple(self._chosen(self._stored()))
        self._of: dict[str, list[tuple[Cell, str]]] = {}
        for measured in self.cells:
            self._of.setdefault(measured[0].benchmark, []).append(measured)
        self._metrics: dict[str, frozenset[str]] = {}
        self._samples: dict[str, Samples] = {}

    def _stored(self) -> Iterator[tuple[Cell, list[Runnable]]]:
        """Yield every stored cell of the study with its runnables, the oldest first."""
        found: dict[tuple[str, str, str, Point], list[Runnable]] = {}
        for each in self._view.store.runnables():
            found.setdefault((each.revision, each.variant, each.benchmark, each.point), []).append(each)
        known = {revision for revision, *_ in found}
        revisions = [revision for revision in self.history if revision.id in known]
        alike: dict[str, tuple[Cell, ...]] = {}
        for subject in subjects(self._view.study, revisions):
            if subject.variant not in alike:
                alike[subject.variant] = cells(self._view.study, subject)
            for cell in alike[subject.variant]:
                runnables = found.get((subject.revision.id, subject.variant, cell.benchmark, cell.point))
                if runnables:
                    yield Cell(subject=subject, benchmark=cell.benchmark, point=cell.point), runnables

    def _chosen(self, stored: Iterator[tuple[Cell, list[Runnable]]]) -> Iterator[tuple[Cell, str]]:
        every = list(stored)
        several = {each.key for _, runnables in every if len(runnables) > 1 for each in runnables}
        ran = self._view.store.ran(several, self._view.machine.id)
        for cell, runnables in every:
            usable = [each for each in runnables if each.key in ran] or runnables
            why = {each.key: self._why(cell, each) for each in usable}
            chosen = next((each.key for each in reversed(usable) if not why[each.key]), usable[-1].key)
            if why[chosen]:
                self._origins[cell] = origin = next(each.origin for each in usable if each.key == chosen)
                if why[chosen] == OTHER_FILES:
                    self._known[cell] = Difference(why=OTHER_FILES, now=self._changed.of(chosen))
                added = self._added_metrics(cell, chosen, origin) if why[chosen] == OLDER_RECIPE else ""
                self.outdated[cell] = NEW_METRIC if added else why[chosen]
                if added:
                    self._known[cell] = Difference(why=NEW_METRIC, now=added)
            self.replaced += len({each.key for each in runnables if each.key in ran}) > 1
            yield cell, chosen

    def _why(self, cell: Cell, runnable: Runnable) -> str:
        """Return why the present study would measure a cell again that has a runnable; empty if it would not."""
        inputs, why = self._view.inputs, outdated(self._view, cell, runnable.origin)
        if why or inputs is None or not inputs.is_here:
            return why
        return OTHER_FILES if self._changed.of(runnable.key) else ""

    @cached_property
    def _changed(self) -> ChangedFiles:
        return ChangedFiles(self._view.store, study=Path(self._view.study.directory))

    def _added_metrics(self, cell: Cell, key: str, origin: Origin | None) -> str:
        """Return the metrics that the study declares and the samples lack, if nothing else changed; else empty."""
        inputs = self._view.inputs
        if inputs is None or origin is None:
            return ""
        name = (cell.benchmark, origin.recipe)
        if name not in self._lacking:
            outcomes = self._view.store.outcomes((key,), self._view.machine.id).get(key, ())
            declared = self._view.study.benchmarks[cell.benchmark].metrics
            self._lacking[name] = missing_metrics(declared, outcomes)
        lacking = self._lacking[name]
        if not lacking or inputs.origin_without(cell, lacking).recipe != origin.recipe:
            return ""
        return listed(sorted(lacking), "and")

    @cached_property
    def by_subject(self) -> Mapping[Subject, Mapping[tuple[str, Point], str]]:
        """The key of the runnable of each benchmark at each point, by subject."""
        found: dict[Subject, dict[tuple[str, Point], str]] = {}
        for cell, key in self.cells:
            found.setdefault(cell.subject, {})[cell.benchmark, cell.point] = key
        return found

    def differences(self, wanted: Callable[[Cell], bool] = lambda _: True) -> Counter[Difference]:
        """Count the wanted outdated cells by what changed since."""
        inputs = self._view.inputs
        return Counter(
            self._known[cell]
            if cell in self._known
            else difference(self.outdated[cell], origin, inputs.origin(cell))
            for cell, origin in self._origins.items()
            if inputs is not None and wanted(cell)
        )

    def outdated_of(self, wanted: Callable[[Cell], bool]) -> Iterator[Outdated]:
        """Yield an event if the present study would measure wanted cells again."""
        if differences := self.differences(wanted):
            yield Outdated(
                differences=differences, measured_cells=sum(wanted(cell) for cell, _ in self.cells)
            )

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
        names_by_missing: dict[frozenset[str], list[str]] = {}
        for name, metrics in wanted.items():
            missing = frozenset(metrics) - self._metrics.get(name, frozenset())
            if missing or name not in self._metrics:
                names_by_missing.setdefault(missing, []).append(name)
        for missing, names in names_by_missing.items():
            keys = {key for name in names for _, key in self.of(name)}
            self._add(self._view.store.samples(keys, self._view.machine.id, missing))
            for name in names:
                self._metrics[name] = missing | self._metrics.get(name, frozenset())
        return self._samples

    def forget_samples(self) -> None:
        """Free the samples that were read; those that are needed again are read again."""
        self._samples, self._metrics = {}, {}

    def _add(self, read: Mapping[str, Samples]) -> None:
        """Merge samples that were just read with known samples of the same runnables."""
        again = {key: _joined(self._samples[key], read[key]) for key in self._samples.keys() & read.keys()}
        self._samples.update(read)
        self._samples.update(again)


def _joined(one: Samples, other: Samples) -> Samples:
    return replace(other, values={**one.values, **other.values})


COSTLY_SECONDS = 1.0
"""Objects that were created in less CPU time than this are few: collecting them delays no other thread noticeably."""

ALL_EVERY = 100
"""Number of costly calls before a full collection. Until then, the cycles of each call are not freed."""

_NEVER = 1_000_000_000
_costly = count(1)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector in the block; objects without cycles are still freed."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def gc_limited() -> Iterator[None]:
    """Create long-lived values in the block without blocking other threads in the garbage collector.

    In the block, only young objects are collected. Objects created in it are never scanned: scanning the
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


def free_piecewise(pieces: list[list[object]], *, at_once: int = 500) -> None:
    """Free objects that only these lists reference, in steps of `at_once`, so that other threads can run."""
    for piece in pieces:
        while piece:
            del piece[-at_once:]
