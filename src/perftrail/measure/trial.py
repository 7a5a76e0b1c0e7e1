"""Run one trial of `perftrail measure`: its environment, hooks, process and metrics.

`Trier` starts an entry once. `Measure` repeats starts until the trial has enough samples.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from perftrail.errors import NoAnswer
from perftrail.measure.invoker import measured, methods
from perftrail.measure.noise import NoiseObserver
from perftrail.measure.sandboxes import remove_leftovers, surrounded
from perftrail.model.measurement import Quiet, circumstances, seed_of
from perftrail.model.process import (
    Cancelled,
    Command,
    Exited,
    NotStarted,
    OutOfMemory,
    Ran,
    Signalled,
    TimedOut,
)
from perftrail.model.quantity import duration, quantity
from perftrail.model.study import MeasurePolicy, with_refusals
from perftrail.model.trial import TrialSample
from perftrail.model.wording import quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine.load import Watch
from perftrail.stats.trial import TrialSchedule, findings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from perftrail.model.process import Ended
    from perftrail.model.trial import Entry, Trial
    from perftrail.ports import Starter
    from perftrail.stats.trial import Findings, NextRun, Outlook


_HIDDEN = "; the sandbox hides home directories, /run and /tmp: --readable PATH makes a path visible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A process that ran, with the noise flags and machine metrics observed meanwhile."""

    ran: Ran
    flags: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


Clock = Callable[[], float]
"""A monotonic clock, in seconds."""

Notice = Callable[[Callable[[], Ran]], Noticed]
"""Runs a process once, and returns what else ran on the machine; the hook of the noise observer."""


def notice_nothing(run: Callable[[], Ran]) -> Noticed:
    """Observe nothing."""
    return Noticed(ran=run())


class CommandFailed(NoAnswer):
    """A command of a trial failed, or one of its hooks."""


class Trier:
    """Starts the entries of a trial, with the hooks of each."""

    def __init__(
        self,
        trial: Trial,
        starter: Starter,
        *,
        notice: Notice = notice_nothing,
        clock: Clock = time.monotonic,
    ) -> None:
        self._trial = trial
        self._starter = starter
        self._notice = notice
        self._clock = clock
        self._set_up: list[Entry] = []

    def start(self, start: NextRun) -> TrialSample:
        """Start an entry once. Raises `CommandFailed` when the command or its prepare hook fails.

        A tolerant trial accepts any exit code, but not a timeout, a memory limit, or a program that never
        ran.
        """
        began = self._clock()
        entry = self._entry(start.entry)
        self._once(entry)
        self._run_hook(entry.prepare, f"--prepare of {quoted(entry.name)}")
        command = self._command(entry.arguments, unit=start.unit)
        noticed = self._notice(lambda: self._starter.run(command))
        ran = noticed.ran
        self._run_hook(entry.conclude, f"--conclude of {quoted(entry.name)}")
        failure = with_refusals(self._failure(ran.ended, command.arguments[0]), ran.refused)
        if failure and not (self._trial.surroundings.tolerant and isinstance(ran.ended, Exited | Signalled)):
            raise CommandFailed(self._refusal(entry, failure, ran.ended))
        return TrialSample(
            entry=start.entry,
            unit=start.unit,
            values={**measured(ran), **noticed.values},
            seconds=self._clock() - began,
            exit_code=ran.ended.code if isinstance(ran.ended, Exited) else None,
            methods=methods(ran),
            flags=(*_flags(ran, failed=bool(failure)), *noticed.flags),
        )

    def clean_up(self) -> None:
        """Run the cleanup of every entry that was set up; raises `CommandFailed` after all have run."""
        done, self._set_up = self._set_up, []
        failures = []
        for entry in done:
            try:
                self._run_hook(entry.cleanup, f"--cleanup of {quoted(entry.name)}")
            except CommandFailed as failure:
                failures.append(str(failure))
        if failures:
            raise CommandFailed("\n".join(failures))

    def _entry(self, number: int) -> Entry:
        shell = self._trial.shell
        return shell if number == len(self._trial.entries) and shell else self._trial.entries[number]

    def _once(self, entry: Entry) -> None:
        """Run an entry's setup before its first start."""
        if not any(entry is known for known in self._set_up):
            self._set_up.append(entry)
            self._run_hook(entry.setup, f"--setup of {quoted(entry.name)}")

    def _run_hook(self, arguments: tuple[str, ...], named: str) -> None:
        """Run a hook, which is not measured."""
        if not arguments:
            return
        surroundings = self._trial.surroundings
        ran = self._starter.run(
            Command(
                arguments=arguments,
                environment=surroundings.environment,
                directory=surroundings.directory,
                tree_memory="off",
            )
        )
        failure = with_refusals(self._failure(ran.ended, arguments[0]), ran.refused)
        if failure:
            raise CommandFailed(f"{named}: {failure}")

    def _command(self, arguments: tuple[str, ...], *, unit: int) -> Command:
        around = self._trial.surroundings
        environment = dict(around.environment)
        if around.padding_bytes:
            # The same for all starts of a unit: its effect on both sides of a pair cancels.
            seed = seed_of("unit", self._trial.seed, unit)
            drawn = circumstances(seed, padding_bytes=around.padding_bytes).environment
            environment = {**drawn, **environment}
        return Command(
            arguments=arguments,
            environment=environment,
            directory=around.directory,
            stdin=around.stdin,
            stdout=around.output,
            stderr=around.output,
            timeout_seconds=around.timeout_seconds,
            memory_limit_bytes=around.memory_limit_bytes,
            cpus=around.cpus,
        )

    def _failure(self, ended: Ended, program: str) -> str:
        """Return why a start failed; empty if it did not."""
        around = self._trial.surroundings
        match ended:
            case Exited(code=0):
                return ""
            case Exited(code=code):
                return f"exit code {code}"
            case Signalled(signal=number):
                return f"killed by signal {number}"
            case TimedOut():
                return f"timed out after {duration(around.timeout_seconds or 0.0)} and was killed"
            case OutOfMemory():
                limit = around.memory_limit_bytes
                allowed = "available" if limit is None else f"its {quantity(float(limit), 'B')}"
                return f"needed more memory than {allowed} and was killed"
            case NotStarted():
                what = quoted(program) if ended.stage == "exec" else ended.stage
                return f"cannot be started: {what}: {os.strerror(ended.errno)}"
            case Cancelled():
                raise KeyboardInterrupt
            case _:
                assert_never(ended)

    def _refusal(self, entry: Entry, failure: str, ended: Ended) -> str:
        """Return the message for a failed command, with the remedy."""
        said = f"{quoted(entry.name)}: {failure}"
        if isinstance(ended, NotStarted) and " " in entry.arguments[0]:
            return f"{said}; after -- every word is an argument: omit the -- to split one text into words"
        if isinstance(ended, NotStarted):
            return said if self._trial.surroundings.sandbox is None else f"{said}{_HIDDEN}"
        shown = (
            "" if self._trial.surroundings.output else "; its output was discarded; --output inherit shows it"
        )
        if isinstance(ended, Exited | Signalled):
            return f"{said}; -i measures it anyway{shown}"
        return f"{said}{shown}"


def _flags(ran: Ran, *, failed: bool) -> tuple[str, ...]:
    """Return flags that limit what the values mean."""
    flags = []
    if failed:
        flags.append("failed")
    if ran.orphans.killed:
        flags.append("orphans-killed")
    return tuple(flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An event: a start ended, with its result and the remaining number of starts."""

    taken: TrialSample
    outlook: Outlook


class Measure:
    """Measures a trial. Call `findings` at any time, also after an interruption."""

    def __init__(
        self,
        trial: Trial,
        starter: Starter,
        *,
        notice: Notice = notice_nothing,
        clock: Clock = time.monotonic,
    ) -> None:
        self.trial = trial
        self._trier = Trier(trial, starter, notice=notice, clock=clock)
        self._course = TrialSchedule(trial)

    def events(self) -> Generator[Tried, None, Findings]:
        """Measure, yield an event for each start, and return the findings.

        Raises `CommandFailed` when a command fails. Cleanup always runs for entries that were set up.
        """
        try:
            while (start := self._course.ask()) is not None:
                taken = self._trier.start(start)
                self._course.tell(taken)
                yield Tried(taken=taken, outlook=self._course.outlook())
        finally:
            self._trier.clean_up()
        return self.findings()

    def findings(self) -> Findings:
        """Return the findings so far."""
        return findings(self._course, self.trial)


@contextmanager
def open_measure(trial: Trial) -> Iterator[Measure]:
    """Yield the measurement of a trial, with a launcher and a noise observer that close on exit.

    Raises `SandboxError` when the trial needs a sandbox and none is available.
    """
    remove_leftovers()
    with ExitStack() as stack:
        started = stack.enter_context(surrounded(trial, stack.enter_context(Launcher())))
        watch = stack.enter_context(Watch(helpers=started.servers))
        lookout = NoiseObserver(watch, Quiet(), threshold=MeasurePolicy().quiet_threshold)
        yield Measure(started.trial, started.starter, notice=_noticing(lookout))


def _noticing(lookout: NoiseObserver) -> Notice:
    def notice(run: Callable[[], Ran]) -> Noticed:
        lookout.before()
        ran = run()
        conditions = lookout.after(ran)
        return Noticed(ran=ran, flags=lookout.flags(conditions), values=conditions.values())

    return notice
