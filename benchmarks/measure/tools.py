"""The tools with one interface: each runs a program several times and returns its sample of each run."""

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
class ToolSample:
    """The values of a tool for one run, in seconds and bytes; None if it does not report one.

    `memory` is that of the largest process; `tree_memory` and `tree_cpu` are sums over the tree, from a cgroup or by
    sampling. `own` is the time of the tool between the previous run and this one.
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
        """Its name in the table."""
        ...

    @property
    def runs_per_call(self) -> int:
        """How many runs one call does."""
        ...

    @property
    def resolves(self) -> bool:
        """Whether its wall time has a resolution of microseconds."""
        ...

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[ToolSample]:
        """Run a program and return the sample of each run, in order."""
        ...


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A tool with a command line, which is `line` and the program; it writes its values into ``{file}``."""

    name: str
    runs_per_call: int
    line: tuple[str, ...]
    read: Callable[[str], list[ToolSample]]
    repeats: bool = False
    resolves: bool = True

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[ToolSample]:
        """Call the tool once if it can repeat, otherwise once for each run."""
        if not self.repeats:
            return [sample for _ in range(runs) for sample in self._call(arguments, environment, None)]
        return self._call(arguments, environment, runs)

    def _call(
        self, arguments: Sequence[str], environment: Mapping[str, str], runs: int | None
    ) -> list[ToolSample]:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "values"
            line = [part.replace("{file}", str(file)).replace("{runs}", str(runs)) for part in self.line]
            # Some tools need the program as one text; no path here has a blank.
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
            output = file.read_text() if file.exists() else done.stdout + done.stderr
            try:
                return self.read(output)
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise RuntimeError(f"{self.name}: {output[-300:]!r} {done.stderr[-300:]!r}") from error


class InProcess:
    """Python's subprocess and wait4."""

    name = "Python subprocess + wait4"
    runs_per_call = 10
    resolves = True

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[ToolSample]:
        """Run from this process."""
        samples = []
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
            samples.append(
                ToolSample(
                    wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=float(usage.ru_maxrss * KIBIBYTE)
                )
            )
        return samples


class Perftrail:
    """perftrail's launcher, with a cgroup for each run, sampling, or neither."""

    runs_per_call = 10
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

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[ToolSample]:
        """Run with one launcher process for all runs."""
        command = _command(arguments, environment, self._tree_memory, self._cpus)
        return [_sample(self.launcher.run(command)) for _ in range(runs)]


class LauncherAlone:
    """perftrail's launcher without the Python side: it gets the lines of all runs at once."""

    runs_per_call = 10
    resolves = True

    def __init__(self, name: str, tree_memory: Literal["auto", "off"]) -> None:
        self.name = name
        self._tree_memory: Literal["auto", "off"] = tree_memory
        self._server = subprocess.Popen(
            [launcher_path()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
        )
        assert self._server.stdout is not None
        self._server.stdout.readline()

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], runs: int) -> list[ToolSample]:
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
        samples = [_sample(ran) for ran in rans]
        own_seconds = (later.started_at - ran.started_at - ran.wall_seconds for ran, later in pairwise(rans))
        return [
            samples[0],
            *(replace(each, own=own) for each, own in zip(samples[1:], own_seconds, strict=True)),
        ]


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


def _sample(ran: Ran) -> ToolSample:
    if ran.ended != Exited(code=0):
        raise RuntimeError(f"the target ended with {ran.ended}")
    return ToolSample(
        wall=ran.wall_seconds,
        cpu=ran.cpu_seconds,
        memory=float(ran.max_rss_bytes),
        tree_memory=None if ran.tree_memory is None else float(ran.tree_memory.bytes),
        tree_cpu=None if ran.tree_cpu is None else ran.tree_cpu.seconds,
    )


def _hyperfine(output: str) -> list[ToolSample]:
    [result] = json.loads(output)["results"]
    memory = result.get("memory_usage_byte") or [None] * len(result["times"])
    cpu = result["user"] + result["system"]  # the mean: it reports no others
    return [
        ToolSample(wall=wall, cpu=cpu, memory=None if peak is None else float(peak))
        for wall, peak in zip(result["times"], memory, strict=True)
    ]


def _gnu_time(output: str) -> list[ToolSample]:
    wall, user, system, peak = map(float, output.split()[-4:])
    return [ToolSample(wall=wall, cpu=user + system, memory=peak * KIBIBYTE)]


def _perf_stat(output: str) -> list[ToolSample]:
    found = {row[2]: float(row[0]) for row in csv.reader(output.splitlines()) if len(row) > 2}
    return [ToolSample(wall=found["duration_time"] / 1e9, cpu=found["task-clock"] / 1e3)]


def _pyperf(output: str) -> list[ToolSample]:
    document = json.loads(output)
    [run] = [run for each in document["benchmarks"] for run in each["runs"] if run.get("values")]
    peak = document["metadata"].get("command_max_rss") or run.get("metadata", {}).get("command_max_rss")
    return [ToolSample(wall=run["values"][0], memory=None if peak is None else float(peak))]


def _runexec(output: str) -> list[ToolSample]:
    found = dict(re.findall(r"^(\w+)=([0-9.]+)", output, re.MULTILINE))
    cpu, memory = float(found["cputime"]), float(found["memory"])
    return [ToolSample(wall=float(found["walltime"]), cpu=cpu, memory=memory, tree_memory=memory)]


def _multitime(output: str) -> list[ToolSample]:
    found = {
        name: float(mean) for name, mean in re.findall(r"^(real|user|sys)\s+([0-9.]+)", output, re.MULTILINE)
    }
    return [ToolSample(wall=found["real"], cpu=found["user"] + found["sys"])]


HYPERFINE = ("-N", "--style", "none", "--runs", "{runs}", "--export-json", "{file}")


def tools(peers: Path) -> tuple[list[Tool], list[str]]:
    """Return the tools that are installed, and a line for each that is not."""
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
        '"unable to open perf event" on machines without hardware counters'
        if shutil.which("poop") is None
        else "poop: prints only tables for people, without the values of single runs"
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
        missing.append("perftrail, cgroup: no cgroup can be created here")
    return [*found, InProcess(), *ours], missing


def _at(path: Path) -> str | None:
    return str(path) if path.is_file() else None


def _version(path: str) -> str:
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return output.split()[1]
