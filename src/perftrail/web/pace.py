"""How often somebody may ask: a bucket for each, which fills again as time passes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MOST_KNOWN = 10_000


@dataclass(slots=True)
class Pace:
    """So many requests at once at most, and so many a second after that."""

    burst: float
    each_second: float
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def allows(self, who: str) -> bool:
        """Take one of somebody's requests; tell whether they had one left."""
        at = time.monotonic()
        left, before = self._buckets.get(who, (self.burst, at))
        left = min(self.burst, left + (at - before) * self.each_second)
        allowed = left >= 1.0
        if len(self._buckets) >= MOST_KNOWN and who not in self._buckets:
            self._forget(at)
        self._buckets[who] = (left - 1.0 if allowed else left, at)
        return allowed

    def _forget(self, at: float) -> None:
        """Forget whose bucket is full again; all, where that are not enough."""
        full = self.burst / self.each_second
        self._buckets = {who: each for who, each in self._buckets.items() if at - each[1] < full}
        if len(self._buckets) >= MOST_KNOWN:
            self._buckets.clear()
