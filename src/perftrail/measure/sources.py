"""Opens every source of a study: the one that is walked, and the others, each held at one revision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perftrail import studyfile
from perftrail.errors import SourceError, StudyError, UsageError
from perftrail.model.source import MAIN, Pins
from perftrail.ports import Kept
from perftrail.sources import open_asked
from perftrail.sources.directory import DirectorySource
from perftrail.sources.patched import PatchedSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source, Starter


Asking = Literal["kept", "anew"]
"""Whether a source that keeps what it was told of itself answers from that, or asks first what is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A study's sources: each by its name, the folders that are variants, and what is held where."""

    every: Mapping[str, Source]
    folders: Mapping[str, Source]
    pins: Pins

    @property
    def main(self) -> Source:
        """The study's own source, in whose tree builds are made."""
        return self.every[MAIN]

    @property
    def others(self) -> Mapping[str, Source]:
        """The sources beside it."""
        return {name: source for name, source in self.every.items() if name != MAIN}

    @property
    def walked(self) -> Source:
        """The source whose history is walked."""
        return self.every[self.pins.along]

    def asked(self) -> str:
        """Say when the source that was asked longest ago was asked: ISO 8601; empty for by this process."""
        told = [source.asked() for source in self.every.values() if isinstance(source, Kept)]
        return min(filter(None, told), default="")


def open_sources(
    study: Study, *, cache: str, starter: Starter, own: Patched | None = None, asking: Asking = "kept"
) -> Sources:
    """Open a study's sources and look up where those that are not walked are held.

    `own` is a patched revision that the walked one is to know. Raises `StudyError` or `UsageError`, as the
    pin was written in the file or on the command line, when there is no such revision.
    """
    every: dict[str, Source] = {}
    for name, asked in study.every_source.items():
        folders = variant_folders(study) if name == MAIN else ()
        every[name] = source = open_asked(asked, cache=cache, starter=starter, folders=folders)
        if asking == "anew" and isinstance(source, Kept):
            source.ask_again()
    if own is not None:
        every[study.along] = PatchedSource(every[study.along], own, cache=cache, starter=starter)
    used = {each.directory for each in study.variants.values() if each.directory is not None}
    separate = {
        folder: DirectorySource(
            replace(study.source, location=str(Path(study.source.location, folder)), label=None)
        )
        for folder in sorted(used)
    }
    pins = Pins(
        along=study.along,
        at={name: _held(study, name, source) for name, source in every.items() if name != study.along},
        folders={folder: source.history()[0] for folder, source in separate.items()},
    )
    return Sources(every=every, folders=separate, pins=pins)


def variant_folders(study: Study) -> tuple[str, ...]:
    """Name the folders that are all of a study's own source that it uses; none where it uses the whole."""
    folders = [variant.directory for variant in study.variants.values()]
    return tuple(sorted({each for each in folders if each is not None})) if None not in folders else ()


def _held(study: Study, name: str, source: Source) -> Revision:
    at = study.every_source[name].at
    if at is None:
        return source.history()[-1]
    try:
        return source.history(f"{at}..{at}")[-1]
    except SourceError as error:
        remedy = f"{error}; name a revision of {name}, or leave it out for the last of its range"
        if studyfile.load(study.file).every_source[name].at != at:
            raise UsageError(f"--at {name}={at}: {remedy}") from error
        table = ("source",) if name == MAIN else ("sources", name)
        raise StudyError([studyfile.mistake(study.file, (*table, "at"), remedy)]) from error
