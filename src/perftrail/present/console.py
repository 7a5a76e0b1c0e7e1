"""Print events for people on stderr: a line for each important event, and a status line on a terminal."""

from __future__ import annotations

import math
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, assert_never

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from perftrail.formats.printed import LAST_OF
from perftrail.measure.events import (
    BenchmarkBuildFailed,
    BudgetTooSmall,
    BuildCounted,
    BuilderMessage,
    BuildFinished,
    BuildStarted,
    Calibrated,
    Calibrating,
    Counting,
    GivenUp,
    HistoryRead,
    Invoked,
    Invoking,
    Outdated,
    OutputsRead,
    Profiling,
    Progress,
    Relinked,
    RelinkedWithoutEffect,
    SameArtefact,
    Skipped,
    Stepped,
    SuiteListed,
    SuiteListing,
    TooLongForBudget,
    WentFurtherBack,
)
from perftrail.model.build import Failure
from perftrail.model.measurement import NEW_METRIC, FailedInvocation
from perftrail.model.wording import change, counted, duration, escaped, listed, number
from perftrail.present.failures import excerpt_line, failure_words, skipped_words
from perftrail.present.outdated import outdated_words
from perftrail.present.output_settings import settings
from perftrail.present.shared_sentences import step_words
from perftrail.store import Holder, ServerBack, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import TypeVar

    from rich.status import Status

    from perftrail.errors import MachineLeft
    from perftrail.measure.events import Event
    from perftrail.measure.noise_policy import Noise
    from perftrail.model.build import Built
    from perftrail.model.subject import Subject
    from perftrail.opening import EngineMachines

    Result = TypeVar("Result")

WARNING = "yellow"
"""Style of warnings, which are printed also with --quiet."""

SAME_STEPS = "such step"
"""Kind of the lines of steps with equal words, see `Watcher._print_similar`."""

FORECAST = " left, to certify "
"""Part of the purpose of a round with a forecast."""

PAUSE = 15.0
"""Seconds without a line after which a file or a pipe gets a line of progress; a terminal has a status line instead."""

LONG = 10.0
"""Seconds after which a build, a listing or an invocation is reported while it runs."""

AGAIN = 30.0
"""Seconds between two such lines about the same build, listing or invocation."""

SMOOTHING = 60.0
"""Seconds in which an estimate of the time left approaches a new one, so that it does not jump up and down."""

SLOW = 1.0
"""Seconds after which a file or a pipe gets a line about a step that prints nothing itself."""

MOST_SIMILAR = 3
"""Number of similar lines in a row that are printed; further ones are counted."""

UNLIMITED_WIDTH = 1000
"""Width of a file or a pipe in columns: no line is cut."""


class Watcher:
    """Prints a workflow's events as they come, and returns its result.

    Everything goes to stderr, so that stdout has only data. Only a terminal has a status line; elsewhere, a line of
    progress is printed if there was no line for `PAUSE` seconds of the `clock`.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, slow: float = SLOW) -> None:
        self._console = errors()
        self._clock = clock
        self._slow = slow
        self._last_line_at = clock()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._step: Callable[[float], str] | None = None
        self._step_began = clock()
        self._is_reminded = False
        self._left: TimeLeft | None = None
        self._invocations = 0
        self._status: Status | None = None
        self._remaining = ""
        self._printed_before: set[str] = set()
        self._similar = ("", 0)
        self._last_step = ""
        self._stored_steps = 0
        self._new_steps = 0
        self._counted_steps = 0
        self._several = ""
        self._next_step = 1

    def __enter__(self) -> Watcher:
        if sys.stderr.isatty() and not settings.quiet:
            self._status = self._console.status("")
            self._status.start()
        reminders = threading.Thread(target=self._remind_until, args=(self._ended,), daemon=True)
        reminders.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._step = None
        self._end_similar()
        if self._counted_steps:
            steps = counted(self._counted_steps, "step")
            self._print_now(f"{steps}; perftrail show --search prints each", style="dim")
        self._end_stored("and {}" if self._new_steps else "{}, no new step")
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show what the block does: in a terminal's status line, elsewhere as a line if it takes `SLOW` seconds."""
        if self._status is not None:
            self._status.update(Text(what))
            yield
            return
        timer = threading.Timer(self._slow, self._print_now, (f"{what} …",), {"style": "dim"})
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def follow(self, workflow: Generator[Event, None, Result]) -> Result:
        """Print every event of a workflow; return its result."""
        while True:
            try:
                event = next(workflow)
            except StopIteration as stop:
                result: Result = stop.value
                self._step = None
                return result
            with self._lock:
                self._render(event)
                self._step = self._step_after(event)
                self._step_began, self._is_reminded = self._clock(), False

    def remind(self) -> None:
        """Show the step that runs now if it takes long: in a terminal's status line, elsewhere as a line."""
        with self._lock:
            now = self._clock()
            lasted, step = now - self._step_began, self._step
            if step is None or lasted < LONG:
                return
            if self._status is not None:
                self._status.update(Text(step(lasted)))
            elif now - self._last_line_at >= (AGAIN if self._is_reminded else PAUSE):
                self._is_reminded = True
                self._print_now(step(lasted), style="dim")

    def _remind_until(self, ended: threading.Event) -> None:
        while not ended.wait(self._slow or SLOW):
            self.remind()

    def _step_after(self, event: Event) -> Callable[[float], str] | None:
        """Return the words of what runs after an event, given its seconds so far; `None` for short work."""
        match event:
            case BuildStarted():
                what = f"building {event.subject}"
            case SuiteListing():
                what = f"listing the benchmarks of suite {event.suite} of {event.subject}"
            case Calibrating():
                return lambda lasted: _calibrating_words(event, lasted)
            case Invoking():
                what = f"measuring {event.cell}{self._remaining}"
            case Profiling():
                what = f"profiling {event.benchmark}"
            case Counting() | BuildCounted():
                what = "counting instructions of a build"
            case _:
                return None
        return lambda lasted: f"{self._of_several(what)}, {duration(lasted)} so far"

    def waiting(self, reason: Holder | ServerUnreachable | ServerBack) -> None:
        """Print which process has locked the results, or that a server does not answer, or answers again."""
        match reason:
            case Holder():
                self._print_now(
                    f"{reason} is writing to these results; waiting until it ends (Ctrl-C stops waiting)",
                    style=WARNING,
                )
            case ServerUnreachable():
                self._print_now(
                    f"{reason.where} does not answer ({escaped(reason.why)}); waiting up to {duration(reason.seconds)} "
                    "for it (Ctrl-C stops; all samples are stored)",
                    style=WARNING,
                )
            case ServerBack():
                self._print_now(
                    f"{reason.where} answers again, after {duration(reason.seconds)}", style="dim"
                )
            case _:
                assert_never(reason)

    def fleet(self, fleet: EngineMachines) -> None:
        """Print which machines build and measure."""
        where = f"machine {escaped(fleet.measuring)}" if fleet.measuring else "this machine"
        builds, machines = counted(fleet.builds, "parallel build"), counted(fleet.machines, "machine")
        self._print_now(f"{builds} on {machines}; {where} measures", style="dim")

    def machine_left(self, error: MachineLeft) -> None:
        """Print that a measuring machine has left the cluster."""
        self._print_now(f"{error}. Continuing with the other machines", style=WARNING)

    def noisy(self, noise: Noise) -> None:
        """Print that perftrail waits for a quiet machine."""
        self._print_now(
            f"other processes use {number(noise.cpus)} CPUs; waiting up to {duration(noise.seconds)} "
            "before each invocation until the machine is quiet",
            style=WARNING,
        )

    def _render(self, event: Event) -> None:
        match event:
            case HistoryRead() | WentFurtherBack() | Skipped() | Outdated():
                self._before_builds(event)
            case BuildStarted():
                self._show_progress(self._of_several(f"building {event.subject}"))
            case BuildFinished():
                self._build_finished(event)
            case BuilderMessage():
                self._print_now(event.text, style=WARNING)
            case BenchmarkBuildFailed() | Relinked() | RelinkedWithoutEffect():
                self._benchmark_build_or_relink(event)
            case SameArtefact():
                names = ", ".join(str(subject) for subject in event.subjects[:4])
                more = len(event.subjects) - 4
                text = (
                    f"{names}{f' and {more} more' if more > 0 else ''} have the same build for {event.benchmark}:"
                    " measured once"
                )
                self._print_similar(text, kind="group, with equal builds", style="dim")
            case OutputsRead():
                self._outputs_read(event)
            case SuiteListing() | SuiteListed() | Calibrating() | Calibrated():
                self._suite(event)
            case Profiling() | TooLongForBudget() | Counting() | BuildCounted():
                self._print_now(_words_before_search(event), style="dim")
            case Invoking():
                pass  # `remind` shows one that takes long
            case Invoked() | GivenUp() | BudgetTooSmall() | Progress() | Stepped():
                self._while_measuring(event)
            case _:
                assert_never(event)

    def _while_measuring(self, event: Invoked | GivenUp | BudgetTooSmall | Progress | Stepped) -> None:
        match event:
            case Invoked():
                self._invoked(event)
            case GivenUp():
                points = counted(len(event.cells), "larger point")
                self._print_now(f"{points} skipped, because {event.because} reached its limit", style=WARNING)
            case BudgetTooSmall():
                self._print_now(_budget_words(event), style=WARNING)
            case Progress():
                self._progress(event)
            case Stepped():
                self._stepped(event)

    def _stepped(self, event: Stepped) -> None:
        """Print a step; only count stored steps, and steps with equal words such as rounds of the same builds."""
        words = step_words(event.words, _purpose_words(event))
        if event.resumed and not settings.verbose:
            self._stored_steps += 1
            self._show_status(f"stored step {event.number}: {event.words}")
            return
        self._end_stored("continues after {}")
        self._new_steps += not event.resumed
        if event.metrics > 1 and not settings.verbose:
            self._counted_steps += 1
            decided = f"{event.decided} of {event.metrics} metrics decided"
            self._several = ", ".join(filter(None, (decided, _left_words(event))))
            self._show_progress(self._of_several(event.words, step=event.number))
            self._next_step = event.number + 1
            return
        if event.words == self._last_step and not settings.verbose:
            if self._due():
                self._print_now(f"{event.number:>3}  {words}")
                return
            self._similar = (SAME_STEPS, max(MOST_SIMILAR, self._similar[1]) + 1)
            self._show_status(f"step {event.number}: {words}")
            return
        self._last_step = event.words
        stored = "stored: " if event.resumed else ""
        self._print_now(f"{event.number:>3}  {stored}{words}", style="dim" if event.resumed else "")

    def _of_several(self, text: str, *, step: int | None = None) -> str:
        """Return progress of a search for several metrics in its one form; other progress as it is."""
        return f"step {step or self._next_step}: {text}; {self._several}" if self._several else text

    def _end_stored(self, text: str) -> None:
        """Print the number of stored steps; nothing without one."""
        count, self._stored_steps = self._stored_steps, 0
        if count:
            self._print_now(text.format(counted(count, "stored step")), style="dim")

    def _before_builds(self, event: HistoryRead | WentFurtherBack | Skipped | Outdated) -> None:
        """Print what is known before the first build."""
        match event:
            case HistoryRead():
                first, last, count = event.revisions[0], event.revisions[-1], len(event.revisions)
                counted_revisions = counted(count, "new revision" if event.are_new else "revision")
                text = f"{counted_revisions}, {first.short}{f' to {last.short}' if count > 1 else ''}"
                text += _time_limit(event)
                self._several = f"0 of {event.metrics} metrics decided" if event.metrics > 1 else ""
                self._print_now(text, style="dim")
                if event.remark:
                    self._print_now(escaped(event.remark, longest=None), style=WARNING)
            case WentFurtherBack():
                self._end_stored("{}, no new step")
                certain = "no certain change" if event.unclear else "no change"
                since = " ".join(part for part in (event.since.short, escaped(event.since.label)) if part)
                day = f" ({event.since.time[:10]})" if event.since.time else ""
                self._print_now(f"{certain} since {since}{day}; searching from further back", style="dim")
            case Skipped():
                self._print_now(f"skipped {skipped_words(event.skipped)}", style="dim")
            case Outdated():
                for difference, count in event.differences.items():
                    (words,) = outdated_words({difference: count}, event.measured_cells)
                    consequence = (
                        "perftrail reads new metrics from stored outputs, and measures again where they lack one"
                        if difference.why == NEW_METRIC
                        else "perftrail reuses these samples only if the new build is identical"
                    )
                    self._print_now(f"{words}; {consequence}", style=WARNING)

    def _build_finished(self, event: BuildFinished) -> None:
        if isinstance(event.outcome, Failure):
            failed = "cannot be checked out" if event.outcome.stage == "checkout" else "does not build"
            # Print an equal reason of several revisions once: repetitions would hide other lines.
            excerpt = excerpt_line(event.outcome)
            reason = "the same reason" if excerpt in self._printed_before else excerpt
            self._printed_before.add(excerpt)
            reason_and_log = f"{reason} (log: {event.outcome.log})"
            if event.known:
                earlier = "as in an earlier run (--retry-failed repeats it)"
                text = f"{event.subject} {failed}, {earlier}: {reason_and_log}"
                self._print_similar(text, kind="failed build, of earlier runs", style=WARNING)
            else:
                self._print_now(f"{event.subject} {failed}: {reason_and_log}", style=WARNING)
        elif not event.known:
            text = f"built {event.subject} in {duration(event.outcome.seconds)}"
            if event.outcome.seconds >= SLOW:
                self._print_now(text, style="dim")
            else:
                self._show_status(text)

    def _suite(self, event: SuiteListing | SuiteListed | Calibrating | Calibrated) -> None:
        where = f"suite {event.suite} of {event.subject}"
        match event:
            case SuiteListing():
                self._show_progress(f"{where}: listing its benchmarks")
            case Calibrating():
                count = counted(event.benchmarks, "benchmark")
                self._print_now(f"{where}: running {count} for a moment to choose iterations", style="dim")
            case Calibrated():
                count, time_taken = counted(event.benchmarks, "benchmark"), duration(event.seconds)
                self._print_now(f"{where}: iterations of {count} chosen in {time_taken}", style="dim")
                if event.failure is not None:
                    reason = f"{excerpt_line(event.failure)} (log: {event.failure.log})"
                    self._print_now(f"{where}: stopped choosing iterations: {reason}", style=WARNING)
            case SuiteListed():
                self._suite_listed(where, event)
            case _:
                assert_never(event)

    def _suite_listed(self, where: str, event: SuiteListed) -> None:
        if isinstance(event.result, Failure):
            reason = f"{excerpt_line(event.result)} (log: {event.result.log})"
            self._print_now(f"{where} cannot be listed: {reason}", style=WARNING)
        else:
            time_taken = f", listed in {duration(event.seconds)}" if event.seconds >= SLOW else ""
            self._print_now(f"{where}: {counted(event.result, 'benchmark')}{time_taken}", style="dim")
            for each in event.unlisted[:MOST_SIMILAR]:
                self._print_now(f"{where} lacks the benchmarks of {each}", style=WARNING)
            further = len(event.unlisted) - MOST_SIMILAR
            if further > 0:
                self._print_now(f"{where} lacks those of {counted(further, 'further file')}", style=WARNING)

    def _benchmark_build_or_relink(
        self, event: BenchmarkBuildFailed | Relinked | RelinkedWithoutEffect
    ) -> None:
        match event:
            case BenchmarkBuildFailed():
                text = f"{event.subject}: {event.benchmark} does not build: {excerpt_line(event.failure)}"
                self._print_now(f"{text} (log: {event.failure.log})", style=WARNING)
            case RelinkedWithoutEffect():
                layouts = listed(map(str, event.layouts), "and")
                text = f"{event.subject}: {event.benchmark} is identical in layouts {layouts}"
                advice = "check that its lines link the program and pass {layout} to the linker"
                self._print_now(f"{text}: relink has no effect; {advice}", style=WARNING)
            case Relinked():
                for layout, outcome in event.outcomes.items():
                    self._relinked(event.subject, layout, outcome)

    def _relinked(self, subject: Subject, layout: int, outcome: Built | Failure) -> None:
        if isinstance(outcome, Failure):
            text = f"{subject} cannot be relinked with layout {layout}: {excerpt_line(outcome)}"
            self._print_now(f"{text} (log: {outcome.log})", style=WARNING)
        elif not outcome.reused:
            self._show_status(f"relinked {subject} with layout {layout} in {duration(outcome.seconds)}")

    def _outputs_read(self, event: OutputsRead) -> None:
        """Print how many invocations a new metric needs again."""
        metrics = listed(event.metrics, "and")
        read, missing = counted(event.read, "invocation"), counted(event.missing, "invocation")
        where = f"{event.cell}: {metrics}"
        if not event.missing:
            text = f"{where} was read from the stored output of {read}"
            self._print_similar(text, kind="point, read from stored outputs", style="dim")
            return
        again = f"not in the stored output of {missing}: perftrail repeats {'it' if event.missing == 1 else 'them'}"
        also = f", and was read from that of {event.read}" if event.read else ""
        self._print_similar(f"{where} is {again}{also}", kind="point, to measure again", style=WARNING)

    def _invoked(self, event: Invoked) -> None:
        if isinstance(event.outcome, FailedInvocation):
            if event.outcome.failure.stage == "absent":
                text = f"{event.cell}: {event.outcome.failure.message}"
                self._print_similar(text, kind="absent benchmark", style="dim")
                return
            self._print_now(f"{event.cell}: {failure_words(event.outcome.failure)}", style=WARNING)
            return
        for metric, method in event.outcome.methods.items():
            name = f"{event.cell.benchmark}.{metric}"
            if method.startswith(LAST_OF) and name not in self._printed_before:
                self._printed_before.add(name)
                self._print_now(
                    f'{name} uses the {method}; choose with pick = "last", "sum" or another', style=WARNING
                )
        self._invocations += 1
        extent = self._remaining or f", {counted(self._invocations, 'invocation')} so far"
        self._show_progress(self._of_several(f"measuring {event.cell}{extent}"))

    def _progress(self, event: Progress) -> None:
        self._left = TimeLeft.after(self._left, event.seconds_least, event.seconds_most, now=self._clock())
        least, most = duration(self._left.least), duration(self._left.most)
        span = least if event.left_least == event.left_most else f"{least} to {most}"
        more = " or more" if event.unseen else ""
        self._remaining = f" · {event.done} invocations done, {span}{more} left" if event.left_most else ""
        if event.left_most and self._status is None and not settings.verbose:
            self._show_progress(f"{event.done} invocations done, {span}{more} left")

    def _show_status(self, text: str) -> None:
        if settings.verbose:
            self._print_now(text, style="dim")
        elif self._status is not None:
            self._status.update(Text(text))

    def _show_progress(self, text: str) -> None:
        """Show progress: in the status line of a terminal, elsewhere as a line, if there was none for a while."""
        if self._due():
            self._print_now(text, style="dim")
        else:
            self._show_status(text)

    def _due(self) -> bool:
        """Whether a file or a pipe needs a line of progress now."""
        waited = self._clock() - self._last_line_at
        return self._status is None and not settings.verbose and waited >= PAUSE

    def _print_now(self, text: str, *, style: str = "") -> None:
        self._end_similar()
        self._print(text, style=style)

    def _print(self, text: str, *, style: str) -> None:
        self._last_line_at = self._clock()
        if style == WARNING or not settings.quiet:
            self._console.print(Text(text, style=style))

    def _print_similar(self, text: str, *, kind: str, style: str) -> None:
        """Print one of several similar lines, for example after a restart; after a few, only count them.

        `kind` is the noun of the lines in the singular; words after a comma follow the noun.
        """
        if self._similar[0] != kind:
            self._end_similar()
        count = self._similar[1] + 1
        self._similar = (kind, count)
        if count <= MOST_SIMILAR:
            self._print(text, style=style)

    def _end_similar(self) -> None:
        (kind, count), self._similar = self._similar, ("", 0)
        if count > MOST_SIMILAR:
            noun, _, rest = kind.partition(", ")
            self._print(
                f"and {counted(count - MOST_SIMILAR, f'more {noun}')}{f' {rest}' if rest else ''}",
                style="dim",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """Smoothed estimate of the least and the most seconds left at a time of a clock."""

    least: float
    most: float
    at: float

    @classmethod
    def after(cls, earlier: TimeLeft | None, least: float, most: float, *, now: float) -> TimeLeft:
        """Return the estimate after an earlier one: it passes with the clock, and moves slowly towards the new values.

        >>> first = TimeLeft.after(None, 10.0, 100.0, now=0.0)
        >>> TimeLeft.after(first, 8.0, 98.0, now=2.0) == TimeLeft(least=8.0, most=98.0, at=2.0)
        True
        >>> round(TimeLeft.after(first, 40.0, 98.0, now=2.0).least, 1)
        9.0
        """
        if earlier is None:
            return cls(least=least, most=most, at=now)
        passed = now - earlier.at
        share = 1.0 - math.exp(-passed / SMOOTHING)
        before = [max(0.0, each - passed) for each in (earlier.least, earlier.most)]
        smooth = [old + share * (new - old) for old, new in zip(before, (least, most), strict=True)]
        return cls(least=min(smooth[0], most), most=smooth[1] if most else 0.0, at=now)


def _calibrating_words(event: Calibrating, lasted: float) -> str:
    finished = event.done()
    left = ""
    if finished:
        left = f", about {duration(lasted / finished * (event.benchmarks - finished))} left"
    where = f"suite {event.suite} of {event.subject}"
    return f"{where}: iterations of {finished} of {event.benchmarks} benchmarks chosen{left}"


def _left_words(event: Stepped) -> str:
    """Return the forecast of the time that a search still needs; empty without one."""
    if event.seconds_left is None:
        return ""
    least, most = (duration(seconds) for seconds in event.seconds_left)
    return f"{least if least == most else f'{least} to {most}'} left"


def _purpose_words(event: Stepped) -> str:
    """Return the purpose of a step with the time left, which the purpose of a round may contain."""
    if event.resumed or FORECAST in event.purpose or not event.seconds_left or not event.seconds_left[1]:
        return event.purpose
    return "; ".join(filter(None, (event.purpose, _left_words(event))))


def plain_table(columns: Sequence[str], *, right: Collection[str] = ()) -> Table:
    """Return an empty table without lines; columns in `right` have numbers."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=True, justify="right" if name in right else "left")
    return table


def output() -> Console:
    """Return the console of answers: stdout. If it is not a terminal, it is plain and has no width limit."""
    width = None if sys.stdout.isatty() else UNLIMITED_WIDTH
    return _console(sys.stdout, width=width)


def is_limited(console: Console) -> bool:
    """Whether lines of a console have a largest width, as on a terminal."""
    return console.width != UNLIMITED_WIDTH


def errors() -> Console:
    """Return the console of progress and warnings: stderr."""
    return _console(sys.stderr)


_HARMLESS = "\n\t\u00a0"
"""Harmless characters that Python does not count as printable."""


class SafeConsole(Console):
    """A console that escapes control characters in every printed text, whatever its origin.

    Names, units and messages of studies, programs and other tools are hostile: a terminal must not execute control
    characters in them.
    """

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        safe = (
            part
            if part.control or not part.text or part.text.replace("\n", "").isprintable()
            else Segment(escaped(part.text, longest=None, allowed=_HARMLESS), part.style)
            for part in buffer
        )
        return super()._render_buffer(safe)


def _console(file: TextIO, *, width: int | None = None) -> Console:
    return SafeConsole(
        file=file,
        highlight=False,
        soft_wrap=True,
        width=width,
        force_terminal=settings.terminal,
        no_color=True if settings.color == "never" else None,
    )


def _time_limit(event: HistoryRead) -> str:
    """Return the limit of a search's time; empty without one."""
    if event.most_seconds is None:
        return ""
    builds = (
        f", or the time of {event.builds_in_time} builds if that is longer" if event.builds_in_time else ""
    )
    return f"; at most {duration(event.most_seconds)}{builds} (--budget)"


def _budget_words(event: BudgetTooSmall) -> str:
    subject = "a verdict" if event.verdicts == 1 else f"each of {event.verdicts} verdicts"
    return (
        f"{subject} needs {counted(event.pairs, 'pair')}, which take about {duration(event.seconds)} here, more than "
        f"the budget of {duration(event.budget)}: use a larger --budget, or fewer metrics with --metric or --bench"
    )


def _words_before_search(event: Profiling | TooLongForBudget | Counting | BuildCounted) -> str:
    """Return how a search finds its prior."""
    match event:
        case Profiling():
            return (
                f"profile of {event.benchmark} at both ends ({event.profiler}), about {duration(event.seconds)}: "
                "functions whose cost moved guide the search"
            )
        case TooLongForBudget():
            forecast = f" would take about {duration(event.seconds)}," if event.seconds else " would take"
            return (
                f"skipped: {event.phase}{forecast} more than what is left of a tenth of the budget "
                f"({duration(event.limit)})"
            )
        case Counting():
            requested, instructions = (
                change(math.exp(each)) for each in (event.requested, event.instructions)
            )
            return (
                f"from the oldest to the newest build: {event.metric} {requested}, instructions {instructions}; "
                "perftrail searches by instructions "
                f"(about {duration(event.seconds)} without builds), and certifies by {event.metric}"
            )
        case BuildCounted():
            return f"instructions of {event.revision.short}, against the oldest build: {change(math.exp(event.change))}"
