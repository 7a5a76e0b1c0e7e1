"""Revisions of a git repository, local or remote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.merge import Branch, Merge
from perftrail.model.subject import Revision
from perftrail.sources.git_merges import joined
from perftrail.sources.git_mirror import Mirror, json_like
from perftrail.sources.git_objects import differing_paths, find_objects, read_blobs
from perftrail.sources.git_worktree import add_worktree, forget_removed_worktrees
from perftrail.sources.ranges import EVERYTHING, Ends, parse_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Label
    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter

_FORMAT = "tformat:%H%x00%T%x00%P%x00%cI%x00%s"
_FIELDS = 5


class GitSource:
    """The history of a git repository, always in topological order, whatever its dates say.

    The first end of a range belongs to it. `touching`, tags and merges choose among what lies between the
    ends, which are kept whatever they are.
    """

    def __init__(self, asked: Asked, *, cache: str, starter: Starter) -> None:
        self._asked = asked
        self._mirror = Mirror(asked.location, cache=Path(cache), starter=starter)
        self._trees: dict[str, str] = {}
        self._tidied = False

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the revisions of a range, the study's own without one, parents before children."""
        text = self._asked.range if range is None else range
        ends = parse_range(text) if text else EVERYTHING
        old = self._mirror.resolve(ends.old) if ends.old else ""
        new = self._mirror.resolve(ends.new or "HEAD")
        if old:
            self._check_order(ends, old=old, new=new)
        ids = self._between(old=old, new=new)
        if old:
            ids = [old, *ids]
        if ends.new and new not in ids[-1:]:
            ids = [*ids, new]
        for link in self._asked.link:
            # a name that leads nowhere is better told now than when the search has come to it
            self._mirror.resolve(link.branch)
            self._mirror.resolve(link.merge)
        if not ids:
            raise SourceError(f"{self._asked.location}: no revision fits walk = {self._asked.walk!r}")
        return self._described(ids)

    def within(self, range: str) -> frozenset[str]:
        """Give every commit that contains the first end and is contained in the second, ends included."""
        ends = parse_range(range)
        limits = ["--ancestry-path", f"^{self._mirror.resolve(ends.old)}"] if ends.old else []
        upto = [self._mirror.resolve(ends.new)] if ends.new else ["--all", self._mirror.resolve("HEAD")]
        ids = self._lines("rev-list", *limits, *upto)
        return frozenset(ids) | ({limits[1][1:]} if limits else frozenset())

    def merge(self, revision: Revision) -> Merge | None:
        """Give the parents of a merge, or of a commit that a branch was squashed into, with their lines."""
        lines = joined(self._mirror, revision, self._asked.link)
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
        """Compare trees in one go; a commit whose parent is known is compared with that one."""
        trees = {revision.id: self.content(revision) for revision in revisions}
        before = ["", *(each.id for each in revisions)]
        pairs = [
            (trees.get(each.parents[0] if each.parents else "", trees.get(previous, "")), trees[each.id])
            for previous, each in zip(before, revisions, strict=False)
        ]
        return differing_paths(self._mirror.git, self._mirror.ready(), pairs)

    def content(self, revision: Revision) -> str:
        """Name a revision's tree by its id in git."""
        if revision.id not in self._trees:
            (tree,) = find_objects(self._mirror.git, self._mirror.ready(), [f"{revision.id}^{{tree}}"])
            if tree is None:
                raise SourceError(f"{self._asked.location}: no revision {json_like(revision.id)}")
            self._trees[revision.id] = tree.id
        return self._trees[revision.id]

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Check a revision out as a worktree of the mirror, so that ``git describe`` works in its build."""
        try:
            commit = self._mirror.resolve(revision.id)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        if not self._tidied:
            forget_removed_worktrees(self._mirror)
            self._tidied = True
        add_worktree(self._mirror, commit, directory, log)

    def _check_order(self, ends: Ends, *, old: str, new: str) -> None:
        ancestors = self._lines("merge-base", old, new)
        if old in ancestors:
            return
        where = f'{self._asked.location}: range "{ends.old}..{ends.new or "HEAD"}"'
        if new in ancestors:
            raise SourceError(f'{where}: is backwards; write "{ends.new or "HEAD"}..{ends.old}"')
        if not ancestors:
            raise SourceError(f"{where}: its ends have no history in common; choose both on one branch")
        raise SourceError(
            f"{where}: no walk leads from {json_like(ends.old)}, which is no ancestor of the other end; "
            f'start where they parted: range = "{ancestors[0]}..{ends.new}"'
        )

    def _between(self, *, old: str, new: str) -> list[str]:
        """The ids of the walk, oldest first, without the old end."""
        walk = {"first-parent": ["--first-parent"], "merges": ["--first-parent", "--merges"]}
        order = ["--topo-order", "--reverse", *walk.get(self._asked.walk, [])]
        paths = ["--full-history", "--", *self._asked.touching] if self._asked.touching else ["--"]
        ids = self._lines("rev-list", *order, new, *([f"^{old}"] if old else []), *paths)
        if self._asked.walk == "tags":
            tagged = self._tags()
            return [id_ for id_ in ids if id_ in tagged]
        if self._asked.touching and not ids and old != new:
            raise SourceError(
                f"{self._asked.location}: no revision of the range touches {list(self._asked.touching)}; "
                "paths are relative to the top of the repository"
            )
        return ids

    def _described(self, ids: Sequence[str]) -> tuple[Revision, ...]:
        answer = self._mirror.git.ask(
            "log", "-z", "--no-walk=unsorted", f"--format={_FORMAT}", "--no-show-signature", "--stdin",
            repository=self._mirror.path, stdin="".join(f"{id_}\n" for id_ in ids).encode(),
        )  # fmt: skip
        if answer.failed:
            raise SourceError(f"{self._asked.location}: git cannot read its history: {answer.why}")
        fields = answer.fields()
        label = self._asked.label
        labels = self._labels(ids, label) if label else self._tags()
        revisions = []
        for start in range(0, len(fields), _FIELDS):
            id_, tree, parents, time, summary = fields[start : start + _FIELDS]
            self._trees[id_] = tree
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

    def _tags(self) -> Mapping[str, str]:
        """The tag of each tagged commit; of several, the highest version."""
        refs = self._mirror.refs("refs/tags")
        found = find_objects(self._mirror.git, self._mirror.path, [f"{ref}^{{commit}}" for ref in refs])
        return {
            commit.id: ref.removeprefix("refs/tags/")
            for ref, commit in zip(refs, found, strict=True)
            if commit is not None and commit.kind == "commit"
        }

    def _labels(self, ids: Sequence[str], label: Label) -> Mapping[str, str]:
        """What the pattern finds in the label's file at each revision; each version of it is read once."""
        git, mirror = self._mirror.git, self._mirror.path
        files = find_objects(git, mirror, [f"{id_}:{label.file}" for id_ in ids])
        texts = read_blobs(git, mirror, [file for file in files if file is not None])
        found = {id_: _read_label(label.pattern, text) for id_, text in texts.items()}
        return {id_: found.get(file.id, "") for id_, file in zip(ids, files, strict=True) if file is not None}

    def _lines(self, *words: str) -> list[str]:
        answer = self._mirror.git.ask(*words, repository=self._mirror.ready())
        if answer.failed and answer.errors.strip():
            raise SourceError(f"{self._asked.location}: git {words[0]} failed: {answer.why}")
        return answer.lines()


def _read_label(pattern: str, text: bytes) -> str:
    found = re.search(pattern, text.decode("utf-8", errors="replace"), re.MULTILINE)
    return (found.group(1) or "").strip() if found else ""
