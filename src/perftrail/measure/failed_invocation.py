"""Why an invocation has no usable metrics, in words for the person who wrote the study."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, assert_never

from perftrail.model.build import KILLED_FOR_MEMORY, Failure
from perftrail.model.process import (
    Cancelled,
    Command,
    Exited,
    NotStarted,
    OutOfMemory,
    Ran,
    Signalled,
    TimedOut,
    describe_end,
    why_uncounted,
)
from perftrail.model.sandbox import with_refusals
from perftrail.model.wording import nearest

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.build import Stage


NOT_RUN = (126, 127)
"""The exit codes of a shell or a dynamic linker that could not run a program."""

NOT_LOADED = (
    "error while loading shared libraries",
    "symbol lookup error",
    "Error loading shared library",
    "Error relocating",
)
"""Messages of glibc's and musl's dynamic linkers."""

NOT_PRELOADED = "from LD_PRELOAD cannot be preloaded (cannot open shared object file)"
"""Message of glibc's dynamic linker before it runs the program without the library that the study preloads."""

ERROR = re.compile(
    r"(?:Uncaught )?[\w.:]*(?:Error|Exception)(?::| \[|$)|Exception in thread |panic: |thread '.*' panicked at "
)
"""Errors of Python, JavaScript, Java, Go and Rust; some of them print stacks and versions after it."""


def why_failed(ran: Ran, benchmark: Benchmark, log: Path, *, command: Command, build: str) -> Failure | None:
    """Return why an invocation has no usable metrics, or `None`; `build` is the directory of its build."""
    failure = _failure(ran, benchmark, log, command=command, build=build) or _not_preloaded(log)
    if failure is None and command.allocation_counter != "off" and (why := why_uncounted(ran.allocations)):
        failure = Failure(stage="metric", message=why, log=str(log))
    return failure and replace(failure, message=with_refusals(failure.message, ran.refused))


NO_INPUT = "cannot read standard input from"
"""Start of the message about a missing input file."""


def not_started(ended: NotStarted, command: Command, *, build: str) -> str:
    """Return which program or file is missing, and which programs the build has."""
    program, stdin = command.arguments[0], command.stdin
    if ended.stage == "stdin" and stdin is not None:
        return f"{NO_INPUT} {_in_build(stdin, build)}: {_reason(ended)}"
    shown = _in_build(program, build)
    if ended.stage == "chdir":
        shown = f"{shown} in {_in_build(command.directory, build)}"
    if ended.stage != "exec":
        return f"cannot start {shown}: {ended.stage}: {_reason(ended)}"
    if ended.errno != errno.ENOENT:
        return f"cannot start {shown}: {_reason(ended)}"
    if Path(command.directory, program).exists():
        return f"cannot start {shown}: the interpreter in its first line, or its loader, does not exist"
    if "/" not in program:
        return f"cannot start {shown}: no such command in the search path{_suggestion(build, program)}"
    return f"cannot start {shown}: no such file{_suggestion(build, program)}"


def _reason(ended: NotStarted) -> str:
    if ended.errno == errno.ENOENT:
        return "no such directory" if ended.stage == "chdir" else "no such file"
    return os.strerror(ended.errno).lower()


def _in_build(path: str, build: str) -> str:
    """Write a path below the build with its placeholder."""
    inside = f"{build.rstrip('/')}/"
    return f"{{build}}/{path.removeprefix(inside)}" if path.startswith(inside) else path


MOST_PROGRAMS = 5


def _suggestion(build: str, program: str) -> str:
    """Name the programs of the build that may have been meant."""
    directory = Path(program).parent if program.startswith(f"{build}/") else Path(build)
    try:
        files = sorted(
            each.name for each in directory.iterdir() if each.is_file() and os.access(each, os.X_OK)
        )
    except OSError:
        files = []
    if not files:
        return f"; {_in_build(str(directory), build) if str(directory) != build else 'the build'} has no programs"
    near = nearest(Path(program).name, files)
    at = {name: _in_build(str(directory / name), build) for name in files}
    if near is not None:
        return f"; did you mean {at[near]}?"
    more = f" and {len(files) - MOST_PROGRAMS} more" if len(files) > MOST_PROGRAMS else ""
    return f"; the build has: {', '.join(at[name] for name in files[:MOST_PROGRAMS])}{more}"


def _failure(ran: Ran, benchmark: Benchmark, log: Path, *, command: Command, build: str) -> Failure | None:
    ended = ran.ended
    message = describe_end(
        ended, timeout_seconds=benchmark.timeout_seconds, memory_limit_bytes=benchmark.memory_limit_bytes
    )
    last_line = last_line_of(log)
    match ended:
        case Exited(code=0):
            return None
        case Exited(code=code):
            stage: Stage = "start" if _never_began(code, benchmark, last_line) else "crash"
            return Failure(stage=stage, message=f"{message}{last_line}", log=str(log))
        case Signalled():
            if ended.signal == SIGKILL and ran.memory_kills:
                message = f"{message}: {KILLED_FOR_MEMORY}"
            return Failure(stage="crash", message=f"{message}{last_line}", log=str(log))
        case TimedOut():
            return Failure(stage="timeout", message=message, log=str(log))
        case OutOfMemory():
            return Failure(stage="memory", message=message, log=str(log))
        case NotStarted():
            if not (Path(build).is_dir() or log.parent.is_dir()):
                raise FileNotFoundError(errno.ENOENT, "the results were removed", build)
            return Failure(stage="start", message=not_started(ended, command, build=build), log=str(log))
        case Cancelled():
            raise KeyboardInterrupt
        case _:
            assert_never(ended)


def _not_preloaded(log: Path) -> Failure | None:
    last_line = next(
        (line for line in log_text(log.with_suffix(".err")).splitlines() if NOT_PRELOADED in line), None
    )
    return Failure(stage="start", message=last_line.strip(), log=str(log)) if last_line else None


def _never_began(code: int, benchmark: Benchmark, last_line: str) -> bool:
    """Whether the shell or the dynamic linker failed before the program ran: both have distinct exit codes."""
    return code in NOT_RUN and (benchmark.shell or any(words in last_line for words in NOT_LOADED))


def log_text(log: Path) -> str:
    """Return the output of an invocation; empty if its log was never written."""
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def last_line_of(log: Path) -> str:
    """Return the last error of a failed program, else its last line; without error output, that of its output."""
    for file, words in ((log.with_suffix(".err"), ": {}"), (log, '; its last line is "{}"')):
        lines = [line.strip() for line in log_text(file).splitlines() if line.strip()]
        if lines:
            errors = [line for line in lines if ERROR.match(line)]
            return words.format((errors or lines)[-1])
    return ""
