"""The check-ins of a Fossil history: what names mean, what lies between two of them, which have tags."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.fossil_graph import CheckIn, Graph
from perftrail.sources.tagging import by_ancestry, highest, version_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.sources.fossil_changes import FossilChanges
    from perftrail.sources.fossil_copy import FossilCopy

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
_NAMES = "SELECT json_array(substr(tagname, 5)) FROM tag WHERE tagname GLOB 'sym-*'"


class FossilLineage:
    """Implements `walking.Lineage` by a copy, in the walk and with the files that the study asks for."""

    def __init__(self, copy: FossilCopy, changes: FossilChanges, asked: Asked) -> None:
        self._copy = copy
        self._changes = changes
        self._asked = asked
        self._known: Graph | None = None

    @property
    def location(self) -> str:
        """Where the user's repository lies, without a password."""
        return self._copy.location

    def graph(self) -> Graph:
        """Give all check-ins."""
        if self._known is None:
            self._known = Graph(
                CheckIn(id=id_, time=time, comment=comment, parents=tuple(parents.split()))
                for id_, time, comment, parents in self._copy.rows(_CHECK_INS)
            )
        return self._known

    def resolve(self, name: str) -> str:
        """Give the id of a check-in; what a pull brought is read again. Raises `SourceError` if none."""
        if self._known is not None and name in self._known:
            return name
        id_ = self._copy.resolve(name)
        if self._known is not None and id_ not in self._known:
            self._known = None
        return id_

    def newest(self) -> str:
        """Give the check-out's own check-in, else the end of the main branch."""
        return self._copy.newest()

    def is_name(self, text: str) -> bool:
        """Whether there is a branch or a tag of that name."""
        return [text] in [list(row) for row in self._copy.rows(_NAMES)]

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Give the line that leads to a check-in by what each was made on, oldest first, with the times."""
        return [(id_, self.graph()[id_].time) for id_ in self.graph().trunk(tip)]

    def forks(self, one: str, other: str) -> Sequence[str]:
        """Give the last check-in that both contain."""
        graph = self.graph()
        if one in graph.ancestors(other):
            return [one]
        if other in graph.ancestors(one):
            return [other]
        fork = graph.fork(one, other)
        return [fork] if fork else []

    def between(self, *, old: str, new: str) -> list[str]:
        """Give the ids of the walk, oldest first, without what `old` contains."""
        graph, walk = self.graph(), self._asked.walk
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
                    f"{self.location}: no revision of the range touches {list(self._asked.touching)}; "
                    "paths are relative to the top of the repository"
                )
        if walk == "tags":
            tagged = self.tags()
            ids = [id_ for id_ in ids if id_ in tagged]
        return ids

    def tagged(self, pattern: str) -> list[str]:
        """Give the check-ins with such a tag by version, but what contains another one after that."""
        graph = self.graph()
        ids = list(self.tags(pattern))
        contained = frozenset[str]().union(*map(graph.ancestors, ids))
        return by_ancestry(ids, ((id_, graph.parents(id_)) for id_ in graph.in_order(contained)))

    def tags(self, pattern: str = "*") -> Mapping[str, str]:
        """Give the tag of each check-in that has such a one, by version; of several, the highest."""
        rows = self._copy.rows(_TAGS)
        tags = sorted(((id_, tag) for id_, tag in rows), key=lambda row: version_key(row[1]))
        return highest((id_, tag) for id_, tag in tags if id_ in self.graph() and fnmatchcase(tag, pattern))

    def _empty_beginning(self) -> frozenset[str]:
        """The check-in without files that Fossil begins every repository with: there is nothing to build."""
        roots = [id_ for id_ in self.graph() if not self.graph()[id_].parents]
        return frozenset(roots) - self._changes.changing(roots)
