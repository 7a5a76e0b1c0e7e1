"""`perftrail worker`: build and measure for the clients of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.options import MOST_JOBS
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from perftrail.cluster.dask import WorkerInfo


@click.command("worker", cls=Command)
@click.argument("scheduler", metavar="SCHEDULER")
@click.option(
    "--builds",
    type=click.IntRange(min=1, max=MOST_JOBS),
    default=1,
    metavar="N",
    help="Number of parallel builds. They share the CPUs and stop during measurements. [default: 1]",
)
@click.option(
    "--machine",
    metavar="NAME",
    help="Name of this machine in the results. [default: the host name]",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False),
    metavar="DIRECTORY",
    help="Directory for builds, on a disk of this machine. [default: ~/.cache/perftrail/worker]",
)
@click.option(
    "--apart",
    is_flag=True,
    help="Use --directory even if this machine can read the client's own directory.",
)
def command(scheduler: str, builds: int, machine: str | None, directory: str | None, apart: bool) -> None:
    """Build and measure for clients of a Dask scheduler, until Ctrl-C or SIGTERM.

    SCHEDULER is tcp://HOST:PORT or tls://HOST:PORT; Dask's configuration names the certificates. Start one worker on
    each machine. A worker starts one invocation at a time, and builds nothing meanwhile. Everyone with access to an
    unencrypted scheduler can run programs on its workers: use TLS, or a network that you trust.

    Exits with 1 if the scheduler cannot be reached or is lost.
    """
    from perftrail.errors import ClusterError
    from perftrail.opening import NO_DASK

    try:
        from perftrail.cluster.dask import parse_scheduler
        from perftrail.cluster.worker import work
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"dask", "distributed"}:
            raise
        raise ClusterError(NO_DASK.format("worker")) from error
    work(
        parse_scheduler(scheduler),
        builds=builds,
        machine=machine,
        directory=directory,
        apart=apart,
        on_begin=_print_offer,
    )


def _print_offer(offer: WorkerInfo) -> None:
    name = offer.machine.facts.get("name", offer.machine.id)
    click.echo(
        f"machine {name!r}: one invocation at a time, or {counted(offer.builds, 'parallel build')}", err=True
    )
