"""What is known of all cells of a history at once: what is alike at every revision is worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Built, Prepared
from perftrail.model.measurement import Runnable
from perftrail.model.plan import Cell, RunnableKeys, cells, mentioning, subjects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.build import Recipe
    from perftrail.model.subject import Revision, Subject
    from perftrail.workflows.linking import Link
    from perftrail.workflows.session import View


@dataclass(frozen=True, slots=True, kw_only=True)
class _Like:
    """A benchmark at a point in a variant, as it is at every revision; `link` is `None` where that differs."""

    benchmark: str
    point: Point
    link: Link | None
    keys: RunnableKeys


class Recollection:
    """Looks cells up by what the store knows of builds. Makes nothing."""

    def __init__(self, view: View) -> None:
        self._view = view
        view.workshop.recall()
        self._known: dict[tuple[str, int], tuple[Recipe, list[_Like]]] = {}

    def cells(self, revisions: Sequence[Revision]) -> Iterator[tuple[Cell, str]]:
        """Give every cell of some revisions that is made, with the key of its runnable."""
        for subject in subjects(self._view.study, revisions):
            built = self._view.workshop.known_build(subject)
            if isinstance(built, Built):
                yield from self._of(subject, built)

    def _of(self, subject: Subject, built: Built) -> Iterator[tuple[Cell, str]]:
        workshop = self._view.workshop
        made: dict[int, Prepared | None] = {}
        for like in self._alike(subject):
            cell = Cell(subject=subject, benchmark=like.benchmark, point=like.point)
            if like.link is None:
                known = workshop.known_runnable(cell)
                if isinstance(known, Runnable):
                    yield cell, known.key
                continue
            name = id(like.link)
            if name not in made:
                made[name] = workshop.known_link(built, like.link)
            prepared = made[name]
            if prepared is not None:
                yield cell, like.keys.key(prepared, subject.revision)

    def _alike(self, subject: Subject) -> list[_Like]:
        how = self._view.workshop.makings.recipe(subject)
        if how.sources:
            return self._likes_of(subject, how)
        name = (subject.variant, id(how))
        if name not in self._known:
            # the recipe is kept along, or another could get its id
            self._known[name] = (how, self._likes_of(subject, how))
        return self._known[name][1]

    def _likes_of(self, subject: Subject, how: Recipe) -> list[_Like]:
        links: list[Link] = []
        likes = []
        for cell in cells(self._view.study, subject):
            link = None if self._differs(cell, how) else self._view.workshop.makings.link(cell)
            if link is not None and link in links:
                link = links[links.index(link)]
            elif link is not None:
                links.append(link)
            keys = RunnableKeys(self._view.study, cell)
            likes.append(_Like(benchmark=cell.benchmark, point=cell.point, link=link, keys=keys))
        return likes

    def _differs(self, cell: Cell, how: Recipe) -> bool:
        """Whether what a benchmark is built of names the revision, or the tree of another source."""
        study = self._view.study
        lines = study.benchmarks[cell.benchmark].build
        parts = study.variants[cell.subject.variant].run.parts.values()
        texts = (*lines, *parts, *how.env.values(), *mentioning(study, cell))
        return bool(how.sources) or any("{revision}" in text or "{source." in text for text in texts)
