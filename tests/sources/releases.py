"""What the tests of all ecosystems ask of a history of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perftrail.model.source import Source as Asked
from perftrail.sources.packages.release import ReleaseSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from perftrail.model.subject import Revision
    from perftrail.ports import Starter


def open_releases(location: str, *, cache: Path, starter: Starter, **asked: Any) -> ReleaseSource:
    """Open a package; everything else as keys of the study's source."""
    return ReleaseSource(Asked(kind="release", location=location, **asked), cache=str(cache), starter=starter)


def ids(revisions: Iterable[Revision]) -> list[str]:
    """Give the ids of revisions."""
    return [revision.id for revision in revisions]
