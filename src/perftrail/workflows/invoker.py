"""One invocation: a clean directory, an exact environment, a start, the figures."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from perftrail.file_tree import empty_directory
from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation, Measurement, circumstances, seed_of
from perftrail.model.placeholders import fill, split_command
from perftrail.model.plan import command_line, run_environment
from perftrail.model.process import (
    Cancelled,
    Command,
    Exited,
    NotStarted,
    OutOfMemory,
    Signalled,
    TimedOut,
)
from perftrail.model.quantity import duration, quantity
from perftrail.model.study import with_refusals
from perftrail.workflows.accounts import measured, methods
from perftrail.workflows.clock import now
from perftrail.workflows.instructions import KEPT, InstructionCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.build import Stage
    from perftrail.model.measurement import Circumstances, Conditions, InvocationKey, Outcome, Phase
    from perftrail.model.process import Ended, Ran
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Starter
    from perftrail.workflows.build_paths import BuildPaths, SeenAt
    from perftrail.workflows.quiet import Lookout
    from perftrail.workflows.workshop import Ready, Start

OUTPUT_CAP_BYTES = 16 << 20
"""How much of a benchmark's output is kept, and searched for metrics."""

INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
"""All that a benchmark sees of the environment that perftrail was started in; the study adds the rest."""


NOT_RUN = (126, 127)
"""The exit codes by which a shell, or a dynamic linker, says that it could not run a program."""

NOT_LOADED = (
    "error while loading shared libraries",
    "symbol lookup error",
    "Error loading shared library",
    "Error relocating",
)
"""What glibc's and musl's dynamic linkers say."""

NOT_PRELOADED = "from LD_PRELOAD cannot be preloaded (cannot open shared object file)"
"""What glibc's dynamic linker says before it runs the program anyway, without what the study asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a start that is no measurement gave: the process, and every figure of it or why there is none."""

    ran: Ran
    result: Mapping[str, float] | Failure


class Invoker:
    """Starts what a study's benchmarks say, and reads the results.

    With `paths`, each invocation sees its build at a path that its draw decides.
    """

    def __init__(
        self,
        study: Study,
        *,
        starter: Starter,
        builder: Builder,
        lookout: Lookout,
        scratch: Path,
        logs: Path,
        paths: BuildPaths | None = None,
    ) -> None:
        self._study = study
        self._lookout = lookout
        self.starter = starter
        self._builder = builder
        self._scratch = scratch
        self._logs = logs
        self._paths = paths
        self._instructions = InstructionCounter(starter, scratch.with_name("counts"))

    def invoke(self, start: Start) -> Outcome:
        """Start once and give the outcome; a start that fails is an outcome too.

        Where no seed was drawn, it is the same for every subject at the same ordinal, so that pairs stay pairs.
        Raises `MachineBusy` where the study refuses to measure in noise.
        """
        if "instructions" in self._study.benchmarks[start.ready.cell.benchmark].counters:
            return self._count(start)
        seed = start.draw.seed or invocation_seed(self._study, start.key.phase, start.key.ordinal)
        drawn = replace(start, draw=replace(start.draw, seed=seed, layout=start.ready.layout))
        around = circumstances(seed)
        if self._paths is None:
            return self._invoke(drawn, around, None)
        placeholders = self._builder.command_placeholders(start.ready.prepared)
        with self._paths.seen(start.ready.prepared, around.path, placeholders) as seen:
            return self._invoke(drawn, around, seen)

    def _invoke(self, start: Start, around: Circumstances, seen: SeenAt | None) -> Outcome:
        log = self._log(start)
        command = self._command(start.ready, log, INHERITED, seen=seen)
        command = replace(command, environment={**around.environment, **command.environment})
        self._lookout.before()
        started = now()
        ran = self.starter.run(command)
        conditions = self._lookout.after(ran)
        seconds = ran.tree_ended_at - ran.prepared_at
        benchmark = self._study.benchmarks[start.ready.cell.benchmark]
        failure = _why_failed(ran, benchmark, log)
        read = failure or read_metrics(benchmark.metrics, _text(log), log=str(log))
        if isinstance(read, Failure):
            read = replace(read, message=seen.plain(read.message)) if seen else read
            return FailedInvocation(
                key=start.key, started=started, seconds=seconds, failure=read, draw=start.draw
            )
        _drop_empty(log)
        return Measurement(
            key=start.key,
            started=started,
            seconds=seconds,
            values={**conditions.values(), **measured(ran), **read},
            methods=_methods(ran, conditions),
            flags=(*_flags(ran), *self._lookout.flags(conditions)),
            log=str(log) if log.exists() else "",
            draw=start.draw,
        )

    def _count(self, start: Start) -> Outcome:
        """Start once to count instructions. No other figure of such a start means anything.

        Nothing is drawn: what would make two counts of one binary differ stays the same.
        """
        start = replace(start, draw=replace(start.draw, seed=0, layout=start.ready.layout))
        log = self._log(start)
        started = now()
        counted = self._instructions.count(self._command(start.ready, log, KEPT))
        ran = counted.ran
        seconds = ran.tree_ended_at - ran.prepared_at
        benchmark = self._study.benchmarks[start.ready.cell.benchmark]
        result = _why_failed(ran, benchmark, log) or counted.instructions
        if result is None:
            why = f"{counted.method} counted no instruction of it"
            result = Failure(stage="metric", message=why, log=str(log))
        if isinstance(result, Failure):
            return FailedInvocation(
                key=start.key, started=started, seconds=seconds, failure=result, draw=start.draw
            )
        _drop_empty(log)
        return Measurement(
            key=start.key,
            started=started,
            seconds=seconds,
            values={"instructions": result},
            methods={"instructions": counted.method},
            flags=_flags(ran),
            log=str(log) if log.exists() else "",
            draw=start.draw,
        )

    def observe(self, ready: Ready, name: str, change: Callable[[Command], Command]) -> Observed:
        """Start something once otherwise than it is measured; nothing of it is kept but its log, by this name."""
        log = self._logs / "observed" / ready.runnable.key / f"{name}.out"
        log.parent.mkdir(parents=True, exist_ok=True)
        ran = self.starter.run(change(self._command(ready, log, INHERITED)))
        benchmark = self._study.benchmarks[ready.cell.benchmark]
        failure = _why_failed(ran, benchmark, log)
        read = {} if failure else read_metrics(benchmark.metrics, _text(log), log=str(log))
        values = read if isinstance(read, Failure) else {**measured(ran), **read}
        return Observed(ran=ran, result=failure or values)

    def _command(
        self, ready: Ready, log: Path, inherited: tuple[str, ...], *, seen: SeenAt | None = None
    ) -> Command:
        cell = ready.cell
        benchmark = self._study.benchmarks[cell.benchmark]
        values = {
            **(seen.placeholders if seen else self._builder.command_placeholders(ready.prepared)),
            "revision": cell.subject.revision.id,
            **{name: str(value) for name, value in cell.point.as_dict().items()},
        }
        environment = {name: os.environ[name] for name in inherited if name in os.environ}
        environment |= {name: fill(text, values) for name, text in run_environment(self._study, cell).items()}
        prefix = self._study.variants[cell.subject.variant].run.prefix
        return Command(
            arguments=(
                *(fill(word, values) for word in prefix),
                *_words(command_line(self._study, cell), benchmark, values),
            ),
            environment=environment,
            directory=str(self._clean_scratch()),
            stdin=fill(benchmark.stdin, values) if benchmark.stdin else None,
            stdout=str(log),
            stderr=str(log.with_suffix(".err")),
            output_cap_bytes=OUTPUT_CAP_BYTES,
            timeout_seconds=benchmark.timeout_seconds,
            memory_limit_bytes=benchmark.memory_limit_bytes,
            lock_counter="preload" if "locks" in benchmark.counters else "off",
        )

    def _clean_scratch(self) -> Path:
        """The directory that an invocation runs in: always the same path, always empty."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        empty_directory(self._scratch)
        return self._scratch

    def _log(self, start: Start) -> Path:
        log = self._logs / f"{log_name(start.key)}.out"
        log.parent.mkdir(parents=True, exist_ok=True)
        return log


def invocation_seed(study: Study, phase: Phase, ordinal: int) -> int:
    """Return the seed of the invocations of every subject at an ordinal, where none was drawn for them."""
    return seed_of("invocation", study.measure.seed, phase, ordinal)


def log_name(key: InvocationKey) -> str:
    """Name an invocation's logs below the directory of logs, but for what tells output and errors apart."""
    return f"runs/{key.runnable}/{key.machine[:8]}-{key.phase}-{key.ordinal}"


def _words(text: str, benchmark: Benchmark, values: Mapping[str, str]) -> tuple[str, ...]:
    if benchmark.shell:
        return ("/bin/sh", "-c", fill(text, values, shlex.quote))
    return tuple(fill(word, values) for word in split_command(text))


def _why_failed(ran: Ran, benchmark: Benchmark, log: Path) -> Failure | None:
    """Tell whether an invocation's end makes its figures unusable."""
    failure = _failure(ran.ended, benchmark, log) or _not_preloaded(log)
    return failure and replace(failure, message=with_refusals(failure.message, ran.refused))


def _failure(ended: Ended, benchmark: Benchmark, log: Path) -> Failure | None:
    told = _last_line(log)
    match ended:
        case Exited(code=0):
            return None
        case Exited(code=code):
            stage: Stage = "start" if _never_began(code, benchmark, told) else "crash"
            return Failure(stage=stage, message=f"exit code {code}{told}", log=str(log))
        case Signalled(signal=number):
            return Failure(stage="crash", message=f"killed by signal {number}{told}", log=str(log))
        case TimedOut():
            limit = duration(benchmark.timeout_seconds)
            return Failure(stage="timeout", message=f"did not end within {limit}", log=str(log))
        case OutOfMemory():
            most = benchmark.memory_limit_bytes
            wanted = (
                "memory than there is for it" if most is None else f"than its {quantity(float(most), 'B')}"
            )
            return Failure(stage="memory", message=f"wanted more {wanted}", log=str(log))
        case NotStarted():
            return Failure(stage="start", message=ended.message, log=str(log))
        case Cancelled():
            raise KeyboardInterrupt
        case _:
            assert_never(ended)


def _not_preloaded(log: Path) -> Failure | None:
    told = next((line for line in _text(log.with_suffix(".err")).splitlines() if NOT_PRELOADED in line), None)
    return Failure(stage="start", message=told.strip(), log=str(log)) if told else None


def _never_began(code: int, benchmark: Benchmark, told: str) -> bool:
    """Whether the shell or the dynamic linker gave up before the program itself ran: both have codes of their own."""
    return code in NOT_RUN and (benchmark.shell or any(words in told for words in NOT_LOADED))


def _methods(ran: Ran, conditions: Conditions) -> dict[str, str]:
    found = methods(ran)
    if conditions.foreign_cpus is not None and conditions.foreign_method is not None:
        found["foreign_cpu"] = conditions.foreign_method
    return found


def _flags(ran: Ran) -> tuple[str, ...]:
    """Words that limit what the values mean."""
    flags = []
    if ran.stdout_truncated or ran.stderr_truncated:
        flags.append("output-cut")
    if ran.orphans.killed:
        flags.append("orphans-killed")
    return tuple(flags)


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _last_line(log: Path) -> str:
    """The last thing a failed program said, its error output first."""
    for file in (log.with_suffix(".err"), log):
        lines = [line.strip() for line in _text(file).splitlines() if line.strip()]
        if lines:
            return f": {lines[-1]}"
    return ""


def _drop_empty(log: Path) -> None:
    for file in (log, log.with_suffix(".err")):
        if file.exists() and file.stat().st_size == 0:
            file.unlink()
