"""Without Dask, commands that need it report how to install it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import perftrail
from perftrail.cli.commands.worker import command
from perftrail.errors import ClusterError, UsageError
from perftrail.opening import open_session
from tests.measure.fake_session import a_study


@pytest.fixture
def without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package that is imported meanwhile has no submodule `dask`: the attribute is restored, too.
    monkeypatch.setattr(perftrail, "cluster", getattr(perftrail, "cluster", None), raising=False)
    for name in [name for name in sys.modules if name.startswith("perftrail.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without_dask")
def test_engines_say_how_to_get_it(tmp_path: Path) -> None:
    study = a_study(file=str(tmp_path / "perftrail.toml"), directory=str(tmp_path))
    with (
        pytest.raises(ClusterError, match=r"--engine needs Dask: pip install 'perftrail\[cluster\]'"),
        open_session(study, store=None, engine="dask:local:1"),
    ):
        pass


@pytest.mark.usefixtures("without_dask")
def test_workers_say_how_to_get_it() -> None:
    with pytest.raises(ClusterError, match=r"worker needs Dask: pip install 'perftrail\[cluster\]'"):
        command.main(["tcp://head:8786"], standalone_mode=False)


@pytest.mark.parametrize("address", ["head:8786", "tcp://head", "tcp://", "tcp://head:x", "tls://head:99999"])
def test_a_worker_is_given_the_address_of_a_scheduler(address: str) -> None:
    with pytest.raises(UsageError, match="write tcp://HOST:PORT or tls://HOST:PORT"):
        command.main([address], standalone_mode=False)


def test_build_workers_belong_to_their_cluster_worker(tmp_path: Path) -> None:
    study = a_study(file=str(tmp_path / "perftrail.toml"), directory=str(tmp_path))
    with (
        pytest.raises(UsageError, match="set the parallel builds of each worker"),
        open_session(study, store=None, engine="dask:local:1", jobs=2),
    ):
        pass
