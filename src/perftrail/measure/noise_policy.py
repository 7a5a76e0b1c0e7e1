"""Apply the study's noise policy: wait or refuse before an invocation, flag the sample after it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from perftrail.errors import MachineBusy
from perftrail.measure.events import now
from perftrail.model.measurement import Conditions, flags
from perftrail.model.wording import number, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.measurement import BusyProcess, Quiet
    from perftrail.model.process import Ran
    from perftrail.ports import Watcher

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Other processes use this number of CPUs; perftrail waits up to this time for a quiet machine."""

    cpus: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """A process that ran, when it started, and what else ran on the machine: noise flags and metrics.

    `methods` names how metrics were measured, where several methods exist.
    """

    ran: Ran
    started: str = ""
    flags: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)


class NoiseObserver:
    """Observes the machine `before` and `after` each invocation.

    `on_wait` receives noise that perftrail waits out. It is called again only after an invocation without a
    wait.
    """

    def __init__(
        self,
        watcher: Watcher,
        quiet: Quiet,
        *,
        threshold: float,
        sleep: Callable[[float], None] = time.sleep,
        on_wait: Callable[[Noise], None] = lambda _: None,
    ) -> None:
        self._watcher = watcher
        self._quiet = quiet
        self._threshold = threshold
        self._sleep = sleep
        self._on_wait = on_wait
        self._notified = False

    def observe(self, run: Callable[[], Ran]) -> ObservedRun:
        """Run a process once, between `before` and `after`."""
        self.before()
        started = now()
        ran = run()
        conditions = self.after(ran)
        method = None if conditions.foreign_cpus is None else conditions.foreign_method
        return ObservedRun(
            ran=ran,
            started=started,
            flags=flags(conditions, self._threshold),
            values=conditions.values(),
            methods={} if method is None else {"foreign_cpu": method},
        )

    def before(self) -> None:
        """Wait until the machine is quiet, as long as the study allows; then observe it before the invocation.

        Raises `MachineBusy` where the study refuses to measure in noise.
        """
        match self._quiet.action:
            case "flag":
                pass
            case "wait":
                self._wait()
            case "refuse":
                self._refuse()
            case _:
                assert_never(self._quiet.action)
        self._watcher.begin()

    def after(self, ran: Ran) -> Conditions:
        """Observe the machine after an invocation, and return what else ran during it."""
        tree = ran.tree_cpu.seconds if ran.tree_cpu is not None else 0.0
        return self._watcher.end(max(ran.cpu_seconds, tree))

    def _wait(self) -> None:
        left = self._quiet.seconds
        waited = False
        while (left := left - POLL_SECONDS) >= 0.0:
            recent = self._watcher.recent()
            if recent is not None and recent <= self._threshold:
                break
            if recent is not None:
                waited = True
                self._notify(recent)
            self._sleep(POLL_SECONDS)
        self._notified = waited

    def _notify(self, cpus: float) -> None:
        if not self._notified:
            self._on_wait(Noise(cpus=cpus, seconds=self._quiet.seconds))
            self._notified = True

    def _refuse(self) -> None:
        while (recent := self._watcher.recent()) is None:
            self._sleep(POLL_SECONDS)
        if recent > self._threshold:
            raise MachineBusy(refusal(recent, self._threshold, self._watcher.busiest()))


def refusal(recent: float, threshold: float, busiest: Sequence[BusyProcess]) -> str:
    """Return the message of a refusal: the reason, the busiest processes, and the remedy."""
    lines = [
        f"machine — other processes use {number(recent)} CPUs, and the study refuses to measure above {threshold:g} "
        '(measure.quiet = "refuse")',
        *(f"  {each.cpus:.2f} CPUs  process {each.pid} {quoted(each.name)}" for each in busiest),
        'stop them and start again, or wait for a quiet machine: quiet = "wait 60s"; earlier samples remain stored',
    ]
    return "\n".join(lines)
