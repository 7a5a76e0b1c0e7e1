"""Back-port changes in a git repository, in worktrees of the mirror; explain why a change does not apply.

The explanation lists files, lines, and the commits that changed them since.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perftrail.errors import NoAnswer, SourceError
from perftrail.model.patch import EVERY_PATH, Conflict, FileChange, Obstacle, Passage, Patch
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.mirror import Mirror, add_worktree, forget_removed_worktrees
from perftrail.sources.patched import apply_partially, changes_of, exclude_options, isolated_git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.patch import Clash, LeftOut, PatchPaths
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


MOST_RESTORED = 500
"""Number of files that one command restores, because a command line is limited."""

Direction = Literal["apply", "revert"]
"""What happens to the change of a revision."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Causes:
    """Where to look for the revisions that caused a conflict: those of `upto` that `without` lacks.

    `base` is the revision from which the lines of the change and those of `onto` differ; empty if unknown.
    """

    base: str
    onto: str
    direction: Direction

    @property
    def upto(self) -> str:
        return self.base if self.direction == "apply" else self.onto

    @property
    def without(self) -> str:
        return self.onto if self.direction == "apply" else self.base


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

    def explained(
        self, *, onto: Revision, changed: Revision | None, direction: Direction = "apply"
    ) -> Conflict:
        """Return the conflicts of each file and the revisions that caused them, which are unknown without `changed`.

        `changed` is the revision with the change. To apply it, `onto` may lack revisions before the change. To revert
        it, `onto` may have revisions after the change.
        """
        base = "" if changed is None else changed.id
        if changed is not None and direction == "apply":
            base = changed.parents[0] if changed.parents else ""
        causes = _Causes(base=base, onto=onto.id, direction=direction)
        obstacles = tuple(self._obstacle(path, stages, causes) for path, stages in self._stages.items())
        involved = {
            revision.id: revision
            for obstacle in obstacles
            for revision in (
                *obstacle.since,
                *(each for passage in obstacle.passages for each in passage.since),
            )
        }
        oldest_first = ["--reverse"] if direction == "apply" else []
        order = (
            self._lines("rev-list", "--topo-order", *oldest_first, causes.upto, f"^{causes.without}")
            if involved
            else []
        )
        return Conflict(
            obstacles=obstacles,
            directory="",
            prerequisites=tuple(involved[id_] for id_ in order if id_ in involved),
        )

    def _obstacle(self, path: str, stages: Mapping[int, str], causes: _Causes) -> Obstacle:
        clash = _clash(stages)
        since: tuple[Revision, ...] = ()
        passages: tuple[Passage, ...] = ()
        if causes.base and clash == "changed":
            passages = self._passages(path, stages, causes)
        if causes.base and not any(passage.since or passage.only_on_old_branch for passage in passages):
            since = self._touching(causes.upto, causes.without, path)
        return Obstacle(path=path, clash=clash, passages=passages or self._marked(path), since=since)

    def _passages(self, path: str, stages: Mapping[int, str], causes: _Causes) -> tuple[Passage, ...]:
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
            in_base = self._line_history(
                causes.base, causes.onto, path, _Span(first=start, count=end - start + 1)
            )
            in_onto = self._line_history(causes.onto, causes.base, path, own)
            passages.append(
                Passage(
                    first=max(1, start),
                    last=max(1, start, end),
                    marker=markers[number] if len(markers) == len(met) else 0,
                    since=in_base if causes.direction == "apply" else in_onto,
                    only_on_old_branch=in_onto if causes.direction == "apply" else in_base,
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


def restore_left_out(git: Git, tree: Path, paths: PatchPaths) -> tuple[LeftOut, ...]:
    """Restore the files of a change that `paths` leaves out, in a worktree with the merged change; return them.

    Raises `SourceError` if git cannot.
    """
    unmerged = git.run("ls-files", "--unmerged", "-z", repository=tree)
    changed = git.run("diff", "--cached", "--name-only", "-z", *PLAIN_DIFF, "HEAD", "--", repository=tree)
    if unmerged.failed or changed.failed:
        raise SourceError(f"git cannot list the changed files: {unmerged.why or changed.why}")
    conflicting = [entry.partition("\t")[2] for entry in unmerged.fields()]
    left_out = paths.left_out(changed.fields(), conflicting)
    for start in range(0, len(left_out), MOST_RESTORED):
        names = [each.path for each in left_out[start : start + MOST_RESTORED]]
        _restore(git, tree, "reset", "--quiet", "HEAD", "--", *names)
        if tracked := _restore(git, tree, "ls-files", "-z", "--", *names).fields():
            _restore(git, tree, "restore", "--worktree", "--", *tracked)
        _restore(git, tree, "clean", "--quiet", "-ffdx", "--", *names)
    return left_out


def _restore(git: Git, tree: Path, *words: str) -> ToolResult:
    result = git.run("--literal-pathspecs", *words, repository=tree, timeout_seconds=LONG_SECONDS)
    if result.failed:
        raise SourceError(f"git cannot leave files of the change out: {result.why}")
    return result


def nothing_left(onto: Revision, left_out: Sequence[LeftOut], *, direction: Direction) -> str:
    """Return the message for a change of which nothing remains to apply or revert."""
    name = quoted(onto.label or onto.short)
    if left_out:
        return f"every file of the change that differs in {name} is left out: nothing remains to {direction}"
    if direction == "revert":
        return f"{name} does not have this change: there is nothing to revert"
    return f"{name} already has this change: there is nothing to back-port"


class GitPatches:
    """Makes patches for an old revision from a revision's change, or from a given patch.

    A patch that does not apply is left half-applied in the caller's directory. An existing tree there may contain
    the user's work, and does not change.
    """

    def __init__(self, table: SourceTable, *, cache: str, starter: Starter) -> None:
        self._mirror = Mirror(table.location, cache=Path(cache), starter=starter)
        self._git = self._mirror.git
        self._location = table.location

    def cherry_pick(
        self, fix: Revision, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Return a patch for `onto` with the change of `fix` relative to its first parent.

        Raises `NoAnswer` if the old revision already has the change, `SourceError` if git cannot try.
        """
        return self._merge("cherry-pick", fix, onto=onto, workplace=workplace, paths=paths)

    def revert(
        self, culprit: Revision, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Return a patch for `onto` that undoes the change of `culprit` relative to its first parent.

        Raises `NoAnswer` if `onto` does not have the change, `SourceError` if git cannot try.
        """
        return self._merge("revert", culprit, onto=onto, workplace=workplace, paths=paths)

    def _merge(
        self,
        command: Literal["cherry-pick", "revert"],
        changed: Revision,
        *,
        onto: Revision,
        workplace: str,
        paths: PatchPaths,
    ) -> Patch | Conflict:
        mainline = ["--mainline", "1"] if len(changed.parents) > 1 else []
        direction: Direction = "apply" if command == "cherry-pick" else "revert"

        def attempt(scratch: Path) -> Patch | Conflict:
            result = self._git.run(
                "-c", "merge.conflictStyle=merge", "-c", "rerere.enabled=false",
                command, "--no-commit", *mainline, changed.id,
                repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
            return self._outcome(
                result, scratch, onto=onto, changed=changed, direction=direction, paths=paths
            )

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def apply(
        self, text: bytes, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Return a given patch, adapted to `onto`.

        Raises `SourceError` for an invalid patch, `NoAnswer` if it changes nothing there.
        """

        def attempt(scratch: Path) -> Patch | Conflict:
            file = scratch / "given.patch"
            file.write_bytes(text)
            names = [each.path for each in changes_of(self._git, file)]
            left_out = paths.left_out(names, ())
            result = self._apply(scratch, file, left_out)
            if result.failed and not self._conflicts(scratch).any:
                # git applied nothing: it does not know the files from which the patch was made.
                git = isolated_git(self._git, scratch / _TREE)
                obstacles = apply_partially(git, file, scratch / _TREE, left_out)
                left_out = paths.left_out(names, [each.path for each in obstacles])
                omitted = {each.path for each in left_out}
                obstacles = tuple(each for each in obstacles if each.path not in omitted)
                if obstacles:
                    return Conflict(obstacles=obstacles, directory="", left_out=left_out)
                self._git.run("reset", "--quiet", "--hard", "HEAD", repository=scratch / _TREE)
                self._git.run("clean", "--quiet", "-ffdx", repository=scratch / _TREE)
                result = self._apply(scratch, file, left_out)
            return self._outcome(result, scratch, onto=onto, changed=None, paths=paths, known=left_out)

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def _apply(self, scratch: Path, file: Path, left_out: Sequence[LeftOut]) -> ToolResult:
        return self._git.run(
            "apply", "--3way", "--index", "--whitespace=nowarn", *exclude_options(left_out), "--", str(file),
            repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip

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
        self,
        result: ToolResult,
        scratch: Path,
        *,
        onto: Revision,
        changed: Revision | None,
        paths: PatchPaths,
        direction: Direction = "apply",
        known: tuple[LeftOut, ...] = (),
    ) -> Patch | Conflict:
        """Return the result of a merge in a worktree, without the files that `paths` leaves out; `known` are others."""
        before = self._conflicts(scratch).any
        left_out = (*known, *restore_left_out(self._git, scratch / _TREE, paths))
        conflicts = self._conflicts(scratch)
        if conflicts.any:
            return replace(
                conflicts.explained(onto=onto, changed=changed, direction=direction), left_out=left_out
            )
        if result.failed and not before:
            raise SourceError(f"{self._location}: git cannot {direction} the change: {result.why}")
        diff = self._git.run(
            "diff", "--cached", "--binary", "--full-index", *PLAIN_DIFF, "HEAD", "--",
            repository=scratch / _TREE,
        )  # fmt: skip
        if diff.failed:
            raise SourceError(f"{self._location}: git cannot write the patch: {diff.why}")
        if not diff.output.strip():
            raise NoAnswer(nothing_left(onto, left_out, direction=direction))
        return Patch(text=diff.output, files=self._changes(diff.output), left_out=left_out)

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
