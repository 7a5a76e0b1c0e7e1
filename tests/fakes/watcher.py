"""A watcher that sees what a test wants it to see."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from perftrail.model.measurement import BusyProcess, Conditions

QUIET = Conditions(foreign_cpus=0.0, window_seconds=1.0)
NOISY = Conditions(foreign_cpus=0.9, window_seconds=1.0)


@dataclass
class FakeWatcher:
    """`during` holds each invocation's conditions; `recently` what `recent` answers, the last for ever."""

    during: deque[Conditions] = field(default_factory=deque)
    recently: deque[float | None] = field(default_factory=lambda: deque([0.0]))
    looks: list[str] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    worst: tuple[BusyProcess, ...] = ()

    @classmethod
    def seeing(cls, *during: Conditions) -> FakeWatcher:
        """Make one that sees these conditions, one invocation after the other."""
        return cls(during=deque(during))

    @classmethod
    def recalling(
        cls, recently: Iterable[float | None], *, worst: tuple[BusyProcess, ...] = ()
    ) -> FakeWatcher:
        """Make one whose last half seconds were these."""
        return cls(recently=deque(recently), worst=worst)

    def begin(self) -> None:
        self.looks.append("begin")

    def end(self, own_cpu_seconds: float) -> Conditions:
        self.looks.append("end")
        self.told.append(own_cpu_seconds)
        return self.during.popleft() if self.during else QUIET

    def recent(self) -> float | None:
        self.looks.append("recent")
        return self.recently.popleft() if len(self.recently) > 1 else self.recently[0]

    def busiest(self) -> tuple[BusyProcess, ...]:
        return self.worst
