"""Run a worker of a cluster: perform the jobs of its scheduler, until it is stopped or the scheduler is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from distributed import Security, Worker, get_worker
from tornado.ioloop import PeriodicCallback

from perftrail.cluster.dask import CONNECTION_ERRORS, FACTS, bound_memory, forget_finished_keys, silence
from perftrail.errors import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.cluster.dask import WorkerInfo

SECONDS_TO_JOIN = 60.0
"""Time to wait for the scheduler, which may start a little later."""

SECONDS_TO_END = 5.0
"""Time for Dask to close a worker."""

MILLISECONDS_BETWEEN_CHECKS = 500
"""Time between two checks for cancelled jobs and for keys of finished ones."""


class WorkerState(Protocol):
    """State of a worker that its jobs share: open studies, builders and launchers."""

    def cancel(self, job: str) -> None:
        """Kill the processes of a job, from any thread; may be called again."""
        ...

    def stop(self) -> None:
        """Kill the processes of all jobs, from any thread and for good; no job returns an outcome any more."""
        ...


class _ClusterWorker(Worker):
    """A worker that kills the processes of its jobs as soon as it closes: the client starts these jobs elsewhere."""

    def __init__(self, address: str, *, state: WorkerState, **options: Any) -> None:  # noqa: ANN401 - Dask's own options
        self.shared = state
        super().__init__(address, **options)
        every = PeriodicCallback(self._check, MILLISECONDS_BETWEEN_CHECKS)
        self.periodic_callbacks["perftrail"] = every

    def _check(self) -> None:
        forget_finished_keys()
        self._cancel_unwanted()

    def _cancel_unwanted(self) -> None:
        """Stop jobs whose clients do not wait any more; Dask only forgets their outcomes."""
        for job, task in tuple(self.state.tasks.items()):
            if task.state == "cancelled":
                self.shared.cancel(str(job))

    async def close(self, *_: Any, **options: Any) -> Any:  # noqa: ANN401 - Dask's own options
        """Leave without waiting for jobs."""
        self.shared.stop()
        options |= {"executor_wait": False, "timeout": SECONDS_TO_END}
        return await super().close(**options)


_serving: ContextVar[WorkerState | None] = ContextVar("_serving", default=None)


def perform_jobs_here(state: WorkerState) -> None:
    """Let the calling thread perform jobs with this shared state, for workers of other engines than Dask."""
    _serving.set(state)


def current_worker_state() -> object:
    """Return the state of the worker that performs the calling job."""
    if (state := _serving.get()) is not None:
        return state
    worker = get_worker()
    assert isinstance(worker, _ClusterWorker), "jobs of perftrail are performed by its own workers"
    return worker.shared


def current_job() -> str:
    """Return the name of the calling job, for `WorkerState.cancel`."""
    if _serving.get() is not None:
        return f"thread-{threading.get_ident()}"
    return str(get_worker().get_current_task())


def run_worker(address: str, info: WorkerInfo, state: WorkerState, *, directory: Path) -> None:
    """Work for a scheduler; return when SIGTERM or SIGINT asks to stop.

    Raises `ClusterError` if the scheduler cannot be reached or is lost. The processes of running jobs are killed
    then.
    """
    silence(logging.ERROR)
    # The client prints the error of a job; a traceback says nothing to the user of the worker.
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
    bound_memory()
    try:
        asyncio.run(_run_worker(address, info, state, directory))
    finally:
        state.stop()


async def _run_worker(address: str, info: WorkerInfo, state: WorkerState, directory: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopped = asyncio.ensure_future(stop.wait())
    worker = _ClusterWorker(
        address,
        state=state,
        nthreads=info.builds + 1,
        resources=info.resources(),
        name=f"{info.machine.facts.get('name', info.machine.id)}-{os.getpid()}",
        local_directory=str(directory),
        memory_limit=0,
        dashboard=False,
        death_timeout=SECONDS_TO_JOIN,
        security=Security(require_encryption=True) if address.startswith("tls://") else Security(),
        startup_information={FACTS: lambda _: info.facts()},
    )
    joining = asyncio.ensure_future(_join(worker, address))
    await asyncio.wait({joining, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if joining.done():
        await joining
        closed = asyncio.ensure_future(worker.finished())  # type: ignore[no-untyped-call] # of Dask
        await asyncio.wait({closed, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not stopped.done():
        raise ClusterError(f"{address}: the scheduler ended, or removed this worker; start it again")
    await worker.close()


async def _join(worker: Worker, address: str) -> None:
    try:
        await worker
    except (*CONNECTION_ERRORS, RuntimeError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers ({str(error) or type(error).__name__}); start one with "
            '"dask scheduler"'
        ) from error
