"""Keeping what was measured, searched and said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Machine, Outcome, Runnable, Samples
    from perftrail.model.search_record import Json, Mark, RegressionNote, SearchRecord, StepRecord


class Store(Protocol):
    """Keeps every outcome, each durable when its call returns, and never changes one.

    One perftrail writes to a file at a time, and one of each machine to a server; reading needs no permission.
    """

    def add_machine(self, machine: Machine) -> None:
        """Keep what a machine is, once."""
        ...

    def machines(self) -> Mapping[str, Machine]:
        """Give every machine seen, by id."""
        ...

    def add_build(self, record: BuildRecord) -> None:
        """Keep what came of a build; a later record of the same key stands for it from then on."""
        ...

    def build(self, key: str) -> BuildRecord | None:
        """Give what came of a build, on this machine if it was tried here; `None` when it never was."""
        ...

    def builds(self) -> Mapping[str, BuildRecord]:
        """Give what came of every build, by key: for who looks at all of a history."""
        ...

    def add_runnable(self, runnable: Runnable) -> None:
        """Keep which revision, variant, benchmark and point a runnable stands for; again is no error."""
        ...

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Give every runnable, or those of one benchmark, in the order they were first kept."""
        ...

    def revisions(self) -> frozenset[str]:
        """Give the ids of the revisions that runnables stand for."""
        ...

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome. Raises `StoreError` when its key is there already."""
        ...

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Give the outcomes of runnables on a machine: by runnable, warm-ups first, then by ordinal."""
        ...

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Give what the samples of runnables on a machine are of some metrics; nothing of what was never started."""
        ...

    def open_search(self, record: SearchRecord) -> None:
        """Keep that a search began; one that is there already is left as it is."""
        ...

    def close_search(self, key: str, machine: str, answer: Mapping[str, Json]) -> None:
        """Keep a search's answer; a later answer to the same question replaces it."""
        ...

    def searches(self) -> Sequence[SearchRecord]:
        """Give every search, the one begun last at the end."""
        ...

    def add_step(self, key: str, machine: str, step: StepRecord) -> None:
        """Keep a step of a search; the same number again replaces it, as a resumed search retells it."""
        ...

    def steps(self, key: str, machine: str) -> Sequence[StepRecord]:
        """Give the steps of a search in order."""
        ...

    def mark(self) -> Mark:
        """Say how far the store is: another mark than before, and something was added. Asked every second."""
        ...

    def recent(self, most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Give the outcomes that were kept last, newest first, each with the first that its runnable stands for."""
        ...

    def notes(self) -> Sequence[RegressionNote]:
        """Give what was said of regressions, oldest first."""
        ...

    def add_note(self, note: RegressionNote) -> None:
        """Keep what was said of a regression; allowed while another perftrail writes."""
        ...
