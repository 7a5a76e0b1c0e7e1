"""The verdict of each comparison, stored immediately, and its counts against the truth."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from scipy.stats import binomtest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Truth = Literal["layout", "slower"]

HEAD = (
    "project", "method", "false", "of", "rate, 95 % interval",
    "found", "wrong way", "of", "rate, 95 % interval", "runs", "layouts", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The verdict of one method on one pair, with its cost: `runs` of each program, `layouts` and `seconds`."""

    project: str
    number: int
    kind: str
    truth: Truth
    method: str
    verdict: str
    runs: int
    layouts: int
    seconds: float

    @property
    def differs(self) -> bool:
        """Whether the verdict is that the programs differ."""
        return self.verdict in ("slower", "faster")


class Ledger:
    """The entries of a campaign, in a file of JSON lines."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.entries = [Entry(**json.loads(line)) for line in lines]

    def has(self, project: str, number: int, truth: Truth, method: str) -> bool:
        """Whether there is a verdict of the method on this pair."""
        wanted = (project, number, truth, method)
        return any((each.project, each.number, each.truth, each.method) == wanted for each in self.entries)

    def add(self, entry: Entry) -> None:
        """Add an entry; it is written to the file first."""
        with self._file.open("a") as stream:
            stream.write(json.dumps(asdict(entry)) + "\n")
        self.entries.append(entry)


def rows(entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Count the verdicts of every method in each project and in all: the lines of the table below `HEAD`."""
    projects = list(dict.fromkeys(each.project for each in entries))
    for method in dict.fromkeys(each.method for each in entries):
        own = [each for each in entries if each.method == method]
        for project in projects:
            if of_project := [each for each in own if each.project == project]:
                yield _row(project, method, of_project)
        if len(projects) > 1:
            yield _row("all", method, own)


def _row(project: str, method: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    layout = [each for each in entries if each.truth == "layout"]
    slower = [each for each in entries if each.truth == "slower"]
    false = sum(each.differs for each in layout)
    found = sum(each.verdict == "slower" for each in slower)
    return (
        project,
        method,
        str(false),
        str(len(layout)),
        rate(false, len(layout)),
        str(found),
        str(sum(each.verdict == "faster" for each in slower)),
        str(len(slower)),
        rate(found, len(slower)),
        f"{sum(each.runs for each in entries) / len(entries):.0f}",
        f"{sum(each.layouts for each in entries) / len(entries):.0f}",
        f"{sum(each.seconds for each in entries) / len(entries):.1f}",
    )


def rate(hits: int, of: int) -> str:
    """Return a share with its 95 % interval by Wilson; a dash without counts."""
    if not of:
        return "–"
    interval = binomtest(hits, of).proportion_ci(method="wilson")
    return f"{hits / of:.1%} [{interval.low:.1%}, {interval.high:.1%}]"
