"""The check-ins of a Fossil history: names, ranges, tags, order, and changed files."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.source import STAGED, WORKING_TREE
from perftrail.sources.ranges import (
    LARGEST_LABEL_BYTES,
    MergedLine,
    by_ancestry,
    last_tags,
    read_label,
    version_key,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.source import Label
    from perftrail.model.source import Source as SourceTable
    from perftrail.sources.fossil.repository import FossilCopy
    from perftrail.sources.fossil.tree import FossilTrees


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """A check-in. `time` is ISO 8601 or empty; the first of `parents` is the primary one."""

    id: str
    time: str
    comment: str
    parents: tuple[str, ...]


class Graph:
    """A whole history. Missing parents, for example of an incomplete clone, are ignored."""

    def __init__(self, check_ins: Iterable[CheckIn]) -> None:
        self._check_ins: Mapping[str, CheckIn] = {each.id: each for each in check_ins}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._check_ins

    def __getitem__(self, id_: str) -> CheckIn:
        return self._check_ins[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._check_ins)

    def parents(self, id_: str) -> tuple[str, ...]:
        """Return the existing parents, the primary one first."""
        return tuple(parent for parent in self._check_ins[id_].parents if parent in self._check_ins)

    def primary(self, id_: str) -> str:
        """Return the primary parent; empty without one."""
        first = self._check_ins[id_].parents[:1]
        return first[0] if first and first[0] in self._check_ins else ""

    def ancestors(self, id_: str) -> frozenset[str]:
        """Return the check-ins that a check-in contains, including itself."""
        seen, left = {id_}, [id_]
        while left:
            for parent in self.parents(left.pop()):
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return frozenset(seen)

    def descendants(self, id_: str, *, among: Collection[str]) -> frozenset[str]:
        """Return the check-ins that contain a check-in, including itself, within a set."""
        seen = {id_}
        for each in self.in_order(among):
            if not seen.isdisjoint(self.parents(each)):
                seen.add(each)
        return frozenset(seen)

    def trunk(self, tip: str) -> list[str]:
        """Return the line of primary parents to a check-in, oldest first."""
        line = [tip]
        while above := self.primary(line[-1]):
            line.append(above)
        return line[::-1]

    def in_order(self, ids: Collection[str]) -> list[str]:
        """Return check-ins with parents before children, each merged line together, directly before its merge.

        This is the order of ``git rev-list --topo-order --reverse``, and needs no dates.
        """
        children = dict.fromkeys(ids, 0)
        for id_ in ids:
            for parent in self.parents(id_):
                if parent in children:
                    children[parent] += 1
        left = sorted(id_ for id_, count in children.items() if not count)
        order = []
        while left:
            id_ = left.pop()
            order.append(id_)
            for parent in self.parents(id_):
                if parent in children:
                    children[parent] -= 1
                    if not children[parent]:
                        left.append(parent)
        return order[::-1]

    def common_ancestor(self, one: str, other: str) -> str:
        """Return the last common ancestor; empty without one."""
        shared = self.ancestors(one) & self.ancestors(other)
        return self.in_order(shared)[-1] if shared else ""

    def merged_lines(self, trunk: str, tip: str) -> MergedLine:
        """Return the line of primary parents to `tip`, back to the part that `trunk` contains."""
        outside = self.ancestors(trunk)
        line = self.trunk(tip)
        own = [id_ for id_ in line if id_ not in outside]
        return MergedLine(base=line[-len(own) - 1] if len(own) < len(line) else "", ids=tuple(own))


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
    """A `ranges.Lineage` of the repository's copy, filtered by the study's settings."""

    def __init__(self, copy: FossilCopy, changes: FossilChanges, table: SourceTable) -> None:
        self._copy = copy
        self._changes = changes
        self._table = table
        self._known: Graph | None = None

    @property
    def location(self) -> str:
        """Location of the user's repository, without a password."""
        return self._copy.location

    def graph(self) -> Graph:
        """Return all check-ins."""
        if self._known is None:
            self._known = Graph(
                CheckIn(id=id_, time=time, comment=comment, parents=tuple(parents.split()))
                for id_, time, comment, parents in self._copy.rows(_CHECK_INS)
            )
        return self._known

    def resolve(self, name: str) -> str:
        """Return the id of a check-in; after a pull it is read again. Raises `SourceError` if there is none."""
        if name in (WORKING_TREE, STAGED):
            raise SourceError(
                f"{self.location}: files of a Fossil check-out are not a revision; commit them, to a private branch "
                "for example: fossil commit --private --branch NAME"
            )
        if self._known is not None and name in self._known:
            return name
        id_ = self._copy.resolve(name)
        if self._known is not None and id_ not in self._known:
            self._known = None
        return id_

    def newest(self) -> str:
        """Return the check-out's own check-in, else the end of the main branch."""
        return self._copy.newest()

    def is_name(self, text: str) -> bool:
        """Return whether a branch or tag has this name."""
        return [text] in [list(row) for row in self._copy.rows(_NAMES)]

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Return the line of primary parents to a check-in, oldest first, with the times."""
        return [(id_, self.graph()[id_].time) for id_ in self.graph().trunk(tip)]

    def common_ancestors(self, one: str, other: str) -> Sequence[str]:
        """Return the last common ancestor, as a list; one of the two if it is an ancestor of the other."""
        graph = self.graph()
        if one in graph.ancestors(other):
            return [one]
        if other in graph.ancestors(one):
            return [other]
        ancestor = graph.common_ancestor(one, other)
        return [ancestor] if ancestor else []

    def between(self, *, old: str, new: str) -> list[str]:
        """Return the ids of the selected check-ins, oldest first, without those that `old` contains."""
        graph, walk = self.graph(), self._table.walk
        before = graph.ancestors(old) if old else self._empty_beginning()
        if walk in {"first-parent", "merges"}:
            ids = [id_ for id_ in graph.trunk(new) if id_ not in before]
        else:
            ids = graph.in_order(graph.ancestors(new) - before)
        if walk == "merges":
            ids = [id_ for id_ in ids if len(graph[id_].parents) > 1]
        if self._table.touching and ids:
            every_parent = walk in {"all", "tags"}
            ids = self._changes.touching(graph, ids, self._table.touching, every_parent=every_parent)
            if not ids and old != new:
                raise SourceError(
                    f"{self.location}: no revision of the range touches {list(self._table.touching)}; "
                    "paths are relative to the top of the repository"
                )
        if walk == "tags":
            tagged = self.tags()
            ids = [id_ for id_ in ids if id_ in tagged]
        return ids

    def tagged(self, pattern: str) -> list[str]:
        """Return the check-ins with matching tags by version, descendants after their ancestors."""
        graph = self.graph()
        ids = list(self.tags(pattern))
        contained = frozenset[str]().union(*map(graph.ancestors, ids))
        return by_ancestry(ids, ((id_, graph.parents(id_)) for id_ in graph.in_order(contained)))

    def tags(self, pattern: str = "*") -> Mapping[str, str]:
        """Return the matching tag of each check-in, the highest version of several."""
        rows = self._copy.rows(_TAGS)
        tags = sorted(((id_, tag) for id_, tag in rows), key=lambda row: version_key(row[1]))
        return last_tags((id_, tag) for id_, tag in tags if id_ in self.graph() and fnmatchcase(tag, pattern))

    def _empty_beginning(self) -> frozenset[str]:
        """Return Fossil's initial check-in without files, which cannot be built."""
        roots = [id_ for id_ in self.graph() if not self.graph()[id_].parents]
        return frozenset(roots) - self._changes.changing(roots)


_FILE_NAMES = "SELECT json_array(name) FROM filename"
_CHANGED = """
SELECT json_array(b.uuid, (SELECT uuid FROM blob WHERE rid = m.fid))
FROM filename f JOIN mlink m USING (fnid) JOIN blob b ON b.rid = m.mid
WHERE NOT m.isaux AND f.name IN (SELECT value FROM json_each({names}))
"""
"""Compares with the primary parent; removed files have no content."""

_FILES_CHANGED = """
SELECT json_array(b.uuid, f.name) FROM blob b JOIN mlink m ON m.mid = b.rid JOIN filename f USING (fnid)
WHERE NOT m.isaux AND b.uuid IN (SELECT value FROM json_each({names})) ORDER BY f.name
"""
_CHANGING = """
SELECT json_array(b.uuid) FROM blob b
WHERE b.uuid IN (SELECT value FROM json_each({names})) AND EXISTS (SELECT 1 FROM mlink WHERE mid = b.rid)
"""
_TEXTS = """
SELECT json_array(uuid, hex(content(uuid))) FROM blob
WHERE uuid IN (SELECT value FROM json_each({names})) AND size BETWEEN 0 AND {most}
""".replace("{most}", str(LARGEST_LABEL_BYTES))


class FossilChanges:
    """The files that a repository's check-ins changed, as Fossil recorded them."""

    def __init__(self, copy: FossilCopy, trees: FossilTrees) -> None:
        self._copy = copy
        self._trees = trees

    def changing(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the check-ins that changed any file."""
        return frozenset(id_ for (id_,) in self._copy.rows_about(ids, _CHANGING))

    def between(self, graph: Graph, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """Return the files in which the check-ins of each pair differ; none for incomplete pairs.

        Fossil records differences from the primary parent. Other pairs are compared by their trees.
        """
        recorded = {new: list[str]() for old, new in pairs if old and graph.primary(new) == old}
        for id_, name in self._copy.rows_about(list(recorded), _FILES_CHANGED):
            recorded[id_].append(name)
        others = [(old, new) for old, new in pairs if old and graph.primary(new) != old]
        different = self._trees.different(others)
        return [different.get((old, new), tuple(recorded.get(new, ()))) if old else () for old, new in pairs]

    def touching(
        self, graph: Graph, ids: Sequence[str], paths: Sequence[str], *, every_parent: bool
    ) -> list[str]:
        """Return the check-ins that changed one of the files relative to their primary parent.

        With `every_parent`, a merge must differ from each of its parents, as in ``git log --full-history``.
        """
        patterns = [posixpath.normpath(path) for path in paths]
        names = [name for (name,) in self._copy.rows(_FILE_NAMES) if _matches(name, patterns)]
        changing = {id_ for id_, _ in self._copy.rows_about(names, _CHANGED)}
        remaining = [id_ for id_ in ids if id_ in changing]
        if not every_parent:
            return remaining
        pairs = [(parent, id_) for id_ in remaining for parent in graph.parents(id_)[1:]]
        different = self._trees.different(pairs)
        equal = {
            id_
            for (_, id_), found in different.items()
            if not any(_matches(path, patterns) for path in found)
        }
        return [id_ for id_ in remaining if id_ not in equal]

    def labels(self, graph: Graph, ids: Iterable[str], label: Label) -> Mapping[str, str]:
        """Return the label of each check-in from the label's file; each version of the file is read once."""
        rows = self._copy.rows_about([posixpath.normpath(label.file)], _CHANGED)
        known = {id_: artifact for id_, artifact in rows}  # noqa: C416 - rows are tuples of any length to mypy
        by_id = {id_: _artifact_at(graph, id_, known) for id_ in ids}
        artifacts = sorted(set(by_id.values()) - {""})
        texts = {artifact: bytes.fromhex(text) for artifact, text in self._copy.rows_about(artifacts, _TEXTS)}
        return {id_: read_label(label.pattern, texts.get(artifact, b"")) for id_, artifact in by_id.items()}


def _artifact_at(graph: Graph, id_: str, known: dict[str, str]) -> str:
    """Return a file's content in a check-in: its own change, else that of its primary parent.

    `known` maps the check-ins that changed the file to its contents; others are added to it as a cache.
    """
    line = []
    while id_ and id_ not in known:
        line.append(id_)
        id_ = graph.primary(id_)
    artifact = known[id_] if id_ else ""
    known.update(dict.fromkeys(line, artifact))
    return artifact


def _matches(name: str, patterns: Collection[str]) -> bool:
    """Whether a pattern names a path, a directory above it, or matches it with ``*`` and ``?``."""
    return any(
        pattern in {".", name} or name.startswith(f"{pattern}/") or fnmatchcase(name, pattern)
        for pattern in patterns
    )
