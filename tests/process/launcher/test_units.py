"""Modules of the launcher in small programs that simulate the kernel where it cannot be made to misbehave."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.process.launcher.conftest import COVERAGE
from tests.shared_directory import shared_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

UNITS = Path(__file__).parent / "units"
LAUNCHER = Path(__file__).resolve().parents[3] / "launcher"


SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class BuildUnit(Protocol):
    """Return a program of a unit's source and modules of the launcher, in which some functions are simulated."""

    def __call__(self, name: str, *modules: str, simulated: tuple[str, ...] = ()) -> Path: ...


@pytest.fixture(scope="module")
def build_unit(tmp_path_factory: pytest.TempPathFactory) -> BuildUnit:
    """Return a function that builds each unit, and each module of the launcher, once."""
    command = [shutil.which("cc") or "gcc", "-std=c11", "-D_GNU_SOURCE", "-g", f"-I{LAUNCHER}"]
    # Counts of different builds can be added only if each has the same lines and branches.
    command += ["-O0", "--coverage"] if COVERAGE else ["-O1", *SANITIZERS]

    def build_module(module: str) -> Path:
        def fill(directory: Path) -> None:
            source, made = LAUNCHER / f"{module}.c", directory / "module.o"
            subprocess.run([*command, "-c", "-o", made, source], check=True)

        name = f"module-{module.replace('/', '-')}"
        return shared_directory(tmp_path_factory, name, fill=fill) / "module.o"

    def build(name: str, *modules: str, simulated: tuple[str, ...] = ()) -> Path:
        def fill(directory: Path) -> None:
            wrapped = [f"-Wl,--wrap={function}" for function in simulated]
            sources = [UNITS / f"{name}.c", *map(build_module, modules)]
            subprocess.run([*command, *wrapped, "-o", directory / "program", *sources], check=True)

        return shared_directory(tmp_path_factory, f"unit-{name}", fill=fill) / "program"

    return build


def output_of(program: Path, *arguments: object) -> str:
    done = subprocess.run(
        [program, *map(str, arguments)], check=False, stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


CGROUP = ("cgroup", "descendants", "directory", "files", "process", "region", "text")


@pytest.fixture
def remove_busy(build_unit: BuildUnit) -> Path:
    simulated = ("rmdir", "unlinkat", "nanosleep", "open", "openat")
    return build_unit("remove_busy", *CGROUP, simulated=simulated)


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


@pytest.mark.parametrize("function", ["open", "openat"])
def test_a_cgroup_is_removed_also_if_it_cannot_be_opened_at_first(
    remove_busy: Path, tmp_path: Path, function: str
) -> None:
    leaf, file = busy_leaf(tmp_path, 2)
    file.unlink()
    output_of(remove_busy, leaf, file, 0, function)
    assert not leaf.exists()


def test_killing_a_process_that_cannot_be_killed_has_a_time_limit(build_unit: BuildUnit) -> None:
    program = build_unit("kill_unkillable", "kill", simulated=("clock_gettime", "nanosleep"))
    assert 10 <= int(output_of(program)) <= 60


@pytest.mark.parametrize(
    ("case", "outcome"), [("tree", "spared"), ("leaf", "spared"), ("real-tree", "killed")]
)
def test_a_pid_that_another_process_got_in_the_meantime_is_not_killed(
    build_unit: BuildUnit, tmp_path: Path, case: str, outcome: str
) -> None:
    program = build_unit("kill_reused_pid", *CGROUP, simulated=("file_read",))
    assert output_of(program, case, tmp_path) == outcome


def test_cgroups_below_a_leaf_are_removed_however_long_their_paths_are(
    remove_busy: Path, tmp_path: Path
) -> None:
    leaf = tmp_path / "leaf"
    leaf.joinpath(*["n" * 120] * 12).mkdir(parents=True)
    output_of(remove_busy, leaf)
    assert not leaf.exists()


@pytest.mark.parametrize(
    ("listed", "cgroups", "expected"),
    [
        ("@\n", "4:memory:/x/perftrail-leaf\n", "killed"),
        ("@\n", "4:memory:/perftrail-leaf/below\n", "killed"),
        ("@\n", "4:memory:/x/perftrail-leaf2\n0::/\n", "alive"),
        ("@\n", "unreadable", "killed"),
        ("@\n", "", "killed"),
        ("@\n", "x" * 100, "alive"),
        ("@\n", "x" * 4095, "killed"),
        ("@\n", "x" * 100_000, "killed"),
        ("0\n1\n.\n\n@\n", "0::/perftrail-leaf\n", "killed"),
        ("@", "0::/perftrail-leaf\n", "alive"),
        ("", "0::/perftrail-leaf\n", "alive"),
    ],
    ids=[
        "in the leaf",
        "below the leaf",
        "in another",
        "unreadable",
        "empty",
        "short",
        "cut at its end",
        "too long",
        "after processes that are never killed",
        "pid that may be cut",
        "not listed",
    ],
)
def test_a_listed_process_is_killed_unless_it_certainly_is_in_another_cgroup(
    build_unit: BuildUnit, tmp_path: Path, listed: str, cgroups: str, expected: str
) -> None:
    kill = build_unit("kill_listed", *CGROUP, simulated=("file_read",))
    leaf = tmp_path / "perftrail-leaf"
    leaf.mkdir()
    assert output_of(kill, leaf, listed, cgroups) == expected


@pytest.mark.parametrize(
    ("stat", "names", "expected"),
    [
        ("child", (), "killed"),
        ("ended", (), "spared"),  # its pid may already be of another process
        ("(name) X 1 1 1", (), "spared"),
        ("(name) Z 1 1 1", (), "spared"),
        ("(name) S", (), "spared"),
        ("without a name", (), "spared"),
        (f"(name) S {1 << 22} 1 1", (), "spared"),
        ("(name) S -1 1 1", (), "spared"),
        ("child", (f"{1 << 22}",), "spared"),
        ("child", ("self",), "spared"),
    ],
)
def test_a_process_that_is_not_certainly_a_living_descendant_is_spared(
    build_unit: BuildUnit, stat: str, names: tuple[str, ...], expected: str
) -> None:
    simulated = ("file_read", "directory_visit", "syscall")
    program = build_unit("kill_found", *CGROUP, simulated=simulated)
    assert output_of(program, stat, *names) == expected


MEMORY_2 = {"memory.swap.max": "", "memory.oom.group": "", "memory.max": "", "memory.peak": "7\n"}
MEMORY_2 |= {"memory.stat": "anon 1\nfile 5\n", "memory.events": "low 0\noom_kill 2\n"}
CPU_2 = {"cpu.stat": "user_usec 1\nusage_usec 3\n"}
PIDS = {"pids.max": "", "pids.events": "max 4\n"}
PROCS = {"cgroup.procs": "", "cgroup.kill": ""}
MEMORY_1 = {
    "memory.limit_in_bytes": "",
    "memory.memsw.limit_in_bytes": "",
    "memory.max_usage_in_bytes": "7\n",
}
MEMORY_1 |= {"memory.stat": "cache 1\ntotal_cache 5\n", "memory.oom_control": "oom_kill 2\n"}
CPU_1 = {"cpuacct.usage": "3\n"}


def make_template(directory: Path, files: Mapping[str, str]) -> Path:
    """Make the files that each new cgroup in a directory has; see ``simulated_cgroups.h``."""
    template = directory / "template"
    template.mkdir(parents=True)
    for name, content in files.items():
        (template / name).write_text(content)
    return template


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedLeaf:
    """The output of the program, and the final content of the leaf's files."""

    output: str
    files: dict[str, str]


@pytest.fixture
def fake_leaf(build_unit: BuildUnit, tmp_path: Path) -> Callable[..., UsedLeaf]:
    """Return a function that makes, enters, kills, reads and removes a leaf with these files."""
    program = build_unit("fake_leaf", *CGROUP, simulated=("mkdir", "rmdir"))

    def use(version: int, files: dict[str, str], *, memory: int = 1 << 20, processes: int = 9) -> UsedLeaf:
        template = make_template(tmp_path / "cgroups", files)
        output = output_of(program, tmp_path / "cgroups" / "leaf", version, memory, processes)
        assert [path.name for path in template.parent.iterdir()] == ["template"]
        return UsedLeaf(output=output, files={file.name: file.read_text() for file in template.iterdir()})

    return use


def test_a_leaf_of_cgroup_2_is_limited_and_read(fake_leaf: Callable[..., UsedLeaf]) -> None:
    used = fake_leaf(2, {**MEMORY_2, **CPU_2, **PIDS, **PROCS})
    assert used.output == "made, entered, peak 7, file 5, cpu 3000, oom 2, refused 4"
    assert (used.files["memory.max"], used.files["memory.swap.max"]) == ("1048576", "0")
    assert (used.files["memory.oom.group"], used.files["pids.max"]) == ("1", "9")
    assert (used.files["cgroup.procs"], used.files["cgroup.kill"]) == ("0", "1")


def test_a_leaf_of_cgroup_1_is_limited_and_read(fake_leaf: Callable[..., UsedLeaf]) -> None:
    used = fake_leaf(1, {**MEMORY_1, **CPU_1, "pids.max": "", "cgroup.procs": ""})
    assert used.output == "made, entered, peak 7, file 5, cpu 3, oom 2, refused -1"
    assert used.files["memory.limit_in_bytes"] == "1048576"
    assert used.files["memory.memsw.limit_in_bytes"] == "1048576"


def test_a_leaf_without_limits_is_made_as_the_kernel_makes_it(fake_leaf: Callable[..., UsedLeaf]) -> None:
    files = {**MEMORY_2, **CPU_2, **PIDS, **PROCS}
    used = fake_leaf(2, files, memory=0, processes=0)
    assert used.output.startswith("made, entered")
    assert used.files == {**files, "cgroup.procs": "0", "cgroup.kill": "1"}


@pytest.mark.parametrize(
    "files",
    [{}, MEMORY_2, {**MEMORY_2, "pids.max": ""}],
    ids=["memory", "processes", "processes of the leaf"],
)
def test_a_leaf_that_cannot_be_limited_is_not_used(
    fake_leaf: Callable[..., UsedLeaf], files: dict[str, str]
) -> None:
    assert fake_leaf(2, files).output == "not made"


def test_numbers_that_a_leaf_does_not_have_are_unknown(fake_leaf: Callable[..., UsedLeaf]) -> None:
    used = fake_leaf(2, {"memory.max": "", "pids.max": "", "cgroup.procs": ""})
    assert used.output == "made, entered, peak -1, file -1, cpu -1, oom -1, refused -1"


def test_a_leaf_that_cannot_be_made_is_not_used_and_removed(
    fake_leaf: Callable[..., UsedLeaf], tmp_path: Path
) -> None:
    (tmp_path / "cgroups" / "leaf").mkdir(parents=True)
    assert fake_leaf(2, {**MEMORY_2, **PIDS, **PROCS}).output == "not made"


@pytest.fixture
def find(build_unit: BuildUnit, tmp_path: Path) -> Callable[..., str]:
    """Return a function that returns the leaves that a launcher with pid 7 finds by these tables."""
    simulated = ("file_read", "mkdir", "rmdir")
    program = build_unit("find_cgroups", "cgroup_find", *CGROUP, simulated=simulated)

    def use(own: str, mounts: str) -> str:
        (tmp_path / "own").write_text(own)
        (tmp_path / "mounts").write_text(mounts)
        return output_of(program, tmp_path / "own", tmp_path / "mounts")

    return use


def mounted(directory: Path | str, root: str = "/", kind: str = "cgroup2 cgroup2 rw") -> str:
    return f"30 24 0:26 {root} {directory} rw,nosuid shared:4 master:5 - {kind}\n"


def test_memory_is_counted_below_the_nearest_ancestor_that_delegates_it(
    find: Callable[..., str], tmp_path: Path
) -> None:
    make_template(tmp_path / "top", {**MEMORY_2, **CPU_2, **PROCS})
    make_template(tmp_path / "top/a", {**MEMORY_2, **CPU_2, **PROCS})
    make_template(tmp_path / "top/a/b", {**CPU_2, **PROCS})
    found = find("4:memory:/\n0::/a/b\n", mounted(tmp_path / "top"))
    assert found == f"{tmp_path}/top/a/perftrail-7 2 memory cpu kill"
    assert sorted(path.name for path in (tmp_path / "top/a").iterdir()) == ["b", "template"]


def test_without_delegated_memory_a_cgroup_2_counts_cpu_and_a_cgroup_1_memory(
    find: Callable[..., str], tmp_path: Path
) -> None:
    make_template(tmp_path / "top/a", {**CPU_2, **PROCS})
    make_template(tmp_path / "memory/m", {**MEMORY_1, "cgroup.procs": ""})
    mounts = mounted(tmp_path / "top") + mounted(tmp_path / "memory", kind="cgroup cgroup rw,memory")
    found = find("4:memory:/m\n0::/a\n", mounts)
    assert found.splitlines() == [
        f"{tmp_path}/top/a/perftrail-7 2 cpu kill",
        f"{tmp_path}/memory/m/perftrail-7 1 memory",
    ]


def test_with_cgroup_1_alone_each_controller_has_its_hierarchy(
    find: Callable[..., str], tmp_path: Path
) -> None:
    make_template(tmp_path / "memory", {**MEMORY_1, "cgroup.procs": ""})
    make_template(tmp_path / "cpu/c", {**CPU_1, "cgroup.procs": ""})
    mounts = mounted(tmp_path / "memory", kind="cgroup cgroup rw,memory")
    mounts += mounted(tmp_path / "cpu", kind="cgroup cgroup rw,cpu,cpuacct")
    found = find("not a line\n5:cpu,cpuacct:/c\n4:memory:/\n", mounts)
    assert found.splitlines() == [
        f"{tmp_path}/memory/perftrail-7 1 memory",
        f"{tmp_path}/cpu/c/perftrail-7 1 cpu",
    ]


def test_a_container_has_its_part_of_a_hierarchy(find: Callable[..., str], tmp_path: Path) -> None:
    make_template(tmp_path / "top/b", {**MEMORY_2, **CPU_2, **PROCS})
    mounts = mounted("/nowhere", root="/other") + mounted(tmp_path / "top", root="/a").rstrip("\n")
    assert find("0::/a/b\n", mounts) == f"{tmp_path}/top/b/perftrail-7 2 memory cpu kill"


def test_the_cgroup_of_an_earlier_launcher_with_the_same_pid_is_used(
    find: Callable[..., str], tmp_path: Path
) -> None:
    template = make_template(tmp_path / "top", {**MEMORY_2, **CPU_2, **PROCS})
    left = tmp_path / "top/perftrail-7"
    left.mkdir()
    for file in template.iterdir():
        (left / file.name).hardlink_to(file)
    assert find("0::/\n", mounted(tmp_path / "top")) == f"{left} 2 memory cpu kill"
    assert not left.exists()


def test_a_cgroup_that_no_process_can_enter_is_not_used(find: Callable[..., str], tmp_path: Path) -> None:
    template = make_template(tmp_path / "top", {**MEMORY_2, **CPU_2})
    (template / "cgroup.procs").symlink_to("/dev/full")
    assert find("0::/\n", mounted(tmp_path / "top")) == ""


@pytest.mark.parametrize(
    ("own", "mounts"),
    [
        ("", mounted("/nowhere")),
        ("0::/\n", ""),
        ("4:memory:/\n0", mounted("/nowhere")),
        ("0::/a", "30 24 0:26 / /nowhere rw\n30 24 0:26 / /nowhere rw"),
        ("0::/a/b\n", mounted("/nowhere/x")),
        ("0::/\n", mounted("/")),
        ("0::y\n", mounted("x")),
        ("0::/\n", mounted("/" + "x" * 505)),
        ("0::/\n", mounted("/" + "x" * 600)),
        (f"0::/{'x' * 300}\n", mounted("/" + "x" * 300)),
    ],
)
def test_tables_that_lead_nowhere_give_no_cgroup(find: Callable[..., str], own: str, mounts: str) -> None:
    assert find(own, mounts) == ""


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("10,100,100", 10),
        ("10,100,50", 20),
        ("10,100,0", -1),  # it never ran
        ("SHORT", -1),
        ("NONE", -1),
    ],
)
def test_a_counter_that_shared_its_register_is_scaled_to_the_whole_time(
    build_unit: BuildUnit, given: str, values: int
) -> None:
    program = build_unit("scaled_counters", "counters", simulated=("syscall",))
    assert output_of(program, "7,1,1", given) == f"7 {values} -1 -1 -1 -1 -1 closed"


@pytest.mark.parametrize(
    ("rollups", "kibibytes"),
    [
        (("Rss: 9 kB\nPss:   100 kB\n", "Pss:   20 kB\n"), 120),
        (("Pss:   100 kB\n", "unreadable"), 100),
        (("Pss:   0 kB\n", "Rss: 9 kB\n"), 0),
    ],
)
def test_a_sample_is_the_sum_over_the_processes_that_can_be_read(
    build_unit: BuildUnit, rollups: tuple[str, str], kibibytes: int
) -> None:
    modules = ("tree_sampling", "descendants", "directory", "files", "process", "region", "text")
    program = build_unit("sample_tree", *modules, simulated=("file_read",))
    assert output_of(program, *rollups) == f"{kibibytes * 1024} bytes, 1 sample"


@pytest.mark.parametrize(
    ("directory", "size", "outcome"),
    [
        (".", 100, "6 abcdef, written"),
        (".", 7, "6 abcdef, written"),
        (".", 4, "3 abc, written"),
        ("missing", 100, "-1 unread, not written"),
        ("./" * 350, 100, "-1 unread, not written"),
    ],
)
def test_a_file_is_read_up_to_the_size_and_never_by_part_of_its_path(
    build_unit: BuildUnit, tmp_path: Path, directory: str, size: int, outcome: str
) -> None:
    (tmp_path / "name").write_text("abcdef")
    program = build_unit("read_files", "files", "text")
    assert output_of(program, f"{tmp_path}/{directory}", "name", size) == outcome


def test_no_request_begins_within_a_line_that_is_too_long(build_unit: BuildUnit, tmp_path: Path) -> None:
    program = build_unit("skipped_line", "input", "region", "text")
    # The launcher reads while less than 16 MiB wait: so the line is cut off exactly there.
    long = b"x" * (16 << 20)
    sent = b"cancel\nid=1\n" + long + b"cancel\nid=2\ncancel\n"
    (tmp_path / "sent").write_bytes(sent)
    with (tmp_path / "sent").open("rb") as file:
        done = subprocess.run([program], check=True, stdin=file, capture_output=True, timeout=120)
    assert done.stdout.decode().split("\n") == ["cancel", "id=1", "too long", "id=2", "cancel", ""]


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (("pthread_mutex_lock",), "found"),
        (("pthread_mutex_lock", "GLIBC_0.9"), "found"),
        (("pthread_mutex_of_another_library",), "ended"),
        (("pthread_mutex_of_another_library", "GLIBC_0.9"), "ended"),
    ],
)
def test_a_function_that_the_c_library_lacks_ends_the_program_before_it_is_called(
    build_unit: BuildUnit, function: tuple[str, ...], outcome: str
) -> None:
    assert output_of(build_unit("look_up", "locks/slots"), *function) == outcome
