"""The check-ins of a Fossil history: what names mean, what lies between two of them, which have tags.

The check-ins of a history by their parents: what lies between two of them, and in which order.

What Fossil's check-ins changed: which touch a file, and what a file said at each of them.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.ranges import LARGEST_LABEL_BYTES, Line, by_ancestry, highest, read_label, version_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.source import Label
    from perftrail.model.source import Source as Asked
    from perftrail.sources.fossil.repository import FossilCopy
    from perftrail.sources.fossil.tree import FossilTrees


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """One check-in. `time` is ISO 8601 or empty; the first of `parents` is the one it was made on."""

    id: str
    time: str
    comment: str
    parents: tuple[str, ...]


class Graph:
    """A whole history. Parents that are not there, as of a clone that lacks them, lead nowhere."""

    def __init__(self, check_ins: Iterable[CheckIn]) -> None:
        self._check_ins: Mapping[str, CheckIn] = {each.id: each for each in check_ins}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._check_ins

    def __getitem__(self, id_: str) -> CheckIn:
        return self._check_ins[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._check_ins)

    def parents(self, id_: str) -> tuple[str, ...]:
        """Give the parents that are there, the one it was made on first."""
        return tuple(parent for parent in self._check_ins[id_].parents if parent in self._check_ins)

    def primary(self, id_: str) -> str:
        """Give the check-in that one was made on, empty when there is none."""
        first = self._check_ins[id_].parents[:1]
        return first[0] if first and first[0] in self._check_ins else ""

    def ancestors(self, id_: str) -> frozenset[str]:
        """Give what a check-in contains, itself among it."""
        seen, left = {id_}, [id_]
        while left:
            for parent in self.parents(left.pop()):
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return frozenset(seen)

    def descendants(self, id_: str, *, among: Collection[str]) -> frozenset[str]:
        """Give what contains a check-in, itself among it, and lies in a set that holds all in between."""
        seen = {id_}
        for each in self.in_order(among):
            if not seen.isdisjoint(self.parents(each)):
                seen.add(each)
        return frozenset(seen)

    def trunk(self, tip: str) -> list[str]:
        """Give the line that leads to a check-in by what each was made on, oldest first."""
        line = [tip]
        while above := self.primary(line[-1]):
            line.append(above)
        return line[::-1]

    def in_order(self, ids: Collection[str]) -> list[str]:
        """Give check-ins with parents before children, each merged line in one piece just before its merge.

        It is the order of ``git rev-list --topo-order --reverse``, and needs no dates.
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

    def fork(self, one: str, other: str) -> str:
        """Give the last check-in that both contain, empty when there is none."""
        shared = self.ancestors(one) & self.ancestors(other)
        return self.in_order(shared)[-1] if shared else ""

    def joined(self, trunk: str, tip: str) -> Line:
        """Give the line that leads to `tip` by what each was made on, back to what `trunk` contains."""
        outside = self.ancestors(trunk)
        line = self.trunk(tip)
        own = [id_ for id_ in line if id_ not in outside]
        return Line(base=line[-len(own) - 1] if len(own) < len(line) else "", ids=tuple(own))


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


_FILE_NAMES = "SELECT json_array(name) FROM filename"
_CHANGED = """
SELECT json_array(b.uuid, (SELECT uuid FROM blob WHERE rid = m.fid))
FROM filename f JOIN mlink m USING (fnid) JOIN blob b ON b.rid = m.mid
WHERE NOT m.isaux AND f.name IN (SELECT value FROM json_each({names}))
"""
"""Against the check-in that it was made on; what it removed has no content."""

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
    """The changes that a repository's check-ins made, as Fossil noted them."""

    def __init__(self, copy: FossilCopy, trees: FossilTrees) -> None:
        self._copy = copy
        self._trees = trees

    def changing(self, ids: Sequence[str]) -> frozenset[str]:
        """Give those check-ins that changed any file."""
        return frozenset(id_ for (id_,) in self._copy.rows_about(ids, _CHANGING))

    def between(self, graph: Graph, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """Name for each pair of check-ins the files in which they differ; a pair that lacks one has none.

        Fossil noted what a check-in changed of the one it was made on; of other pairs the trees are compared.
        """
        noted = {new: list[str]() for old, new in pairs if old and graph.primary(new) == old}
        for id_, name in self._copy.rows_about(list(noted), _FILES_CHANGED):
            noted[id_].append(name)
        others = [(old, new) for old, new in pairs if old and graph.primary(new) != old]
        different = self._trees.different(others)
        return [different.get((old, new), tuple(noted.get(new, ()))) if old else () for old, new in pairs]

    def touching(
        self, graph: Graph, ids: Sequence[str], paths: Sequence[str], *, every_parent: bool
    ) -> list[str]:
        """Give those check-ins that change one of the files against what they were made on.

        With `every_parent`, a merge must have them unlike each of its parents, as in ``git log --full-history``.
        """
        patterns = [posixpath.normpath(path) for path in paths]
        names = [name for (name,) in self._copy.rows(_FILE_NAMES) if _matches(name, patterns)]
        changing = {id_ for id_, _ in self._copy.rows_about(names, _CHANGED)}
        kept = [id_ for id_ in ids if id_ in changing]
        if not every_parent:
            return kept
        pairs = [(parent, id_) for id_ in kept for parent in graph.parents(id_)[1:]]
        different = self._trees.different(pairs)
        alike = {
            id_
            for (_, id_), found in different.items()
            if not any(_matches(path, patterns) for path in found)
        }
        return [id_ for id_ in kept if id_ not in alike]

    def labels(self, graph: Graph, ids: Iterable[str], label: Label) -> Mapping[str, str]:
        """Give what the pattern finds in the label's file at each check-in; each version of it is read once."""
        rows = self._copy.rows_about([posixpath.normpath(label.file)], _CHANGED)
        held = {id_: artifact for id_, artifact in rows}  # noqa: C416 - rows are tuples of any length to mypy
        holds = {id_: _held_at(graph, id_, held) for id_ in ids}
        artifacts = sorted(set(holds.values()) - {""})
        texts = {artifact: bytes.fromhex(text) for artifact, text in self._copy.rows_about(artifacts, _TEXTS)}
        return {id_: read_label(label.pattern, texts.get(artifact, b"")) for id_, artifact in holds.items()}


def _held_at(graph: Graph, id_: str, held: dict[str, str]) -> str:
    """What a check-in holds of a file: what it changed that to, else what the one it was made on holds.

    `held` knows it of those that changed the file, and is told of the others on the way.
    """
    line = []
    while id_ and id_ not in held:
        line.append(id_)
        id_ = graph.primary(id_)
    artifact = held[id_] if id_ else ""
    held.update(dict.fromkeys(line, artifact))
    return artifact


def _matches(name: str, patterns: Collection[str]) -> bool:
    """Whether a file is one of those named: itself, below a directory, or by ``*`` and ``?``."""
    return any(
        pattern in {".", name} or name.startswith(f"{pattern}/") or fnmatchcase(name, pattern)
        for pattern in patterns
    )
