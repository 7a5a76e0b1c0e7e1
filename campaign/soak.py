"""Tens of thousands of invocations in one perftrail process, with a dashboard, a watch and a worker for the same time.

Memory and descriptors of each process must be the same in the last tenth of the time as in the fourth tenth: before
that, caches fill, modules are imported and the allocator keeps what it got. No process, cgroup, link or temporary file
may be left over. Afterwards, the clock jumps by hours and the processes are stopped and continued during
other runs: no sample may be negative or as long as a jump.

The full size, on an idle machine: ``python -m campaign soak --seconds 3600``. It ends after 50,000 invocations.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster.machines import machines
from benchmarks.web.serving import serving
from campaign import Result
from perftrail.model.measurement import Measurement
from perftrail.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INVOCATIONS = 50_000
GROWTH = 0.05
SMALLEST_GROWTH_BYTES = 1 << 16
"""Less is not judged: the launchers use some 100 KiB, of which a single page is 4 %."""

STANDARD_STREAMS = 3
"""Descriptors of a process that has opened nothing yet."""

MOST_MORE_DESCRIPTORS = 8
"""Descriptors come and go with connections and files that are open for a moment; a leak has one for each invocation."""

FIRST_TENTH = 4
"""The tenth of the time with which the last one is compared, from 1."""

FEWEST = 2000
"""Invocations below which the memory is not judged: until then, caches fill and modules are imported."""

COMMITS = 60
"""Commits that a watched branch receives during the soak."""

SHARE_OF_CLOCK = 0.15
"""Share of the time for the clock's jumps, and the same for stops."""

MOST_SECONDS_OF_CLOCK = 150.0
"""Longest time for the clock's jumps, and the same for stops."""

STOP_SECONDS = 1.0
LONGEST_SECONDS = 60.0
"""A sample of the program, which takes 5 ms, is never longer, even with a stop in it. Each jump is far longer."""

JUMPS = ("+0", "+3h", "-2d", "+400d", "-5h", "+90m")

PROGRAM = """\
#include <stdio.h>
#include <time.h>
int main(void)
{
    struct timespec first, now;
    clock_gettime(CLOCK_MONOTONIC, &first);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - first.tv_sec) * 1000000000L + now.tv_nsec - first.tv_nsec < 5000000L);
    puts("answer 42");
    return 0;
}
"""

STUDY = """\
[study]
title = "Does perftrail grow?"

[source]
kind = "directory"
location = "program"

[build]
steps = ["cc -O1 -o work work.c"]
outputs = ["work"]

[benchmark.work]
command = "{{build}}/work"
memory_limit = "512MiB"
metrics = {{ answer = {{ pattern = 'answer ([0-9]+)' }} }}

[measure]
invocations = {invocations}
warmups = 0
"""


WATCHED = """\
[source]
kind = "git"
location = "repository"
range = "begin.."

[benchmark.work]
command = "sh {build}/work"
metrics.steps = { pattern = 'steps ([0-9]+)' }

[measure]
invocations = 3
warmups = 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process uses at one time."""

    memory_bytes: int
    descriptors: int


@dataclass(slots=True)
class Watched:
    """The usage of each process over time, by its name, and every process that was seen."""

    usage: dict[str, list[Usage]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def look(self, processes: Mapping[str, int]) -> None:
        """Record the usage of some processes and of their launchers."""
        for name, process in processes.items():
            for role, pid in ((name, process), (f"launcher of {name}", _launcher_of(process))):
                with suppress(OSError):
                    usage = _usage(pid)
                    self.usage.setdefault(role, []).append(usage)
        self.seen |= _descendants(os.getpid())


def run(seconds: float, seed: int, *, program: str = "perftrail") -> Result:
    """Run the campaign; `program` is the module that is the command line of the long run."""
    losses: list[str] = []
    notes: list[str] = []
    _adopt_orphans()
    before, cgroups = _descendants(os.getpid()), _cgroups()
    with (
        tempfile.TemporaryDirectory(prefix="campaign-soak-") as scratch,
        _temporary(Path(scratch, "tmp")) as tmp,
    ):
        watched = Watched()
        clock_seconds = min(seconds * SHARE_OF_CLOCK, MOST_SECONDS_OF_CLOCK)
        reached = _soak(Path(scratch), seconds - 2 * clock_seconds, watched, program=program)
        for name, usage in watched.usage.items():
            losses += _judge(name, usage, sum(reached.values()), notes)
        rng = random.Random(seed)
        jumped = _jumps(Path(scratch, "jumps"), clock_seconds, rng, losses, notes)
        stopped = _stops(Path(scratch, "stops"), clock_seconds, losses, notes)
        _await_end(before)
        if left := _descendants(os.getpid()) - before:
            losses.append(f"{len(left)} processes are left over: {', '.join(map(_command, left))}")
        if left_cgroups := [each for each in _cgroups() - cgroups if _owner(each) in watched.seen]:
            losses.append(f"{len(left_cgroups)} cgroups are left over: {', '.join(left_cgroups)}")
        if files := [str(each.relative_to(tmp)) for each in tmp.iterdir()]:
            losses.append(f"{len(files)} temporary files are left over: {', '.join(files[:5])}")
        if entries := list(Path(scratch).glob("*/.perftrail/scratch/*")):
            losses.append(f"{len(entries)} entries of .perftrail/scratch are left over: {entries[0]}")
        if links := list(Path(scratch).glob("*/.perftrail/paths/*")):
            losses.append(f"{len(links)} links of stopped invocations are left over: {links[0]}")
    counts = ", ".join(f"{count:,} {name}" for name, count in reached.items())
    notes.insert(0, f"invocations: {counts}; with jumps of the clock: {jumped:,}; with stops: {stopped:,}")
    return Result(trials=sum(reached.values()) + jumped + stopped, losses=tuple(losses), notes=tuple(notes))


def _write_study(directory: Path, invocations: int = INVOCATIONS) -> Path:
    (directory / "program").mkdir(parents=True)
    (directory / "program" / "work.c").write_text(PROGRAM, encoding="ascii")
    (directory / "perftrail.toml").write_text(STUDY.format(invocations=invocations), encoding="ascii")
    return directory


@contextmanager
def _temporary(directory: Path) -> Iterator[Path]:
    """Use a directory for the temporary files of all processes that are started in the block."""
    directory.mkdir()
    old = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(directory)
    try:
        yield directory
    finally:
        if old is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = old


def _start(
    directory: Path,
    *options: str,
    command: str = "run",
    program: str = "perftrail",
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    with (directory / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", program, command, *options, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=None if env is None else {**os.environ, **env},
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a run with SIGTERM, and wait for its end. A shell's background job would ignore SIGINT."""
    process.terminate()
    try:
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def _invocations(directory: Path) -> int:
    with open_store(str(directory / ".perftrail" / "results.db"), access="read") as store:
        return store.progress().invocations


def _await_first(directory: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait for the first invocation."""
    deadline = time.monotonic() + 60.0
    while not _invocations(directory):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((directory / "output.txt").read_text(errors="replace")[-2000:])
        time.sleep(0.05)


def _soak(scratch: Path, seconds: float, watched: Watched, *, program: str) -> dict[str, int]:
    """Run until the time is over or everything is measured; return the number of invocations of each run."""
    here, away = (_write_study(scratch / name) for name in ("here", "away"))
    branch = Branch(scratch / "branch")
    with (
        machines(scratch / "machines", ("one",)) as workers,
        serving(here, "--proxy", "127.0.0.1") as dashboard,
    ):
        address = workers.address.replace("tcp://", "dask://")
        local, remote = _start(here, program=program), _start(away, "--engine", address)
        watch = _start(branch.directory, "--every", "1s", command="watch")
        try:
            _await_first(here, local)
            _await_first(away, remote)
            processes = {
                "run": local.pid,
                "serve": dashboard.process,
                "worker": workers.processes["one"].pid,
                "run on the worker": remote.pid,
                "watch": watch.pid,
            }
            began = time.monotonic()
            step = max(0.05, seconds / 500)
            while time.monotonic() < began + seconds and local.poll() is None:
                watched.look(processes)
                if time.monotonic() > began + branch.commits * seconds / COMMITS:
                    branch.commit()
                time.sleep(step)
            ended = [name for name, each in (("watch", watch), ("run on the worker", remote)) if each.poll()]
        finally:
            for each in (local, remote, watch):
                _end(each)
            _await_empty(away / ".perftrail" / "paths")
    if ended:
        raise RuntimeError(f"{', '.join(ended)} ended: {_output(branch.directory)}{_output(away)}")
    return {
        "in one process": _invocations(here),
        "on a worker": _invocations(away),
        "of a watch": _invocations(branch.directory),
    }


class Branch:
    """A branch that grows while it is watched. Every commit costs the same."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.commits = 0
        self._repository = directory / "repository"
        self._repository.mkdir(parents=True)
        (directory / "perftrail.toml").write_text(WATCHED, encoding="ascii")
        self._git("init", "-q")
        self.commit()
        self._git("tag", "begin")

    def commit(self) -> None:
        """Commit another revision."""
        (self._repository / "work").write_text(f"echo steps 100\n# {self.commits}\n", encoding="ascii")
        self._git("add", ".")
        self._git("commit", "-q", "-m", f"Commit {self.commits}")
        self.commits += 1

    def _git(self, *words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, "-C", str(self._repository), *words], check=True)


def _judge(name: str, usage: Sequence[Usage], invocations: int, notes: list[str]) -> Iterator[str]:
    """Yield a loss for each resource that has grown from the fourth tenth of the time to the last."""
    # A process with its standard streams only has not yet begun.
    usage = list(itertools.dropwhile(lambda each: each.descriptors <= STANDARD_STREAMS, usage)) or usage
    tenth = max(1, len(usage) // 10)
    first = usage[(FIRST_TENTH - 1) * tenth : FIRST_TENTH * tenth] or usage[:1]
    last = usage[-tenth:]
    memory, later = (statistics.median(each.memory_bytes for each in part) for part in (first, last))
    # The smallest number of the second half: a leaked descriptor is open at each moment, another one is not, even on a
    # busy machine, where a check of a watch takes long.
    descriptors, more = (min(each.descriptors for each in part) for part in (first, usage[len(usage) // 2 :]))
    growth = later / memory - 1
    sentence = (
        f"{name}: memory {memory / 2**20:.1f} MiB in the fourth tenth, {later / 2**20:.1f} MiB in the last "
        f"({growth:+.1%}); descriptors {descriptors} and in its second half {more}; n = {len(usage)}"
    )
    judged = invocations >= FEWEST
    notes.append(sentence if judged else f"{sentence}; too few invocations to judge the memory")
    if judged and later - memory > max(GROWTH * memory, SMALLEST_GROWTH_BYTES):
        yield f"memory grows: {sentence}"
    if more > descriptors + MOST_MORE_DESCRIPTORS:
        yield f"descriptors are not closed: {sentence}"


def _await_empty(directory: Path) -> None:
    """Give a worker time to clean up after a job whose client ended."""
    deadline = time.monotonic() + 10.0
    while directory.is_dir() and any(directory.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)


# The clock


def _jumps(directory: Path, seconds: float, rng: random.Random, losses: list[str], notes: list[str]) -> int:
    """Let the clock of a run jump with libfaketime; return the number of its invocations."""
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    if library is None:
        notes.append(
            "the clock did not jump: libfaketime is not installed (Debian: apt-get install faketime)"
        )
        return 0
    _write_study(directory)
    clock = directory / "clock"
    clock.write_text("+0\n")
    faked = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    process = _start(directory, env=faked)
    jumps = 0
    try:
        _await_first(directory, process)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and process.poll() is None:
            new = clock.with_suffix(".new")
            new.write_text(f"{rng.choice(JUMPS)}\n")
            new.replace(clock)
            jumps += 1
            time.sleep(0.3)
        if process.poll():
            losses.append(f"a run fails when the clock jumps: {_output(directory)}")
    finally:
        _end(process)
    notes.append(f"the clock jumped {jumps} times, by up to 400 days; only the wall clock jumps, as on Linux")
    return _check_samples(directory, "the clock jumped", losses)


def _stops(directory: Path, seconds: float, losses: list[str], notes: list[str]) -> int:
    """Stop a run and all its processes, and continue them; return the number of its invocations."""
    process = _start(_write_study(directory))
    stops = 0
    try:
        _await_first(directory, process)
        ends = time.monotonic() + seconds
        while (time.monotonic() < ends or not stops) and process.poll() is None:
            groups = _groups(process.pid)
            for sign in (signal.SIGSTOP, signal.SIGCONT):
                for group in groups:
                    with suppress(ProcessLookupError):
                        os.killpg(group, sign)
                time.sleep(STOP_SECONDS if sign == signal.SIGSTOP else 0.3)
            stops += 1
        if process.poll():
            losses.append(f"a run fails after it was stopped and continued: {_output(directory)}")
    finally:
        _end(process)
    notes.append(f"the process groups of a run were stopped {stops} times, for {STOP_SECONDS:.0f} s each")
    return _check_samples(directory, "the run was stopped", losses)


def _check_samples(directory: Path, what: str, losses: list[str]) -> int:
    """Record a loss for each sample that is negative or too long; return the number of invocations."""
    count = 0
    with open_store(str(directory / ".perftrail" / "results.db"), access="read") as store:
        keys = [each.key for each in store.runnables()]
        for machine in store.machines():
            for outcome in itertools.chain.from_iterable(store.outcomes(keys, machine).values()):
                count += 1
                if not isinstance(outcome, Measurement):
                    losses.append(f"an invocation failed while {what}: {outcome}")
                    continue
                for name, value in (("seconds", outcome.seconds), ("wall", outcome.values["wall"])):
                    if not 0.0 < value < LONGEST_SECONDS:
                        losses.append(f"a sample has {name} = {value} s while {what}")
    return count


def _output(directory: Path) -> str:
    return (directory / "output.txt").read_text(errors="replace")[-500:]


# Processes


def _adopt_orphans() -> None:
    """Become the parent of every process whose own parent ends: a left over process stays a descendant."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _children() -> dict[int, list[int]]:
    """Return the living processes of each parent."""
    found: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError):
                state, parent = (each / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found.setdefault(int(parent), []).append(int(each.name))
    return found


def _descendants(process: int) -> set[int]:
    children, found, waiting = _children(), set[int](), [process]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def _groups(process: int) -> set[int]:
    """Return the process groups of a process and its descendants."""
    groups = set()
    for each in (process, *_descendants(process)):
        with suppress(ProcessLookupError):
            groups.add(os.getpgid(each))
    return groups - {os.getpgid(0)}


def _launcher_of(process: int) -> int:
    """Return the launcher that a process started; 0 without one."""
    for each in sorted(_descendants(process)):
        if "launcher" in _command(each).partition(" ")[0]:
            return each
    return 0


def _command(process: int) -> str:
    with suppress(OSError):
        return (
            Path(f"/proc/{process}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
            .strip()
        )
    return ""


def _usage(process: int) -> Usage:
    """Return the usage of a process. Raises `OSError` for one that has ended."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return Usage(
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=sum(1 for _ in Path(f"/proc/{process}/fd").iterdir()),
    )


def _await_end(before: set[int]) -> None:
    """Give processes that are ending a moment."""
    deadline = time.monotonic() + 5.0
    while _descendants(os.getpid()) - before and time.monotonic() < deadline:
        time.sleep(0.1)


def _cgroups() -> set[str]:
    """Return the cgroups that perftrail made, of all processes of this machine."""
    return {
        os.path.join(directory, name)  # noqa: PTH118 - os.walk yields texts
        for directory, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith("perftrail-")
    }


def _owner(cgroup: str) -> int:
    """Return the process in the name of a cgroup; 0 without one."""
    found = re.search(r"perftrail-(\d+)", cgroup)
    return int(found[1]) if found else 0
