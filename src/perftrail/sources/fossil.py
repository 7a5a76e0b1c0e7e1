"""Check-ins of a Fossil repository, local or remote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.merge import Branch, Merge
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.sources.fossil_changes import FossilChanges
from perftrail.sources.fossil_copy import FossilCopy
from perftrail.sources.fossil_graph import CheckIn, Graph
from perftrail.sources.fossil_tree import FossilTrees, put
from perftrail.sources.ranges import EVERYTHING, Ends, parse_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter

_AT_ONCE = 200
"""So many trees are named in one go; each takes Fossil as long as its manifest is."""

_CHECK_INS = """
SELECT json_array(b.uuid, strftime('%Y-%m-%dT%H:%M:%S+00:00', e.mtime), coalesce(e.ecomment, e.comment),
    (SELECT group_concat(uuid, ' ') FROM (
        SELECT pb.uuid FROM plink p JOIN blob pb ON pb.rid = p.pid WHERE p.cid = e.objid
        ORDER BY p.isprim DESC, p.rowid)))
FROM event e JOIN blob b ON b.rid = e.objid WHERE e.type = 'ci'
"""
_TAGS = """
SELECT json_array(b.uuid, substr(t.tagname, 5)) FROM tagxref x JOIN tag t USING (tagid) JOIN blob b ON b.rid = x.rid
WHERE x.tagtype = 1 AND t.tagname GLOB 'sym-*'
"""


class FossilSource:
    """The history of a Fossil repository, always in topological order, whatever its dates say.

    The first end of a range belongs to it. `touching`, tags and merges choose among what lies between the
    ends, which are kept whatever they are.
    """

    def __init__(self, asked: Asked, *, cache: str, starter: Starter) -> None:
        self._asked = asked
        self._copy = FossilCopy(asked.location, cache=Path(cache), starter=starter)
        self._trees = FossilTrees(self._copy)
        self._changes = FossilChanges(self._copy, self._trees)
        self._known: Graph | None = None
        self._places: dict[str, int] = {}
        self._asked_for = -2

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the check-ins of a range, the study's own without one, parents before children."""
        text = self._asked.range if range is None else range
        ends = parse_range(text) if text else EVERYTHING
        old = self._resolve(ends.old) if ends.old else ""
        new = self._resolve(ends.new) if ends.new else self._copy.newest()
        if old:
            self._check_order(ends, old=old, new=new)
        ids = self._between(old=old, new=new)
        if old:
            ids = [old, *ids]
        if ends.new and new not in ids[-1:]:
            ids = [*ids, new]
        for link in self._asked.link:
            # a name that leads nowhere is better told now than when the search has come to it
            self._resolve(link.branch)
            self._resolve(link.merge)
        if not ids:
            raise SourceError(f"{self._copy.location}: no revision fits walk = {self._asked.walk!r}")
        self._places = {id_: place for place, id_ in enumerate(ids)}
        return self._described(ids)

    def within(self, range: str) -> frozenset[str]:
        """Give every check-in that contains the first end and is contained in the second, ends included."""
        ends = parse_range(range)
        old = self._resolve(ends.old) if ends.old else ""
        upto = self._graph().ancestors(self._resolve(ends.new)) if ends.new else frozenset(self._graph())
        return self._graph().descendants(old, among=upto | {old}) if old else upto

    def merge(self, revision: Revision) -> Merge | None:
        """Give the parents of a merge, or of a check-in that a branch was squashed into, with their lines."""
        graph = self._graph()
        if revision.id not in graph or not graph.primary(revision.id):
            return None
        trunk, *others = graph.parents(revision.id)
        links = [link for link in self._asked.link if self._resolve(link.merge) == revision.id]
        tips = dict.fromkeys([*others, *(self._resolve(link.branch) for link in links)])
        lines = [line for line in (graph.joined(trunk, tip) for tip in tips) if line.ids]
        if not lines:
            return None
        labels = self._names_of([trunk, *(id_ for line in lines for id_ in (line.base, *line.ids) if id_)])
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
        """Compare each with the check-in it was made on where that is known, else with the one before it."""
        known = {revision.id for revision in revisions}
        before = ["", *(each.id for each in revisions)]
        pairs = [
            (each.parents[0] if each.parents and each.parents[0] in known else previous, each.id)
            for previous, each in zip(before, revisions, strict=False)
        ]
        return tuple(self._changes.between(self._graph(), pairs))

    def content(self, revision: Revision) -> str:
        """Name a check-in's tree by its files, and by the check-in too where the project writes that into it."""
        if revision.id not in self._graph():
            raise SourceError(f"{self._copy.location}: no revision {quoted(revision.id)}")
        return self._trees.content(revision.id, also=self._ahead(revision.id))

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Write a check-in's files out of the repository; programs, links and all, and nothing else."""
        try:
            id_ = self._resolve(revision.id)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        put(self._trees, id_, directory, log)

    def _ahead(self, id_: str) -> tuple[str, ...]:
        """The check-ins that will be asked for next, as far as somebody goes through the history in order."""
        before, self._asked_for = self._asked_for, self._places.get(id_, -2)
        here = self._asked_for
        return tuple(self._places)[here : here + _AT_ONCE] if here == before + 1 else ()

    def _graph(self) -> Graph:
        if self._known is None:
            self._known = Graph(
                CheckIn(id=id_, time=time, comment=comment, parents=tuple(parents.split()))
                for id_, time, comment, parents in self._copy.rows(_CHECK_INS)
            )
        return self._known

    def _resolve(self, name: str) -> str:
        """The id of a check-in; what a pull brought is read again."""
        if self._known is not None and name in self._known:
            return name
        id_ = self._copy.resolve(name)
        if self._known is not None and id_ not in self._known:
            self._known = None
        return id_

    def _check_order(self, ends: Ends, *, old: str, new: str) -> None:
        graph = self._graph()
        if old in graph.ancestors(new):
            return
        upto = ends.new or new[:10]
        where = f"{self._copy.location}: range {quoted(f'{ends.old}..{upto}')}"
        if new in graph.ancestors(old):
            raise SourceError(f"{where}: is backwards; write {quoted(f'{upto}..{ends.old}')}")
        fork = graph.fork(old, new)
        if not fork:
            raise SourceError(f"{where}: its ends have no history in common; choose both on one branch")
        raise SourceError(
            f"{where}: no walk leads from {quoted(ends.old)}, which is no ancestor of the other end; "
            f'start where they parted: range = "{fork}..{ends.new}"'
        )

    def _between(self, *, old: str, new: str) -> list[str]:
        """The ids of the walk, oldest first, without the old end."""
        graph, walk = self._graph(), self._asked.walk
        before = graph.ancestors(old) if old else self._empty_beginning()
        if walk in {"first-parent", "merges"}:
            ids = [id_ for id_ in graph.trunk(new) if id_ not in before]
        else:
            ids = graph.in_order(graph.ancestors(new) - before)
        if walk == "merges":
            ids = [id_ for id_ in ids if len(graph[id_].parents) > 1]
        if self._asked.touching and ids:
            every_parent = walk in {"all", "tags"}
            ids = self._changes.touching(graph, ids, self._asked.touching, every_parent=every_parent)
            if not ids and old != new:
                raise SourceError(
                    f"{self._copy.location}: no revision of the range touches {list(self._asked.touching)}; "
                    "paths are relative to the top of the repository"
                )
        if walk == "tags":
            tagged = self._tags()
            ids = [id_ for id_ in ids if id_ in tagged]
        return ids

    def _empty_beginning(self) -> frozenset[str]:
        """The check-in without files that Fossil begins every repository with: there is nothing to build."""
        roots = [id_ for id_ in self._graph() if not self._graph()[id_].parents]
        return frozenset(roots) - self._changes.changing(roots)

    def _described(self, ids: Sequence[str]) -> tuple[Revision, ...]:
        labels = self._names_of(ids)
        return tuple(self._revision(id_, labels) for id_ in ids)

    def _revision(self, id_: str, labels: Mapping[str, str]) -> Revision:
        check_in = self._graph()[id_]
        lines = check_in.comment.strip().split("\n")
        return Revision(
            id=id_,
            summary=lines[0].strip(),
            label=labels.get(id_, ""),
            time=check_in.time,
            parents=check_in.parents,
        )

    def _names_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        label = self._asked.label
        return self._changes.labels(self._graph(), ids, label) if label else self._tags()

    def _tags(self) -> Mapping[str, str]:
        """The tag of each tagged check-in; of several, the highest version."""
        rows = self._copy.rows(_TAGS)
        return dict(sorted(((id_, tag) for id_, tag in rows), key=lambda row: _version(row[1])))


def _version(tag: str) -> list[tuple[int, str]]:
    """A key that sorts tags as versions: what is a number by its size.

    >>> sorted(["v1.10", "v1.9"], key=_version)
    ['v1.9', 'v1.10']
    """
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", tag)]
