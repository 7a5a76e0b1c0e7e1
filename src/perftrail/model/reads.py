"""The files of its tree that an observed build used, and which files of a tree can therefore matter."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from perftrail.model.build import content_key

REGULAR = ("100644", "100755")
"""Modes of plain files in git's trees; the others are symbolic links and submodules."""

ALWAYS_RELEVANT = (".gitattributes", ".gitmodules")
"""Files that decide how git checks others out."""

_UNREADABLE = "\ufffd"
"""Stands for a byte of a name that is not valid UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A file of a revision's tree: its mode in git's notation, and the id of its content."""

    mode: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReads:
    """The paths that a build and the builds of its benchmarks used, relative to the root of its tree.

    `opened` paths are files whose content a process could read, or moved directories. `looked_up` paths are those of
    which a process asked only whether they exist, or their kind, also if they do not exist. `listed` are directories
    whose names a process read; the root is an empty text. `outside` are the files outside of the tree that a process
    opened, by their absolute paths, each with the digest of its content at that time. `incomplete` states why paths may
    be missing; empty if the observation is complete.
    """

    opened: frozenset[str] = frozenset()
    looked_up: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    outside: Mapping[str, str] = field(default_factory=dict)
    incomplete: str = ""

    def __or__(self, other: BuildReads) -> BuildReads:
        """Return the paths of both."""
        return BuildReads(
            opened=self.opened | other.opened,
            looked_up=self.looked_up | other.looked_up,
            listed=self.listed | other.listed,
            outside={**other.outside, **self.outside},
            incomplete=self.incomplete or other.incomplete,
        )

    def unread(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that the build did not open; none if the observation is incomplete.

        >>> sorted(BuildReads(opened=frozenset({"a.c", "moved"})).unread(["a.c", "moved/b.c", "NEWS"]))
        ['NEWS']
        """
        if self.incomplete:
            return frozenset()
        return frozenset(path for path in paths if not self._opens(path))

    def key(self, files: Mapping[str, TreeFile]) -> str:
        """Return the content key of what the build can see of a tree.

        A build that was observed in one of two trees with equal keys sees the same in both: the same content of files
        that it opens, the same answers where it looks for files, and the same names in directories that it lists.
        Symbolic links, submodules and git's own files always count.
        """
        seen: list[tuple[str, str, str]] = []
        directories: dict[str, None] = {}
        for path, file in files.items():
            directories.update(dict.fromkeys(_ancestors(path)))
            if self._is_relevant(path, file):
                seen.append((path, file.mode, file.content))
            elif path in self.looked_up:
                seen.append((path, file.mode, ""))
            if posixpath.dirname(path) in self.listed:
                seen.append((path, "listed", file.mode if file.mode not in REGULAR else ""))
        for directory in directories:
            if directory in self.looked_up or posixpath.dirname(directory) in self.listed:
                seen.append((directory, "directory", ""))
        return content_key(sorted(seen))

    def _is_relevant(self, path: str, file: TreeFile) -> bool:
        return (
            file.mode not in REGULAR
            or posixpath.basename(path) in ALWAYS_RELEVANT
            or _UNREADABLE in path
            or self._opens(path)
        )

    def _opens(self, path: str) -> bool:
        return path in self.opened or any(each in self.opened for each in _ancestors(path))


def _ancestors(path: str) -> Iterator[str]:
    """Yield the directories above a path, without the root."""
    while path := posixpath.dirname(path):
        yield path


def patterns_of(unread: Collection[str], every: Collection[str]) -> tuple[str, ...]:
    """Return paths that cover unread files of a tree and no other, whole directories where possible, sorted.

    Names with characters of globs are left out.

    >>> files = ["a.c", "NEWS", "docs/a", "docs/b/c", "lib/b.c", "lib/TODO"]
    >>> patterns_of({"NEWS", "docs/a", "docs/b/c", "lib/TODO"}, files)
    ('NEWS', 'docs', 'lib/TODO')
    """
    read_directories = {directory for path in every if path not in unread for directory in _ancestors(path)}
    covered = set()
    for path in unread:
        whole = [directory for directory in _ancestors(path) if directory not in read_directories]
        covered.add(whole[-1] if whole else path)
    return tuple(sorted(name for name in covered if not set(name) & set("*?[\\")))
