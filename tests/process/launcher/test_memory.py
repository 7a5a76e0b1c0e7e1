"""Memory metrics: the launcher adds only a few pages, and the process tree is summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import Exited
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from pathlib import Path

    from tests.process.launcher.traces import Trial

MIB = 1 << 20


@pytest.mark.parametrize("tree_memory", ["auto", "off"])
def test_the_floor_is_small_though_python_is_large(
    plain_launcher: Path, trial: Trial, tree_memory: str
) -> None:
    ballast = bytearray(b"x") * (64 * MIB)
    with Launcher(plain_launcher) as launcher:
        launcher.run(trial.command("hold_memory", 1, 200, 0))
        floor = launcher.run(trial.command("exit_at_once", tree_memory=tree_memory)).max_rss_bytes
        allowed = 64 << 10 if launcher.start().libc == "musl" else 704 << 10
    assert floor <= allowed
    assert len(ballast) == 64 * MIB


def test_a_long_job_line_leaves_no_floor_behind(plain_launcher: Path, trial: Trial) -> None:
    with Launcher(plain_launcher) as launcher:
        huge = {f"VARIABLE_{i}": "x" * 10_000 for i in range(100)}
        assert launcher.run(trial.command("exit_at_once", environment=huge)).ended == Exited(code=0)
        floor = launcher.run(trial.command("exit_at_once")).max_rss_bytes
        allowed = 64 << 10 if launcher.start().libc == "musl" else 704 << 10
    assert floor <= allowed


def test_the_memory_of_concurrent_children_is_summed(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("hold_memory", 2, 100, 300))
    assert ran.ended == Exited(code=0)
    assert ran.tree_memory is not None
    slack = 2 * MIB if ran.tree_memory.method != "sampled" else 6 * MIB
    assert abs(ran.tree_memory.bytes - 200 * MIB) <= slack
    assert ran.tree_memory.method == (launcher.start().memory_cgroup or "sampled")
    assert 100 * MIB <= ran.max_rss_bytes <= 104 * MIB


def test_sampling_comes_within_three_per_cent_and_states_its_cost(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("hold_memory", 2, 100, 1500, tree_memory="sampled"))
    assert ran.ended == Exited(code=0)
    assert ran.tree_memory is not None
    assert ran.tree_memory.method == "sampled"
    assert abs(ran.tree_memory.bytes - 200 * MIB) <= 6 * MIB
    assert ran.tree_memory.samples >= 1
    assert 0 < ran.tree_memory.sampling_seconds < ran.wall_seconds


def test_children_one_after_the_other_are_not_summed(launcher: Launcher, trial: Trial) -> None:
    hold = f"{trial.targets}/hold_memory 1 50 0"
    ran = launcher.run(trial.shell(f"{hold}; {hold}"))
    assert ran.tree_memory is not None
    assert ran.tree_memory.bytes < 75 * MIB, "both together would be 100 MiB"


def test_each_invocation_starts_from_nothing(launcher: Launcher, trial: Trial) -> None:
    first = launcher.run(trial.command("hold_memory", 1, 100, 100))
    second = launcher.run(trial.command("hold_memory", 1, 10, 100))
    assert first.tree_memory is not None
    assert second.tree_memory is not None
    assert second.tree_memory.bytes < 20 * MIB < first.tree_memory.bytes


def test_printed_files_are_distinguished_from_the_programs_own_memory(
    launcher: Launcher, trial: Trial
) -> None:
    ran = launcher.run(trial.command("print_bytes", 20 * MIB, 1, stdout=str(trial.directory / "out")))
    if not launcher.start().memory_cgroup:
        pytest.skip("only a cgroup counts file pages")
    assert ran.tree_memory is not None
    assert ran.tree_memory.file_bytes_at_end is not None
    assert 19 * MIB <= ran.tree_memory.file_bytes_at_end <= ran.tree_memory.bytes


def test_no_tree_metric_without_a_request(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("hold_memory", 1, 10, 50, tree_memory="off"))
    assert ran.tree_memory is None
    assert ran.tree_cpu is None
