"""`measure`: start what the course asks for, tell it what came of it, until it has enough."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.course import Course
from perftrail.analysis.findings import findings
from perftrail.workflows.trying import Trier, notice_nothing

if TYPE_CHECKING:
    from collections.abc import Generator

    from perftrail.analysis.course import Outlook
    from perftrail.analysis.findings import Findings
    from perftrail.model.trial import Taken, Trial
    from perftrail.ports import Starter
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
        self._trial = trial
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
        return findings(self._course, self._trial)
