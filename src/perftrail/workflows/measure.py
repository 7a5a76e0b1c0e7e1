"""`measure`: start what the course asks for, tell it what came of it, until it has enough."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import Quiet
from perftrail.model.study import MeasurePolicy
from perftrail.process.launcher import Launcher
from perftrail.process.machine.load import Watch
from perftrail.stats.trial import Course, findings
from perftrail.workflows.left_over import remove_left_over
from perftrail.workflows.quiet import Lookout
from perftrail.workflows.trial_sandbox import surrounded
from perftrail.workflows.trying import Noticed, Trier, notice_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from perftrail.model.process import Ran
    from perftrail.model.trial import Taken, Trial
    from perftrail.ports import Starter
    from perftrail.stats.trial import Findings, Outlook
    from perftrail.workflows.trying import Clock, Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A start ended; what it gave, and how much is left."""

    taken: Taken
    outlook: Outlook


class Measure:
    """Measures a trial. `findings` may be asked at any time, also after an interruption."""

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
        self._course = Course(trial)

    def events(self) -> Generator[Tried, None, Findings]:
        """Measure, telling of each start; give what was found.

        Raises `CommandFailed` when a command fails. However it ends, what was set up is cleaned up.
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
        """What was found so far."""
        return findings(self._course, self.trial)


@contextmanager
def open_measure(trial: Trial) -> Iterator[Measure]:
    """Give a trial a launcher and somebody who watches the machine; both are gone afterwards.

    Raises `SandboxError` when it asks for a sandbox and none can be had.
    """
    remove_left_over()
    with ExitStack() as stack:
        started = stack.enter_context(surrounded(trial, stack.enter_context(Launcher())))
        watch = stack.enter_context(Watch(helpers=started.servers))
        lookout = Lookout(watch, Quiet(), threshold=MeasurePolicy().quiet_threshold)
        yield Measure(started.trial, started.starter, notice=_noticing(lookout))


def _noticing(lookout: Lookout) -> Notice:
    def notice(run: Callable[[], Ran]) -> Noticed:
        lookout.before()
        ran = run()
        conditions = lookout.after(ran)
        return Noticed(ran=ran, flags=lookout.flags(conditions), values=conditions.values())

    return notice
