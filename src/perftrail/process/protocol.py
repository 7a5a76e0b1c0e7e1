"""The launcher's protocol: a job is one line of fields, an answer is one line of JSON.

`launcher/PROTOCOL.md` in the source tree is its reference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from perftrail.errors import LauncherError
from perftrail.model.process import (
    Cancelled,
    Command,
    Ended,
    Exited,
    NotStarted,
    Orphans,
    OutOfMemory,
    Ran,
    Signalled,
    TimedOut,
    TreeCpu,
    TreeMemory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL = 1
CANCEL = b"cancel\n"
SIGNAL = b"signal=%d\n"
NANOSECONDS = 1_000_000_000

CgroupVersion = Literal["cgroup1", "cgroup2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Capabilities of a launcher, from its first line.

    `own_peak_bytes` is the lower limit of every `max_rss_bytes` that it reports. The cgroup fields name the version
    that measures the tree's memory and CPU time and kills it, or `None` if no cgroup can be created.
    """

    version: str
    pid: int
    server_pid: int
    libc: Literal["musl", "glibc"]
    linking: Literal["static", "dynamic"]
    own_peak_bytes: int
    clock_resolution_seconds: float
    memory_cgroup: CgroupVersion | None
    cpu_cgroup: CgroupVersion | None
    kill_cgroup: CgroupVersion | None
    cgroup_paths: tuple[str, ...]


def job_line(command: Command, *, id: str) -> bytes:
    """Return a command as a job line with its newline; raises `LauncherError` for a NUL in a string."""
    return b"\t".join(_field(key, value) for key, value in _fields(command, id)) + b"\n"


def _field(key: str, value: str) -> bytes:
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise LauncherError(f"{key}: {value!r} contains a NUL character, which no program can receive")
    return key.encode() + b"=" + raw.replace(b"%", b"%25").replace(b"\t", b"%09").replace(b"\n", b"%0a")


def _fields(command: Command, id: str) -> Iterator[tuple[str, str]]:
    yield "id", id
    yield from (("arg", argument) for argument in command.arguments)
    yield from (("env", f"{name}={value}") for name, value in command.environment.items())
    # Absolute, because the launcher's working directory is perftrail's at the launcher's start.
    yield "cwd", os.path.abspath(command.directory)  # noqa: PTH100 - Path would drop "./" and "//"
    for stream in ("stdin", "stdout", "stderr"):
        path = getattr(command, stream)
        if path is not None:
            yield stream, os.path.abspath(path)  # noqa: PTH100 - as above
    if command.output_cap_bytes is not None:
        yield "output_cap", str(command.output_cap_bytes)
    if command.timeout_seconds is not None:
        yield "timeout_ns", str(max(1, round(command.timeout_seconds * NANOSECONDS)))
    if command.memory_limit_bytes is not None:
        yield "memory_limit", str(command.memory_limit_bytes)
    if command.process_limit is not None:
        yield "process_limit", str(command.process_limit)
    if command.cpus is not None:
        yield "cpus", ",".join(str(cpu) for cpu in command.cpus)
    if command.nice is not None:
        yield "nice", str(command.nice)
    if command.numa is not None:
        yield "numa", ",".join(str(node) for node in command.numa)
    yield "aslr", "on" if command.aslr else "off"
    yield "orphans", command.orphans
    yield "tree_memory", command.tree_memory
    for name, limit in command.limits.items():
        yield "rlimit", f"{name}:{'unlimited' if limit is None else limit}"
    if command.counters:
        yield "counters", "on"


def read_answer(line: bytes) -> Mapping[str, Any]:
    """Parse one line of the launcher; raises `LauncherError` for a line outside the protocol."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LauncherError(
            f"launcher — answered {line[:200]!r}, which is not JSON; please report it"
        ) from error
    if not isinstance(answer, dict) or "event" not in answer:
        raise _unlike_protocol(answer)
    return answer


_OUTSIDE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of code that reads fields which an answer lacks, or which have other types."""


def _unlike_protocol(answer: object) -> LauncherError:
    shown = json.dumps(answer)[:200]
    return LauncherError(f"launcher — answered {shown!r}, which is not its protocol; please report it")


def read_hello(answer: Mapping[str, Any]) -> Capabilities:
    """Parse the launcher's first line; raises `LauncherError` for another version of the protocol."""
    if answer["event"] != "hello" or answer.get("protocol") != PROTOCOL:
        raise LauncherError(
            f"launcher — uses protocol {answer.get('protocol')!r}, but perftrail needs {PROTOCOL}; "
            "the executable and the package have different versions: reinstall perftrail"
        )
    try:
        return Capabilities(
            version=answer["version"],
            pid=answer["pid"],
            server_pid=answer["server_pid"],
            libc=answer["libc"],
            linking=answer["linking"],
            own_peak_bytes=answer["own_peak_bytes"],
            clock_resolution_seconds=answer["clock_resolution_ns"] / NANOSECONDS,
            memory_cgroup=answer["cgroup"]["memory"],
            cpu_cgroup=answer["cgroup"]["cpu"],
            kill_cgroup=answer["cgroup"]["kill"],
            cgroup_paths=tuple(answer["cgroup"]["paths"]),
        )
    except _OUTSIDE as error:
        raise _unlike_protocol(answer) from error


def read_result(answer: Mapping[str, Any], *, id: str) -> Ran:
    """Parse the answer to a job; raises `LauncherError` if the launcher refused it or had to give up."""
    if answer["event"] == "error" and answer.get("fatal"):
        raise LauncherError(f"launcher — could not complete the job: {answer.get('message')}")
    if answer["event"] == "error":
        raise LauncherError(f"launcher — refused the job: {answer.get('message')}")
    if answer["event"] != "result" or answer.get("id") != id:
        raise LauncherError(
            f"launcher — answered job {answer.get('id')!r} instead of {id!r}; please report it"
        )
    try:
        return Ran(
            ended=_ended(answer),
            prepared_at=answer["pre_ns"] / NANOSECONDS,
            started_at=answer["exec_ns"] / NANOSECONDS,
            ended_at=answer["end_ns"] / NANOSECONDS,
            tree_ended_at=answer["tree_end_ns"] / NANOSECONDS,
            wall_seconds=answer["wall_ns"] / NANOSECONDS,
            cpu_seconds=answer["cpu_ns"] / NANOSECONDS,
            user_seconds=answer["user_ns"] / NANOSECONDS,
            system_seconds=answer["system_ns"] / NANOSECONDS,
            max_rss_bytes=answer["max_rss_bytes"],
            voluntary_switches=answer["voluntary_switches"],
            involuntary_switches=answer["involuntary_switches"],
            minor_faults=answer["minor_faults"],
            major_faults=answer["major_faults"],
            orphans=Orphans(**answer["orphans"]),
            stdout_truncated=answer["stdout_truncated"],
            stderr_truncated=answer["stderr_truncated"],
            tree_memory=_tree_memory(answer["peak_memory_tree"]),
            tree_cpu=_tree_cpu(answer["cpu_tree"]),
            memory_limit_method=answer["memory_limit_method"],
            counters=answer.get("counters") or {},
            refused_processes=answer.get("refused_processes", 0),
        )
    except _OUTSIDE as error:
        raise _unlike_protocol(answer) from error


def _ended(answer: Mapping[str, Any]) -> Ended:
    ended = answer["ended"]
    if ended["how"] == "not_started":
        message = os.strerror(ended["errno"])
        return NotStarted(errno=ended["errno"], message=f"{ended['stage']}: {message}", stage=ended["stage"])
    if answer["cancelled"]:
        return Cancelled()
    if answer["timed_out"]:
        return TimedOut()
    if answer["memory_exceeded"]:
        return OutOfMemory()
    if ended["how"] == "signalled":
        return Signalled(signal=ended["signal"])
    return Exited(code=ended["code"])


def _tree_memory(found: Mapping[str, Any] | None) -> TreeMemory | None:
    if found is None:
        return None
    in_files = found.get("file_bytes_at_end")
    return TreeMemory(
        bytes=found["bytes"],
        method=found["method"],
        file_bytes_at_end=None if in_files is None or in_files < 0 else in_files,
        samples=found.get("samples", 0),
        sampling_seconds=found.get("sampling_ns", 0) / NANOSECONDS,
    )


def _tree_cpu(found: Mapping[str, Any] | None) -> TreeCpu | None:
    return None if found is None else TreeCpu(seconds=found["ns"] / NANOSECONDS, method=found["method"])
