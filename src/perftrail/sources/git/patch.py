"""Back-port changes in a git repository, in worktrees of the mirror; explain why a change does not apply.

The explanation lists files, lines, and the commits that changed them since.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, SourceError
from perftrail.model.patch import Conflict, FileChange, Obstacle, Passage, Patch
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.mirror import Mirror, add_worktree, forget_removed_worktrees
from perftrail.sources.patched import apply_partially, changes_of, isolated_git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.patch import Clash
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult
    from perftrail.sources.git.command import Git


_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_MARKER = b"<<<<<<< "
LARGEST_MARKED_BYTES = 16 << 20
"""Larger files are not searched for conflict markers."""

MOST_PASSAGES = 12
"""Maximum number of conflicts in one file whose commits are looked up; a file with more was rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Lines of one side of a hunk, from `first` on; `count` is 0 if the other side only adds."""

    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def touches(self, other: _Span) -> bool:
        """Whether two spans share a line or are adjacent: git does not merge such changes."""
        return (
            self.first <= max(other.last, other.first) + 1 and other.first <= max(self.last, self.first) + 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    before: _Span
    after: _Span


class MergeConflicts:
    """The files that git could not merge in a worktree, from its index."""

    def __init__(self, git: Git, mirror: Path, directory: Path) -> None:
        self._git = git
        self._mirror = mirror
        self._directory = directory
        self._stages = self._unmerged()

    @property
    def any(self) -> bool:
        """Whether there is a conflict."""
        return bool(self._stages)

    def explained(self, *, onto: Revision, fix: Revision | None) -> Conflict:
        """Return the conflicts of each file and the revisions that caused them, which are unknown without `fix`."""
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
            obstacles=obstacles,
            directory="",
            prerequisites=tuple(involved[id_] for id_ in order if id_ in involved),
        )

    def _obstacle(self, path: str, stages: Mapping[int, str], *, onto: str, parent: str) -> Obstacle:
        clash = _clash(stages)
        since: tuple[Revision, ...] = ()
        passages: tuple[Passage, ...] = ()
        if parent and clash == "changed":
            passages = self._passages(path, stages, onto=onto, parent=parent)
        if parent and not any(passage.since or passage.only_on_old_branch for passage in passages):
            since = self._touching(parent, onto, path)
        return Obstacle(path=path, clash=clash, passages=passages or self._marked(path), since=since)

    def _passages(
        self, path: str, stages: Mapping[int, str], *, onto: str, parent: str
    ) -> tuple[Passage, ...]:
        """Return where the change meets lines that differ in the old revision; line numbers before the change."""
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
                    only_on_old_branch=self._line_history(onto, parent, path, own),
                )
            )
        return tuple(passages)

    def _line_history(self, upto: str, without: str, path: str, span: _Span) -> tuple[Revision, ...]:
        """Return the revisions of one side that changed lines of a file, oldest first."""
        lines = f"{max(1, span.first)},{max(1, span.first, span.last)}:{path}"
        return self._log(f"-L{lines}", upto, f"^{without}")

    def _touching(self, upto: str, without: str, path: str) -> tuple[Revision, ...]:
        return self._log("--full-history", upto, f"^{without}", "--", path)

    def _log(self, *words: str) -> tuple[Revision, ...]:
        result = self._git.run(
            "--literal-pathspecs", "log", "--no-patch", "--topo-order", "--reverse", "--no-show-signature",
            "--format=tformat:%H%x00%P%x00%cI%x00%s", *words, repository=self._mirror,
        )  # fmt: skip
        if result.failed:
            return ()
        fields = (line.decode("utf-8", errors="replace").split("\0") for line in result.output.split(b"\n"))
        return tuple(
            Revision(id=id_, parents=tuple(parents.split()), time=time, summary=summary)
            for id_, parents, time, summary in (each for each in fields if len(each) == 4)
        )

    def _hunks(self, before: str, after: str) -> list[_Hunk]:
        result = self._git.run(
            "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--diff-algorithm=histogram",
            before, after, "--", repository=self._mirror,
        )  # fmt: skip
        return [
            _Hunk(before=_span(found[1], found[2]), after=_span(found[3], found[4]))
            for found in _HUNK.finditer(result.output)
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
        result = self._git.run("ls-files", "--unmerged", "-z", repository=self._directory)
        entries = [entry.partition("\t") for entry in result.fields()]
        return {
            path: {int(words.split()[2]): words.split()[1] for words, _, _ in same}
            for path, same in groupby(entries, key=lambda entry: entry[2])
        }

    def _lines(self, *words: str) -> Sequence[str]:
        return self._git.run(*words, repository=self._mirror).lines()


def _clash(stages: Mapping[int, str]) -> Clash:
    """Return a conflict from the index stages: 1 is the file before the change, 2 the old revision's, 3 after it."""
    if 2 not in stages:
        return "absent"
    if 3 not in stages:
        return "deleted"
    return "changed" if 1 in stages else "added"


def _span(first: bytes, count: bytes | None) -> _Span:
    return _Span(first=int(first), count=1 if count is None else int(count))


_TREE = "tree"
"""Name of the half-applied tree in its directory."""

PLAIN_DIFF = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""Options that exclude the user's and the repository's settings from a diff."""


class GitPatches:
    """Makes patches for an old revision from a revision's change, or from a given patch.

    A patch that does not apply is left half-applied in the caller's directory. An existing tree there may contain
    the user's work, and does not change.
    """

    def __init__(self, table: SourceTable, *, cache: str, starter: Starter) -> None:
        self._mirror = Mirror(table.location, cache=Path(cache), starter=starter)
        self._git = self._mirror.git
        self._location = table.location

    def cherry_pick(self, fix: Revision, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Return a patch for `onto` with the change of `fix` relative to its first parent.

        Raises `NoAnswer` if the old revision already has the change, `SourceError` if git cannot try.
        """
        mainline = ["--mainline", "1"] if len(fix.parents) > 1 else []

        def attempt(scratch: Path) -> Patch | Conflict:
            result = self._git.run(
                "-c", "merge.conflictStyle=merge", "-c", "rerere.enabled=false",
                "cherry-pick", "--no-commit", *mainline, fix.id,
                repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
            return self._outcome(result, scratch, onto=onto, fix=fix)

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def apply(self, text: bytes, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Return a given patch, adapted to `onto`.

        Raises `SourceError` for an invalid patch, `NoAnswer` if it changes nothing there.
        """

        def attempt(scratch: Path) -> Patch | Conflict:
            file = scratch / "given.patch"
            file.write_bytes(text)
            changes_of(self._git, file)
            result = self._git.run(
                "apply", "--3way", "--index", "--whitespace=nowarn", "--", str(file),
                repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
            if result.failed and not self._conflicts(scratch).any:
                git = isolated_git(self._git, scratch / _TREE)
                return Conflict(obstacles=apply_partially(git, file, scratch / _TREE), directory="")
            return self._outcome(result, scratch, onto=onto, fix=None)

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def changes(self, before: Revision, after: Revision) -> tuple[FileChange, ...]:
        """Return the files that differ between two revisions, with their numbers of lines."""
        result = self._git.run(
            "diff", "--binary", "--full-index", *PLAIN_DIFF, before.id, after.id, "--",
            repository=self._mirror.ready(),
        )  # fmt: skip
        if result.failed:
            raise SourceError(f"{self._location}: git cannot compare its revisions: {result.why}")
        return self._changes(result.output)

    def _outcome(
        self, result: ToolResult, scratch: Path, *, onto: Revision, fix: Revision | None
    ) -> Patch | Conflict:
        conflicts = self._conflicts(scratch)
        if conflicts.any:
            return conflicts.explained(onto=onto, fix=fix)
        if result.failed:
            raise SourceError(f"{self._location}: git cannot apply the change: {result.why}")
        diff = self._git.run(
            "diff", "--cached", "--binary", "--full-index", *PLAIN_DIFF, "HEAD", "--",
            repository=scratch / _TREE,
        )  # fmt: skip
        if diff.failed:
            raise SourceError(f"{self._location}: git cannot write the patch: {diff.why}")
        if not diff.output.strip():
            raise NoAnswer(
                f"{quoted(onto.label or onto.short)} already has this change: there is nothing to back-port"
            )
        return Patch(text=diff.output, files=self._changes(diff.output))

    def _conflicts(self, scratch: Path) -> MergeConflicts:
        return MergeConflicts(self._git, self._mirror.path, scratch / _TREE)

    def _changes(self, text: bytes) -> tuple[FileChange, ...]:
        if not text.strip():
            return ()
        with tempfile.NamedTemporaryFile(prefix="perftrail-patch-") as file:
            file.write(text)
            file.flush()
            return changes_of(self._git, Path(file.name))

    def _try_out(
        self, attempt: Callable[[Path], Patch | Conflict], *, onto: Revision, home: Path
    ) -> Patch | Conflict:
        """Check the old revision out, try the change on it, and keep the tree if it does not apply."""
        commit = self._mirror.resolve(onto.id)
        forget_removed_worktrees(self._mirror)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            tree, stored = Path(scratch) / _TREE, home / _TREE
            add_worktree(self._mirror, commit, str(tree), f"{scratch}/log")
            outcome = attempt(Path(scratch))
            if isinstance(outcome, Conflict):
                existed = stored.exists()
                if not existed:
                    self._git.run(
                        "worktree", "move", "--", str(tree), str(stored), repository=self._mirror.path
                    )
                outcome = replace(outcome, directory=str(stored), directory_existed=existed)
        if not any(home.iterdir()):
            home.rmdir()
        return outcome
