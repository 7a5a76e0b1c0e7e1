"""Open the sources of a study, and look up the revisions of its eras and skips.

One source's history is searched; the other sources are pinned at one revision each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from perftrail import studyfile
from perftrail.errors import LauncherError, SourceError, StudyError, UsageError
from perftrail.model.source import MAIN, Ends, Pins, read_span
from perftrail.model.wording import nearest, quoted
from perftrail.ports import CachedSource
from perftrail.sources import is_local_or_cached, open_table
from perftrail.sources.directory import DirectorySource
from perftrail.sources.patched import PatchedSource
from perftrail.studyfile import mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from perftrail.errors import Mistake
    from perftrail.model.patch import Patched
    from perftrail.model.recipe import Era
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source, Starter
    from perftrail.studyfile.key_lines import KeyPath


CacheUse = Literal["stored", "fresh"]
"""Whether a source with a cache answers from the cache, or updates it first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """A study's sources by name, the folders that are variants, and the pinned revisions."""

    every: Mapping[str, Source]
    folders: Mapping[str, Source]
    pins: Pins

    @property
    def main(self) -> Source:
        """The study's own source, whose tree builds use."""
        return self.every[MAIN]

    @property
    def others(self) -> Mapping[str, Source]:
        """The other sources."""
        return {name: source for name, source in self.every.items() if name != MAIN}

    @property
    def searched_source(self) -> Source:
        """The source whose history is searched."""
        return self.every[self.pins.along]

    def last_updated(self) -> str:
        """Return when the least recently updated source was updated: ISO 8601; empty if this process updated it."""
        times = [source.updated() for source in self.every.values() if isinstance(source, CachedSource)]
        return min(filter(None, times), default="")


def open_sources(
    study: Study,
    *,
    cache: str,
    starter: Starter,
    patched: Patched | None = None,
    cache_use: CacheUse = "stored",
) -> Sources:
    """Open a study's sources and look up the pinned revisions.

    `patched` is a patched revision to add to the history that is searched. If a pinned revision does not exist,
    raises `StudyError` for one from the study file, `UsageError` for one from the command line.
    """
    every: dict[str, Source] = {}
    for name, table in study.every_source.items():
        folders = variant_folders(study) if name == MAIN else ()
        every[name] = source = open_table(
            table, cache=cache, starter=starter, folders=folders, sandboxed=study.sandbox.always
        )
        if cache_use == "fresh" and isinstance(source, CachedSource):
            source.update()
    if patched is not None:
        every[study.along] = PatchedSource(every[study.along], patched, cache=cache, starter=starter)
    used = {each.directory for each in study.variants.values() if each.directory is not None}
    separate = {
        folder: DirectorySource(
            replace(study.source, location=str(Path(study.source.location, folder)), label=None)
        )
        for folder in sorted(used)
    }
    pins = Pins(
        along=study.along,
        at={name: _pinned(study, name, source) for name, source in every.items() if name != study.along},
        folders={folder: source.history()[0] for folder, source in separate.items()},
    )
    return Sources(every=every, folders=separate, pins=pins)


def variant_folders(study: Study) -> tuple[str, ...]:
    """Return the only folders of the study's own source that it uses; none if it uses the whole source."""
    folders = [variant.directory for variant in study.variants.values()]
    return tuple(sorted({each for each in folders if each is not None})) if None not in folders else ()


def _pinned(study: Study, name: str, source: Source) -> Revision:
    at = study.every_source[name].at
    if at is None:
        return source.history()[-1]
    try:
        return source.history(f"{at}..{at}")[-1]
    except SourceError as error:
        remedy = f"{error}; name a revision of {name}, or omit it to use the last of its range"
        if studyfile.load(study.file).every_source[name].at != at:
            raise UsageError(f"--at {name}={at}: {remedy}") from error
        path = ("source",) if name == MAIN else ("sources", name)
        raise StudyError([studyfile.mistake(study.file, (*path, "at"), remedy)]) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRevisions:
    """Revisions that the study skips for one reason, in the order of the history."""

    reason: str
    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eras:
    """A study's eras with their revision ids, and the reason for each skipped id."""

    recipes: tuple[tuple[Era, frozenset[str]], ...]
    skipped: Mapping[str, str]

    def of(self, revision: Revision) -> list[Era]:
        """Return the eras of a revision, in the order of the study file."""
        return [era for era, ids in self.recipes if revision.id in ids]

    def wanted(self, revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        """Return the revisions that the study does not skip."""
        return tuple(revision for revision in revisions if revision.id not in self.skipped)

    def skipped_revisions(self, revisions: Sequence[Revision]) -> tuple[SkippedRevisions, ...]:
        """Return the skipped revisions among these, by reason."""
        found: dict[str, list[Revision]] = {}
        for revision in revisions:
            if revision.id in self.skipped:
                found.setdefault(self.skipped[revision.id], []).append(revision)
        return tuple(
            SkippedRevisions(reason=reason, revisions=tuple(those)) for reason, those in found.items()
        )


NO_ERAS = Eras(recipes=(), skipped={})
"""The eras of a study that has none."""


def eras_of(study: Study, source: Source, *, searched: Source) -> Eras:
    """Look up eras in the study's own source, and skips in the source whose history is searched.

    Raises `StudyError` for every name that is not in the history.
    """
    unknown: dict[KeyPath, SourceError] = {}

    def ids(path: KeyPath, range_: str, history: Source) -> frozenset[str]:
        try:
            return history.within(range_)
        except SourceError as error:
            unknown[path] = error
            return frozenset()

    recipes = tuple(
        (era, ids(path, era.range, source))
        for era, (path, _) in zip(study.build.when, _era_ranges(study), strict=True)
    )
    skipped: dict[str, str] = {}
    skips = study.searched_source.skip
    for skip, (path, range_) in zip(skips, _skip_ranges(study, study.along), strict=True):
        for id_ in ids(path, range_, searched):
            skipped.setdefault(id_, skip.reason)
    if unknown:
        _refuse(study, searched, unknown)
    return Eras(recipes=recipes, skipped=skipped)


def _era_ranges(study: Study) -> list[tuple[KeyPath, str]]:
    return [(("build", "when", number, "range"), era.range) for number, era in enumerate(study.build.when)]


def _skip_ranges(study: Study, name: str) -> list[tuple[KeyPath, str]]:
    """Return the ranges that a source skips, each with its place in the study file."""
    where: KeyPath = ("source", "skip") if name == MAIN else ("sources", name, "skip")
    return [
        ((*where, number, "range"), skip.range)
        if skip.range
        else ((*where, number, "revision"), f"{skip.revision}..{skip.revision}")
        for number, skip in enumerate(study.every_source[name].skip)
    ]


def unknown_names(
    study: Study, *, cache: str, starter: Starter, wrong: Collection[str]
) -> tuple[Mistake, ...]:
    """Return a mistake for each range and each revision in the study file that is not in its history.

    `wrong` are the keys of other mistakes. With any, histories that perftrail would have to fetch first are left out,
    and only revisions are looked up. Histories that cannot be read are always left out.
    """
    found: list[Mistake] = []
    for name, table in study.every_source.items():
        if any(f"{_table_name(name)}{key}" in wrong for key in ("", ".kind", ".location")):
            continue
        if wrong:
            table = replace(table, label=None, touching=(), sparse=(), link=())  # noqa: PLW2901 - the same source
        try:
            source = open_table(table, cache=cache, starter=starter)
            if not wrong or is_local_or_cached(table, source, cache=cache):
                found += _unknown_in(study, name, source)
        except (SourceError, LauncherError):
            continue
    return tuple(found)


def _table_name(source: str) -> str:
    return "source" if source == MAIN else f"sources.{source}"


def _unknown_in(study: Study, name: str, source: Source) -> Iterator[Mistake]:
    """Yield a mistake for each name of a source that its history lacks. Raises `SourceError` if it cannot be read."""
    table = study.every_source[name]
    path: KeyPath = ("source",) if name == MAIN else ("sources", name)
    wrong: list[tuple[KeyPath, SourceError]] = []
    known: list[str] = []
    try:
        known = [word for each in source.history() for word in (each.label, each.id) if word]
    except SourceError as error:
        if not error.key:
            raise
        wrong = [((*path, *error.key), each) for each in _unknown_ends(source, table.range or "") or [error]]
    named = [((*path, "at"), f"{table.at}..{table.at}")] if table.at is not None else []
    named += _era_ranges(study) if name == MAIN else []
    skips = zip(table.skip, _skip_ranges(study, name), strict=True)
    named += [place for skip, place in skips if skip.range or skip.revision]
    for key, range_ in named:
        if failure := _failure(source.within, range_):
            wrong += [(key, each) for each in _unknown_ends(source, range_) or [failure]]
    for key, failure in wrong:
        yield mistake(study.file, key, _with_suggestion(str(failure), study, known))


def _unknown_ends(source: Source, range_: str) -> list[SourceError]:
    """Return an error for each end of a range that its history lacks."""
    try:
        span = read_span(range_)
    except ValueError:
        return []
    ends = dict.fromkeys((span.old, span.new)) if isinstance(span, Ends) else ()
    failures = [_failure(source.history, f"{end}..{end}") for end in ends if end]
    return [each for each in failures if each is not None]


def _failure(read: Callable[[str], object], range_: str) -> SourceError | None:
    try:
        read(range_)
    except SourceError as error:
        return error
    return None


class SkippedRevisionJson(TypedDict):
    """A revision that the study skips, and why."""

    revision: str
    reason: str


def skips_json(skipped: Sequence[SkippedRevisions]) -> list[SkippedRevisionJson]:
    """Return skipped revisions as plain data, one for each."""
    return [
        {"revision": revision.id, "reason": each.reason} for each in skipped for revision in each.revisions
    ]


def _refuse(study: Study, source: Source, unknown: Mapping[KeyPath, SourceError]) -> None:
    """Raise an error at the names in the study file."""
    known = [name for each in source.history() for name in (each.label, each.id) if name]
    raise StudyError(
        [
            mistake(study.file, path, _with_suggestion(str(error), study, known))
            for path, error in unknown.items()
        ]
    )


def _with_suggestion(message: str, study: Study, known: Sequence[str]) -> str:
    """Return the source's message without its location, with a near miss if there is one."""
    plain = message
    for source in study.every_source.values():
        plain = plain.removeprefix(f"{source.location}: ")
    parts = plain.split('"')
    near = nearest(parts[1], known) if len(parts) > 2 and "did you mean" not in plain else None
    return f"{plain}; did you mean {quoted(near)}?" if near else plain
