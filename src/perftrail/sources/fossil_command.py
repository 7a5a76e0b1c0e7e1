"""The Fossil command line, kept away from the user's settings and asked in SQL that only reads."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.client import LONG_SECONDS, Client, client_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.ports import Starter
    from perftrail.sources.client import Answer

_USER = "perftrail"
"""Who owns our clones: Fossil makes none without a user's name."""

_BEGIN = ".bail on\n.headers off\n.mode list\n"
_END = "the end"
"""Printed last: Fossil says nothing in its exit code of a statement that failed."""

_MOST_AT_ONCE = 2000
"""So many ids fit into one statement: SQLite takes at most a million characters."""

Row = tuple[str, ...]
"""What one row of an answer holds, all as text; what is not there is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fossil:
    """Runs Fossil with no settings but its own, never through a shell and never in a check-out."""

    client: Client
    program: str

    def rows(self, repository: Path, sql: str) -> list[Row]:
        """Read a repository: every row of the answer is one ``json_array(…)``. Raises `SourceError`.

        The file is opened for reading only, but Fossil itself looks into it first: give it a copy of ours.
        """
        answer = self.client.ask(
            [self.program, "sql", "--readonly", "-R", str(repository)],
            directory=repository.parent,
            stdin=f"{_BEGIN}{sql.rstrip(';')};\nSELECT json_array('{_END}');\n".encode(),
            timeout_seconds=LONG_SECONDS,
        )
        found = list(_parsed(answer))
        if found[-1:] != [(_END,)]:
            raise SourceError(f"{repository}: fossil cannot read it: {answer.why}")
        return found[:-1]

    def rows_about(self, repository: Path, names: Sequence[str], sql: str) -> list[Row]:
        """Read what concerns many names; in the statement ``{names}`` is their list in JSON, as text."""
        found: list[Row] = []
        for start in range(0, len(names), _MOST_AT_ONCE):
            told = literal(json.dumps(names[start : start + _MOST_AT_ONCE], ensure_ascii=False))
            found.extend(self.rows(repository, sql.replace("{names}", told)))
        return found


def literal(text: str) -> str:
    """Write a text as SQL so that nothing in it can be taken for SQL, or for a command of the reader.

    >>> literal("o'")
    "CAST(x'6f27' AS TEXT)"
    """
    return f"CAST(x'{text.encode('utf-8', errors='surrogateescape').hex()}' AS TEXT)"


def reading_fossil(starter: Starter, *, settings: Path) -> Fossil:
    """Give a Fossil for reading: what it finds in the directory `settings` is all that it knows.

    Its first start there writes a file, over which several first starts would fall.
    """
    return _fossil(starter, {"HOME": str(settings), "FOSSIL_HOME": str(settings)})


def moving_fossil(starter: Starter, *, settings: Path) -> Fossil:
    """Give a Fossil for clones and pulls: its settings are ours, the user's keys for ssh can be found."""
    return _fossil(starter, {"FOSSIL_HOME": str(settings)})


def _fossil(starter: Starter, own: Mapping[str, str]) -> Fossil:
    program = shutil.which("fossil")
    if program is None:
        raise SourceError("fossil is not installed: install it, or choose another kind of source")
    environment = {
        **client_environment(without=("FOSSIL_", "XDG_CONFIG_HOME")),
        "USER": _USER,
        "TZ": "UTC",
        "SSH_ASKPASS": "/bin/false",
        **own,
    }
    return Fossil(client=Client(starter=starter, environment=environment), program=program)


def _parsed(answer: Answer) -> Iterator[Row]:
    for line in answer.output.decode("utf-8", errors="replace").split("\n"):
        try:
            values = json.loads(line) if line else None
        except ValueError:
            return
        if isinstance(values, list):
            yield tuple("" if value is None else str(value) for value in values)
