"""Everything that was measured of a study on this machine: its cells looked up once, their samples read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.measurement import Samples
from perftrail.workflows.recalling import Recollection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from perftrail.workflows.session import View


class MeasuredHere:
    """The cells of a study that were measured, in the order of history, each with the key of its runnable."""

    def __init__(self, view: View) -> None:
        self._view = view
        known = view.store.revisions()
        revisions = [revision for revision in view.source.history() if revision.id in known]
        self.cells = tuple(Recollection(view).cells(revisions))
        self._keys: dict[str, list[str]] = {}
        for cell, key in self.cells:
            self._keys.setdefault(cell.benchmark, []).append(key)
        self._metrics: dict[str, set[str]] = {}
        self._samples: dict[str, Mapping[str, Samples]] = {}

    def samples(self, benchmark: str, metrics: Collection[str]) -> Mapping[str, Samples]:
        """Give the samples of a benchmark's cells in at least these metrics, by runnable; none of what never ran."""
        known = self._metrics.get(benchmark)
        lacking = set(metrics) - (known or set())
        if lacking or known is None:
            keys = dict.fromkeys(self._keys.get(benchmark, ()))
            read = self._view.store.samples(keys, self._view.machine.id, lacking)
            before = self._samples.get(benchmark, {})
            self._samples[benchmark] = {
                key: _joined(before[key], samples) if key in before else samples
                for key, samples in read.items()
            }
            self._metrics[benchmark] = lacking | (known or set())
        return self._samples[benchmark]


def _joined(one: Samples, other: Samples) -> Samples:
    return Samples(values={**one.values, **other.values}, flags=other.flags, failures=other.failures)
