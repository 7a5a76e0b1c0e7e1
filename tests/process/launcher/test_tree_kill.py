"""No process outlives its invocation, however it detaches."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import Exited, TimedOut
from perftrail.process.launcher import Launcher
from tests.process.launcher.conftest import COUNTED, build_launcher
from tests.process.launcher.traces import cgroups_of, eventually

if TYPE_CHECKING:
    from tests.process.launcher.traces import Trial


@pytest.mark.parametrize("tree_memory", ["auto", "off"])
@pytest.mark.parametrize("kind", ["chain", "sessions", "respawn"])
@pytest.mark.parametrize("processes", [100, pytest.param(500, marks=pytest.mark.long)])
def test_a_fork_bomb_is_ended(
    launcher: Launcher, trial: Trial, processes: int, kind: str, tree_memory: str
) -> None:
    command = trial.command(
        "fork_bomb", processes, kind, timeout_seconds=processes / 500, tree_memory=tree_memory
    )
    ran = launcher.run(command)
    assert ran.ended == TimedOut()
    assert trial.living() == []
    assert cgroups_of(launcher.start().pid) == []


@pytest.mark.parametrize("tree_memory", ["auto", "sampled", "off"])
def test_a_timeout_reaches_a_grandchild_in_a_session_of_its_own(
    launcher: Launcher, trial: Trial, tree_memory: str
) -> None:
    ran = launcher.run(trial.command("daemon", 0, 1000, 1, timeout_seconds=0.3, tree_memory=tree_memory))
    assert ran.ended == TimedOut()
    assert trial.living() == []


def test_a_stopped_process_is_killed_too(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.shell("kill -STOP $$", timeout_seconds=0.3))
    assert ran.ended == TimedOut()
    assert trial.living() == []


def test_a_cgroup_that_the_program_made_is_removed(launcher: Launcher, trial: Trial) -> None:
    paths = launcher.start().cgroup_paths
    if not paths:
        pytest.skip("no cgroup can be made here")
    script = (
        "".join(f"mkdir -p {path}/a/b && echo 0 > {path}/a/b/cgroup.procs; " for path in paths) + "sleep 1000"
    )
    ran = launcher.run(trial.shell(script, environment={"PATH": "/usr/bin:/bin"}, timeout_seconds=0.5))
    assert ran.ended == TimedOut()
    assert trial.living() == []
    assert cgroups_of(launcher.start().pid) == []


@pytest.mark.long
def test_a_process_that_cannot_be_killed_ends_the_wait_and_is_reported(
    tmp_path_factory: pytest.TempPathFactory, trial: Trial
) -> None:
    freezer = Path("/sys/fs/cgroup/freezer")
    if not os.access(freezer / "cgroup.procs", os.W_OK):
        pytest.skip("no process can be frozen here: there is no freezer of cgroup 1")
    directory = tmp_path_factory.mktemp("impatient")
    impatient = build_launcher(directory, "-DCMAKE_C_FLAGS=-DKILL_SECONDS=1", *COUNTED)
    frozen = freezer / f"perftrail-test-{trial.mark}"
    frozen.mkdir()
    freeze = f"sleep 1000 & echo $! > {frozen}/cgroup.procs; echo FROZEN > {frozen}/freezer.state; wait"
    try:
        with Launcher(impatient) as launcher:
            command = trial.shell(freeze, environment={"PATH": "/usr/bin:/bin"}, timeout_seconds=0.5)
            with pytest.raises(LauncherError, match="cannot be killed"):
                launcher.run(command)
            assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)
    finally:
        (frozen / "freezer.state").write_text("THAWED")
        assert eventually(lambda: not (frozen / "cgroup.procs").read_text())
        assert eventually(lambda: remove_directory(frozen))


def remove_directory(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()


def test_the_launcher_still_works_after_a_thousand_invocations(launcher: Launcher, trial: Trial) -> None:
    command = trial.command("exit_at_once", tree_memory="off")
    assert all(launcher.run(command).ended == Exited(code=0) for _ in range(1000))
    server = launcher.start().server_pid
    assert len(list(Path(f"/proc/{server}/fd").iterdir())) < 12
    assert eventually(lambda: cgroups_of(launcher.start().pid) == [])
