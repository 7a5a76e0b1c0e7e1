"""What happens to a study right now, as plain values: whoever shows it decides only how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.quantity import counted, duration

if TYPE_CHECKING:
    from perftrail.model.search_record import Json, Mark
    from perftrail.report.page import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """A start that ended: what it was of, what came of it, whether it failed, and when it ended: ISO 8601, or empty."""

    what: str
    key: str
    figure: str
    flags: tuple[str, ...]
    failed: bool
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the whole plan is: starts, and the seconds that are left at least and at most.

    `seconds` is `None` as long as nothing tells the pace. `partly`: what runs takes only a part of the plan.
    """

    done: int
    left_least: int
    left_most: int
    builds: int
    seconds: tuple[float, float] | None
    partly: bool = False

    @property
    def share(self) -> float:
        """How much of what is to be done at least is done."""
        whole = self.done + self.left_least
        return self.done / whole if whole else 1.0

    @property
    def words(self) -> str:
        """What is left, in words that claim no more than is known."""
        if not self.left_most and not self.builds:
            return "nothing is left to be measured"
        of = " of the whole plan, of which this takes a part" if self.partly else ""
        least = "" if self.left_least == self.left_most else f"{self.left_least:,} to "
        starts = f"{least}{counted(self.left_most, 'start')}" if self.left_most else ""
        builds = counted(self.builds, "build") if self.builds else ""
        left = f"left{of}: {' and '.join(each for each in (starts, builds) if each)}"
        if self.seconds is None:
            return f"{left}; how long that takes is not known yet"
        spans = dict.fromkeys(duration(each) for each in self.seconds)
        return f"{left}, {' to '.join(spans)} at the pace of the last minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """A search that has not ended: what it asked, its last step and its belief."""

    key: str
    metric: str
    steps: int
    words: str
    believed: str
    section: Section | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Who works on a study, what was done last, how far it is. `writer` is empty when nobody does.

    `taken` is when the snapshot was that pages are made of meanwhile.
    """

    mark: Mark
    taken: str
    writer: str
    since: str
    latest: tuple[Latest, ...]
    waiting: str
    progress: Progress | None
    searching: Searching | None

    def as_json(self) -> dict[str, Json]:
        """Give it as the API does."""
        return {
            "running": self.writer or None,
            "since": self.since or None,
            "invocations": self.mark.invocations,
            "latest": [
                {"of": each.what, "runnable": each.key, "gave": each.figure, "failed": each.failed}
                for each in self.latest
            ],
            "progress": None
            if self.progress is None
            else {
                "done": self.progress.done,
                "left_least": self.progress.left_least,
                "left_most": self.progress.left_most,
                "builds": self.progress.builds,
                "seconds_least": None if self.progress.seconds is None else self.progress.seconds[0],
                "seconds_most": None if self.progress.seconds is None else self.progress.seconds[1],
            },
            "search": None
            if self.searching is None
            else {
                "metric": self.searching.metric,
                "steps": self.searching.steps,
                "last": self.searching.words,
                "believed": self.searching.believed,
            },
        }
