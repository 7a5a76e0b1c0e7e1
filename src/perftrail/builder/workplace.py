"""Where a build or a link lives, and what runs there: shell lines with nothing left open."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builder.environment import build_environment
from perftrail.builder.steps import Steps
from perftrail.model.build import Failure, Workplace
from perftrail.model.placeholders import fill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.builder.caches import Caches


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a build or a link lives; `home` is what a failure or a kill leaves to be removed."""

    home: Path
    marker: Path
    log: Path
    temporary: Path

    def holds(self, directory: Path) -> bool:
        """Whether something is a directory that lies in here, whatever links lead to it."""
        return directory.is_dir() and directory.resolve().is_relative_to(self.home.resolve())

    def shortened(self, text: str) -> str:
        """Write what lies in here, in the tree or the temporary directory, by its name alone."""
        return text.replace(f"{self.home / 'tree'}/", "").replace(f"{self.temporary}/", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Shell lines and variables as the study has them, placeholders open, and where they run for how long."""

    steps: Sequence[str]
    env: Mapping[str, str]
    directory: Path
    timeout_seconds: float

    def filled(self, place: Place, values: Mapping[str, str], *, caches: Caches) -> Steps:
        """Fill the placeholders: as single words in lines, as they are in variables."""
        return Steps(
            lines=[fill(step, values, shlex.quote) for step in self.steps],
            directory=self.directory,
            environment={
                **caches.environment(build_environment(temporary=place.temporary), home=place.home),
                **{name: fill(value, values) for name, value in self.env.items()},
            },
            timeout_seconds=self.timeout_seconds,
        )


def workplace(run: Steps, place: Place, tree: Path | Failure) -> Workplace:
    """Give the place in which somebody may go through steps by hand, the tree's root if theirs is not there."""
    root = place.home / "tree"
    here = run.directory if place.holds(run.directory) else root if root.is_dir() else place.home
    return Workplace(
        directory=str(here),
        environment=run.environment,
        lines=tuple(run.lines),
        log=str(place.log),
        failure=tree if isinstance(tree, Failure) else None,
    )
