"""A worker of a cluster: attends to what its scheduler gives it, until it is told to stop or the scheduler is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING, Any, Protocol

from distributed import Security, Worker, get_worker
from tornado.ioloop import PeriodicCallback

from perftrail.cluster.dask import FACTS, LOST, silence
from perftrail.errors import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.cluster.dask import Offer

SECONDS_TO_JOIN = 60.0
"""How long the scheduler is waited for: it may be started a little later."""

SECONDS_TO_LEAVE = 5.0

MILLISECONDS_BETWEEN_LOOKS = 500
"""How often a worker looks whether its jobs are still wanted."""


class Desk(Protocol):
    """What a worker's jobs find there: whatever they have opened and go on with."""

    def drop(self, job: str) -> None:
        """Kill what a job runs, from any thread, if it runs anything; may be called again."""
        ...

    def stop(self) -> None:
        """Kill what jobs run, from any thread and for good; none of them gives an outcome any more."""
        ...


class _Attending(Worker):
    """A worker that kills what its jobs run as soon as it closes: whoever gave them gives them to others."""

    def __init__(self, address: str, *, desk: Desk, **options: Any) -> None:  # noqa: ANN401 - Dask's own options
        self.desk = desk
        super().__init__(address, **options)
        every = PeriodicCallback(self._drop_unwanted, MILLISECONDS_BETWEEN_LOOKS)
        self.periodic_callbacks["perftrail"] = every

    def _drop_unwanted(self) -> None:
        """Break off what whoever asked for it does not wait for any more; Dask only forgets what comes of it."""
        for job, task in tuple(self.state.tasks.items()):
            if task.state == "cancelled":
                self.desk.drop(str(job))

    async def close(self, *_: Any, **options: Any) -> Any:  # noqa: ANN401 - Dask's own options
        """Leave, waiting for no job."""
        self.desk.stop()
        options |= {"executor_wait": False, "timeout": SECONDS_TO_LEAVE}
        return await super().close(**options)


def present_desk() -> object:
    """Give the desk of the worker that performs the calling job."""
    worker = get_worker()
    assert isinstance(worker, _Attending), "jobs of perftrail are performed by its own workers"
    return worker.desk


def present_job() -> str:
    """Name the calling job as `Desk.drop` names it."""
    return str(get_worker().get_current_task())


def attend(address: str, offer: Offer, desk: Desk, *, directory: Path) -> None:
    """Work for a scheduler; returns when SIGTERM or SIGINT says to stop.

    Raises `ClusterError` when the scheduler cannot be reached, or is gone. Whatever jobs run is killed then.
    """
    silence(logging.ERROR)
    try:
        asyncio.run(_attend(address, offer, desk, directory))
    finally:
        desk.stop()


async def _attend(address: str, offer: Offer, desk: Desk, directory: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopped = asyncio.ensure_future(stop.wait())
    worker = _Attending(
        address,
        desk=desk,
        nthreads=offer.builds + 1,
        resources=offer.resources(),
        name=f"{offer.machine.facts.get('name', offer.machine.id)}-{os.getpid()}",
        local_directory=str(directory),
        memory_limit=0,
        dashboard=False,
        death_timeout=SECONDS_TO_JOIN,
        security=Security(require_encryption=True) if address.startswith("tls://") else Security(),
        startup_information={FACTS: lambda _: offer.facts()},
    )
    joining = asyncio.ensure_future(_joined(worker, address))
    await asyncio.wait({joining, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if joining.done():
        await joining
        closed = asyncio.ensure_future(worker.finished())  # type: ignore[no-untyped-call] # of Dask
        await asyncio.wait({closed, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not stopped.done():
        raise ClusterError(f"{address}: the scheduler is gone, or has let this worker go; start it again")
    await worker.close()


async def _joined(worker: Worker, address: str) -> None:
    try:
        await worker
    except (*LOST, RuntimeError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{address}: no scheduler of Dask answers there ({str(error) or type(error).__name__}); start one with "
            '"dask scheduler"'
        ) from error
