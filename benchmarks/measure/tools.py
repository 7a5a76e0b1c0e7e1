"""Each tool as something that runs a program so often and gives what the tool said of each run."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from perftrail.model.process import Command, Exited
from perftrail.process.launcher import Launcher, launcher_path
from perftrail.process.protocol import job_line, read_answer, read_result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.process import Ran

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a tool said of one run: seconds and bytes; None where it says nothing.

    `memory` is the largest process; `tree_memory` and `tree_cpu` are sums over the tree, by cgroup or samples.
    `own` is what the tool spent between the run before and this one.
    """

    wall: float | None = None
    cpu: float | None = None
    memory: float | None = None
    tree_memory: float | None = None
    tree_cpu: float | None = None
    own: float | None = None


class Tool(Protocol):
    """A tool that measures programs."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    @property
    def most(self) -> int:
        """How often it runs a program in one call of its own."""
        ...

    @property
    def resolves(self) -> bool:
        """Whether its wall time tells microseconds."""
        ...

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[Reading]:
        """Run a program and give what was said of each run, in order."""
        ...


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A tool with a command line, from `line` before the program; it writes its values into ``{file}``."""

    name: str
    most: int
    line: tuple[str, ...]
    read: Callable[[str], list[Reading]]
    repeats: bool = False
    resolves: bool = True

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[Reading]:
        """Call the tool once where it can repeat, else once for each run."""
        if not self.repeats:
            return [reading for _ in range(runs) for reading in self._call(arguments, environment, None)]
        return self._call(arguments, environment, runs)

    def _call(
        self, arguments: Sequence[str], environment: Mapping[str, str], runs: int | None
    ) -> list[Reading]:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "values"
            line = [part.replace("{file}", str(file)).replace("{runs}", str(runs)) for part in self.line]
            # Tools that take the program as one text get one; no path of ours has a blank.
            program = [" ".join(arguments)] if self.name.startswith("hyperfine") else list(arguments)
            done = subprocess.run(
                [*line, *program],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            said = file.read_text() if file.exists() else done.stdout + done.stderr
            try:
                return self.read(said)
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise RuntimeError(f"{self.name}: {said[-300:]!r} {done.stderr[-300:]!r}") from error


class InProcess:
    """Python's own way: subprocess and wait4."""

    name = "Python subprocess + wait4"
    most = 10
    resolves = True

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[Reading]:
        """Run from this very process."""
        readings = []
        for _ in range(runs):
            began = time.perf_counter()
            process = subprocess.Popen(
                list(arguments),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, _, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = 0
            readings.append(
                Reading(
                    wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=float(usage.ru_maxrss * KIBIBYTE)
                )
            )
        return readings


class Perftrail:
    """perftrail's launcher, with a cgroup for each run, sampling, or neither."""

    most = 10
    resolves = True

    def __init__(
        self,
        name: str,
        tree_memory: Literal["auto", "sampled", "off"],
        *,
        cpus: tuple[int, ...] | None = None,
    ) -> None:
        self.name = name
        self.launcher = Launcher()
        self._tree_memory: Literal["auto", "sampled", "off"] = tree_memory
        self._cpus = cpus

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[Reading]:
        """Run through the launcher that stays."""
        command = _command(arguments, environment, self._tree_memory, self._cpus)
        return [_of_ours(self.launcher.run(command)) for _ in range(runs)]


class LauncherAlone:
    """perftrail's launcher without the Python side: all its lines are there before the first is answered."""

    most = 10
    resolves = True

    def __init__(self, name: str, tree_memory: Literal["auto", "off"]) -> None:
        self.name = name
        self._tree_memory: Literal["auto", "off"] = tree_memory
        self._server = subprocess.Popen(
            [launcher_path()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
        )
        assert self._server.stdout is not None
        self._server.stdout.readline()

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[Reading]:
        """Send a line for each run, then read the answers."""
        command = _command(arguments, environment, self._tree_memory, None)
        lines = job_line(command, id="1") * runs
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin is not None
        assert stdout is not None
        writing = threading.Thread(target=lambda: (stdin.write(lines), stdin.flush()))
        writing.start()
        answers = [stdout.readline() for _ in range(runs)]
        writing.join()
        rans = [read_result(read_answer(answer), id="1") for answer in answers]
        readings = [_of_ours(ran) for ran in rans]
        owns = (later.started_at - ran.started_at - ran.wall_seconds for ran, later in pairwise(rans))
        return [readings[0], *(replace(each, own=own) for each, own in zip(readings[1:], owns, strict=True))]


def _command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    tree_memory: Literal["auto", "sampled", "off"],
    cpus: tuple[int, ...] | None,
) -> Command:
    return Command(
        arguments=tuple(arguments),
        environment=environment,
        directory="/",
        tree_memory=tree_memory,
        orphans="wait",
        cpus=cpus,
    )


def _of_ours(ran: Ran) -> Reading:
    if ran.ended != Exited(code=0):
        raise RuntimeError(f"the target ended with {ran.ended}")
    return Reading(
        wall=ran.wall_seconds,
        cpu=ran.cpu_seconds,
        memory=float(ran.max_rss_bytes),
        tree_memory=None if ran.tree_memory is None else float(ran.tree_memory.bytes),
        tree_cpu=None if ran.tree_cpu is None else ran.tree_cpu.seconds,
    )


def _hyperfine(said: str) -> list[Reading]:
    [result] = json.loads(said)["results"]
    memory = result.get("memory_usage_byte") or [None] * len(result["times"])
    cpu = result["user"] + result["system"]  # the mean: it keeps no more
    return [
        Reading(wall=wall, cpu=cpu, memory=None if peak is None else float(peak))
        for wall, peak in zip(result["times"], memory, strict=True)
    ]


def _gnu_time(said: str) -> list[Reading]:
    wall, user, system, peak = map(float, said.split()[-4:])
    return [Reading(wall=wall, cpu=user + system, memory=peak * KIBIBYTE)]


def _perf_stat(said: str) -> list[Reading]:
    found = {row[2]: float(row[0]) for row in csv.reader(said.splitlines()) if len(row) > 2}
    return [Reading(wall=found["duration_time"] / 1e9, cpu=found["task-clock"] / 1e3)]


def _pyperf(said: str) -> list[Reading]:
    document = json.loads(said)
    [run] = [run for each in document["benchmarks"] for run in each["runs"] if run.get("values")]
    peak = document["metadata"].get("command_max_rss") or run.get("metadata", {}).get("command_max_rss")
    return [Reading(wall=run["values"][0], memory=None if peak is None else float(peak))]


def _runexec(said: str) -> list[Reading]:
    found = dict(re.findall(r"^(\w+)=([0-9.]+)", said, re.MULTILINE))
    cpu, memory = float(found["cputime"]), float(found["memory"])
    return [Reading(wall=float(found["walltime"]), cpu=cpu, memory=memory, tree_memory=memory)]


def _multitime(said: str) -> list[Reading]:
    found = {
        name: float(mean) for name, mean in re.findall(r"^(real|user|sys)\s+([0-9.]+)", said, re.MULTILINE)
    }
    return [Reading(wall=found["real"], cpu=found["user"] + found["sys"])]


HYPERFINE = ("-N", "--style", "none", "--runs", "{runs}", "--export-json", "{file}")


def tools(peers: Path) -> tuple[list[Tool], list[str]]:
    """Return the tools that are installed, and a line on each that is not."""
    known: list[tuple[str, str | None, Callable[[str], CommandLine]]] = [
        (
            "hyperfine (cargo)",
            _at(peers / "bin/hyperfine"),
            lambda path: CommandLine(
                f"hyperfine {_version(path)}", 10, (path, *HYPERFINE), _hyperfine, repeats=True
            ),
        ),
        (
            "hyperfine (Debian)",
            _at(Path("/usr/bin/hyperfine")),
            lambda path: CommandLine(
                f"hyperfine {_version(path)} (Debian)", 10, (path, *HYPERFINE), _hyperfine, repeats=True
            ),
        ),
        (
            "GNU time",
            _at(Path("/usr/bin/time")),
            lambda path: CommandLine(
                "GNU time", 3, (path, "-o", "{file}", "-f", "%e %U %S %M"), _gnu_time, resolves=False
            ),
        ),
        (
            "perf stat",
            shutil.which("perf"),
            lambda path: CommandLine(
                "perf stat",
                3,
                (path, "stat", "-x", ",", "-o", "{file}", "-e", "task-clock,duration_time", "--"),
                _perf_stat,
            ),
        ),
        (
            "pyperf",
            _at(peers / "venv/bin/pyperf"),
            lambda path: CommandLine(
                "pyperf command",
                1,
                (path, "command", "-p1", "-n1", "-l1", "-w0", "--copy-env", "-o", "{file}", "--"),
                _pyperf,
            ),
        ),
        (
            "BenchExec",
            _at(peers / "venv/bin/runexec"),
            lambda path: CommandLine(
                "BenchExec runexec",
                1,
                (path, "--no-container", "--quiet", "--output", "/dev/null", "--"),
                _runexec,
            ),
        ),
        (
            "multitime",
            shutil.which("multitime"),
            lambda path: CommandLine(
                "multitime", 3, (path, "-s", "0", "-n", "1"), _multitime, resolves=False
            ),
        ),
    ]
    found: list[Tool] = [make(path) for _, path, make in known if path is not None]
    missing = [
        f"{name}: not installed (`python -m benchmarks.measure --install-peers`)"
        for name, path, _ in known
        if path is None
    ]
    missing.append(
        "poop: in no package registry that peers come from (apt, pip, cargo); built from source it ends with "
        '"unable to open perf event" where a machine has no hardware counters'
        if shutil.which("poop") is None
        else "poop: prints for people only and gives no value of a single run"
    )
    ours: list[Tool] = [
        LauncherAlone("perftrail's launcher alone", "off"),
        Perftrail("perftrail", "off"),
        Perftrail("perftrail, sampled", "sampled"),
        Perftrail("perftrail, one CPU", "off", cpus=(max(os.sched_getaffinity(0)),)),
    ]
    by_cgroup = Perftrail("perftrail, cgroup", "auto")
    if by_cgroup.launcher.start().memory_cgroup:
        ours[1:1] = [LauncherAlone("perftrail's launcher alone, cgroup", "auto")]
        ours.insert(3, by_cgroup)
    else:
        missing.append("perftrail, cgroup: no cgroup may be made here")
    return [*found, InProcess(), *ours], missing


def _at(path: Path) -> str | None:
    return str(path) if path.is_file() else None


def _version(path: str) -> str:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1]
