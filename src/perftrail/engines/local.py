"""Jobs performed here, one after another, so that nothing of ours disturbs a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from perftrail.ports import Done, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from perftrail.ports import Pending


class LocalEngine:
    """Performs each job in this process, in order, when its outcome is asked for."""

    def map(self, perform: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterator[Done]:
        """Perform jobs lazily: the next one starts when the last one's outcome has been dealt with."""
        return map(perform, jobs)

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Keep a job until its outcome is asked for."""
        return _Kept(perform, job)


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Job, Done]):
    """A job that is performed when its outcome is asked for."""

    perform: Callable[[Job], Done]
    job: Job

    def outcome(self) -> Done:
        return self.perform(self.job)
