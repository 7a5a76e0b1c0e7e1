"""Heap allocations are counted by a preloaded object, as Valgrind counts them, however the program ends."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import AllocationCounts, Exited, why_uncounted
from perftrail.process.allocation_counts import AllocationFile, Tables
from perftrail.process.launcher import Launcher
from tests.needs import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Ran
    from tests.process.launcher.traces import Trial

KIB = 1024


@pytest.fixture
def launcher(plain_launcher: Path) -> Iterator[Launcher]:
    with Launcher(plain_launcher) as started:
        yield started


def counts_of(ran: Ran) -> AllocationCounts:
    assert why_uncounted(ran.allocations) == ""
    assert ran.allocations is not None
    return ran.allocations


def run(launcher: Launcher, trial: Trial, *words: object) -> AllocationCounts:
    ran = launcher.run(trial.command("alloc_work", *words, allocation_counter="preload"))
    assert ran.ended == Exited(code=0)
    return counts_of(ran)


def test_a_program_that_allocates_nothing_has_the_count_zero(launcher: Launcher, trial: Trial) -> None:
    assert run(launcher, trial, "nothing") == AllocationCounts(
        allocations=0, bytes=0, heap_peak_bytes=0, mappings=0, mapped_bytes=0, processes=1
    )


@pytest.mark.parametrize(
    "function",
    [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
    ],
)
def test_each_function_that_allocates_counts_once_with_its_bytes(
    launcher: Launcher, trial: Trial, function: str
) -> None:
    counts = run(launcher, trial, "call", function)
    assert (counts.allocations, counts.bytes) == (1, 1000)
    assert 1000 <= counts.heap_peak_bytes <= (4104 if function == "pvalloc" else 1016)


def test_a_realloc_is_an_allocation_of_its_new_size_and_a_failed_one_is_none(
    launcher: Launcher, trial: Trial
) -> None:
    counts = run(launcher, trial, "realloc")
    assert (counts.allocations, counts.bytes) == (3, 350)
    assert 200 <= counts.heap_peak_bytes < 300


def test_the_peak_is_the_largest_number_of_bytes_in_use(launcher: Launcher, trial: Trial) -> None:
    counts = run(launcher, trial, "peak")
    assert (counts.allocations, counts.bytes) == (3, 30_001_000)
    assert 20_000_000 <= counts.heap_peak_bytes <= 20_000_000 + 8 * KIB


@pytest.mark.parametrize("end", ["return", "_exit", "kill"])
def test_each_allocation_of_each_thread_is_counted_however_the_program_ends(
    launcher: Launcher, trial: Trial, end: str
) -> None:
    ran = launcher.run(
        trial.command("alloc_work", "threads", 4, 10_000, 100, end, allocation_counter="preload")
    )
    counts = counts_of(ran)
    by_library = counts.allocations - 40_000  # memory of the threads themselves
    assert 0 <= by_library <= 8
    assert 4_000_000 <= counts.bytes <= 4_000_000 + 8 * KIB


def test_the_peak_of_several_threads_is_exact_to_a_batch_for_each(launcher: Launcher, trial: Trial) -> None:
    counts = run(launcher, trial, "hold", 8, 1_000_000)
    assert 8_000_000 - 8 * 64 * KIB <= counts.heap_peak_bytes <= 8_000_000 + 9 * 64 * KIB


def test_a_forked_child_counts_its_own_allocations_and_has_its_parents_memory(
    launcher: Launcher, trial: Trial
) -> None:
    counts = run(launcher, trial, "fork")
    assert (counts.allocations, counts.bytes, counts.processes) == (2, 1_500_000, 2)
    assert 1_500_000 <= counts.heap_peak_bytes <= 1_500_000 + 16 * KIB


def test_mappings_of_memory_are_counted_apart_and_reserved_addresses_are_not(
    launcher: Launcher, trial: Trial
) -> None:
    counts = run(launcher, trial, "map")
    assert (counts.mappings, counts.mapped_bytes, counts.allocations) == (1, 8192, 0)


@pytest.mark.parametrize(("how", "counted"), [("execl", True), ("execlp", True), ("execle", False)])
def test_a_program_that_another_one_starts_is_counted_if_it_keeps_the_environment(
    launcher: Launcher, trial: Trial, how: str, counted: bool
) -> None:
    program = trial.targets / "alloc_work"
    ran = launcher.run(trial.command("alloc_work", "exec", how, program, allocation_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert (why_uncounted(ran.allocations) == "") == counted
    if counted:
        assert counts_of(ran).allocations == 1


def test_programs_that_a_shell_starts_are_summed(launcher: Launcher, trial: Trial) -> None:
    work = trial.targets / "alloc_work"
    alone = counts_of(launcher.run(trial.shell(":", allocation_counter="preload")))
    script = f"{work} call malloc; {work} peak & wait; exec {work} call calloc"
    both = counts_of(launcher.run(trial.shell(script, allocation_counter="preload")))
    assert both.bytes - alone.bytes == pytest.approx(30_003_000, abs=16 * KIB)
    assert both.heap_peak_bytes < 21_000_000


@pytest.mark.parametrize("line", ["{static}", "env -i {dynamic}", "{dynamic} exec no; {static}"])
def test_a_program_that_cannot_be_counted_in_a_counted_one_is_reported(
    launcher: Launcher, trial: Trial, line: str
) -> None:
    line = line.format(static=trial.targets / "exit_at_once", dynamic=trial.targets / "alloc_work")
    ran = launcher.run(trial.shell(f"{line}; exit 0", allocation_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert "1 program that it started did not load a shared glibc" in why_uncounted(ran.allocations)


def test_a_static_program_has_no_count_rather_than_zero(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("exit_at_once", allocation_counter="preload"))
    assert ran.allocations is None
    assert "does not load a shared glibc" in why_uncounted(ran.allocations)


def test_a_program_with_its_own_allocator_uses_it_and_has_no_count(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("own_malloc", allocation_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert "1 of 1 processes have another allocator" in why_uncounted(ran.allocations)


LIBRARY = """\
#include <stddef.h>
static _Alignas(16) char memory[1 << 20];
static size_t used;
void *malloc(size_t bytes) { used += (bytes + 15) & ~(size_t)15; return used < sizeof memory ? memory + used : NULL; }
void *calloc(size_t number, size_t size) { return malloc(number * size); }
void *realloc(void *block, size_t bytes) { return block ? NULL : malloc(bytes); }
void free(void *block) { (void)block; }
size_t malloc_usable_size(void *block) { __builtin_trap(); }
__attribute__((destructor)) void check(void) { if (!used) __builtin_trap(); }
"""


def test_an_allocator_of_a_library_is_used_and_has_no_count(launcher: Launcher, trial: Trial) -> None:
    source, library = trial.directory / "own.c", trial.directory / "own.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, source], check=True)
    environment = {"LD_PRELOAD": str(library)}
    command = trial.command(
        "alloc_work", "call", "malloc", environment=environment, allocation_counter="preload"
    )
    ran = launcher.run(command)
    assert ran.ended == Exited(code=0)
    assert "have another allocator than glibc's" in why_uncounted(ran.allocations)


def test_locks_and_allocations_are_counted_together(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(
        trial.command(
            "lock_work", 1, 5, "own", "return", lock_counter="preload", allocation_counter="preload"
        )
    )
    assert ran.locks is not None
    assert ran.locks.locks == 5
    assert counts_of(ran).allocations >= 1


def test_stacks_have_all_allocations_with_the_files_and_positions_of_their_calls(
    launcher: Launcher, trial: Trial
) -> None:
    command = trial.command("alloc_work", "threads", 4, 1000, 100, "return", allocation_counter="stacks")
    counts = counts_of(launcher.run(command))
    assert counts.lost_stacks == 0
    assert sum(stack.allocations for stack in counts.stacks) == counts.allocations
    assert sum(stack.bytes for stack in counts.stacks) == counts.bytes
    largest = max(counts.stacks, key=lambda stack: stack.allocations)
    assert (largest.allocations, largest.bytes) == (4000, 400_000)
    file, position = largest.frames[0]
    assert Path(file) == trial.targets / "alloc_work"
    assert name_of(Path(file), position) == "work"
    assert {Path(file).name.partition(".")[0] for file, _ in largest.frames} == {"alloc_work", "libc"}


def test_stacks_of_many_allocations_are_a_sample(launcher: Launcher, trial: Trial) -> None:
    command = trial.command("alloc_work", "threads", 1, 1_000_000, 100, "return", allocation_counter="stacks")
    counts = counts_of(launcher.run(command))
    largest = max(stack.allocations for stack in counts.stacks)
    assert 1_000_000 * 0.98 < largest < 1_000_000 * 1.02


def test_a_forked_child_has_its_own_stacks(launcher: Launcher, trial: Trial) -> None:
    counts = counts_of(launcher.run(trial.command("alloc_work", "fork", allocation_counter="stacks")))
    assert sorted(stack.bytes for stack in counts.stacks) == [500_000, 1_000_000]
    names = {name_of(Path(file), position) for file, position in (each.frames[0] for each in counts.stacks)}
    assert names == {"main"}


def name_of(file: Path, position: int) -> str:
    """Return the function at a position, from the program's table of symbols."""
    listed = subprocess.run(["nm", "-n", file], check=True, capture_output=True, text=True).stdout
    functions = [line.split() for line in listed.splitlines() if " t " in line.lower()]
    return next(name for address, _, name in reversed(functions) if int(address, 16) <= position)


def test_more_threads_than_slots_are_reported(plain_launcher: Path, trial: Trial) -> None:
    counts = trial.directory / "counts"
    tables = Tables(slots=4)
    with counts.open("wb") as file:
        file.truncate(tables.size)
        AllocationFile(file, tables).prepare()
    done = subprocess.run(
        [trial.targets / "alloc_work", "threads", "4", "100", "10", "return"],
        env={
            "LD_PRELOAD": str(plain_launcher.with_name("perftrail-allocations.so")),
            "PERFTRAIL_ALLOCATIONS": str(counts),
        },
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert counts.stat().st_size == 4 * 128
    with counts.open("rb") as file:
        found = AllocationFile(file, tables).counted()
    assert found is not None
    assert found.uncounted_threads == 3


@pytest.mark.parametrize("kind", ["unnamed", "missing", "short", "pipe"])
def test_a_program_whose_counts_cannot_be_stored_runs_as_without_the_object(
    plain_launcher: Path, trial: Trial, kind: str
) -> None:
    counts = trial.directory / "counts"
    if kind == "pipe":
        os.mkfifo(counts)
    elif kind == "short":
        counts.write_bytes(bytes(128))
    done = subprocess.run(
        [trial.targets / "alloc_work", "threads", "4", "100", "10", "return"],
        env={
            "LD_PRELOAD": str(plain_launcher.with_name("perftrail-allocations.so")),
            **({} if kind == "unnamed" else {"PERFTRAIL_ALLOCATIONS": str(counts)}),
        },
        check=False,
        timeout=60,
    )
    assert done.returncode == 0


def test_a_file_with_any_content_is_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    for content in (b"", b"\0" * 128, os.urandom(128 * 50), b"\xff" * 1000):
        garbage.write_bytes(content)
        with garbage.open("rb") as file:
            found = AllocationFile(file, Tables(slots=10, stacks=10, modules=10)).counted()
        assert found is None or found.heap_peak_bytes >= 0


def test_nothing_is_counted_by_default(launcher: Launcher, trial: Trial) -> None:
    assert launcher.run(trial.command("alloc_work", "peak")).allocations is None


def test_a_launcher_without_the_object_says_what_to_install(
    plain_launcher: Path, trial: Trial, tmp_path: Path
) -> None:
    alone = shutil.copy(plain_launcher, tmp_path / "perftrail-launcher")
    with Launcher(Path(alone)) as launcher, pytest.raises(LauncherError, match="count allocations"):
        launcher.run(trial.command("alloc_work", allocation_counter="preload"))


PATH = {"PATH": "/usr/bin:/bin"}
TOTALS = re.compile(r"total heap usage: ([\d,]+) allocs, [\d,]+ frees, ([\d,]+) bytes")


@needs("valgrind")
@pytest.mark.parametrize(
    "line",
    [
        ("alloc_work", "peak"),
        ("alloc_work", "threads", "4", "1000", "100", "return"),
        ("/bin/ls", "-la", "/usr"),
    ],
    ids=["peak", "threads", "ls"],
)
def test_the_counts_are_those_of_valgrind(launcher: Launcher, trial: Trial, line: tuple[str, ...]) -> None:
    program, *arguments = line
    command = trial.command(program, *arguments, environment=PATH, allocation_counter="preload")
    counts = counts_of(launcher.run(command))
    log = trial.directory / "log"
    subprocess.run(
        [
            "valgrind",
            "--run-libc-freeres=no",
            "--undef-value-errors=no",
            f"--log-file={log}",
            *command.arguments,
        ],
        env={**command.environment, "PERFTRAIL_ALLOCATIONS": "/dev/null"},
        cwd=command.directory,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = TOTALS.search(log.read_text())
    assert found is not None
    allocations, allocated = (int(text.replace(",", "")) for text in found.groups())
    assert counts.allocations == allocations
    # The object's thread-local variable needs 16 bytes for each thread.
    assert counts.bytes == pytest.approx(allocated, abs=4 * 16 if "threads" in line else 0)
