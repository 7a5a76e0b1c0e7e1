"""`perftrail worker`: build and measure for others, as a machine of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.options import MOST_JOBS

if TYPE_CHECKING:
    from perftrail.cluster.dask import Offer


@click.command("worker")
@click.argument("scheduler", metavar="SCHEDULER")
@click.option(
    "--builds",
    type=click.IntRange(min=1, max=MOST_JOBS),
    default=1,
    metavar="N",
    help="Make so many builds at once, each with its share of the CPUs; none while something is measured.",
)
@click.option(
    "--machine",
    metavar="NAME",
    help="What this machine is called in the results, which tells it from its like. The host name unless given.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where it keeps files of its own: on a disk of this machine. ~/.cache/perftrail/worker unless given.",
)
@click.option(
    "--apart", is_flag=True, help="Work in that directory even where the command's own can be seen."
)
def command(scheduler: str, builds: int, machine: str | None, directory: str | None, apart: bool) -> None:
    """Build and measure for whoever uses a scheduler of Dask, until stopped by Ctrl-C or SIGTERM.

    SCHEDULER is its address: tcp://HOST:PORT, or tls://HOST:PORT, for which Dask's own configuration names the
    certificates. Start one on each machine: it measures one thing at a time, and nothing of ours is built there
    meanwhile. Whoever reaches an unencrypted scheduler can run programs here: use TLS, or a network that you trust.

    Exits 0 when it was told to stop, 1 when the scheduler cannot be reached or is gone.
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
        on_begin=_tell,
    )


def _tell(offer: Offer) -> None:
    name = offer.machine.facts.get("name", offer.machine.id)
    click.echo(f"machine {name!r}: measures one thing at a time, {offer.builds} builds at once", err=True)
