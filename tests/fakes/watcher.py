"""A watcher with conditions that a test chooses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from perftrail.model.measurement import BusyProcess, Conditions

QUIET = Conditions(foreign_cpus=0.0, window_seconds=1.0)
NOISY = Conditions(foreign_cpus=0.9, window_seconds=1.0)


@dataclass
class FakeWatcher:
    """`during` has the conditions of each invocation; `recently` the results of `recent`, the last one repeated."""

    during: deque[Conditions] = field(default_factory=deque)
    recently: deque[float | None] = field(default_factory=lambda: deque([0.0]))
    calls: list[str] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    worst: tuple[BusyProcess, ...] = ()

    @classmethod
    def with_conditions(cls, *during: Conditions) -> FakeWatcher:
        """Make one whose invocations have these conditions, in order."""
        return cls(during=deque(during))

    @classmethod
    def with_recent(
        cls, recently: Iterable[float | None], *, worst: tuple[BusyProcess, ...] = ()
    ) -> FakeWatcher:
        """Make one that reports this load for the last half seconds, in order."""
        return cls(recently=deque(recently), worst=worst)

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self, own_cpu_seconds: float) -> Conditions:
        self.calls.append("end")
        self.cpu_seconds.append(own_cpu_seconds)
        return self.during.popleft() if self.during else QUIET

    def recent(self) -> float | None:
        self.calls.append("recent")
        return self.recently.popleft() if len(self.recently) > 1 else self.recently[0]

    def busiest(self) -> tuple[BusyProcess, ...]:
        return self.worst
