"""What Fossil's check-ins changed: which touch a file, and what a file said at each of them."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.sources.labels import LARGEST_LABEL_BYTES, read_label

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perftrail.model.source import Label
    from perftrail.sources.fossil_copy import FossilCopy
    from perftrail.sources.fossil_graph import Graph
    from perftrail.sources.fossil_tree import FossilTrees

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
