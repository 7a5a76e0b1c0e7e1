"""Functions of the tests of all ecosystems for a history of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perftrail.model.source import Source as SourceTable
from perftrail.sources.packages.release import ReleaseSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from perftrail.model.subject import Revision
    from perftrail.ports import Starter


def open_releases(location: str, *, cache: Path, starter: Starter, **keys: Any) -> ReleaseSource:
    """Open a package; everything else as keys of the study's source."""
    return ReleaseSource(
        SourceTable(kind="release", location=location, **keys), cache=str(cache), starter=starter
    )


def ids(revisions: Iterable[Revision]) -> list[str]:
    """Give the ids of revisions."""
    return [revision.id for revision in revisions]
