"""Modules of the launcher in small programs that simulate the kernel where it cannot be made to misbehave."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.process.launcher.conftest import COVERAGE

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS = Path(__file__).parent / "units"
LAUNCHER = Path(__file__).resolve().parents[3] / "launcher"


SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build_unit(name: str, directory: Path, *modules: str, simulated: tuple[str, ...]) -> Path:
    program = directory / name
    command = [shutil.which("cc") or "gcc", "-std=c11", "-D_GNU_SOURCE", "-g", f"-I{LAUNCHER}"]
    # Counts of different builds can be added only if each has the same lines and branches.
    command += ["-O0", "--coverage"] if COVERAGE else ["-O1", *SANITIZERS]
    command += [f"-Wl,--wrap={function}" for function in simulated]
    sources = [UNITS / f"{name}.c", *(LAUNCHER / f"{module}.c" for module in modules)]
    subprocess.run([*command, "-o", program, *sources], check=True)
    return program


def output_of(program: Path, *arguments: object) -> str:
    done = subprocess.run(
        [program, *map(str, arguments)], check=False, stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


CGROUP = ("cgroup", "descendants", "directory", "files", "process", "region", "text")


@pytest.fixture
def remove_busy(tmp_path: Path) -> Path:
    return build_unit("remove_busy", tmp_path, *CGROUP, simulated=("rmdir", "unlinkat", "nanosleep"))


def busy_leaf(directory: Path, depth: int) -> tuple[Path, Path]:
    """Make a directory with directories below it, and a file that keeps the deepest one busy."""
    leaf = directory / "leaf"
    deepest = leaf.joinpath(*(str(level) for level in range(depth)))
    deepest.mkdir(parents=True)
    file = deepest / "busy"
    file.touch()
    return leaf, file


@pytest.mark.parametrize("depth", [0, 1, 4, 8])
def test_attempts_to_remove_a_busy_cgroup_are_linear_in_its_depth(
    remove_busy: Path, tmp_path: Path, depth: int
) -> None:
    leaf, _ = busy_leaf(tmp_path, depth)
    assert int(output_of(remove_busy, leaf)) <= 2 * 501 * (depth + 1)
    assert leaf.exists()


def test_a_cgroup_that_is_busy_for_a_while_is_removed_with_all_below_it(
    remove_busy: Path, tmp_path: Path
) -> None:
    leaf, file = busy_leaf(tmp_path, 4)
    output_of(remove_busy, leaf, file, 400)
    assert not leaf.exists()


def test_killing_a_process_that_cannot_be_killed_has_a_time_limit(tmp_path: Path) -> None:
    program = build_unit("kill_unkillable", tmp_path, "kill", simulated=("clock_gettime", "nanosleep"))
    assert 10 <= int(output_of(program)) <= 60


@pytest.mark.parametrize(
    ("case", "outcome"), [("tree", "spared"), ("leaf", "spared"), ("real-tree", "killed")]
)
def test_a_pid_that_another_process_got_in_the_meantime_is_not_killed(
    tmp_path: Path, case: str, outcome: str
) -> None:
    program = build_unit("kill_reused_pid", tmp_path, *CGROUP, simulated=("file_read",))
    assert output_of(program, case, tmp_path) == outcome


def test_cgroups_below_a_leaf_are_removed_however_long_their_paths_are(
    remove_busy: Path, tmp_path: Path
) -> None:
    leaf = tmp_path / "leaf"
    leaf.joinpath(*["n" * 120] * 12).mkdir(parents=True)
    output_of(remove_busy, leaf)
    assert not leaf.exists()


@pytest.mark.parametrize(("bytes", "expected"), [(100, "alive"), (4095, "killed"), (100_000, "killed")])
def test_a_listed_process_is_killed_if_its_cgroups_are_too_long_to_read(
    tmp_path: Path, bytes: int, expected: str
) -> None:
    kill = build_unit("kill_unreadable", tmp_path, *CGROUP, simulated=("file_read",))
    leaf = tmp_path / "perftrail-leaf"
    leaf.mkdir()
    assert output_of(kill, leaf, bytes) == expected


@pytest.fixture
def fake_leaf(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes, kills, reads and removes a leaf with these files, and returns what it printed."""
    program = build_unit("fake_leaf", tmp_path, *CGROUP, simulated=("mkdir",))

    def use(version: int, *files: str) -> str:
        leaf = tmp_path / "leaf"
        try:
            return output_of(program, leaf, version, *files)
        finally:
            shutil.rmtree(leaf, ignore_errors=True)

    return use


MEMORY_2 = ("memory.swap.max", "memory.oom.group", "memory.max", "memory.peak=7\n", "memory.stat=file 5\n")
CPU_2 = ("cpu.stat=user_usec 1\nusage_usec 3\n", "memory.events=low 0\noom_kill 2\n")


def test_a_leaf_of_cgroup_2_is_limited_and_read(fake_leaf: Callable[..., str]) -> None:
    files = (*MEMORY_2, *CPU_2, "pids.max", "pids.events=max 4\n", "cgroup.procs", "cgroup.kill")
    lines = fake_leaf(2, *files).splitlines()
    assert lines[0] == "made, peak 7, file 5, cpu 3000, oom 2, refused 4"
    assert {"memory.max 1048576", "memory.swap.max 0", "memory.oom.group 1", "pids.max 9"} < set(lines)
    assert "cgroup.kill 1" in lines


def test_a_leaf_of_cgroup_1_is_limited_and_read(fake_leaf: Callable[..., str]) -> None:
    limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max_usage_in_bytes=7\n")
    counts = ("memory.stat=cache 1\ntotal_cache 5\n", "cpuacct.usage=3\n", "memory.oom_control=oom_kill 2\n")
    lines = fake_leaf(1, *limits, *counts, "pids.max", "cgroup.procs").splitlines()
    assert lines[0] == "made, peak 7, file 5, cpu 3, oom 2, refused -1"
    assert {"memory.limit_in_bytes 1048576", "memory.memsw.limit_in_bytes 1048576"} < set(lines)


@pytest.mark.parametrize(
    "files", [(), MEMORY_2, (*MEMORY_2, "pids.max")], ids=["memory", "processes", "processes of the leaf"]
)
def test_a_leaf_that_cannot_be_limited_is_not_used(
    fake_leaf: Callable[..., str], files: tuple[str, ...]
) -> None:
    assert fake_leaf(2, *files).splitlines()[0] == "not made"


def test_numbers_that_a_leaf_does_not_have_are_unknown(fake_leaf: Callable[..., str]) -> None:
    files = ("memory.max", "pids.max", "cgroup.procs")
    assert fake_leaf(2, *files).splitlines()[0] == "made, peak -1, file -1, cpu -1, oom -1, refused -1"
