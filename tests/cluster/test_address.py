"""Valid and invalid values of ``--engine``."""

from __future__ import annotations

import pytest

from perftrail.cluster.dask import OwnWorkers, Scheduler, parse_address
from perftrail.errors import UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("dask://head:8786", Scheduler(address="tcp://head:8786")),
        ("dask+tls://head.lab.example:8786", Scheduler(address="tls://head.lab.example:8786")),
        ("dask://[::1]:8786/", Scheduler(address="tcp://[::1]:8786")),
        ("dask:local:1", OwnWorkers(count=1)),
        ("dask:local:64", OwnWorkers(count=64)),
    ],
)
def test_our_own_schedulers_and_workers_are_distinguished(text: str, address: Scheduler | OwnWorkers) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "dask",
        "dask:local",
        "dask:local:0",
        "dask:local:65",
        "dask:local:x",
        "dask://head",
        "dask://user:secret@head:8786",
        "dask://head:8786/path",
        "dask://head:99999",
        "dask://head:0",
        "tcp://head:8786",
        "dask://head:8786\n",
        "",
    ],
)
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--engine"):
        parse_address(text)
