"""A server that went away and came back, as people are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_SECONDS = 600.0
"""How long a run waits for its store's server: a restart takes seconds, an upgrade of the machine minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A server does not answer, and is waited for so many seconds."""

    where: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """A server answers again, after so many seconds."""

    where: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a server is waited for that went away, and who is told."""

    tell: Callable[[Away | Back], None]
    seconds: float = LIMIT_SECONDS
