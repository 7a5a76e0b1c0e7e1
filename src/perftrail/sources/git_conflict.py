"""Explains why a change does not apply to an old revision: which files, which lines, and who touched them since."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.patch import Conflict, Obstacle, Passage
from perftrail.model.subject import Revision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.patch import Clash
    from perftrail.sources.git_command import Git

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_MARKER = b"<<<<<<< "
LARGEST_MARKED_BYTES = 16 << 20
MOST_PASSAGES = 12
"""In so many passages of one file is looked for who touched them; a file with more was rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Lines of one side of a hunk, from `first` on; `count` is 0 where the other side only adds."""

    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def touches(self, other: _Span) -> bool:
        """Whether two spans share a line or stand at each other: git merges no such changes."""
        return (
            self.first <= max(other.last, other.first) + 1 and other.first <= max(self.last, self.first) + 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    before: _Span
    after: _Span


class Clashes:
    """The files that git could not merge in a worktree, by what its index says of them."""

    def __init__(self, git: Git, mirror: Path, directory: Path) -> None:
        self._git = git
        self._mirror = mirror
        self._directory = directory
        self._stages = self._unmerged()

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._stages)

    def explained(self, *, onto: Revision, fix: Revision | None) -> Conflict:
        """Say of each file what clashes, and which revisions made it so; without `fix` nobody knows which."""
        parent = fix.parents[0] if fix is not None and fix.parents else ""
        obstacles = tuple(
            self._obstacle(path, stages, onto=onto.id, parent=parent) for path, stages in self._stages.items()
        )
        involved = {
            revision.id: revision
            for obstacle in obstacles
            for revision in (
                *obstacle.since,
                *(each for passage in obstacle.passages for each in passage.since),
            )
        }
        order = (
            self._lines("rev-list", "--topo-order", "--reverse", parent, f"^{onto.id}") if involved else []
        )
        return Conflict(
            obstacles=obstacles, directory="", first=tuple(involved[id_] for id_ in order if id_ in involved)
        )

    def _obstacle(self, path: str, stages: Mapping[int, str], *, onto: str, parent: str) -> Obstacle:
        clash = _clash(stages)
        since: tuple[Revision, ...] = ()
        passages: tuple[Passage, ...] = ()
        if parent and clash == "changed":
            passages = self._passages(path, stages, onto=onto, parent=parent)
        if parent and not any(passage.since or passage.apart for passage in passages):
            since = self._touching(parent, onto, path)
        return Obstacle(path=path, clash=clash, passages=passages or self._marked(path), since=since)

    def _passages(
        self, path: str, stages: Mapping[int, str], *, onto: str, parent: str
    ) -> tuple[Passage, ...]:
        """Where the change meets lines that the old revision has otherwise, in the file before the change."""
        changed = self._hunks(stages[1], stages[3])
        differing = self._hunks(stages[1], stages[2])
        markers = self._markers(path)
        met = [
            (hunk, touched)
            for hunk in changed
            if (touched := [each for each in differing if each.before.touches(hunk.before)])
        ]
        if len(met) > MOST_PASSAGES:
            return ()
        passages = []
        for number, (hunk, touched) in enumerate(met):
            start = min(hunk.before.first, *(each.before.first for each in touched))
            end = max(hunk.before.last, *(max(each.before.last, each.before.first) for each in touched))
            own = _Span(
                first=touched[0].after.first,
                count=max(1, touched[-1].after.last - touched[0].after.first + 1),
            )
            passages.append(
                Passage(
                    first=max(1, start),
                    last=max(1, start, end),
                    marker=markers[number] if len(markers) == len(met) else 0,
                    since=self._line_history(parent, onto, path, _Span(first=start, count=end - start + 1)),
                    apart=self._line_history(onto, parent, path, own),
                )
            )
        return tuple(passages)

    def _line_history(self, upto: str, without: str, path: str, span: _Span) -> tuple[Revision, ...]:
        """The revisions of one side that touched lines of a file, oldest first."""
        lines = f"{max(1, span.first)},{max(1, span.first, span.last)}:{path}"
        return self._log(f"-L{lines}", upto, f"^{without}")

    def _touching(self, upto: str, without: str, path: str) -> tuple[Revision, ...]:
        return self._log("--full-history", upto, f"^{without}", "--", path)

    def _log(self, *words: str) -> tuple[Revision, ...]:
        answer = self._git.ask(
            "--literal-pathspecs", "log", "--no-patch", "--topo-order", "--reverse", "--no-show-signature",
            "--format=tformat:%H%x00%P%x00%cI%x00%s", *words, repository=self._mirror,
        )  # fmt: skip
        if answer.failed:
            return ()
        fields = (line.decode("utf-8", errors="replace").split("\0") for line in answer.output.split(b"\n"))
        return tuple(
            Revision(id=id_, parents=tuple(parents.split()), time=time, summary=summary)
            for id_, parents, time, summary in (each for each in fields if len(each) == 4)
        )

    def _hunks(self, before: str, after: str) -> list[_Hunk]:
        answer = self._git.ask(
            "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--diff-algorithm=histogram",
            before, after, "--", repository=self._mirror,
        )  # fmt: skip
        return [
            _Hunk(before=_span(found[1], found[2]), after=_span(found[3], found[4]))
            for found in _HUNK.finditer(answer.output)
        ]

    def _marked(self, path: str) -> tuple[Passage, ...]:
        return tuple(Passage(first=0, last=0, marker=line) for line in self._markers(path))

    def _markers(self, path: str) -> list[int]:
        file = self._directory / path
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LARGEST_MARKED_BYTES:
            return []
        lines = file.read_bytes().split(b"\n")
        return [number for number, line in enumerate(lines, start=1) if line.startswith(_MARKER)]

    def _unmerged(self) -> dict[str, dict[int, str]]:
        answer = self._git.ask("ls-files", "--unmerged", "-z", repository=self._directory)
        entries = [entry.partition("\t") for entry in answer.fields()]
        return {
            path: {int(words.split()[2]): words.split()[1] for words, _, _ in same}
            for path, same in groupby(entries, key=lambda entry: entry[2])
        }

    def _lines(self, *words: str) -> Sequence[str]:
        return self._git.ask(*words, repository=self._mirror).lines()


def _clash(stages: Mapping[int, str]) -> Clash:
    """What index stages tell: 1 is the file before the change, 2 the old revision's, 3 after the change."""
    if 2 not in stages:
        return "absent"
    if 3 not in stages:
        return "deleted"
    return "changed" if 1 in stages else "added"


def _span(first: bytes, count: bytes | None) -> _Span:
    return _Span(first=int(first), count=1 if count is None else int(count))
