"""Measure the commands of `perftrail measure`, without a study and without a store.

`trial_entries` turns the command line into entries: it fills parameters, splits words and assigns names.
`EntryRunner` starts an entry once, with its environment and hooks. `TrialRunner` repeats invocations until the trial
has enough samples.
"""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, UsageError
from perftrail.measure.noise_policy import NoiseObserver, ObservedRun
from perftrail.measure.process_metrics import process_methods, process_metrics
from perftrail.measure.sandboxes import open_trial_starter, remove_leftovers
from perftrail.model.benchmark import Point
from perftrail.model.expression import bare_value
from perftrail.model.measurement import Quiet, drawn_environment, seed_of
from perftrail.model.placeholders import split_command
from perftrail.model.process import (
    Cancelled,
    Command,
    Exited,
    NotStarted,
    Ran,
    Signalled,
    describe_end,
)
from perftrail.model.sandbox import with_refusals
from perftrail.model.study import MeasurePolicy
from perftrail.model.trial import Entry, Group, TrialSample
from perftrail.model.wording import listed, quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine.load import Watch
from perftrail.stats.trial import TrialSchedule, trial_result

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from perftrail.model.process import Ended
    from perftrail.model.trial import Trial
    from perftrail.ports import Starter
    from perftrail.stats.trial import NextRun, TrialProgress, TrialResult


SHELL = "/bin/sh"
MOST_ENTRIES = 1000

_SHELL_ONLY = re.compile(r"[|&;<>`\n]|\$[A-Za-z_({]")

# Text that a shell does not change; double quotes only where they contain nothing that a shell expands.
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|\$(?![A-Za-z_({])|[^"\\$`])*"|\\.""", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The command line of `measure`.

    `commands` are one text each; `words` is one command, already split into words. `parameters` holds each
    parameter's values as written. `shell` is the words that start the shell, empty for none. Each hook has
    one value for all commands, or one for each, the reference included.
    """

    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    reference: str | None = None
    reference_name: str | None = None
    names: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, ...]]
    shell: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEntries:
    """The entries in order, the groups that are compared, and the empty shell command if a shell is used."""

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    shell: Entry | None


def trial_entries(line: CommandLine) -> TrialEntries:
    """Return the entries of a command line; raises `UsageError` with every mistake in it.

    Commands change faster than parameters, in hyperfine's order. Each of several commands is compared with
    the first, or with the reference, at the same values. With one command, each value is compared with the
    first value.
    """
    written = _written(line)
    points = _points(line, written)
    reference = line.reference
    fixed = reference is not None and points != [{}] and not _uses(reference, line.parameters)
    per_point = written[1:] if fixed else written
    cells = [(number, values) for values in points for number in range(len(per_point))]
    if fixed:
        cells = [(0, {}), *((number + 1, values) for number, values in cells)]
    if len(cells) > MOST_ENTRIES:
        raise UsageError(f"{len(cells)} commands to measure; at most {MOST_ENTRIES}")
    names = _names(line, [number for number, _ in cells], len(written))
    entries = tuple(
        _entry(line, written[number], values, command=number, command_count=len(written), name=name)
        for (number, values), name in zip(cells, names, strict=True)
    )
    return TrialEntries(
        entries=entries,
        groups=_groups(len(entries), 1 if fixed else len(points), together=len(written) == 1 or fixed),
        shell=Entry(
            name=_empty_shell(line.shell),
            command=_empty_shell(line.shell),
            arguments=(*line.shell, "-c", ""),
        )
        if line.shell
        else None,
    )


def scan(name: str, first: str, last: str, *, step: str | None) -> tuple[str, ...]:
    """Return the values between two numbers, as written decimals; raises `UsageError`.

    >>> scan("delay", "0.3", "0.7", step="0.2")
    ('0.3', '0.5', '0.7')
    """
    try:
        low, high, by = Decimal(first), Decimal(last), Decimal(step or "1")
    except InvalidOperation as error:
        raise UsageError(f"-P {name} {first} {last}: needs numbers, as in -P {name} 1 8 -D 1") from error
    if not (low.is_finite() and high.is_finite() and by.is_finite()) or low > high or by <= 0:
        raise UsageError(
            f"-P {name} {first} {last}: goes from a smaller to a larger number, in steps above 0"
        )
    count = int((high - low) / by) + 1
    if count > MOST_ENTRIES:
        raise UsageError(f"-P {name} {first} {last}: has {count} values; at most {MOST_ENTRIES}")
    return tuple(str(low + by * number) for number in range(count))


def values_of(text: str) -> tuple[str, ...]:
    r"""Split the values of a list at its commas; ``\,`` is a comma in a value.

    >>> values_of(r"gcc,clang -O1\,2")
    ('gcc', 'clang -O1,2')
    """
    return tuple(value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text))


def needs_shell(text: str) -> str | None:
    """Return the first character outside quotes that only a shell understands, or `None`.

    >>> needs_shell("sleep 1 && echo"), needs_shell("awk '{ print $a }' b"), needs_shell("echo $HOME")
    ('&', None, '$H')
    """
    found = _SHELL_ONLY.search(_QUOTED.sub("", text))
    return found.group() if found else None


def _written(line: CommandLine) -> list[str]:
    """Return every command as one text, the reference first."""
    if line.words and line.commands:
        raise UsageError("write commands before the --, or the words of one command after it; not both")
    commands = [shlex.join(line.words)] if line.words else list(line.commands)
    if not commands:
        raise UsageError(
            "no command to measure; use perftrail measure 'COMMAND' ['COMMAND' …], or perftrail measure -- WORD …"
        )
    return commands if line.reference is None else [line.reference, *commands]


def _points(line: CommandLine, written: Sequence[str]) -> list[dict[str, str]]:
    """Return every combination of parameter values, the first parameter changing fastest."""
    hooks = (*line.setup, *line.prepare, *line.conclude, *line.cleanup, *line.names)
    for name, values in line.parameters.items():
        if not _NAME.fullmatch(name):
            raise UsageError(f"parameter {quoted(name)}: use letters, digits, _ and -, a letter first")
        if not any(_uses(text, (name,)) for text in (*written, *hooks)):
            raise UsageError(f"parameter {name}: no command contains {{{name}}}")
        if len(set(values)) < len(values):
            raise UsageError(f"parameter {name}: duplicate value in {listed(values, 'and')}")
    combinations = itertools.product(*reversed(list(line.parameters.values())))
    return [dict(zip(line.parameters, reversed(values), strict=True)) for values in combinations]


def _groups(count: int, points: int, *, together: bool) -> tuple[Group, ...]:
    if together or points == 1:
        return (Group(reference=0, others=tuple(range(1, count))),)
    size = count // points
    return tuple(
        Group(reference=first, others=tuple(range(first + 1, first + size)))
        for first in range(0, count, size)
    )


def _entry(
    line: CommandLine,
    text: str,
    values: Mapping[str, str],
    *,
    command: int,
    command_count: int,
    name: str | None,
) -> Entry:
    shown = _fill(text, values, shlex.quote)
    if line.shell:
        arguments: tuple[str, ...] = (*line.shell, "-c", shown)
    elif line.words and command == command_count - 1:
        arguments = tuple(_fill(word, values) for word in line.words)
    else:
        arguments = _words(text, values, named="")

    def hook(option: str, texts: tuple[str, ...]) -> tuple[str, ...]:
        return _hook(line, option, texts, values=values, command=command, command_count=command_count)

    return Entry(
        name=shown if name is None else _fill(name, values),
        command=shown,
        arguments=arguments,
        written=text,
        point=Point(tuple((axis, bare_value(value)) for axis, value in values.items())),
        setup=hook("--setup", line.setup),
        prepare=hook("--prepare", line.prepare),
        conclude=hook("--conclude", line.conclude),
        cleanup=hook("--cleanup", line.cleanup),
    )


def _words(text: str, values: Mapping[str, str], *, named: str) -> tuple[str, ...]:
    """Split a command into words and fill in parameters. A value stays one word, and no shell reads it."""
    sign = needs_shell(text)
    if sign:
        raise UsageError(
            f"{named}{quoted(text)}: {quoted(sign)} needs a shell, and none is used: add --shell (the"
            " shell's time is then measured and shown), or put literal text in single quotes"
        )
    try:
        return tuple(_fill(word, values) for word in split_command(text))
    except ValueError as error:
        raise UsageError(f"{named}{quoted(text)}: {error}") from error


def _hook(
    line: CommandLine,
    option: str,
    texts: Sequence[str],
    *,
    values: Mapping[str, str],
    command: int,
    command_count: int,
) -> tuple[str, ...]:
    """Return the words of a hook, which runs before or after a command.

    Hooks are not measured, so a text that needs a shell gets one, unless it contains parameters.
    """
    if not texts:
        return ()
    if len(texts) not in (1, command_count):
        raise UsageError(
            f"{option}: use it once, or once for each of the {command_count} commands; found {len(texts)}"
        )
    text = texts[0] if len(texts) == 1 else texts[command]
    if not text.strip():
        return ()
    if line.shell:
        return (*line.shell, "-c", _fill(text, values, shlex.quote))
    if needs_shell(text) and not _uses(text, values):
        return (SHELL, "-c", text)
    return _words(text, values, named=f"{option} ")


def _names(line: CommandLine, numbers: Sequence[int], commands: int) -> list[str | None]:
    """Return the name of each entry, or `None` without a name. `numbers` are the entries' command numbers."""
    first = 0 if line.reference is None else 1
    own = [number for number in numbers if number >= first]
    names: Sequence[str | None] = line.names
    if not names:
        names = [None] * len(own)
    elif len(names) in (1, commands - first) and len(names) != len(own):
        texts = line.names if len(names) > 1 else line.names * (commands - first)
        names = [_with_point(texts[number - first], line.parameters) for number in own]
    elif len(names) != len(own):
        raise UsageError(f"-n: {len(names)} names for {len(own)} commands; use one for each, or one for all")
    left = iter(names)
    return [next(left) if number >= first else line.reference_name for number in numbers]


def _with_point(name: str, parameters: Mapping[str, tuple[str, ...]]) -> str:
    """Add the parameter values to a name that several entries share, unless it contains them."""
    open_ones = [axis for axis in parameters if not _uses(name, (axis,))]
    return " ".join([name, *(f"{axis}={{{axis}}}" for axis in open_ones)])


def _fill(text: str, values: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    """Replace names in braces by their values; other braces stay as they are."""
    if not values:
        return text
    return _braces(values).sub(lambda found: quote(values[found.group(1)]), text)


def _uses(text: str, names: Mapping[str, object] | Sequence[str]) -> bool:
    return bool(names) and _braces(names).search(text) is not None


def _braces(names: Mapping[str, object] | Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\{(" + "|".join(re.escape(name) for name in names) + r")\}")


def _empty_shell(shell: tuple[str, ...]) -> str:
    return shlex.join((*shell, "-c", "")) if shell else ""


_HIDDEN = "; the sandbox hides home directories, /run and /tmp: --readable PATH makes a path visible"


Clock = Callable[[], float]
"""A monotonic clock, in seconds."""

Observe = Callable[[Callable[[], Ran]], ObservedRun]
"""Runs a process once, and returns what else ran on the machine; see `NoiseObserver.observe`."""


def observe_nothing(run: Callable[[], Ran]) -> ObservedRun:
    """Run a process without observing the machine."""
    return ObservedRun(ran=run())


class CommandFailed(NoAnswer):
    """A command of a trial failed, or one of its hooks."""


class EntryRunner:
    """Starts the entries of a trial, with the hooks of each."""

    def __init__(
        self,
        trial: Trial,
        starter: Starter,
        *,
        observe: Observe = observe_nothing,
        clock: Clock = time.monotonic,
    ) -> None:
        self._trial = trial
        self._starter = starter
        self._observe = observe
        self._clock = clock
        self._prepared: list[Entry] = []

    def start(self, run: NextRun) -> TrialSample:
        """Start an entry once. Raises `CommandFailed` when the command or its prepare hook fails.

        A tolerant trial accepts any exit code, but not a timeout, a memory limit, or a program that never
        ran.
        """
        began = self._clock()
        entry = self._entry(run.entry)
        self._set_up(entry)
        self._run_hook(entry.prepare, f"--prepare of {quoted(entry.name)}")
        command = self._command(entry.arguments, unit=run.unit)
        observed = self._observe(lambda: self._starter.run(command))
        ran = observed.ran
        self._run_hook(entry.conclude, f"--conclude of {quoted(entry.name)}")
        failure = with_refusals(self._failure(ran.ended), ran.refused)
        if failure and not (self._trial.run_settings.tolerant and isinstance(ran.ended, Exited | Signalled)):
            raise CommandFailed(self._message(entry, failure, ran.ended))
        return TrialSample(
            entry=run.entry,
            unit=run.unit,
            values={**process_metrics(ran), **observed.values},
            seconds=self._clock() - began,
            exit_code=ran.ended.code if isinstance(ran.ended, Exited) else None,
            methods=process_methods(ran),
            flags=(*_flags(ran, failed=bool(failure)), *observed.flags),
        )

    def clean_up(self) -> None:
        """Run the cleanup of every entry that was set up; raises `CommandFailed` after all have run."""
        prepared, self._prepared = self._prepared, []
        failures = []
        for entry in prepared:
            try:
                self._run_hook(entry.cleanup, f"--cleanup of {quoted(entry.name)}")
            except CommandFailed as failure:
                failures.append(str(failure))
        if failures:
            raise CommandFailed("\n".join(failures))

    def _entry(self, number: int) -> Entry:
        shell = self._trial.shell
        return shell if number == len(self._trial.entries) and shell else self._trial.entries[number]

    def _set_up(self, entry: Entry) -> None:
        """Run an entry's setup before its first invocation."""
        if not any(entry is known for known in self._prepared):
            self._prepared.append(entry)
            self._run_hook(entry.setup, f"--setup of {quoted(entry.name)}")

    def _run_hook(self, arguments: tuple[str, ...], named: str) -> None:
        """Run a hook, which is not measured."""
        if not arguments:
            return
        run_settings = self._trial.run_settings
        ran = self._starter.run(
            Command(
                arguments=arguments,
                environment=run_settings.environment,
                directory=run_settings.directory,
                tree_memory="off",
            )
        )
        failure = with_refusals(self._failure(ran.ended), ran.refused)
        if failure:
            raise CommandFailed(f"{named}: {failure}")

    def _command(self, arguments: tuple[str, ...], *, unit: int) -> Command:
        run_settings = self._trial.run_settings
        environment = dict(run_settings.environment)
        if run_settings.padding_bytes:
            # The same for all starts of a unit: its effect on both sides of a pair cancels.
            seed = seed_of("unit", self._trial.seed, unit)
            drawn = drawn_environment(seed, padding_bytes=run_settings.padding_bytes).environment
            environment = {**drawn, **environment}
        return Command(
            arguments=arguments,
            environment=environment,
            directory=run_settings.directory,
            stdin=run_settings.stdin,
            stdout=run_settings.output,
            stderr=run_settings.output,
            timeout_seconds=run_settings.timeout_seconds,
            memory_limit_bytes=run_settings.memory_limit_bytes,
            cpus=run_settings.cpus,
        )

    def _failure(self, ended: Ended) -> str:
        """Return why a start failed; empty if it did not."""
        if isinstance(ended, Cancelled):
            raise KeyboardInterrupt
        run_settings = self._trial.run_settings
        return describe_end(
            ended,
            timeout_seconds=run_settings.timeout_seconds,
            memory_limit_bytes=run_settings.memory_limit_bytes,
        )

    def _message(self, entry: Entry, failure: str, ended: Ended) -> str:
        """Return the message for a failed command, with the remedy."""
        what = f"{quoted(entry.name)}: {failure}"
        if isinstance(ended, NotStarted) and " " in entry.arguments[0]:
            return f"{what}; after -- every word is an argument: omit the -- to split one text into words"
        if isinstance(ended, NotStarted):
            return what if self._trial.run_settings.sandbox is None else f"{what}{_HIDDEN}"
        shown = (
            "" if self._trial.run_settings.output else "; its output was discarded; --output inherit shows it"
        )
        if isinstance(ended, Exited | Signalled):
            return f"{what}; -i measures it anyway{shown}"
        return f"{what}{shown}"


def _flags(ran: Ran, *, failed: bool) -> tuple[str, ...]:
    """Return flags that limit what the values mean."""
    flags = []
    if failed:
        flags.append("failed")
    if ran.orphans.killed:
        flags.append("orphans-killed")
    return tuple(flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationEnded:
    """An event: an invocation ended, with its sample and the remaining number of invocations."""

    sample: TrialSample
    progress: TrialProgress


class TrialRunner:
    """Measures a trial. Call `result` at any time, also after an interruption."""

    def __init__(
        self,
        trial: Trial,
        starter: Starter,
        *,
        observe: Observe = observe_nothing,
        clock: Clock = time.monotonic,
    ) -> None:
        self.trial = trial
        self._runner = EntryRunner(trial, starter, observe=observe, clock=clock)
        self._schedule = TrialSchedule(trial)

    def events(self) -> Generator[InvocationEnded, None, TrialResult]:
        """Measure, yield an event for each invocation, and return the results.

        Raises `CommandFailed` when a command fails. Cleanup always runs for entries that were set up.
        """
        try:
            while (run := self._schedule.ask()) is not None:
                sample = self._runner.start(run)
                self._schedule.tell(sample)
                yield InvocationEnded(sample=sample, progress=self._schedule.progress())
        finally:
            self._runner.clean_up()
        return self.result()

    def result(self) -> TrialResult:
        """Return the results so far."""
        return trial_result(self._schedule, self.trial)


@contextmanager
def open_trial(trial: Trial) -> Iterator[TrialRunner]:
    """Yield the measurement of a trial, with a launcher and a noise observer that close on exit.

    Raises `SandboxError` when the trial needs a sandbox and none is available.
    """
    remove_leftovers()
    with ExitStack() as stack:
        ready = stack.enter_context(open_trial_starter(trial, stack.enter_context(Launcher())))
        watch = stack.enter_context(Watch(own_processes=ready.servers))
        observer = NoiseObserver(watch, Quiet(), threshold=MeasurePolicy().quiet_threshold)
        yield TrialRunner(ready.trial, ready.starter, observe=observer.observe)
