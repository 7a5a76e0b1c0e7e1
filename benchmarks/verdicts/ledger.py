"""The verdicts of each trial, stored immediately."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool's verdicts of one comparison, by metric."""

    effect: float
    tool: str
    verdicts: dict[str, str]
    pairs: int
    seconds: float


class Ledger:
    """The entries of a campaign, in a file of JSON lines if one is named."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file and file.exists() else []
        self._entries = [Entry(**json.loads(line)) for line in lines]

    def of(self, effect: float, tool: str) -> list[Entry]:
        """The tool's entries at an effect, oldest first."""
        return [each for each in self._entries if (each.effect, each.tool) == (effect, tool)]

    def add(self, entry: Entry) -> None:
        """Add an entry; it is written to the file first."""
        if self._file:
            with self._file.open("a") as stream:
                stream.write(json.dumps(asdict(entry)) + "\n")
        self._entries.append(entry)
