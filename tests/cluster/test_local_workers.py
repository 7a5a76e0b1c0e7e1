"""Workers that a command starts on its own machine: what it reports if one ends at its start."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from perftrail.cluster.dask import SECONDS_TO_APPEAR, own_workers
from perftrail.errors import ClusterError


def test_a_worker_that_ends_at_its_start_is_reported_at_once_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho starting\necho 'ImportError: no module named lz4' >&2\nexit 7\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    began = time.monotonic()
    with pytest.raises(ClusterError) as raised, own_workers(2, home=tmp_path):
        pass
    assert time.monotonic() - began < SECONDS_TO_APPEAR
    first, *rest = str(raised.value).splitlines()
    assert first == "a worker on this machine ended at its start: exit code 7; its last lines:"
    assert rest == ["  starting", "  ImportError: no module named lz4"]


def test_no_module_of_the_current_directory_runs_in_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the current directory was imported')\n")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(tmp_path)
    with own_workers(1, home=home) as cluster:
        assert len(cluster.worker_infos()) == 1
