"""Which revisions a study's eras and skips mean; a name that means none is a mistake of the study file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, StudyError
from perftrail.model.source import MAIN
from perftrail.model.wording import nearest, quoted
from perftrail.studyfile import mistake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.recipe import Era
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Revisions that the study says are not to be built, and its reason, in the order of the history."""

    reason: str
    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eras:
    """A study's eras with the ids of their revisions, and for each id that is to be skipped the reason."""

    recipes: tuple[tuple[Era, frozenset[str]], ...]
    skipped: Mapping[str, str]

    def of(self, revision: Revision) -> list[Era]:
        """Give the eras that a revision lies in, in the order of the study file."""
        return [era for era, ids in self.recipes if revision.id in ids]

    def left_out(self, revisions: Sequence[Revision]) -> tuple[LeftOut, ...]:
        """Give those of some revisions that are to be skipped, by reason."""
        found: dict[str, list[Revision]] = {}
        for revision in revisions:
            if revision.id in self.skipped:
                found.setdefault(self.skipped[revision.id], []).append(revision)
        return tuple(LeftOut(reason=reason, revisions=tuple(those)) for reason, those in found.items())


def eras_of(study: Study, source: Source, *, walked: Source) -> Eras:
    """Look a study's eras up in its own source, and skips in the one that is walked.

    Raises `StudyError` for every name that the history does not have.
    """
    unknown: dict[tuple[str | int, ...], SourceError] = {}

    def ids(path: tuple[str | int, ...], range_: str, history: Source) -> frozenset[str]:
        try:
            return history.within(range_)
        except SourceError as error:
            unknown[path] = error
            return frozenset()

    recipes = tuple(
        (era, ids(("build", "when", number, "range"), era.range, source))
        for number, era in enumerate(study.build.when)
    )
    skipped: dict[str, str] = {}
    where = ("source",) if study.along == MAIN else ("sources", study.along)
    for number, skip in enumerate(study.walked.skip):
        key = "range" if skip.range else "revision"
        range_ = skip.range or f"{skip.revision}..{skip.revision}"
        for id_ in ids((*where, "skip", number, key), range_, walked):
            skipped.setdefault(id_, skip.reason)
    if unknown:
        _refuse(study, walked, unknown)
    return Eras(recipes=recipes, skipped=skipped)


def skips_json(left_out: Sequence[LeftOut]) -> list[Json]:
    """Put skipped revisions as plain data, one for each."""
    return [
        {"revision": revision.id, "reason": each.reason} for each in left_out for revision in each.revisions
    ]


def _refuse(study: Study, source: Source, unknown: Mapping[tuple[str | int, ...], SourceError]) -> None:
    """Say where in the study file the names stand; a history that cannot be read at all is told as that."""
    known = [name for each in source.history() for name in (each.label, each.id) if name]
    raise StudyError(
        [mistake(study.file, path, _told(str(error), study, known)) for path, error in unknown.items()]
    )


def _told(message: str, study: Study, known: Sequence[str]) -> str:
    """Say what the source said, without its name, which the study file has; with a near miss where there is one."""
    plain = message
    for source in study.every_source.values():
        plain = plain.removeprefix(f"{source.location}: ")
    parts = plain.split('"')
    near = nearest(parts[1], known) if len(parts) > 2 and "did you mean" not in plain else None
    return f"{plain}; did you mean {quoted(near)}?" if near else plain
