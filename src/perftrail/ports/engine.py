"""Performing jobs, here or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Job = TypeVar("Job")
Done = TypeVar("Done")
Done_co = TypeVar("Done_co", covariant=True)


class Pending(Protocol[Done_co]):
    """A job that was handed out."""

    def outcome(self) -> Done_co:
        """Give what came of it, once it has; raises what performing it raised. Asked once."""
        ...


class Engine(Protocol):
    """Performs jobs, here or elsewhere, one after the other or several at once.

    Elsewhere, whatever performs and the jobs are values that can be sent. A job whose place dies is performed
    again; what came of a job is given once.
    """

    def map(self, perform: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterator[Done]:
        """Perform each job and yield what came of it, in order; the next is taken when that was dealt with."""
        ...

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Hand a job out; where nothing is done beside, it is performed when its outcome is asked for.

        One whose outcome nobody keeps any more need not be performed. `outcome` raises `ClusterError` when none can
        come any more.
        """
        ...
