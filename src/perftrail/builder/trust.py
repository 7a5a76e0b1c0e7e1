"""What is remembered of a tree that goes from revision to revision, and how far it is trusted."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from perftrail.builder.finished import write_durably

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FIRST_CHECK = 10
"""Which build that goes on in a tree is the first to be compared with a clean one; each check that is passed
doubles the distance to the next, as the same rules of the same project made all builds between."""

RAREST_CHECK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeState:
    """A reused tree: what of the revision lies in it, and which builds made there no check has covered yet.

    `usable`: its last build came to its end; a tree without that is made anew. `gap` is how many builds
    there are from one check to the next, `unchecked` the keys of those since the last one. `seconds` is what
    the last clean build took.
    """

    usable: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    gap: int = FIRST_CHECK
    unchecked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def check_due(self) -> bool:
        """Whether the next build that starts from this tree is to be compared with a clean one."""
        return len(self.unchecked) + 1 >= self.gap

    def built(self, key: str) -> TreeState:
        """One more build was made in the tree."""
        return replace(self, usable=True, unchecked=(*self.unchecked, key))

    def checked(self) -> TreeState:
        """A build was equal to the clean one, and so vouches for those before it."""
        return replace(self, usable=True, unchecked=(), gap=min(RAREST_CHECK, 2 * self.gap))


def read_state(path: Path) -> TreeState:
    """Give what a file says of a tree; of one that says nothing that we understand, that it is not usable."""
    try:
        facts = json.loads(path.read_bytes())
        return TreeState(
            usable=facts["usable"] is True,
            files={str(name): str(content) for name, content in facts["files"].items()},
            gap=int(facts["gap"]),
            unchecked=tuple(map(str, facts["unchecked"])),
            seconds=float(facts["seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return TreeState()


def write_state(path: Path, state: TreeState) -> None:
    """Remember what lies in a tree; seen whole or not at all."""
    write_durably(path, asdict(state))
