"""Sources of revisions: one module for each kind, all behind `ports.Source`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.directory import DirectorySource
from perftrail.sources.fossil import FossilSource
from perftrail.sources.fossil.patch import FossilPatches
from perftrail.sources.git import GitSource
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import PlainPatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.model.study import Study
    from perftrail.ports import Source, Starter


def open_source(study: Study, *, cache: str, starter: Starter) -> Source:
    """Open the source that a study searches, like `open_asked`."""
    return open_asked(study.searched_source, cache=cache, starter=starter)


def open_asked(asked: Asked, *, cache: str, starter: Starter, folders: Sequence[str] = ()) -> Source:
    """Open a source; its copies and downloads are stored below the directory `cache`.

    `folders` are the used parts of a directory, all of it without any. Reads nothing yet. Raises `SourceError` if a
    required tool is not installed.
    """
    match asked.kind:
        case "git":
            return GitSource(asked, cache=cache, starter=starter)
        case "directory":
            return DirectorySource(asked, folders=folders)
        case "release" if asked.archives:
            from perftrail.sources.archives import ArchiveSource  # noqa: PLC0415 - a network client is heavy

            return ArchiveSource(asked, cache=cache)
        case "release":
            from perftrail.sources.packages.release import ReleaseSource  # noqa: PLC0415 - an index client is heavy

            return ReleaseSource(asked, cache=cache, starter=starter)
        case "fossil":
            return FossilSource(asked, cache=cache, starter=starter)
        case "samples":
            raise SourceError(f"{asked.location}: samples of other tools have no source that could be built")


def open_patches(study: Study, source: Source, *, cache: str, starter: Starter) -> GitPatches | PlainPatches:
    """Open the object that back-ports patches to revisions of a study's source."""
    if study.searched_source.kind == "git":
        return GitPatches(study.searched_source, cache=cache, starter=starter)
    if isinstance(source, FossilSource):
        return FossilPatches(source, cache=cache, starter=starter)
    return PlainPatches(source, cache=cache, starter=starter)
