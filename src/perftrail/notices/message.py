"""What is told: once in words, once as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.trail import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message; `id` is the same each time that it is sent, so that a receiver can tell a second one."""

    id: str
    subject: str
    text: str
    data: Mapping[str, Json]

    def body(self) -> bytes:
        """Give all of it as JSON."""
        told = {"id": self.id, "subject": self.subject, "text": self.text, **self.data}
        return json.dumps(told, sort_keys=True).encode()
