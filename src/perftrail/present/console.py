"""Print events for people on stderr: a line for what matters, and a status line on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO, assert_never

from rich.console import Console
from rich.text import Text

from perftrail.formats.printed import LAST_OF
from perftrail.measure.events import (
    BuilderMessage,
    BuildFinished,
    BuildStarted,
    GivenUp,
    HistoryRead,
    Invoked,
    LinkFailed,
    Outdated,
    Progress,
    Relinked,
    RelinkedWithoutEffect,
    SameArtefact,
    Skipped,
    Stepped,
)
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.model.wording import counted, duration, escaped, listed, number
from perftrail.present.failures import left_out_words, telling
from perftrail.present.terminal import settings
from perftrail.present.validity import outdated_words
from perftrail.store import Back, Holder, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import TypeVar

    from rich.status import Status

    from perftrail.errors import MachineLeft
    from perftrail.measure.events import Event
    from perftrail.measure.noise import Noise
    from perftrail.model.build import Built
    from perftrail.model.subject import Subject

    Result = TypeVar("Result")

WARNING = "yellow"
"""Style of warnings, which --quiet also prints."""

FEW = 3
"""Number of similar lines in a row that are printed; further ones are counted."""

UNBOUNDED = 1000
"""Width of a file or a pipe in columns: nothing is cut."""


class Watcher:
    """Prints a workflow's events as they come, and returns its result.

    Everything goes to stderr, so that stdout has only data. Only a terminal has a status line.
    """

    def __init__(self) -> None:
        self._console = errors()
        self._status: Status | None = None
        self._left = ""
        self._told: set[str] = set()
        self._row = ("", 0)

    def __enter__(self) -> Watcher:
        if sys.stderr.isatty() and not settings.quiet:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_row()
        if self._status is not None:
            self._status.stop()

    def follow(self, workflow: Generator[Event, None, Result]) -> Result:
        """Print every event of a workflow; return its result."""
        while True:
            try:
                event = next(workflow)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            self._render(event)

    def waiting(self, what: Holder | ServerUnreachable | Back) -> None:
        """Print who has locked the results, or that a server does not answer, or answers again."""
        match what:
            case Holder():
                self._say(
                    f"{what} is writing to these results; waiting until it ends (Ctrl-C stops waiting)",
                    style=WARNING,
                )
            case ServerUnreachable():
                self._say(
                    f"{what.where} does not answer ({escaped(what.why)}); waiting up to {duration(what.seconds)} "
                    "for it (Ctrl-C stops; all samples are stored)",
                    style=WARNING,
                )
            case Back():
                self._say(f"{what.where} answers again, after {duration(what.seconds)}", style="dim")
            case _:
                assert_never(what)

    def left(self, left: MachineLeft) -> None:
        """Print that the measuring machine has left."""
        self._say(f"{left}. Continuing with the other machines", style=WARNING)

    def noisy(self, noise: Noise) -> None:
        """Print that perftrail waits for a quiet machine."""
        self._say(
            f"other processes use {number(noise.cpus)} CPUs; waiting up to {duration(noise.seconds)} "
            "before each invocation until the machine is quiet",
            style=WARNING,
        )

    def _render(self, event: Event) -> None:
        match event:
            case HistoryRead() | Skipped() | Outdated():
                self._known(event)
            case BuildStarted():
                self._now(f"building {event.subject}")
            case BuildFinished():
                self._build_finished(event)
            case BuilderMessage():
                self._say(event.text, style=WARNING)
            case LinkFailed() | Relinked() | RelinkedWithoutEffect():
                self._linked(event)
            case SameArtefact():
                names = ", ".join(str(subject) for subject in event.subjects[:4])
                more = len(event.subjects) - 4
                text = (
                    f"{names}{f' and {more} more' if more > 0 else ''} have the same build for {event.benchmark}:"
                    " measured once"
                )
                self._say_of_row(text, kind="groups with one build each, measured once", style="dim")
            case Invoked():
                self._invoked(event)
            case GivenUp():
                many = counted(len(event.cells), "larger point")
                self._say(f"{many} skipped, because {event.because} reached its limit", style=WARNING)
            case Progress():
                self._progress(event)
            case Stepped():
                self._say(f"{event.number:>3}  {event.words}", style="dim" if event.resumed else "")
            case _:
                assert_never(event)

    def _known(self, event: HistoryRead | Skipped | Outdated) -> None:
        """Print what is known before the first build."""
        match event:
            case HistoryRead():
                first, last, count = event.revisions[0], event.revisions[-1], len(event.revisions)
                text = (
                    f"{count} revisions, {first.short} to {last.short}"
                    if count > 1
                    else f"1 revision, {first.short}"
                )
                self._say(text, style="dim")
                if event.remark:
                    self._say(escaped(event.remark, longest=None), style=WARNING)
            case Skipped():
                self._say(f"skipped {left_out_words(event.left_out)}", style="dim")
            case Outdated():
                for words in outdated_words(event.differences, event.every):
                    reused = "perftrail reuses these samples only if the new build is identical"
                    self._say(f"{words}; {reused}", style=WARNING)

    def _build_finished(self, event: BuildFinished) -> None:
        if isinstance(event.outcome, Failure):
            failed = "cannot be checked out" if event.outcome.stage == "checkout" else "does not build"
            # Of revisions that fail alike the first tells why; the others would drown it.
            why = telling(event.outcome)
            shown = "likewise" if why in self._told else why
            self._told.add(why)
            said = f"{shown} (log: {event.outcome.log})"
            if event.known:
                text = f"{event.subject} {failed}, as in an earlier run: {said}"
                self._say_of_row(text, kind="failed builds of earlier runs", style=WARNING)
            else:
                self._say(f"{event.subject} {failed}: {said}", style=WARNING)
        elif not event.known:
            self._now(f"built {event.subject} in {duration(event.outcome.seconds)}")

    def _linked(self, event: LinkFailed | Relinked | RelinkedWithoutEffect) -> None:
        match event:
            case LinkFailed():
                text = f"{event.subject}: {event.benchmark} does not build: {telling(event.failure)}"
                self._say(f"{text} (log: {event.failure.log})", style=WARNING)
            case RelinkedWithoutEffect():
                layouts = listed(map(str, event.layouts), "and")
                text = f"{event.subject}: {event.benchmark} is identical in layouts {layouts}"
                advice = "check that its lines link the program and pass {layout} to the linker"
                self._say(f"{text}: relink has no effect; {advice}", style=WARNING)
            case Relinked():
                for layout, outcome in event.outcomes.items():
                    self._relinked(event.subject, layout, outcome)

    def _relinked(self, subject: Subject, layout: int, outcome: Built | Failure) -> None:
        if isinstance(outcome, Failure):
            text = f"{subject} cannot be relinked with layout {layout}: {telling(outcome)}"
            self._say(f"{text} (log: {outcome.log})", style=WARNING)
        elif not outcome.reused:
            self._now(f"relinked {subject} with layout {layout} in {duration(outcome.seconds)}")

    def _invoked(self, event: Invoked) -> None:
        if isinstance(event.outcome, FailedInvocation):
            failure = event.outcome.failure
            self._say(
                f"{event.cell}: {failure.stage}: {telling(failure)} (log: {failure.log})",
                style=WARNING,
            )
            return
        for metric, method in event.outcome.methods.items():
            known = f"{event.cell.benchmark}.{metric}"
            if method.startswith(LAST_OF) and known not in self._told:
                self._told.add(known)
                self._say(
                    f'{known} uses the {method}; choose with pick = "last", "sum" or another', style=WARNING
                )
        self._now(f"measuring {event.cell}{self._left}")

    def _progress(self, event: Progress) -> None:
        least, most = duration(event.seconds_least), duration(event.seconds_most)
        span = least if event.left_least == event.left_most else f"{least} to {most}"
        more = " or more" if event.unseen else ""
        self._left = f" · {event.done} invocations done, {span}{more} left" if event.left_most else ""

    def _now(self, text: str) -> None:
        if settings.verbose:
            self._say(text, style="dim")
        elif self._status is not None:
            self._status.update(Text(text))

    def _say(self, text: str, *, style: str = "") -> None:
        self._end_row()
        self._print(text, style=style)

    def _print(self, text: str, *, style: str) -> None:
        if style == WARNING or not settings.quiet:
            self._console.print(Text(text, style=style))

    def _say_of_row(self, text: str, *, kind: str, style: str) -> None:
        """Print a line of which many may follow, for example after a restart; after a few, count them."""
        if self._row[0] != kind:
            self._end_row()
        count = self._row[1] + 1
        self._row = (kind, count)
        if count <= FEW:
            self._print(text, style=style)

    def _end_row(self) -> None:
        (kind, count), self._row = self._row, ("", 0)
        if count > FEW:
            self._print(f"and {count - FEW} more {kind}", style="dim")


def output() -> Console:
    """Return the console of answers: stdout. If it is not a terminal, it is plain and has no width limit."""
    width = None if sys.stdout.isatty() else UNBOUNDED
    return _console(sys.stdout, width=width)


def errors() -> Console:
    """Return the console of progress and warnings: stderr."""
    return _console(sys.stderr)


def _console(file: TextIO, *, width: int | None = None) -> Console:
    return Console(
        file=file,
        highlight=False,
        soft_wrap=True,
        width=width,
        force_terminal=settings.terminal,
        no_color=True if settings.color == "never" else None,
    )
