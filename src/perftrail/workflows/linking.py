"""A benchmark's own build: what goes into it, and having it made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.build import Built, Failure, Prepared
    from perftrail.model.subject import Revision
    from perftrail.ports import Builder


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a benchmark's own build takes, placeholders of the machine still open."""

    steps: tuple[str, ...]
    env: Mapping[str, str]
    files: tuple[str, ...]
    sources: Mapping[str, Revision]

    def key(self, builder: Builder, built: Built) -> str:
        """Name what goes into it on a built subject."""
        return builder.link_key(built, steps=self.steps, env=self.env, files=self.files, sources=self.sources)

    def prepare(self, builder: Builder, built: Built, *, timeout_seconds: float) -> Prepared | Failure:
        """Have it made on a built subject."""
        return builder.prepare(
            built,
            steps=self.steps,
            env=self.env,
            files=self.files,
            sources=self.sources,
            timeout_seconds=timeout_seconds,
        )
