"""Revisions of a git repository, local or remote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.reads import TreeFile
from perftrail.model.subject import Branch, Merge, Revision
from perftrail.sources.git.checkout import Checkouts, Contents
from perftrail.sources.git.command import differing_paths, find_objects, read_blobs
from perftrail.sources.git.functions import touched_functions
from perftrail.sources.git.lineage import GitLineage, merged_lines
from perftrail.sources.git.mirror import Mirror
from perftrail.sources.ranges import parse_range, read_label, resolve_ends, select_revisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.patch import TouchedFile
    from perftrail.model.source import Label
    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter

_FORMAT = "tformat:%H%x00%T%x00%P%x00%cI%x00%s"
_FIELDS = 5


class GitSource:
    """The history of a git repository, always in topological order, whatever the dates.

    The first end of a range is part of it. `touching`, tags and merges select revisions between the ends; the ends
    themselves are always included.
    """

    def __init__(self, table: SourceTable, *, cache: str, starter: Starter) -> None:
        self.remark = ""
        self._table = table
        self._mirror = Mirror(table.location, cache=Path(cache), starter=starter)
        self._lineage = GitLineage(self._mirror, table)
        self._contents = Contents(self._mirror, table)
        self._histories: dict[str | None, tuple[tuple[Revision, ...], str]] = {}
        self._checkouts = Checkouts(self._mirror, table, cache=Path(cache), starter=starter)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the revisions of a range, by default the study's, parents before children."""
        if range not in self._histories:
            found = select_revisions(self._lineage, self._table, range)
            self._histories[range] = self._described(found.ids), found.remark
        revisions, self.remark = self._histories[range]
        return revisions

    def within(self, range: str) -> frozenset[str]:
        """Return every commit that contains the first end and that the second contains, ends included."""
        ends = parse_range(range)
        ids = resolve_ends(self._lineage, ends)
        limits = ["--ancestry-path", f"^{ids.old}"] if ids.old else []
        upto = [ids.new] if ends.new else ["--all", self._lineage.newest()]
        found = self._lineage.lines("rev-list", *limits, *upto)
        return frozenset(found) | ({ids.old} if ids.old else frozenset())

    def refresh(self) -> None:
        """Fetch new commits."""
        self._histories.clear()
        self._mirror.refresh()

    def edited(self) -> str:
        """Return the checked-out commit if files are changed or staged; empty otherwise.

        To compare a file, git may start a filter that the repository names. So this query uses the mirror's settings,
        and only the index of the user's repository.
        """
        if self._mirror.own_copy is None:
            return ""
        git, repository = self._mirror.git, self._table.location
        query = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index")
        found = git.run(*query, repository=repository)
        if found.failed or not Path(found.lines()[1]).is_file():
            return ""  # nothing is checked out
        top, index = found.lines()[:2]
        commit = self._mirror.resolve("HEAD")
        comparing = git.with_variables(
            GIT_DIR=str(self._mirror.ready()), GIT_WORK_TREE=top, GIT_INDEX_FILE=index
        )
        staged = ("diff-index", "--cached", "--name-only", "--ignore-submodules=all", commit)
        files = ("diff-files", "--name-only", "--ignore-submodules=all")
        results = [comparing.run(*words, repository=top) for words in (staged, files)]
        return commit if any(result.output.strip() for result in results if not result.failed) else ""

    def merge(self, revision: Revision) -> Merge | None:
        """Return the parents of a merge, or of a commit that squashed a branch, with their branches."""
        lines = merged_lines(self._mirror, revision, self._table.link)
        if not lines:
            return None
        wanted = dict.fromkeys(
            [revision.parents[0], *(id_ for line in lines for id_ in (line.base, *line.ids))]
        )
        known = {each.id: each for each in self._described([id_ for id_ in wanted if id_])}
        return Merge(
            revision=revision,
            trunk=known[revision.parents[0]],
            branches=tuple(
                Branch(base=known.get(line.base), revisions=tuple(known[id_] for id_ in line.ids))
                for line in lines
            ),
        )

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return the changed files of each commit relative to its known parent, else to the previous one."""
        return differing_paths(self._mirror.git, self._mirror.ready(), self._tree_pairs(revisions))

    def touched_functions(self, revisions: Sequence[Revision]) -> tuple[tuple[TouchedFile, ...], ...]:
        """Return the changed files, as `touched` does, with the functions that git names in their diffs."""
        return touched_functions(self._mirror.git, self._mirror.ready(), self._tree_pairs(revisions))

    def _tree_pairs(self, revisions: Sequence[Revision]) -> list[tuple[str, str]]:
        """Return the trees of the known parent of each commit, else of the previous one, and of the commit."""
        trees = {revision.id: self._contents.tree(revision.id) for revision in revisions}
        before = ["", *(each.id for each in revisions)]
        return [
            (trees.get(each.parents[0] if each.parents else "", trees.get(previous, "")), trees[each.id])
            for previous, each in zip(before, revisions, strict=False)
        ]

    def files(self, revision: Revision) -> Mapping[str, TreeFile]:
        """Return every file of a commit's tree by its path; submodules are one entry each."""
        commit = self._mirror.resolve(revision.id)
        result = self._mirror.git.run(
            "ls-tree", "-r", "-z", "--full-tree", commit, repository=self._mirror.path
        )
        if result.failed:
            raise SourceError(f"{self._table.location}: git cannot list {revision.short}: {result.why}")
        entries = (entry.partition("\t") for entry in result.fields())
        return {path: TreeFile(mode=words.split()[0], content=words.split()[2]) for words, _, path in entries}

    def content(self, revision: Revision) -> str:
        """Return the content key of a revision's tree: git's id, or those of the selected files, with submodules."""
        return self._contents.of(revision.id)

    def content_without(self, revision: Revision, globs: tuple[str, ...]) -> str:
        """Return the content key of a revision's files without those that match `globs`, as in `source.sparse`."""
        return self._contents.of(revision.id, without=globs)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Check a revision out as a worktree of the mirror, so that its build can run ``git describe``."""
        try:
            commit = self._mirror.resolve(revision.id)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        self._checkouts.write(commit, directory, log)

    def _described(self, ids: Sequence[str]) -> tuple[Revision, ...]:
        result = self._mirror.git.run(
            "log", "-z", "--no-walk=unsorted", f"--format={_FORMAT}", "--no-show-signature", "--stdin",
            repository=self._mirror.path, stdin="".join(f"{id_}\n" for id_ in ids).encode(),
        )  # fmt: skip
        if result.failed:
            raise SourceError(f"{self._table.location}: git cannot read its history: {result.why}")
        fields = result.fields()
        label = self._table.label
        labels = {
            **(self._labels(ids, label) if label else self._lineage.tags()),
            **self._lineage.uncommitted,
        }
        revisions = []
        for start in range(0, len(fields), _FIELDS):
            id_, tree, parents, time, summary = fields[start : start + _FIELDS]
            self._contents.remember(id_, tree)
            revisions.append(
                Revision(
                    id=id_,
                    summary=summary,
                    label=labels.get(id_, ""),
                    time=time,
                    parents=tuple(parents.split()),
                )
            )
        return tuple(revisions)

    def _labels(self, ids: Sequence[str], label: Label) -> Mapping[str, str]:
        """Return the label of each revision from the label's file; each version of the file is read once."""
        git, mirror = self._mirror.git, self._mirror.path
        files = find_objects(git, mirror, [f"{id_}:{label.file}" for id_ in ids])
        texts = read_blobs(git, mirror, [file for file in files if file is not None])
        found = {id_: read_label(label.pattern, text) for id_, text in texts.items()}
        return {id_: found.get(file.id, "") for id_, file in zip(ids, files, strict=True) if file is not None}


open_history = GitSource
"""Open a git repository, for `perftrail.sources.open_table`."""
