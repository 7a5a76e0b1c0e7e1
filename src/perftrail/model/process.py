"""Processes: the command to start, and the result of the process with all its descendants."""

from __future__ import annotations

from dataclasses import dataclass, field
from signal import Signals
from typing import TYPE_CHECKING, Literal, assert_never

from perftrail.model.wording import counted, duration, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

Resource = Literal["as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"]
"""A resource limit of the kernel, named like in `setrlimit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to start. It inherits nothing: its environment is exactly the given one.

    A first argument without a slash is searched in the environment's `PATH`. Strings may contain any byte but
    NUL, undecodable ones as surrogate escapes. `stdin`, `stdout` and `stderr` are paths, or None for /dev/null.
    An output file is truncated at `output_cap_bytes` while the process continues.

    `orphans` decides about descendants that outlive the process: ``kill`` them, ``wait`` for them (until the
    timeout), or ``terminate`` them with SIGTERM and kill those that are left after a second. `tree_memory` chooses
    how the tree's memory is measured: ``auto`` uses a cgroup if possible and samples otherwise, ``sampled`` always
    samples, ``off`` does neither. `process_limit` applies to the tree, if a cgroup can enforce it. `cpus` binds the
    process to these CPUs, and `numa` its memory to these NUMA nodes. `limits` are soft and hard limits; None is
    unlimited. `lock_counter` counts pthread locks with an object that is preloaded into every dynamic glibc
    program, and `allocation_counter` heap allocations likewise, with the stacks of a sample if it is
    ``stacks``.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    output_cap_bytes: int | None = None
    timeout_seconds: float | None = None
    memory_limit_bytes: int | None = None
    process_limit: int | None = None
    cpus: tuple[int, ...] | None = None
    nice: int | None = None
    numa: tuple[int, ...] | None = None
    aslr: bool = True
    orphans: Literal["wait", "kill", "terminate"] = "kill"
    tree_memory: Literal["auto", "sampled", "off"] = "auto"
    limits: Mapping[Resource, int | None] = field(default_factory=dict)
    counters: bool = False
    lock_counter: Literal["off", "preload"] = "off"
    allocation_counter: Literal["off", "preload", "stacks"] = "off"

    def __post_init__(self) -> None:
        if not self.arguments:
            raise ValueError("arguments: a command needs at least the program")
        if self.cpus is not None and not self.cpus:
            raise ValueError("cpus: an empty tuple leaves no CPU to run on; None means all of them")
        if self.timeout_seconds is not None and not 0 < self.timeout_seconds < 2**31:
            raise ValueError(f"timeout_seconds: must be above 0 and finite, not {self.timeout_seconds!r}")
        for name in self.environment:
            if not name or "=" in name:
                raise ValueError(f"environment: {name!r} cannot be a variable's name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The process exited by itself; code 0 usually means success."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """A signal from outside perftrail ended the process."""

    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The process exceeded its timeout; it was killed with its whole tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A process of the tree exceeded the memory limit; the whole tree was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """`cancel` was called while the process ran; its whole tree was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """The program did not start. `stage` names the failed step, for example ``exec``, ``chdir`` or ``stdin``."""

    errno: int
    message: str
    stage: str


Ended = Exited | Signalled | TimedOut | OutOfMemory | Cancelled | NotStarted
"""End of a process; match it and close with `assert_never`."""


_SIGNALS = frozenset(map(int, Signals))
"""Numbers of signals with a name; most real-time signals have none."""


def describe_end(
    ended: Ended, *, timeout_seconds: float | None = None, memory_limit_bytes: int | None = None
) -> str:
    """Return how a process with these limits ended, for messages; empty for exit code 0.

    >>> describe_end(Exited(code=3)), describe_end(TimedOut(), timeout_seconds=90)
    ('exit code 3', 'timed out after 1 min 30 s')
    >>> describe_end(Signalled(signal=11))
    'killed by signal 11 (SIGSEGV)'
    """
    match ended:
        case Exited(code=code):
            return f"exit code {code}" if code else ""
        case Signalled(signal=number):
            name = f" ({Signals(number).name})" if number in _SIGNALS else ""
            return f"killed by signal {number}{name}"
        case TimedOut():
            return "timed out" if timeout_seconds is None else f"timed out after {duration(timeout_seconds)}"
        case OutOfMemory():
            limit = memory_limit_bytes
            return f"needed more memory than {'available' if limit is None else quantity(float(limit), 'B')}"
        case Cancelled():
            return "cancelled"
        case NotStarted(message=message):
            return f"cannot be started: {message}"
        case _:
            assert_never(ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMemory:
    """Peak memory of all processes of a tree together, and its measurement method.

    A cgroup also counts cached file pages that the tree touched first, for example of a file that it wrote.
    `file_bytes_at_end` is their size at the end (None if unknown). Sampling can miss a short peak; `samples` and
    `sampling_seconds` are the number and the cost of its samples.
    """

    bytes: int
    method: Literal["cgroup1", "cgroup2", "sampled"]
    file_bytes_at_end: int | None = None
    samples: int = 0
    sampling_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCpu:
    """CPU time of all processes of a tree, including processes that no parent waited for."""

    seconds: float
    method: Literal["cgroup1", "cgroup2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Number of waits of one kind, and their seconds summed over all threads."""

    number: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCounts:
    """Pthread and C11 locks of a tree's threads, and their waits for each other.

    `locks` counts acquired mutexes and read-write locks. `contended` attempts found them held, and waited
    `wait_seconds` in sum, including waits for a CPU. Other waits: at condition variables (including the mutex),
    at barriers, at busy semaphores, for ending threads, and `spins` for held spin locks. `threads` is the
    number of threads with any of these, in `processes`.
    """

    locks: int
    contended: int
    wait_seconds: float
    conditions: Waits
    barriers: Waits
    semaphores: Waits
    joins: Waits
    spins: Waits
    threads: int
    processes: int
    method: Literal["preload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationStack:
    """A stack of calls, and the allocations and bytes that it requested, extrapolated from samples.

    `frames` are the programs or libraries of the calls with the positions in them, the innermost call first.
    """

    allocations: int
    bytes: int
    frames: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCounts:
    """Heap allocations of a tree's processes, counted by a preloaded object.

    A realloc counts as an allocation of its whole new size. `bytes` are as requested. `heap_peak_bytes` is the peak
    of the bytes in use, as the allocator rounded them, of the process with the largest one; it is exact to 64 KiB for
    each thread beyond the first. `mappings` are anonymous memory mappings that the programs requested themselves.

    Not counted: `other_allocators` processes whose program has its own allocator, `uncounted_programs` that are
    static, of another C library or without LD_PRELOAD in their environment, and `uncounted_threads` of too many.

    `stacks` are exact for the first 100,000 allocations of each thread, and samples of later ones; there are none
    unless requested. `lost_stacks` allocations have no stack, because there were too many different ones.
    """

    allocations: int
    bytes: int
    heap_peak_bytes: int
    mappings: int
    mapped_bytes: int
    processes: int
    other_allocators: int = 0
    uncounted_programs: int = 0
    uncounted_threads: int = 0
    stacks: tuple[AllocationStack, ...] = ()
    lost_stacks: int = 0


def why_uncounted(counts: AllocationCounts | None) -> str:
    """Return why the allocations of a tree were not all counted; empty if they were.

    >>> why_uncounted(None)
    'its allocations cannot be counted: the program does not load a shared glibc'
    """
    if counts is None:
        reason = "the program does not load a shared glibc"
    elif counts.other_allocators:
        reason = (
            f"{counts.other_allocators} of {counts.processes} processes have another allocator than glibc's, "
            "for example jemalloc"
        )
    elif counts.uncounted_programs:
        reason = (
            f"{counted(counts.uncounted_programs, 'program')} that it started did not load a shared glibc, "
            "or started without LD_PRELOAD"
        )
    elif counts.uncounted_threads:
        reason = f"{counted(counts.uncounted_threads, 'thread')} too many"
    else:
        return ""
    return f"its allocations cannot be counted: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """Descendants that lost their parent: the number that ended by themselves, and the number killed."""

    waited: int
    killed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Result of one process and its descendants, after all have ended.

    Time stamps are seconds of CLOCK_MONOTONIC: before the process was created, directly before `execve`, at
    the end of the process, and at the end of its last descendant. `wall_seconds` is the time from exec to the
    end. `cpu_seconds` and the counts include the process, waited-for descendants and orphans. `user_seconds`
    and `system_seconds` split it by the kernel's tick, which is meaningless below about 0.1 s.
    `max_rss_bytes` is the largest single process. `locks` and `allocations` are None unless counted.
    `refused_processes` counts forks beyond the process limit; `refused` describes known refusals of the sandbox.
    `memory_kills` counts processes of the whole machine that the kernel killed meanwhile because no memory was left.
    """

    ended: Ended
    prepared_at: float
    started_at: float
    ended_at: float
    tree_ended_at: float
    wall_seconds: float
    cpu_seconds: float
    user_seconds: float
    system_seconds: float
    max_rss_bytes: int
    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    orphans: Orphans
    stdout_truncated: bool
    stderr_truncated: bool
    tree_memory: TreeMemory | None
    tree_cpu: TreeCpu | None
    memory_limit_method: Literal["cgroup1", "cgroup2", "rlimit_as"] | None
    counters: Mapping[str, float] = field(default_factory=dict)
    locks: LockCounts | None = None
    allocations: AllocationCounts | None = None
    refused_processes: int = 0
    refused: tuple[str, ...] = ()
    memory_kills: int = 0

    @classmethod
    def uncounted(cls, ended: Ended, *, began: float, now: float) -> Ran:
        """Return the result of a process that began and ended (`now`) at these times, if nothing else is known."""
        return cls(
            ended=ended,
            prepared_at=began,
            started_at=began,
            ended_at=now,
            tree_ended_at=now,
            wall_seconds=now - began,
            cpu_seconds=0.0,
            user_seconds=0.0,
            system_seconds=0.0,
            max_rss_bytes=0,
            voluntary_switches=0,
            involuntary_switches=0,
            minor_faults=0,
            major_faults=0,
            orphans=Orphans(waited=0, killed=0),
            stdout_truncated=False,
            stderr_truncated=False,
            tree_memory=None,
            tree_cpu=None,
            memory_limit_method=None,
        )
