"""What ``--engine`` and a worker name: a scheduler of Dask that others started, or so many workers of our own here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perftrail.errors import UsageError
from perftrail.model.wording import quoted

MOST_WORKERS = 64
"""So many workers of our own at once; each is a Python process of about 100 MB."""

_FORMS = "dask://HOST:PORT, dask+tls://HOST:PORT or dask:local:N"
_PLACE = r"([^/\s@?#]+:([0-9]{1,5}))/?"
_SCHEDULER = re.compile(rf"dask(\+tls)?://{_PLACE}")
_AS_DASK_HAS_IT = re.compile(rf"(tcp|tls)://{_PLACE}")
_HERE = re.compile(r"dask:local:([0-9]{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A scheduler that runs somewhere: ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` where all is encrypted."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWorkers:
    """So many workers on this machine, started and ended with the command: one measures, all build."""

    count: int


Address = Scheduler | OwnWorkers


def parse_address(text: str) -> Address:
    """Read what ``--engine`` says. Raises `UsageError`.

    >>> parse_address("dask+tls://head:8786").address
    'tls://head:8786'
    >>> parse_address("dask:local:4").count
    4
    """
    if (named := _SCHEDULER.fullmatch(text)) and _is_port(named[3]):
        return Scheduler(address=f"{'tls' if named[1] else 'tcp'}://{named[2]}")
    if here := _HERE.fullmatch(text):
        count = int(here[1])
        if not 1 <= count <= MOST_WORKERS:
            raise UsageError(f"--engine {quoted(text)}: 1 to {MOST_WORKERS} workers of our own can be had")
        return OwnWorkers(count=count)
    raise UsageError(f"--engine {quoted(text)}: give {_FORMS}")


def parse_scheduler(text: str) -> str:
    """Read the address that a worker is given of its scheduler. Raises `UsageError`.

    >>> parse_scheduler("tls://head:8786/")
    'tls://head:8786'
    """
    named = _AS_DASK_HAS_IT.fullmatch(text)
    if named is None or not _is_port(named[3]):
        raise UsageError(f"SCHEDULER {quoted(text)}: give tcp://HOST:PORT or tls://HOST:PORT")
    return f"{named[1]}://{named[2]}"


def _is_port(digits: str) -> bool:
    return 0 < int(digits) < 1 << 16
