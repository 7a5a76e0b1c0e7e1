"""What is told: once in words, once as data."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.search_record import Json


_CALLS = re.compile(r"[@<]")
"""What begins a call to somebody, a group or a link in the chats that take such posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message; `id` is the same each time that it is sent, so that a receiver can tell a second one."""

    id: str
    subject: str
    text: str
    data: Mapping[str, Json]

    def body(self) -> bytes:
        """Give all of it as JSON. What a chat would show calls nobody; in `data` everything is as it was."""
        words = {"subject": _quiet(line(self.subject)), "text": _quiet(lines(self.text))}
        return json.dumps({"id": self.id, **words, **self.data}, sort_keys=True).encode()


def line(text: str) -> str:
    """One line that prints, whatever others wrote into it."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def lines(text: str) -> str:
    """Lines that print, whatever others wrote into them."""
    return "".join(letter if letter == "\n" or letter.isprintable() else "?" for letter in text)


def _quiet(text: str) -> str:
    r"""Write text so that no chat reads a call in it.

    >>> ascii(_quiet("<!channel> @all"))
    "'<\\u200b!channel> @\\u200ball'"
    """
    return _CALLS.sub(lambda found: f"{found[0]}\u200b", text)
