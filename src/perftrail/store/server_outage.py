"""Events of a server that stops answering and answers again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_SECONDS = 600.0
"""Time that a run waits for its store's server: a restart takes seconds, an upgrade of the machine minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUnreachable:
    """A server does not answer; perftrail waits up to this number of seconds."""

    where: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """A server answers again, after this number of seconds."""

    where: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a server that does not answer, and the callback."""

    tell: Callable[[ServerUnreachable | Back], None]
    seconds: float = LIMIT_SECONDS
