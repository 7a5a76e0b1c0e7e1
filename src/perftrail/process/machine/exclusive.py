"""Who uses a machine now: builds beside each other, or one who measures and nobody else of ours."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import alone, together

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def measuring(machine: str) -> Iterator[None]:
    """Have a machine for oneself among all workers of this user that know it by this id.

    Waits for the builds that go on; those that come meanwhile wait for their turn after it.
    """
    home = _home(machine)
    with alone(home / "turn.lock"), alone(home / "use.lock"):
        yield


@contextmanager
def building(machine: str) -> Iterator[None]:
    """Use a machine beside others that build, but not while something is measured."""
    home = _home(machine)
    with alone(home / "turn.lock"):
        use = together(home / "use.lock")
        use.__enter__()
    try:
        yield
    finally:
        use.__exit__(None, None, None)


def _home(machine: str) -> Path:
    """A directory of this machine that this user's processes share and nobody else may enter."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = (Path(own) if own and Path(own).is_dir() else cache) / "perftrail" / "machines" / machine
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return home
