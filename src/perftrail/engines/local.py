"""Jobs performed here, one after another, so that nothing of ours disturbs a measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from perftrail.ports import Done, Job


class LocalEngine:
    """Performs each job in this process, in order, when its outcome is asked for."""

    def map(self, perform: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterator[Done]:
        """Perform jobs lazily: the next one starts when the last one's outcome has been dealt with."""
        return map(perform, jobs)
