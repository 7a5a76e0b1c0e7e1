"""Sources of revisions: one module for each kind, all behind `ports.Source`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from perftrail.errors import SourceError
from perftrail.ports import CachedSource
from perftrail.sources.directory import DirectorySource
from perftrail.sources.fossil import FossilSource
from perftrail.sources.fossil.patch import FossilPatches
from perftrail.sources.git.mirror import is_cloned
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import PlainPatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source as SourceTable
    from perftrail.model.study import Study
    from perftrail.ports import Source, Starter


class Kind(Protocol):
    """What the module of a kind of source provides; the module has the kind's name."""

    def open_history(self, table: SourceTable, *, cache: str, starter: Starter) -> Source:
        """Open the source that a `[source]` table names. Reads nothing yet."""
        ...


def open_source(study: Study, *, cache: str, starter: Starter) -> Source:
    """Open the source that a study searches, like `open_table`."""
    return open_table(study.searched_source, cache=cache, starter=starter, sandboxed=study.sandbox.always)


def open_table(
    table: SourceTable, *, cache: str, starter: Starter, folders: Sequence[str] = (), sandboxed: bool = False
) -> Source:
    """Open a source; its copies and downloads are stored below the directory `cache`.

    `folders` limits a directory source to these folders; empty: the whole directory. With `sandboxed`, no third-party
    code runs. Reads nothing yet. Raises `SourceError` if a required tool is not installed.
    """
    match table.kind:
        case "directory":
            return DirectorySource(table, folders=folders)
        case "release" if table.archives:
            from perftrail.sources.archives import ArchiveSource  # noqa: PLC0415 - a network client is heavy

            return ArchiveSource(table, cache=cache)
        case "release":
            from perftrail.sources.packages.release import ReleaseSource  # noqa: PLC0415 - an index client is heavy

            return ReleaseSource(table, cache=cache, starter=starter, sandboxed=sandboxed)
        case "samples":
            raise SourceError(f"{table.location}: imported samples have no source to build")
        case kind:
            module = cast("Kind", import_module(f"{__name__}.{kind}"))
            return module.open_history(table, cache=cache, starter=starter)


def is_local_or_cached(table: SourceTable, source: Source, *, cache: str) -> bool:
    """Return whether a history can be read without fetching all of it first: it is on this machine, or in the cache."""
    if isinstance(source, CachedSource):
        return source.updated() != ""
    return table.location.startswith("/") or (
        table.kind == "git" and is_cloned(table.location, cache=Path(cache))
    )


def open_patches(study: Study, source: Source, *, cache: str, starter: Starter) -> GitPatches | PlainPatches:
    """Open the object that back-ports patches to revisions of a study's source."""
    if study.searched_source.kind == "git":
        return GitPatches(study.searched_source, cache=cache, starter=starter)
    if isinstance(source, FossilSource):
        return FossilPatches(source, cache=cache, starter=starter)
    return PlainPatches(source, cache=cache, starter=starter)
