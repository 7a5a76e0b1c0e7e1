"""Modules of the launcher in small programs that simulate the kernel where it cannot be made to misbehave."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.process.launcher.conftest import COVERAGE

UNITS = Path(__file__).parent / "units"
LAUNCHER = Path(__file__).resolve().parents[3] / "launcher"


def build_unit(name: str, directory: Path, *modules: str, simulated: tuple[str, ...]) -> Path:
    program = directory / name
    command = [shutil.which("cc") or "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", f"-I{LAUNCHER}"]
    command += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command += ["--coverage"] if COVERAGE else []
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
