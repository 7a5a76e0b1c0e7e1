"""Profilers of functions: Callgrind for compiled programs, cProfile for Python, Flight Recorder for Java, perf else.

`CallgrindProfiler` counts instructions, simulated cache and branch misses, atomic operations and system calls of each
function and call; the counts have no noise. It counts inlined functions as functions if the program has debug
information. `PythonProfiler` counts calls and measures seconds. `JavaProfiler` samples the stacks of Java's
threads, `PerfProfiler` those of all threads, for example of Go. `AllocationProfiler` counts heap allocations and
their bytes.

Each profiler starts the program separately. `ProfiledFunctions.of` of a build is a `model.profile.Profile`, and
`stats.profile_comparison` compares those of two builds.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from perftrail.errors import FormatError, LauncherError
from perftrail.formats.callgrind import CallgrindFile, joined_processes
from perftrail.formats.document import Node, parse
from perftrail.formats.flight_recorder import read_flight_recorder
from perftrail.formats.perf_script import read_perf_script
from perftrail.measure.call_sites import allocation_profile
from perftrail.measure.instructions import DETERMINISTIC
from perftrail.model.build import Failure
from perftrail.model.process import Command, Exited
from perftrail.model.profile import Calls, Function, Profile, joined
from perftrail.process.launcher import launcher_path
from perftrail.process.object_code import ObjectCode
from perftrail.process.preloaded import ALLOCATIONS
from perftrail.stats.call_graph import in_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.measure.invocation import Invoker
    from perftrail.measure.subjects import Ready
    from perftrail.model.process import AllocationCounts

CALLGRIND_SLOWDOWN = 100.0
"""Typical worst slowdown of a program under Callgrind with its simulations."""

COUNTING_SLOWDOWN = 40.0
"""The same without simulations."""

PYTHON_SLOWDOWN = 4.0

_CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
"""The simulated caches: those of a common processor rather than this one, so that counts repeat."""

_SIMULATIONS = (
    "--cache-sim=yes", "--branch-sim=yes", "--collect-bus=yes", "--collect-systime=yes", *_CACHES,
)  # fmt: skip

LARGEST_PROFILE_BYTES = 1 << 29
"""Largest file of one process that is read."""


class FunctionProfiler(Protocol):
    """One profiler of functions."""

    name: str
    method: str
    slowdown: float
    pairs: int
    opens: tuple[str, ...]
    """Parts of the names of files, one of which every program of its kind executes or opens; empty for any program."""

    def unsupported_reason(self) -> str:
        """Return the reason why this machine does not support it, with a remedy; empty if it does."""
        ...

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start the program once and return its profile; one without functions if it is another kind of program."""
        ...


def roots(ready: Ready) -> tuple[str, ...]:
    """Return the directories of a build: what is below them belongs to the program."""
    return tuple(f"{each}/" for each in (ready.prepared.built.directory, ready.prepared.out) if each)


def program_functions(*ready: Ready) -> Callable[[Function], bool]:
    """Return whether a function belongs to one of these programs rather than to a library."""
    places = tuple(place for each in ready for place in roots(each))
    return lambda function: in_program(function, places)


class CallgrindProfiler:
    """An invocation under Callgrind, with a fixed environment and address layout, so that counts repeat exactly.

    Without simulations it only counts instructions and calls, in less time.
    """

    name = "instructions"
    method = "callgrind"
    opens: tuple[str, ...] = ()

    def __init__(self, invoker: Invoker, *, pairs: int, simulated: bool = True) -> None:
        self.pairs = pairs
        self.slowdown = CALLGRIND_SLOWDOWN if simulated else COUNTING_SLOWDOWN
        self._simulations = _SIMULATIONS if simulated else ()
        self._invoker = invoker
        self._code = ObjectCode(invoker.starter, invoker.temporary_directory)
        self._program = shutil.which("valgrind")

    def unsupported_reason(self) -> str:
        """Return a reason if Valgrind is missing."""
        return "" if self._program else "Valgrind is not installed; install the package valgrind"

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start once under Callgrind."""
        assert self._program is not None
        with self._invoker.temporary_directory() as scratch:
            words = (
                self._program, "--tool=callgrind", *self._simulations, "--dump-instr=yes", "--trace-children=yes",
                f"--callgrind-out-file={scratch}/%p", f"--log-file={scratch}/log.%p", "--",
            )  # fmt: skip
            observed = self._invoker.observe(
                ready,
                f"callgrind-{number}",
                lambda command: replace(
                    under(words, command, slowdown=self.slowdown),
                    environment={**DETERMINISTIC, **command.environment},
                    aslr=False,
                ),
            )
            if isinstance(observed.result, Failure):
                return observed.result
            try:
                files = [CallgrindFile(text) for text in _texts(Path(scratch), "[0-9]*")]
                return self._read(files, program_functions(ready))
            except FormatError as error:
                return Failure(stage="metric", message=f"Valgrind's profile cannot be read: {error}")

    def _read(self, files: Sequence[CallgrindFile], inside: Callable[[Function], bool]) -> Profile:
        profiles = []
        for file in files:
            frames = {
                (object, address): frame
                for object, addresses in file.addresses().items()
                if inside(Function("", object=object))
                for address, frame in self._code.frames(object, addresses).items()
            }
            profiles.append(file.profile(frames))
        profile = joined_processes(profiles)
        return profile.with_bodies(self._code.bodies(each for each in profile.own if inside(each)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAllocations:
    """The heap allocations of an invocation, and the functions of each frame of their stacks."""

    counts: AllocationCounts
    functions: Mapping[tuple[str, int], tuple[Function, ...]]


class AllocationCounter:
    """A preloaded object that counts heap allocations by their stacks."""

    name = "allocations"
    method = "preload"
    opens: tuple[str, ...] = ()
    slowdown = 1.0

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._code = ObjectCode(invoker.starter, invoker.temporary_directory)

    def unsupported_reason(self) -> str:
        """Return a reason if the preloaded object was not built."""
        try:
            ALLOCATIONS.path(launcher_path())
        except LauncherError as error:
            return str(error)
        return ""

    def count(self, ready: Ready, number: int) -> CountedAllocations | Failure:
        """Start once with a fixed environment and address layout; a program that cannot be counted is a failure."""
        observed = self._invoker.observe(
            ready,
            f"allocations-{number}",
            lambda command: replace(
                command,
                environment={**DETERMINISTIC, **command.environment},
                aslr=False,
                lock_counter="off",
                allocation_counter="stacks",
            ),
        )
        if isinstance(observed.result, Failure):
            return observed.result
        counts = observed.ran.allocations
        assert counts is not None
        functions = self._code.named(frame for stack in counts.stacks for frame in stack.frames)
        return CountedAllocations(counts=counts, functions=functions)


class AllocationProfiler(AllocationCounter):
    """An invocation whose heap allocations and their bytes are counted by function and call."""

    def __init__(self, invoker: Invoker, *, pairs: int) -> None:
        super().__init__(invoker)
        self.pairs = pairs

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start once with the counter; a program that cannot be counted is a failure."""
        found = self.count(ready, number)
        return (
            found if isinstance(found, Failure) else allocation_profile(found.counts.stacks, found.functions)
        )


class PythonProfiler:
    """An invocation of a Python program with cProfile, in every thread; none of other programs."""

    name = "Python functions"
    method = "cprofile"
    slowdown = PYTHON_SLOWDOWN
    opens: tuple[str, ...] = ("python", "pypy")

    def __init__(self, invoker: Invoker, *, pairs: int) -> None:
        self.pairs = pairs
        self._invoker = invoker

    def unsupported_reason(self) -> str:
        """Return an empty reason, because it needs only the program's Python."""
        return ""

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start once; the profile of a program that is not Python has no functions."""
        with self._invoker.temporary_directory() as scratch:
            shutil.copy(Path(__file__).with_name("python_profiler") / "sitecustomize.py", scratch)

            def profiled(command: Command) -> Command:
                paths = [scratch, *filter(None, [command.environment.get("PYTHONPATH", "")])]
                environment = {
                    **DETERMINISTIC,
                    **command.environment,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "PERFTRAIL_PYTHON_PROFILES": scratch,
                }
                return replace(under((), command, slowdown=self.slowdown), environment=environment)

            observed = self._invoker.observe(ready, f"python-{number}", profiled)
            if isinstance(observed.result, Failure):
                return observed.result
            try:
                found = [read_python_profile(text) for text in _texts(Path(scratch), "*.json")]
            except UNREADABLE as error:
                return Failure(stage="metric", message=f"the profile of Python cannot be read: {error}")
        return joined(found) if found else Profile(events=("seconds",), own={})


UNREADABLE = (FormatError, ValueError, TypeError, LookupError, ArithmeticError)
"""Errors of texts that a program has changed."""


def read_python_profile(text: str) -> Profile:
    """Read the profile of one process from `python_profiler`. Raises an error of `UNREADABLE` for another text."""
    document: Any = parse(text.encode()).value
    functions = [Function(str(name), str(file), int(line)) for name, file, line, _ in document["functions"]]
    own: dict[Function, tuple[float, ...]] = {}
    inclusive: dict[Function, tuple[float, ...]] = {}
    for number, _, seconds, whole in document["own"]:
        function = functions[number]
        own[function] = (own.get(function, (0.0,))[0] + Node(seconds).number(),)
        inclusive[function] = (inclusive.get(function, (0.0,))[0] + Node(whole).number(),)
    calls: dict[tuple[Function, Function], Calls] = {}
    for caller, callee, count, seconds in document["calls"]:
        edge = functions[caller], functions[callee]
        known = calls.get(edge, Calls(0.0, (0.0,)))
        costs = (known.costs[0] + Node(seconds).number(),)
        calls[edge] = Calls(known.count + Node(count).number(), costs)
    bodies = {
        function: str(body)
        for function, (_, _, _, body) in zip(functions, document["functions"], strict=True)
        if body
    }
    return Profile(events=("seconds",), own=own, inclusive=inclusive, calls=calls, bodies=bodies)


class JavaProfiler:
    """An invocation whose Java virtual machines record stacks of running threads; none of other programs."""

    name = "Java functions"
    method = "jfr"
    slowdown = 2.0
    opens: tuple[str, ...] = ("libjvm",)

    def __init__(self, invoker: Invoker, *, pairs: int) -> None:
        self.pairs = pairs
        self._invoker = invoker
        self._program = shutil.which("jfr")

    def unsupported_reason(self) -> str:
        """Return a reason if there is no Java development kit."""
        return "" if self._program else "jfr is not installed; it is part of a Java development kit"

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start once; the profile of a program that is not Java has no functions."""
        assert self._program is not None
        with self._invoker.temporary_directory() as scratch:
            recording = f"-XX:StartFlightRecording=filename={scratch},settings=profile"
            options = f"-XX:FlightRecorderOptions=stackdepth=256 {recording}"

            def recorded(command: Command) -> Command:
                known = command.environment.get("JAVA_TOOL_OPTIONS", "")
                environment = {**command.environment, "JAVA_TOOL_OPTIONS": f"{known} {options}".strip()}
                return replace(under((), command, slowdown=self.slowdown), environment=environment)

            observed = self._invoker.observe(ready, f"java-{number}", recorded)
            if isinstance(observed.result, Failure):
                return observed.result
            recordings = sorted(Path(scratch).glob("*.jfr"))
            words = (self._program, "print", "--events", "jdk.ExecutionSample", "--stack-depth", "256")
            texts = [_printed(self._invoker, (*words, str(each))) for each in recordings]
        found = [read_flight_recorder(each, root=roots(ready)[0]) for each in texts if each is not None]
        if len(found) < len(texts):
            return Failure(stage="metric", message="jfr cannot print the samples")
        if found and not any(each.own for each in found):
            return Failure(
                stage="metric", message="Flight Recorder took no samples; the program may be too short"
            )
        return joined(found) if found else Profile(events=("samples",), own={})


class PerfProfiler:
    """An invocation under perf, which samples stacks of all threads and processes by frame pointers."""

    name = "sampled stacks"
    method = "perf"
    slowdown = 2.0
    opens: tuple[str, ...] = ()

    def __init__(self, invoker: Invoker, *, pairs: int) -> None:
        self.pairs = pairs
        self._invoker = invoker
        self._code = ObjectCode(invoker.starter, invoker.temporary_directory)
        self._program = shutil.which("perf")

    def unsupported_reason(self) -> str:
        """Return a reason if perf is missing, or may not sample here."""
        if self._program is None:
            return "perf is not installed; install the package linux-perf or linux-tools"
        with self._invoker.temporary_directory() as scratch:
            trial = Command(
                arguments=(*self._record(scratch), "/bin/true"),
                environment={},
                directory="/",
                tree_memory="off",
            )
            if self._invoker.starter.run(trial).ended != Exited(code=0):
                return (
                    "perf cannot sample here; it needs the capability PERFMON, or perf_event_paranoid below 2"
                )
        return ""

    def _record(self, scratch: str) -> tuple[str, ...]:
        assert self._program is not None
        return (
            self._program, "record", "-q", "-e", "cpu-clock:u", "-F", "2000", "--call-graph", "fp", "-o",
            f"{scratch}/data", "--",
        )  # fmt: skip

    def profile(self, ready: Ready, number: int) -> Profile | Failure:
        """Start once under perf."""
        assert self._program is not None
        with self._invoker.temporary_directory() as scratch:
            observed = self._invoker.observe(
                ready,
                f"perf-{number}",
                lambda command: under(self._record(scratch), command, slowdown=self.slowdown),
            )
            if isinstance(observed.result, Failure):
                return observed.result
            fields = ("--no-inline", "-F", "comm,pid,tid,ip,sym,dso")
            text = _printed(self._invoker, (self._program, "script", "-i", f"{scratch}/data", *fields))
        if text is None:
            return Failure(stage="metric", message="perf script cannot read the samples")
        profile = read_perf_script(text)
        if not profile.own:
            return Failure(stage="metric", message="perf took no samples; the program may be too short")
        inside = program_functions(ready)
        return profile.with_bodies(self._code.bodies(each for each in profile.own if inside(each)))


OPENING_SLOWDOWN = 3.0
"""Typical slowdown of a program under strace if it stops only where the program opens or executes a file."""

_OPENING = "trace=?execve,?execveat,?open,?openat,?openat2"


def applicable(
    profilers: Sequence[FunctionProfiler], invoker: Invoker, ready: Ready
) -> tuple[FunctionProfiler, ...]:
    """Return the profilers for the kind of a program, by the files that all its processes execute and open.

    This starts the program once under strace. All profilers are returned if that is not possible.
    """
    if not any(each.opens for each in profilers) or (opened := _opened_files(invoker, ready)) is None:
        return tuple(profilers)
    return tuple(each for each in profilers if not each.opens or any(part in opened for part in each.opens))


def _opened_files(invoker: Invoker, ready: Ready) -> str | None:
    """Return the calls with which an invocation executes and opens files, in lower case; `None` if unknown.

    The paths have no directories of the build, whose names say nothing about the program.
    """
    strace = shutil.which("strace")
    if strace is None:
        return None
    with invoker.temporary_directory() as scratch:
        words = (
            strace,
            "-D",  # a daemon of the program does not delay the end
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-e",
            _OPENING,
            "-e",
            "signal=none",
            "-o",
            f"{scratch}/calls",
            "--",
        )
        observed = invoker.observe(
            ready, "opened-files", lambda command: under(words, command, slowdown=OPENING_SLOWDOWN)
        )
        texts = _texts(Path(scratch), "calls")
    if isinstance(observed.result, Failure) or not texts:
        return None
    text = texts[0]
    for root in (*roots(ready), scratch):
        text = text.replace(root, "")
    return text.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionProfiles:
    """The profiles of several invocations of two builds in ABBA order, and the profiler's method."""

    method: str
    before: tuple[Profile, ...]
    after: tuple[Profile, ...]


def profile_pairs(profiler: FunctionProfiler, before: Ready, after: Ready) -> FunctionProfiles | Failure:
    """Profile both builds in interleaved pairs; stop after the first pair of another kind of program.

    Counts of Callgrind that repeat exactly need no more than two pairs.
    """
    found: tuple[list[Profile], list[Profile]] = ([], [])
    for number in range(profiler.pairs):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            profile = profiler.profile((before, after)[side], number)
            if isinstance(profile, Failure):
                return profile
            found[side].append(profile)
        if not all(side[-1].own for side in found):
            return FunctionProfiles(method=profiler.method, before=(), after=())
        if profiler.method == "callgrind" and number and all(_repeated(side) for side in found):
            break
    return FunctionProfiles(method=profiler.method, before=tuple(found[0]), after=tuple(found[1]))


def _repeated(profiles: Sequence[Profile]) -> bool:
    """Return whether the last two profiles have equal instructions."""
    first, second = (each.total[0] for each in profiles[-2:])
    return first == second


def under(words: tuple[str, ...], command: Command, *, slowdown: float) -> Command:
    """Return a command that runs under another program, with a longer timeout and without limits."""
    seconds = command.timeout_seconds
    return replace(
        command,
        arguments=(*words, *command.arguments),
        timeout_seconds=None if seconds is None else seconds * slowdown,
        memory_limit_bytes=None,
        lock_counter="off",
        allocation_counter="off",
    )


def _printed(invoker: Invoker, words: tuple[str, ...]) -> str | None:
    """Return what a profiler's tool prints of recorded samples; `None` if it fails.

    The output is in a directory that the profiled program never had.
    """
    with invoker.temporary_directory() as directory:
        output = Path(directory) / "printed"
        command = Command(
            arguments=words,
            environment={"LC_ALL": "C", "HOME": directory, "PATH": os.environ.get("PATH", os.defpath)},
            directory=directory,
            stdout=str(output),
            output_cap_bytes=LARGEST_PROFILE_BYTES,
            timeout_seconds=120.0,
            tree_memory="off",
        )
        if invoker.starter.run(command).ended != Exited(code=0) or not output.is_file():
            return None
        return output.read_text(errors="replace")


def _texts(directory: Path, pattern: str) -> list[str]:
    """Return the texts of files that processes left; a program may have changed them."""
    texts = []
    for file in sorted(directory.glob(pattern)):
        with suppress(OSError):
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST_PROFILE_BYTES:
                texts.append(file.read_text(errors="replace"))
    return texts
