"""Machines without cgroup 2, or without any cgroup."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import Exited, OutOfMemory, TimedOut
from perftrail.process.launcher import Launcher
from tests.process.launcher.traces import cgroups_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.process.launcher.traces import Trial

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can hide the cgroups from a launcher"
)


def launcher_without(kinds: str, launcher: Path, directory: Path) -> Path:
    """Make a launcher that runs in a mount namespace where no file system of these kinds is mounted."""
    script = directory / "launcher"
    script.write_text(
        f"""#!/bin/sh
[ "$1" = hidden ] || exec unshare --mount "$0" hidden
while read -r device place kind rest; do
    case $kind in {kinds}) umount -l "$place" ;; esac
done < /proc/mounts
exec {launcher}
"""
    )
    script.chmod(0o755)
    return script


def assert_trees_end(launcher: Launcher, trial: Trial) -> None:
    for kind in ("chain", "sessions", "respawn"):
        ran = launcher.run(trial.command("fork_bomb", 200, kind, timeout_seconds=0.5))
        assert (kind, ran.ended) == (kind, TimedOut())
        assert (kind, trial.living()) == (kind, [])


def test_without_any_cgroup_memory_is_sampled_and_trees_still_end(plain_launcher: Path, trial: Trial) -> None:
    path = launcher_without("cgroup|cgroup2", plain_launcher, trial.directory)
    with Launcher(path) as launcher:
        can = launcher.start()
        assert (can.memory_cgroup, can.cpu_cgroup, can.kill_cgroup) == (None, None, None)
        ran = launcher.run(trial.command("hold_memory", 2, 100, 1500))
        assert ran.tree_memory is not None
        assert ran.tree_memory.method == "sampled"
        assert abs(ran.tree_memory.bytes - 200 * MIB) <= 6 * MIB
        ran = launcher.run(trial.command("eat_memory", 400, memory_limit_bytes=50 * MIB))
        assert (ran.ended, ran.memory_limit_method) == (Exited(code=1), "rlimit_as")
        assert_trees_end(launcher, trial)


def test_with_cgroup_1_alone_everything_is_summed_limited_and_ended(
    plain_launcher: Path, trial: Trial
) -> None:
    path = launcher_without("cgroup2", plain_launcher, trial.directory)
    with Launcher(path) as launcher:
        can = launcher.start()
        if can.memory_cgroup is None:
            pytest.skip("no cgroup 1 here")
        assert (can.memory_cgroup, can.cpu_cgroup, can.kill_cgroup) == ("cgroup1", "cgroup1", None)
        ran = launcher.run(trial.command("hold_memory", 2, 100, 100))
        assert ran.tree_memory is not None
        assert abs(ran.tree_memory.bytes - 200 * MIB) <= 2 * MIB
        ran = launcher.run(trial.command("burn", 4, 100, 1))
        assert ran.tree_cpu is not None
        assert ran.cpu_seconds == pytest.approx(ran.tree_cpu.seconds, rel=0.01)
        ran = launcher.run(trial.command("eat_memory", 400, memory_limit_bytes=50 * MIB))
        assert ran.ended == OutOfMemory()
        assert_trees_end(launcher, trial)
        assert cgroups_of(can.pid) == []
