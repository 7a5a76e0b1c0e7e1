"""`worker`: one machine works for a scheduler until it is told to stop."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail import __version__
from perftrail.engines.attendance import attend
from perftrail.engines.offers import Offer
from perftrail.errors import UsageError
from perftrail.model.wording import quoted
from perftrail.process.machine import read_machine
from perftrail.workflows.away.desk import StudyDesk
from perftrail.workflows.away.outpost import remove_left_over_of_workers
from perftrail.workflows.away.terms import Terms
from perftrail.workflows.left_over import remove_left_over

if TYPE_CHECKING:
    from collections.abc import Callable


def work(
    address: str,
    *,
    builds: int,
    machine: str | None,
    directory: str | None,
    apart: bool,
    on_begin: Callable[[Offer], None],
) -> None:
    """Work for a scheduler; returns when a signal says to stop. `on_begin` is told what is offered.

    `machine` is the name that tells this machine from its like: the host's without any; an empty one makes it the
    machine that it is without workers. Raises `UsageError` for a directory that others can change, `ClusterError` when
    the scheduler cannot be reached, or is gone.
    """
    remove_left_over()
    own = Path(directory) if directory else _cache() / "perftrail" / "worker"
    _refuse_unfit(own)
    remove_left_over_of_workers(own)
    name = socket.gethostname() if machine is None else machine
    here = read_machine(name=name)
    terms = Terms(machine=here, builds=builds, directory=own.absolute(), apart=apart, version=__version__)
    offer = Offer(machine=here, builds=builds, version=__version__)
    on_begin(offer)
    desk = StudyDesk(terms)
    try:
        attend(address, offer, desk, directory=terms.directory)
    finally:
        desk.close()


def _refuse_unfit(own: Path) -> None:
    """Make a worker's directory where it is not there yet; raise `UsageError` for one that others can change."""
    named = f"--directory {quoted(str(own))}"
    try:
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = own.stat()
    except OSError as error:
        raise UsageError(f"{named}: cannot be made: {error.strerror}; name another one") from error
    if state.st_uid != os.geteuid() or state.st_mode & stat.S_IWOTH:
        raise UsageError(
            f"{named}: others may write there, and could change what is run; name a new one, below it perhaps"
        )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
