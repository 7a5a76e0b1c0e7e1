"""Everything that was measured of a study on this machine: its cells looked up once, their samples read once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from perftrail.model.measurement import Samples
from perftrail.workflows.recalling import Recollection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Subject
    from perftrail.workflows.session import View


class MeasuredHere:
    """The cells of a study that were measured, in the order of `history`, each with the key of its runnable."""

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
        """The key of the runnable of each benchmark at each point, subject by subject."""
        found: dict[Subject, dict[tuple[str, Point], str]] = {}
        for cell, key in self.cells:
            found.setdefault(cell.subject, {})[cell.benchmark, cell.point] = key
        return found

    def of(self, benchmark: str) -> Sequence[tuple[Cell, str]]:
        """Give the cells of one benchmark alone."""
        return self._of.get(benchmark, ())

    @property
    def read(self) -> Collection[Samples]:
        """Everything that was read so far."""
        return self._samples.values()

    def samples(self, benchmark: str, metrics: Collection[str]) -> Mapping[str, Samples]:
        """Give the samples of a benchmark's cells in at least these metrics, by runnable; none of what never ran.

        What was read of other benchmarks is among them.
        """
        return self.all_samples({benchmark: metrics})

    def all_samples(self, wanted: Mapping[str, Collection[str]]) -> Mapping[str, Samples]:
        """Give the samples of several benchmarks, each in at least its metrics: those that lack the same, at once."""
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
        """Keep what was read with what is known of the same runnables."""
        again = {key: _joined(self._samples[key], read[key]) for key in self._samples.keys() & read.keys()}
        self._samples.update(read)
        self._samples.update(again)


def _joined(one: Samples, other: Samples) -> Samples:
    return replace(other, values={**one.values, **other.values})
