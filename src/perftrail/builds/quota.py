"""Keep builds within a disk quota: remove the least valuable ones first, and never one in use.

A build first loses its marker, is then renamed, and only then deleted. So a kill at any moment leaves a complete
build, or one that counts as never built.
"""

from __future__ import annotations

import math
import re
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.builds.artefact import read_finished
from perftrail.builds.compiler_caches import CACHE_SHARE
from perftrail.builds.in_use import BuildsInUse
from perftrail.builds.incremental import read_state
from perftrail.file_tree import (
    entries_below,
    exclusive_lock,
    remove_tree,
    sync_directory,
    try_exclusive_lock,
)
from perftrail.model.notation import format_size
from perftrail.model.wording import counted, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


HALF_LIFE_SECONDS = 7 * 86400.0
"""A build that was not used for this time is half as likely to be used again as one that was used now."""

_KEY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovableBuild:
    """A removable item: the cost of building it, and the time of its last use, in seconds since 1970.

    `seconds` is the cost, `last_used` the time. Without its file `marker`, the item does not count as built. `shared`
    is an artefact that other builds may use, too. Items with `in_use` are not removed.
    """

    home: Path
    marker: Path
    lock: Path
    bytes: float
    seconds: float
    last_used: float
    in_use: bool
    shared: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """Result of a removal: bytes of the builds in use and of all that are left, the quota, and what was removed."""

    in_use_bytes: float
    used_bytes: float
    budget_bytes: float
    removed: int
    removed_bytes: float

    @property
    def over(self) -> bool:
        """Whether the items in use exceed the quota."""
        return self.in_use_bytes > self.budget_bytes


def retention_value(item: RemovableBuild, *, now: float) -> float:
    """Return the value of an item: seconds to build it × probability of use / bytes."""
    idle = max(0.0, now - item.last_used)
    return item.seconds * math.exp2(-idle / HALF_LIFE_SECONDS) / max(1.0, item.bytes)


def items_to_remove(
    items: Iterable[RemovableBuild], *, budget_bytes: float, now: float
) -> list[RemovableBuild]:
    """Return the items to remove, the least valuable first, until the rest fits or only items in use are left."""
    everything = list(items)
    over = sum(each.bytes for each in everything) - budget_bytes
    chosen: list[RemovableBuild] = []
    for item in sorted(everything, key=lambda each: retention_value(each, now=now)):
        if over <= 0:
            break
        if not item.in_use:
            chosen.append(item)
            over -= item.bytes
    return chosen


class Disk:
    """The disk space of builds below a directory, and its quota."""

    def __init__(self, builds: Path, builds_in_use: BuildsInUse, *, budget_bytes: float) -> None:
        self._builds = builds
        self._builds_in_use = builds_in_use
        self._budget = budget_bytes * (1 - CACHE_SHARE)
        self._trash = builds / "trash"
        cache = builds / "ccache"
        cache.mkdir(parents=True, exist_ok=True)
        kibibytes = max(1, int(budget_bytes * CACHE_SHARE / 1024))
        (cache / "ccache.conf").write_text(f"max_size = {kibibytes}Ki\n", encoding="utf-8")

    def shrink(self, *, clock: Callable[[], float] = time.time) -> Shrunk | None:
        """Remove items until the rest fits; return `None` if another perftrail process is doing so now."""
        removed, removed_bytes = 0, 0.0
        with try_exclusive_lock(self._builds / "locks" / "eviction.lock") as free:
            if not free:
                return None
            self._empty_trash()
            budget = self._budget - bytes_below(self._builds / "sccache")
            while True:
                everything = self._items()
                gone = [
                    each
                    for each in items_to_remove(everything, budget_bytes=budget, now=clock())
                    if self._remove(each)
                ]
                removed += len(gone)
                removed_bytes += sum(each.bytes for each in gone)
                if not gone:
                    break
        return Shrunk(
            in_use_bytes=sum(each.bytes for each in everything if each.in_use),
            used_bytes=sum(each.bytes for each in everything),
            budget_bytes=budget,
            removed=removed,
            removed_bytes=removed_bytes,
        )

    def _items(self) -> list[RemovableBuild]:
        claimed = self._builds_in_use.claimed()
        homes = [path for path in self._builds.iterdir() if _KEY.fullmatch(path.name) and path.is_dir()]
        artefacts = {home: _artefact(home) for home in homes}
        sharing = list(artefacts.values())
        builds = [self._build(home, artefacts[home], sharing, claimed) for home in homes]
        trees = [self._tree(state) for state in (self._builds / "worktrees").glob("*/state.json")]
        return [*builds, *trees]

    def _build(
        self, home: Path, artefact: Path | None, sharing: Sequence[Path | None], claimed: frozenset[str]
    ) -> RemovableBuild:
        marker = home / "built.json"
        finished = read_finished(marker)
        shared = bytes_below(artefact) / sharing.count(artefact) if artefact else 0.0
        own = finished.bytes if finished and finished.bytes else bytes_below(home)
        benchmark_builds = (read_finished(path) for path in (home / "bench").glob("*.json"))
        return RemovableBuild(
            home=home,
            marker=marker,
            lock=self._builds / "locks" / f"{home.name}.lock",
            bytes=own + shared + sum(each.bytes for each in benchmark_builds if each),
            seconds=finished.seconds if finished else 0.0,
            last_used=marker.stat().st_mtime if finished else 0.0,
            in_use=home.name in claimed,
            shared=artefact,
        )

    def _tree(self, state: Path) -> RemovableBuild:
        home = state.parent
        lock = self._builds / "locks" / f"{home.name}.lock"
        return RemovableBuild(
            home=home,
            marker=state,
            lock=lock,
            bytes=bytes_below(home),
            seconds=read_state(state).seconds,
            last_used=state.stat().st_mtime,
            in_use=home.name in self._builds_in_use.claimed(),
        )

    def _remove(self, item: RemovableBuild) -> bool:
        """Remove one item, unless another process builds it or has just started to use it."""
        with try_exclusive_lock(item.lock) as free:
            if not free or item.home.name in self._builds_in_use.claimed():
                return False
            item.marker.unlink(missing_ok=True)
            sync_directory(item.home)
            self._move_to_trash(item.home)
        if item.shared is not None:
            self._remove_artefact(item.shared)
        return True

    def _remove_artefact(self, artefact: Path) -> None:
        with exclusive_lock(self._builds / "locks" / "artefacts.lock"):
            homes = [path for path in self._builds.iterdir() if _KEY.fullmatch(path.name)]
            if artefact.is_dir() and all(_artefact(home) != artefact for home in homes):
                self._move_to_trash(artefact)

    def _move_to_trash(self, path: Path) -> None:
        self._trash.mkdir(exist_ok=True)
        trashed = self._trash / f"{path.name}.{uuid.uuid4().hex}"
        path.rename(trashed)
        remove_tree(trashed)

    def _empty_trash(self) -> None:
        """Remove items that a kill left half deleted, and artefacts that no build uses any more."""
        if self._trash.is_dir():
            for path in self._trash.iterdir():
                remove_tree(path)
        for artefact in (self._builds / "artefacts").glob("*"):
            self._remove_artefact(artefact)


class DiskQuota:
    """The disk quota of a study's builds; without a quota, nothing is ever removed."""

    def __init__(self, builds: Path, builds_in_use: BuildsInUse, *, budget_bytes: float | None) -> None:
        self._disk = Disk(builds, builds_in_use, budget_bytes=budget_bytes) if budget_bytes else None
        self._quota_bytes = budget_bytes or 0.0
        self._spare_bytes = 0.0
        self._reported_over = False

    @property
    def bounded(self) -> bool:
        """Whether there is a quota."""
        return self._disk is not None

    def enforce(self, added_bytes: float = math.inf) -> list[str]:
        """Remove builds beyond the quota after a build of that size; return messages about it.

        Adding up all builds takes time. So perftrail adds them up again only when new builds have filled half of the
        space that was free last time. The other half is for other processes.
        """
        self._spare_bytes -= added_bytes
        if self._disk is None or self._spare_bytes > 0.0:
            return []
        shrunk = self._disk.shrink()
        if shrunk is None:
            return []
        self._spare_bytes = (shrunk.budget_bytes - shrunk.used_bytes) / 2.0
        messages = []
        if shrunk.removed:
            freed = quantity(shrunk.removed_bytes, "B")
            messages.append(
                f"{counted(shrunk.removed, 'build')} removed to free disk space ({freed}); "
                f"build.disk is {format_size(round(self._quota_bytes))}"
            )
        if shrunk.over and not self._reported_over:
            self._reported_over = True
            needed, allowed = quantity(shrunk.in_use_bytes, "B"), quantity(shrunk.budget_bytes, "B")
            messages.append(
                f"the builds in use need {needed}, more than the quota of build.disk ({allowed}): "
                "none of them was removed; raise build.disk"
            )
        return messages


def bytes_below(directory: Path, *, shared: bool = True) -> float:
    """Return the bytes of the files below a directory, without following links; hard links count if `shared`."""
    files = (
        entry
        for entry in entries_below(directory)
        if not entry.is_directory and (shared or entry.status.st_nlink == 1)
    )
    return float(sum(entry.status.st_blocks * 512 for entry in files))


def _artefact(home: Path) -> Path | None:
    """Return the artefact that a subject's directory links to, if it contains no build itself."""
    tree = home / "tree"
    return home.parent / "artefacts" / tree.readlink().parts[2] if tree.is_symlink() else None
