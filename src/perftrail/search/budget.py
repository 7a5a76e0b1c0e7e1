"""The budget of a search, and why it allows nothing more; the costs of a build and a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """A first guess of the seconds of a build and a sample; the search replaces it by measured values.

    Only the ratio of the two affects the next request: expensive builds make the search take more samples of
    existing builds.
    """

    build: float = 10.0
    sample: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("build", self.build), ("sample", self.sample)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(
                    f"costs.{name} = {value!r}: must be a finite number of seconds, zero or more"
                )


USUAL_SECONDS = 3600.0
USUAL_BUILDS = 24
"""The limit of time if the user sets none, and the number of builds whose time it allows at least: nearly all searches
need less. A search of half of a million revisions needs 19 builds without noise."""

SHARE_BEFORE_SEARCH = 0.1
"""Share of a budget of time for what only guides the search: profiles, and counts of instructions."""

TIME_SPENT = "the time budget is spent"
BUILDS_SPENT = "the budget of builds is spent"
INVOCATIONS_SPENT = "the budget of invocations is spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of the whole search; `None` is no limit.

    A limit of `seconds` allows at least the time of `builds_in_time` builds.
    """

    invocations: int | None = None
    builds: int | None = None
    seconds: float | None = None
    builds_in_time: int = 0

    def __post_init__(self) -> None:
        for name, value in (
            ("invocations", self.invocations),
            ("builds", self.builds),
            ("seconds", self.seconds),
        ):
            if value is not None and not value >= 0:
                raise ValueError(f"budget.{name} = {value!r}: must be zero or more, or None for no limit")

    def refusal(
        self, *, builds: int, invocations: int, seconds: float, fresh: int = 0, more: int = 1
    ) -> str | None:
        """Return why the budget does not allow `more` invocations and `fresh` builds now; `None` if it does.

        `builds`, `invocations` and `seconds` are already spent.
        """
        if self.seconds is not None and seconds >= self.seconds:
            return TIME_SPENT
        if fresh and self.builds is not None and builds + fresh > self.builds:
            return BUILDS_SPENT
        if self.invocations is not None and invocations + more > self.invocations:
            return INVOCATIONS_SPENT
        return None

    def with_time(self, seconds: float | None) -> Budget:
        """Return the budget with a limit of time; with the usual one if it is `None`."""
        if seconds is not None:
            return replace(self, seconds=seconds)
        return replace(self, seconds=USUAL_SECONDS, builds_in_time=USUAL_BUILDS)

    @property
    def has_usual_limits(self) -> bool:
        """Whether the user has set no limit."""
        return (
            self.invocations is None and self.builds is None and bool(self.builds_in_time or not self.seconds)
        )

    @property
    def seconds_before_search(self) -> float | None:
        """The seconds that profiles and counts before a search may take; `None` is no limit."""
        return None if self.seconds is None else SHARE_BEFORE_SEARCH * self.seconds

    def without(self, *, builds: int, invocations: int, seconds: float = 0.0) -> Budget:
        """Return the budget left after others have spent these builds, invocations and seconds, at least zero."""
        return replace(
            self,
            builds=None if self.builds is None else max(0, self.builds - builds),
            invocations=None if self.invocations is None else max(0, self.invocations - invocations),
            seconds=None if self.seconds is None else max(0.0, self.seconds - seconds),
        )
