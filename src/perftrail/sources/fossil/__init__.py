"""Check-ins of a Fossil repository, local or remote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.subject import Branch, Merge, Revision
from perftrail.model.wording import quoted
from perftrail.sources.fossil.lineage import FossilChanges, FossilLineage
from perftrail.sources.fossil.repository import FossilCopy
from perftrail.sources.fossil.tree import FossilTrees, write_tree
from perftrail.sources.ranges import parse_range, resolve_ends, select_revisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter

_BATCH = 200
"""Number of trees in one query; each takes Fossil time in proportion to its manifest."""


class FossilSource:
    """The history of a Fossil repository, always in topological order, whatever the dates.

    The first end of a range is part of it. `touching`, tags and merges select revisions between the ends; the ends
    themselves are always included.
    """

    def __init__(self, table: SourceTable, *, cache: str, starter: Starter) -> None:
        self.remark = ""
        self._table = table
        self._copy = FossilCopy(table.location, cache=Path(cache), starter=starter)
        self._trees = FossilTrees(self._copy)
        self._changes = FossilChanges(self._copy, self._trees)
        self._lineage = FossilLineage(self._copy, self._changes, table)
        self._positions: dict[str, int] = {}
        self._last_position = -2

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the check-ins of a range, by default the study's, parents before children."""
        found = select_revisions(self._lineage, self._table, range)
        self.remark, ids = found.remark, found.ids
        self._positions = {id_: position for position, id_ in enumerate(ids)}
        return self._described(ids)

    def refresh(self) -> None:
        """Pull new check-ins."""
        self._copy.pull()

    def within(self, range: str) -> frozenset[str]:
        """Return every check-in that contains the first end and that the second contains, ends included."""
        ends = parse_range(range)
        ids, graph = resolve_ends(self._lineage, ends), self._lineage.graph()
        upto = graph.ancestors(ids.new) if ends.new else frozenset(graph)
        return graph.descendants(ids.old, among=upto | {ids.old}) if ids.old else upto

    def merge(self, revision: Revision) -> Merge | None:
        """Return the parents of a merge, or of a check-in that squashed a branch, with their branches."""
        graph = self._lineage.graph()
        if revision.id not in graph or not graph.primary(revision.id):
            return None
        trunk, *others = graph.parents(revision.id)
        links = [link for link in self._table.link if self._lineage.resolve(link.merge) == revision.id]
        tips = dict.fromkeys([*others, *(self._lineage.resolve(link.branch) for link in links)])
        lines = [line for line in (graph.merged_lines(trunk, tip) for tip in tips) if line.ids]
        if not lines:
            return None
        labels = self._labels_of([trunk, *(id_ for line in lines for id_ in (line.base, *line.ids) if id_)])
        return Merge(
            revision=revision,
            trunk=self._revision(trunk, labels),
            branches=tuple(
                Branch(
                    base=self._revision(line.base, labels) if line.base else None,
                    revisions=tuple(self._revision(id_, labels) for id_ in line.ids),
                )
                for line in lines
            ),
        )

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return the changed files of each check-in relative to its known parent, else to the previous one."""
        known = {revision.id for revision in revisions}
        before = ["", *(each.id for each in revisions)]
        pairs = [
            (each.parents[0] if each.parents and each.parents[0] in known else previous, each.id)
            for previous, each in zip(before, revisions, strict=False)
        ]
        return tuple(self._changes.between(self._lineage.graph(), pairs))

    def content(self, revision: Revision) -> str:
        """Return the content key of a check-in's tree, with its id if the project writes that into its tree."""
        return self.content_without(revision, ())

    def content_without(self, revision: Revision, globs: tuple[str, ...]) -> str:
        """Return the content key of a tree without the files that match globs, and without those that Fossil adds."""
        if revision.id not in self._lineage.graph():
            raise SourceError(f"{self._copy.location}: no revision {quoted(revision.id)}")
        return self._trees.content(revision.id, also=self._next_check_ins(revision.id), without=globs)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Write exactly a check-in's files, including programs and links."""
        try:
            id_ = self._lineage.resolve(revision.id)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        write_tree(self._trees.write, id_, directory, log)

    def write_own_files(self, revision: Revision, directory: str, log: str) -> None:
        """Write a check-in's files like `materialise`, but not those that Fossil adds to a check-out."""
        write_tree(self._trees.write_own, revision.id, directory, log)

    def _next_check_ins(self, id_: str) -> tuple[str, ...]:
        """Return the check-ins that are probably requested next, in the order of the history."""
        before, self._last_position = self._last_position, self._positions.get(id_, -2)
        here = self._last_position
        return tuple(self._positions)[here : here + _BATCH] if here == before + 1 else ()

    def _described(self, ids: Sequence[str]) -> tuple[Revision, ...]:
        labels = self._labels_of(ids)
        return tuple(self._revision(id_, labels) for id_ in ids)

    def _revision(self, id_: str, labels: Mapping[str, str]) -> Revision:
        check_in = self._lineage.graph()[id_]
        lines = check_in.comment.strip().split("\n")
        return Revision(
            id=id_,
            summary=lines[0].strip(),
            label=labels.get(id_, ""),
            time=check_in.time,
            parents=check_in.parents,
        )

    def _labels_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        label = self._table.label
        return self._changes.labels(self._lineage.graph(), ids, label) if label else self._lineage.tags()


open_history = FossilSource
"""Open a Fossil repository, for `perftrail.sources.open_table`."""
