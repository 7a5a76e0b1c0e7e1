"""Locks and waits are counted by a preloaded object, whatever ends the program."""

from __future__ import annotations

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
from perftrail.process.lock_counts import remove_left_over_lock_files

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
def test_a_wait_that_is_broken_off_is_counted_until_its_end(
    launcher: Launcher, trial: Trial, end: str
) -> None:
    ran = launcher.run(trial.command("wait_work", end, lock_counter="preload"))
    assert ran.ended == Exited(code=0)
    assert counts_of(ran).semaphores.number == 1
    assert 0.005 < counts_of(ran).semaphores.seconds < ran.wall_seconds


def test_when_one_of_several_processes_broke_a_wait_off_is_not_known(
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


def test_what_the_program_preloads_itself_stays(launcher: Launcher, trial: Trial) -> None:
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


def test_nothing_is_counted_unless_asked_for(launcher: Launcher, trial: Trial) -> None:
    assert launcher.run(trial.command("lock_work", 1, 5, "own", "return")).locks is None


KILLED = """\
import os, signal, sys
from pathlib import Path
from perftrail.process import Launcher, remove_left_over_lock_files
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


def test_what_a_killed_perftrail_counted_into_is_removed_by_the_next(
    plain_launcher: Path, trial: Trial
) -> None:
    said = trial.directory / "said"
    done = subprocess.run([sys.executable, "-c", KILLED, plain_launcher, said], check=False)
    assert done.returncode == -signal.SIGKILL
    left = Path(said.read_text().strip())
    assert left.name.startswith("perftrail-locks-")
    remove_left_over_lock_files()
    assert not left.exists()


def test_nothing_of_the_counting_is_left_behind(launcher: Launcher, trial: Trial) -> None:
    said = trial.directory / "said"
    launcher.run(trial.shell('echo "$PERFTRAIL_LOCKS"', stdout=str(said), lock_counter="preload"))
    counted = Path(said.read_text().strip())
    assert counted.name.startswith("perftrail-locks-")
    assert not counted.exists()


def test_a_launcher_without_the_object_says_what_to_install(
    plain_launcher: Path, trial: Trial, tmp_path: Path
) -> None:
    alone = shutil.copy(plain_launcher, tmp_path / "perftrail-launcher")
    with Launcher(Path(alone)) as launcher, pytest.raises(LauncherError, match="install gcc"):
        launcher.run(trial.command("lock_work", 1, 5, "own", "return", lock_counter="preload"))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize(
    "line",
    [("lock_work", "4", "100", "own", "return"), ("wait_work", "condition"), ("wait_work", "semaphore")],
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
