"""Says in words what was removed to make room on the disk, and when there is too little of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.builder.eviction import Disk
from perftrail.model.quantity import counted, quantity

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.builder.users import Users


class Room:
    """The room that a study allows its builds; without a budget there is always enough."""

    def __init__(self, builds: Path, users: Users, *, budget_bytes: float | None) -> None:
        self._disk = Disk(builds, users, budget_bytes=budget_bytes) if budget_bytes else None
        self._told_over = False

    @property
    def bounded(self) -> bool:
        """Whether anything may have to go."""
        return self._disk is not None

    def make(self) -> list[str]:
        """Remove what goes beyond the budget; give what there is to say of it."""
        shrunk = self._disk.shrink() if self._disk is not None else None
        if shrunk is None:
            return []
        news = []
        if shrunk.removed:
            gone = quantity(shrunk.removed_bytes, "B")
            news.append(f"{counted(shrunk.removed, 'build')} removed to make room on the disk ({gone})")
        if shrunk.over and not self._told_over:
            self._told_over = True
            needed, allowed = quantity(shrunk.needed_bytes, "B"), quantity(shrunk.budget_bytes, "B")
            news.append(
                f"the builds in use need {needed}, more than build.disk leaves them ({allowed}): they stay"
            )
        return news
