"""Locks and waits are counted by a preloaded object, however the program ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import Exited, LockCounts, Waits
from perftrail.process.launcher import Launcher
from perftrail.process.lock_counts import LockFile
from perftrail.process.preloaded import remove_left_over_count_files
from tests.needs import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Ran
    from tests.process.launcher.traces import Trial


@pytest.fixture
def launcher(plain_launcher: Path) -> Iterator[Launcher]:
    with Launcher(plain_launcher) as started:
        yield started


def counts_of(ran: Ran) -> LockCounts:
    assert ran.locks is not None
    assert ran.locks.method == "preload"
    return ran.locks


@pytest.mark.slow("builds")
@pytest.mark.parametrize("end", ["return", "_exit", "kill"])
def test_each_lock_of_each_thread_is_counted_however_the_program_ends(
    launcher: Launcher, trial: Trial, end: str
) -> None:
    ran = launcher.run(trial.command("lock_work", 4, 10_000, "own", end, lock_counter="preload"))
    assert counts_of(ran).locks == 40_000
    assert counts_of(ran).contended == 0
    assert counts_of(ran).wait_seconds == 0.0
    assert counts_of(ran).threads == 5  # main waits for the four
    assert counts_of(ran).joins.number == 4
    assert counts_of(ran).processes == 1


def test_the_time_that_threads_wait_for_each_other_is_summed(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("lock_work", 4, 20, "shared", "return", lock_counter="preload"))
    assert counts_of(ran).locks == 80
    assert counts_of(ran).contended >= 3
    assert 0.02 <= counts_of(ran).wait_seconds <= 3 * ran.wall_seconds


NOTHING = Waits()
SUPPRESSIONS = Path(__file__).with_name("helgrind.supp")


@pytest.mark.parametrize(
    ("waits_at", "kind"),
    [
        ("condition", "conditions"),
        ("timed", "conditions"),
        ("clock", "conditions"),
        ("c11", "conditions"),
        ("barrier", "barriers"),
        ("semaphore", "semaphores"),
        ("join", "joins"),
        ("spin", "spins"),
    ],
)
def test_each_kind_of_wait_is_counted_apart_from_locks(
    launcher: Launcher, trial: Trial, waits_at: str, kind: str
) -> None:
    ran = launcher.run(trial.command("wait_work", waits_at, lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    counts = counts_of(ran)
    waits = getattr(counts, kind)
    assert 0.005 < waits.seconds < 2 * ran.wall_seconds
    assert 1 <= waits.number <= 40
    others = {"conditions", "barriers", "semaphores", "spins"} - {kind}
    assert all(getattr(counts, other) == NOTHING for other in others)
    assert counts.locks == (40 if kind == "conditions" else 0)
    assert counts.wait_seconds < waits.seconds
    assert counts.joins.number == 1


def test_each_thread_is_counted_at_each_barrier_that_it_comes_to(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("wait_work", "barrier", lock_counter="preload"))
    assert counts_of(ran).barriers.number == 40


def test_a_semaphore_that_is_free_is_no_wait_and_leaves_errno_alone(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("wait_work", "free", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert counts_of(ran).semaphores == NOTHING
    more = (launcher.run(trial.command("wait_work", "free", lock_counter="preload")) for _ in range(3))
    assert min(counts_of(each).barriers.seconds for each in (ran, *more)) < 0.005


@pytest.mark.parametrize("end", ["cancel", "left"])
def test_an_interrupted_wait_is_counted_until_its_end(launcher: Launcher, trial: Trial, end: str) -> None:
    ran = launcher.run(trial.command("wait_work", end, lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert counts_of(ran).semaphores.number == 1
    assert 0.005 < counts_of(ran).semaphores.seconds < ran.wall_seconds


def test_the_time_of_an_interrupted_wait_of_several_processes_is_unknown(
    launcher: Launcher, trial: Trial
) -> None:
    ran = launcher.run(trial.shell(f"{trial.targets / 'wait_work'} left; exit 0", lock_counter="preload"))
    assert counts_of(ran).semaphores == Waits(number=1, seconds=0.0)


@pytest.mark.parametrize("kind", ["rwlock", "mtx"])
def test_locks_of_c11_and_those_with_a_time_limit_are_locks(
    launcher: Launcher, trial: Trial, kind: str
) -> None:
    ran = launcher.run(trial.command("wait_work", kind, lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert (counts_of(ran).locks, counts_of(ran).contended) == (2, 1)
    assert 0.005 < counts_of(ran).wait_seconds < ran.wall_seconds


WAITING_LOCKS = (
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_clockwrlock",
    "mtx_lock",
    "mtx_timedlock",
)
TRYING_LOCKS = (
    "pthread_mutex_trylock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_trywrlock",
    "mtx_trylock",
)


@pytest.mark.parametrize("function", [*WAITING_LOCKS, *TRYING_LOCKS])
def test_each_function_that_locks_counts_a_free_lock_and_one_of_another_thread(
    launcher: Launcher, trial: Trial, function: str
) -> None:
    ran = launcher.run(trial.command("every_lock", function, "free", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert (counts_of(ran).locks, counts_of(ran).contended, counts_of(ran).wait_seconds) == (1, 0, 0.0)
    ran = launcher.run(trial.command("every_lock", function, "held", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    waits = function in WAITING_LOCKS
    assert (counts_of(ran).locks, counts_of(ran).contended) == (1 + waits, 1)
    assert (0.0 < counts_of(ran).wait_seconds < ran.wall_seconds) == waits


@pytest.mark.parametrize("function", [name for name in WAITING_LOCKS if "timed" in name or "clock" in name])
def test_a_lock_that_is_not_free_in_time_is_contended_but_no_lock(
    launcher: Launcher, trial: Trial, function: str
) -> None:
    ran = launcher.run(trial.command("every_lock", function, "late", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert (counts_of(ran).locks, counts_of(ran).contended) == (1, 1)


@pytest.mark.parametrize("function", ["pthread_mutex_lock", "pthread_mutex_trylock"])
def test_a_mutex_whose_owner_ended_is_locked(launcher: Launcher, trial: Trial, function: str) -> None:
    ran = launcher.run(trial.command("every_lock", function, "dead", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert (counts_of(ran).locks, counts_of(ran).contended) == (2, 0)


WAITS = {
    "pthread_cond_wait": "conditions",
    "pthread_cond_timedwait": "conditions",
    "pthread_cond_clockwait": "conditions",
    "cnd_wait": "conditions",
    "cnd_timedwait": "conditions",
    "sem_wait": "semaphores",
    "sem_timedwait": "semaphores",
    "sem_clockwait": "semaphores",
    "pthread_join": "joins",
    "pthread_timedjoin_np": "joins",
    "pthread_clockjoin_np": "joins",
    "thrd_join": "joins",
}


@pytest.mark.parametrize("end", ["woken", "cancelled"])
@pytest.mark.parametrize("function", WAITS)
def test_each_function_that_waits_counts_its_wait_also_if_it_is_cancelled(
    launcher: Launcher, trial: Trial, function: str, end: str
) -> None:
    ran = launcher.run(trial.command("every_wait", function, end, lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    waits = getattr(counts_of(ran), WAITS[function])
    assert 0.005 <= waits.seconds < 3 * ran.wall_seconds
    # The program also joins the waiting thread, and a thread whose joining was cancelled.
    assert waits.number == (1 if WAITS[function] != "joins" else 2 if end == "woken" else 3)
    others = {"conditions", "semaphores", "barriers", "spins"} - {WAITS[function]}
    assert all(getattr(counts_of(ran), other) == NOTHING for other in others)


@pytest.mark.parametrize("function", [name for name in WAITS if name.startswith("sem_")])
def test_no_function_waits_for_a_free_semaphore(launcher: Launcher, trial: Trial, function: str) -> None:
    ran = launcher.run(trial.command("every_wait", function, "free", lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert counts_of(ran).semaphores == NOTHING


def run_preloaded(
    launcher: Path, line: tuple[str | Path, ...], *, counts: Path | None, address_space: str = "unlimited"
) -> int:
    """Run a program with the preloaded object and a file of counts; return its exit code."""
    variables = [f"LD_PRELOAD={launcher.parent / 'perftrail-locks.so'}"]
    if counts is not None:
        variables.append(f"PERFTRAIL_LOCKS={counts}")
    limited = ("sh", "-c", f'ulimit -v {address_space}; exec env "$@"', "sh")
    return subprocess.run([*limited, *variables, *line], check=False, timeout=60).returncode


WORK = [("every_lock", "mtx_lock", "held"), ("every_wait", "sem_wait", "woken"), ("wait_work", "spin")]


@pytest.mark.parametrize("line", WORK, ids=lambda line: line[0])
@pytest.mark.parametrize("kind", ["unnamed", "missing", "short", "pipe", "large"])
def test_a_program_whose_counts_cannot_be_stored_runs_as_without_the_object(
    plain_launcher: Path, trial: Trial, kind: str, line: tuple[str, ...]
) -> None:
    counts = trial.directory / "counts"
    if kind == "pipe":
        os.mkfifo(counts)
    elif kind in {"short", "large"}:
        counts.write_bytes(bytes(128))
    if kind == "large":
        os.truncate(counts, 1 << 32)
    program, *arguments = line
    code = run_preloaded(
        plain_launcher,
        (trial.targets / program, *arguments),
        counts=None if kind == "unnamed" else counts,
        address_space="2097152" if kind == "large" else "unlimited",  # KiB
    )
    assert code == 0
    if kind in {"short", "large"}:
        with counts.open("rb") as file:
            assert file.read(1 << 16).strip(b"\0") == b""


def test_more_threads_than_slots_share_the_last_one(plain_launcher: Path, trial: Trial) -> None:
    counts = trial.directory / "counts"
    counts.write_bytes(bytes(3 * 128))  # a head and two slots
    work = (trial.targets / "lock_work", "4", "1000", "own", "return")
    assert run_preloaded(plain_launcher, work, counts=counts) == 0
    assert counts.stat().st_size == 3 * 128
    with counts.open("rb") as file:
        found = LockFile(file).counted(until=0.0)
    assert found is not None
    assert (found.threads, found.processes) == (5, 1)
    assert 0 < found.locks <= 4000  # some counts may be lost


def test_a_forked_child_counts_for_itself(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("lock_work", 0, 1000, "fork", "return", lock_counter="preload"))
    assert counts_of(ran).locks == 2000
    assert counts_of(ran).threads == 2


def test_programs_that_a_shell_starts_are_summed(launcher: Launcher, trial: Trial) -> None:
    work = trial.targets / "lock_work"
    script = f"{work} 1 100 own return; {work} 1 50 own return & wait; exec {work} 1 7 own return"
    ran = launcher.run(trial.shell(script, lock_counter="preload"))
    assert counts_of(ran).locks == 157
    assert counts_of(ran).processes >= 4


def test_a_preload_of_the_program_stays(launcher: Launcher, trial: Trial) -> None:
    own = trial.directory / "own.so"
    source = trial.directory / "own.c"
    source.write_text(
        '#include <unistd.h>\n__attribute__((constructor)) void f(void) { write(1, "own", 3); }\n'
    )
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", own, source], check=True)
    output = trial.directory / "output"
    environment = {"LD_PRELOAD": str(own)}
    command = trial.command(
        "lock_work",
        1,
        5,
        "own",
        "return",
        environment=environment,
        stdout=str(output),
        lock_counter="preload",
    )
    assert counts_of(launcher.run(command)).locks == 5
    assert output.read_text() == "own"


def test_a_static_program_has_no_count_rather_than_zero(launcher: Launcher, trial: Trial) -> None:
    assert launcher.run(trial.command("exit_at_once", lock_counter="preload")).locks is None


def test_nothing_is_counted_by_default(launcher: Launcher, trial: Trial) -> None:
    assert launcher.run(trial.command("lock_work", 1, 5, "own", "return")).locks is None


KILLED = """\
import os, signal, sys
from pathlib import Path
from perftrail.process import Launcher, remove_left_over_count_files
from perftrail.model.process import Command
command = Command(
    arguments=("/bin/sh", "-c", 'echo "$PERFTRAIL_LOCKS"; kill -KILL "$PERFTRAIL"; sleep 100'),
    environment={"PERFTRAIL": str(os.getpid()), "PATH": os.environ["PATH"]},
    directory="/",
    stdout=sys.argv[2],
    lock_counter="preload",
)
with Launcher(Path(sys.argv[1])) as launcher:
    launcher.run(command)
"""


def test_count_files_of_a_killed_process_are_removed_by_the_next(plain_launcher: Path, trial: Trial) -> None:
    output = trial.directory / "output"
    done = subprocess.run([sys.executable, "-c", KILLED, plain_launcher, output], check=False)
    assert done.returncode == -signal.SIGKILL
    left = Path(output.read_text().strip())
    assert left.name.startswith("perftrail-locks-")
    remove_left_over_count_files()
    assert not left.exists()


def test_count_files_are_removed(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "output"
    launcher.run(trial.shell('echo "$PERFTRAIL_LOCKS"', stdout=str(output), lock_counter="preload"))
    counted = Path(output.read_text().strip())
    assert counted.name.startswith("perftrail-locks-")
    assert not counted.exists()


def test_a_launcher_without_the_object_says_what_to_install(
    plain_launcher: Path, trial: Trial, tmp_path: Path
) -> None:
    alone = shutil.copy(plain_launcher, tmp_path / "perftrail-launcher")
    with Launcher(Path(alone)) as launcher, pytest.raises(LauncherError, match="install gcc"):
        launcher.run(trial.command("lock_work", 1, 5, "own", "return", lock_counter="preload"))


@needs("valgrind")
@pytest.mark.parametrize(
    "line",
    [
        ("lock_work", "4", "100", "own", "return"),
        pytest.param(("wait_work", "condition"), marks=pytest.mark.long),
        pytest.param(("wait_work", "semaphore"), marks=pytest.mark.long),
    ],
)
def test_helgrind_finds_no_race_in_the_counter(
    plain_launcher: Path, trial: Trial, line: tuple[str, ...]
) -> None:
    program, *arguments = line
    counts = trial.directory / "counts"
    counts.write_bytes(bytes(128 * 64))
    preload = plain_launcher.parent / "perftrail-locks.so"
    done = subprocess.run(
        [
            "valgrind", "--tool=helgrind", "--error-exitcode=9", "--trace-children=no",
            f"--suppressions={SUPPRESSIONS}",
            trial.targets / program, *arguments,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={"LD_PRELOAD": str(preload), "PERFTRAIL_LOCKS": str(counts), "PATH": "/usr/bin:/bin"},
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert any(counts.read_bytes())
