"""What a git commit joined: its parents' lines, or a branch that was squashed into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.sources.walking import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Link
    from perftrail.model.subject import Revision
    from perftrail.sources.git_mirror import Mirror


def joined(mirror: Mirror, commit: Revision, links: Sequence[Link]) -> tuple[Line, ...]:
    """Give every line that a commit joined and that its first parent does not contain, oldest first.

    A line is walked along first parents only, so it ends even where branches merged each other; what such a
    merge on it brought is found by asking for that merge.
    """
    if not commit.parents:
        return ()
    squashed = [link.branch for link in links if mirror.resolve(link.merge) == commit.id]
    tips = [*commit.parents[1:], *(mirror.resolve(branch) for branch in squashed)]
    lines = (_line(mirror, tip, trunk=commit.parents[0]) for tip in dict.fromkeys(tips))
    return tuple(line for line in lines if line.ids)


def _line(mirror: Mirror, tip: str, *, trunk: str) -> Line:
    answer = mirror.git.ask(
        "rev-list", "--first-parent", "--parents", tip, f"^{trunk}", "--", repository=mirror.ready()
    )
    rows = [row.split() for row in answer.lines()]
    oldest_parents = rows[-1][1:2] if rows else []
    return Line(base="".join(oldest_parents), ids=tuple(row[0] for row in reversed(rows)))
