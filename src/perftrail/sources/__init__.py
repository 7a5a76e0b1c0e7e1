"""Where revisions come from: one module for each kind of source, all behind `ports.Source`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.directory import DirectorySource
from perftrail.sources.git import GitSource

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.ports import Source, Starter


def open_source(study: Study, *, cache: str, starter: Starter) -> Source:
    """Open a study's source; what it copies or downloads is kept below the directory `cache`.

    Reads nothing yet. Raises `SourceError` for a kind that cannot be had here.
    """
    asked = study.source
    match asked.kind:
        case "git":
            return GitSource(asked, cache=cache, starter=starter)
        case "directory":
            return DirectorySource(asked)
        case "release":
            from perftrail.sources.release import ReleaseSource  # noqa: PLC0415 - an index client is heavy

            return ReleaseSource(asked, cache=cache, starter=starter)
        case "fossil":
            raise SourceError('source.kind "fossil": not supported yet; choose git, release or directory')
