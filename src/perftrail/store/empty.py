"""A store without rows that refuses every addition: that of a study without results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from perftrail.errors import StoreError
from perftrail.model.store_records import StoreProgress
from perftrail.store.documents import DocumentStore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Machine, Outcome, Runnable, Samples
    from perftrail.model.store_records import SearchRecord, StepRecord
    from perftrail.model.subject import Revision
    from perftrail.store.documents import AnyDocument


class EmptyStore(DocumentStore):
    """A `perftrail.ports.Store` that is empty. Every addition raises `StoreError` with the text of `refusal`."""

    def __init__(self, *, refusal: str) -> None:
        self._refusal = refusal

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise StoreError(self._refusal)

    add = add_all = add_build = add_document = add_machine = add_revisions = add_runnable = add_step = _refuse
    open_search = close_search = _refuse

    def machines(self) -> Mapping[str, Machine]:
        """Return no machine."""
        return {}

    def build(self, _key: str) -> BuildRecord | None:
        """Return `None`: no build was tried."""
        return None

    def builds(self) -> Mapping[str, BuildRecord]:
        """Return no build."""
        return {}

    def subject_builds(self) -> Mapping[tuple[str, str], BuildRecord]:
        """Return no build."""
        return {}

    def first_finished(self) -> Mapping[tuple[str, str, str], str]:
        """Return no build."""
        return {}

    def runnables(self, _benchmark: str | None = None) -> Sequence[Runnable]:
        """Return no runnable."""
        return []

    def revisions(self) -> frozenset[str]:
        """Return no revision."""
        return frozenset()

    def history(self) -> Sequence[Revision]:
        """Return no revision."""
        return []

    def sampled_machines(self) -> frozenset[str]:
        """Return no machine."""
        return frozenset()

    def ran(self, _runnables: Collection[str], _machine: str) -> frozenset[str]:
        """Return no runnable."""
        return frozenset()

    def outcomes(self, runnables: Collection[str], _machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return no outcome of each runnable."""
        return dict.fromkeys(runnables, ())

    def samples(
        self, _runnables: Collection[str], _machine: str, _metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return no runnable."""
        return {}

    def searches(self) -> Sequence[SearchRecord]:
        """Return no search."""
        return []

    def steps(self, _key: str, _machine: str) -> Sequence[StepRecord]:
        """Return no step."""
        return []

    def documents(self, _kind: type[AnyDocument], _within: str = "") -> Sequence[AnyDocument]:
        """Return no document."""
        return []

    def progress(self) -> StoreProgress:
        """Return a count of zero rows."""
        return StoreProgress(invocations=0, builds=0, searches=0, answers=0, steps=0, documents=0)

    def recent(self, _most: int) -> Sequence[tuple[Runnable, Outcome]]:
        """Return no outcome."""
        return []
