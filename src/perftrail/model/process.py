"""One process to start, and what is known of it and all its descendants once they have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Resource = Literal["as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"]
"""A limit of the kernel, named as `setrlimit` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start and how. Nothing is inherited: the environment is exactly the one given.

    A first argument without a slash is looked for in the environment's `PATH`. Strings may hold any byte
    but NUL, undecodable ones as surrogate escapes. `stdin`, `stdout` and `stderr` are paths, or None for
    /dev/null; an output file longer than `output_cap_bytes` is cut there while the process runs on.

    `orphans` says what happens to descendants that outlive the process: ``kill`` at its end, or ``wait``
    for them (until the timeout). `tree_memory` chooses how the tree's memory is summed: ``auto`` takes a
    cgroup where one may be made and samples elsewhere, ``sampled`` always samples, ``off`` does neither.
    `process_limit` is of the tree and holds where a cgroup can keep it.
    `cpus` binds the process to these CPUs. `limits` are soft and hard at once; None is unlimited.
    `lock_counter` counts pthread locks by an object that is preloaded into every dynamic glibc program.
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
    aslr: bool = True
    orphans: Literal["wait", "kill"] = "kill"
    tree_memory: Literal["auto", "sampled", "off"] = "auto"
    limits: Mapping[Resource, int | None] = field(default_factory=dict)
    counters: bool = False
    lock_counter: Literal["off", "preload"] = "off"

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
    """The process ended by itself; by custom, code 0 means that all went well."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """A signal that was not ours ended the process."""

    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The process ran into its timeout, and was killed with its whole tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A process of the tree ran into the memory limit, and the whole tree was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Somebody called `cancel` while the process ran, and its whole tree was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """The program was never run. `stage` names what failed: ``exec``, ``chdir``, ``stdin`` or the like."""

    errno: int
    message: str
    stage: str


Ended = Exited | Signalled | TimedOut | OutOfMemory | Cancelled | NotStarted
"""How a process ended; match it and close with `assert_never`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMemory:
    """The most memory that all processes of a tree held at one time, and how that was found.

    A cgroup also counts cached file pages that the tree was first to touch, such as what it printed into a
    file: `file_bytes_at_end` says how much of that there was at the end (None where unknown). Sampling
    can miss a short peak; `samples` and `sampling_seconds` say how often it looked and what that cost.
    """

    bytes: int
    method: Literal["cgroup1", "cgroup2", "sampled"]
    file_bytes_at_end: int | None = None
    samples: int = 0
    sampling_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCpu:
    """The CPU time of all processes of a tree, also of those that nobody waited for."""

    seconds: float
    method: Literal["cgroup1", "cgroup2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How often threads waited for one kind of thing, and for how many seconds in sum over all threads."""

    number: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCounts:
    """What the threads of a tree did with pthread's and C11's locks, and where they waited for each other.

    `locks`, which are mutexes and read-write locks, were taken; `contended` attempts found theirs held, and waited
    `wait_seconds` in sum, which includes waiting for a CPU. Waits apart from these: at condition variables, taking
    the mutex again included; at barriers; at semaphores that were not free; for threads to end; and `spins` on
    their processors for spin locks that were held. `threads` are those that did any of it, in `processes`.
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
class Orphans:
    """Descendants that lost their parent: how many ended by themselves, how many had to be killed."""

    waited: int
    killed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What is known of one process and its descendants, once all of them have ended.

    Stamps are seconds of CLOCK_MONOTONIC: before the process was made, in it just before `execve`, when
    it ended, and when the last of its descendants did. `wall_seconds` is from exec to end. `cpu_seconds`
    and the counts are sums over the process, the descendants that were waited for and the orphans;
    `user_seconds` and `system_seconds` split it as the kernel's tick saw it, which below about 0.1 s says
    nothing. `max_rss_bytes` is the largest single process. `locks` is None unless they were to be counted and
    could be. `refused_processes` counts forks beyond the process limit; `refused` says in words what a sandbox
    did not let it do, as far as that is known.
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
    refused_processes: int = 0
    refused: tuple[str, ...] = ()

    @classmethod
    def uncounted(cls, ended: Ended, *, began: float, now: float) -> Ran:
        """Give what is known of a process of which only its beginning, its end and how it ended are."""
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
