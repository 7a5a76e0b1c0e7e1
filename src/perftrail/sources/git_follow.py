"""Follows files back through renames: which names they had, up to which commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.sources.git_command import Git

MOST_STAGES = 200
"""So often files may have been renamed; further back they are not followed."""

_COMMIT = re.compile(r"(?P<id>[0-9a-f]{40,64}) (?P<parent>[0-9a-f]{40,64})(?: .*)?")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The names that files had in a commit and in what it contains."""

    tip: str
    names: tuple[str, ...]


def follow(git: Git, repository: Path, first: Stage, *, old: str, line_only: bool) -> tuple[Stage, ...]:
    """Give a stage and one for each time before it, back to `old`, that its files had other names.

    A name with ``*``, ``?`` or ``[`` stands for many files and is not followed. With `line_only`, a merge's
    renames are those against its first parent, and no others are looked at. Raises `SourceError`.
    """
    stages, left = [first], [first]
    while left and len(stages) < MOST_STAGES:
        stage = left.pop()
        plain = tuple(name for name in stage.names if not (_WILD & set(name) or name.startswith(":")))
        if not plain:
            continue
        added = _adding(git, repository, stage.tip, plain, old=old, line_only=line_only)
        for parent, names in _renamed(git, repository, added, plain).items():
            earlier = Stage(tip=parent, names=names)
            if earlier not in stages:
                stages.append(earlier)
                left.append(earlier)
    return tuple(stages)


def _adding(
    git: Git, repository: Path, tip: str, names: Sequence[str], *, old: str, line_only: bool
) -> list[tuple[str, str]]:
    """The commits that add a file of that name, each with its first parent."""
    answer = git.ask(
        "log", "--full-history", *(["--first-parent"] if line_only else []), "--diff-merges=first-parent",
        "--raw", "--no-renames", "--diff-filter=A", "--no-show-signature", "--format=%H %P", tip,
        *([f"^{old}"] if old else []), "--", *names,
        repository=repository,
    )  # fmt: skip
    if answer.failed:
        raise SourceError(f"{repository}: git cannot read its history: {answer.why}")
    rows = map(_COMMIT.fullmatch, answer.output.decode("utf-8", errors="replace").split("\n"))
    return [(row["id"], row["parent"]) for row in rows if row is not None]


def _renamed(
    git: Git, repository: Path, commits: Sequence[tuple[str, str]], names: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """What files of these names were called before a commit renamed them, by the commit's first parent."""
    answer = git.ask(
        "diff-tree", "--stdin", "-r", "-z", "--find-renames", "--diff-filter=R", "--name-status",
        "--no-ext-diff", "--no-textconv",
        repository=repository, stdin="".join(f"{id_} {parent}\n" for id_, parent in commits).encode(),
    )  # fmt: skip
    if answer.failed:
        raise SourceError(f"{repository}: git cannot compare its revisions: {answer.why}")
    parents = dict(commits)
    found: dict[str, dict[str, None]] = {}
    commit, fields = "", iter(answer.fields())
    for field in fields:
        if field in parents:
            commit = field
            continue
        before, after = next(fields), next(fields)
        for name in _names_before(before, after, names):
            found.setdefault(parents[commit], {})[name] = None
    return {parent: tuple(olds) for parent, olds in found.items()}


def _names_before(before: str, after: str, names: Sequence[str]) -> Iterator[str]:
    """What a name stood for under another one: a file's own, or its directory's when that was renamed.

    >>> list(_names_before("lib/x/a.c", "src/x/a.c", ["src", "doc"]))
    ['lib']
    """
    for name in names:
        below = f"{name.rstrip('/')}/"
        if after == name:
            yield before
        elif after.startswith(below) and not before.startswith(below):
            inner = after.removeprefix(below)
            yield before.removesuffix(f"/{inner}")
