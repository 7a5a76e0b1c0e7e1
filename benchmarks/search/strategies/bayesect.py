"""git_bayesect 1.2 (hauntsaninja/git_bayesect), the published package.

It gets pass or fail, so each run is compared with the middle of the medians of five runs of both ends, which is the
best choice of a user. It uses the required confidence (its default is 0.95). A revision that does not build is skipped,
which excludes it as the culprit; if it is chosen again, the nearest other revision that may build is tried.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchmarks.search.simulator import Machine

PACKAGE = "git_bayesect"
SAMPLES_AT_ENDS = 5


class _Bisector(Protocol):
    """The used part of `git_bayesect.Bisector`. Index 0 is the newest revision; an observation is "fails"."""

    def record(self, index: int, observation: bool | None) -> None:
        """Add an observation; `None` skips the revision."""

    def select(self) -> int:
        """Return the index to observe next."""

    @property
    def distribution(self) -> npt.NDArray[np.float64]:
        """P(culprit) of each index."""


def is_installed() -> bool:
    """Whether the package is installed: `pip install -e '.[benchmark]'`."""
    return find_spec(PACKAGE) is not None


def search(machine: Machine) -> Report:
    """Search with the bisector of the package."""
    # The package computes the logarithm of weights that are zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        return _search(machine)


def _search(machine: Machine) -> Report:
    settings, last = machine.settings, machine.revisions - 1
    bisector = cast("_Bisector", import_module(PACKAGE).Bisector(np.ones(machine.revisions)))
    ends = []
    for end in (0, last):
        machine.build(end)
        ends.append(float(np.median(machine.run(end, SAMPLES_AT_ENDS))))
    middle, rises = sum(ends) / 2, ends[1] > ends[0]
    skipped: set[int] = set()
    while (sure := float(bisector.distribution.max())) < settings.confidence:
        if machine.invocations >= settings.most_invocations:
            return Report(verdict="unclear", candidates=())
        position = _nearest(last - bisector.select(), skipped, machine.revisions)
        if machine.build(position):
            fails = bool((machine.run(position, 1)[0] > middle) == rises)
            bisector.record(last - position, fails)
        else:
            skipped.add(position)
            bisector.record(last - position, None)
    culprit = last - int(np.argmax(bisector.distribution))
    return Report(verdict="found", candidates=(culprit,), confidence=sure)


def _nearest(wanted: int, skipped: set[int], revisions: int) -> int:
    """Return the position nearest the wanted one that was not skipped; both ends build, so there is one."""
    around = (
        position for distance in range(revisions) for position in (wanted - distance, wanted + distance)
    )
    return next(position for position in around if 0 <= position < revisions and position not in skipped)
