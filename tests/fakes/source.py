"""A history in memory that satisfies the contract of `ports.Source` without a tool or a disk cache."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.subject import Revision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class InMemorySource:
    """A straight line of revisions, each a name and its files, oldest first."""

    planted: Sequence[tuple[str, Mapping[str, str]]]

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the revisions of a range, both ends included."""
        old, _, new = (range or "..").partition("..")
        ids = [name for name, _ in self.planted]
        first = self._number(old) if old else 0
        last = self._number(new) if new else len(ids) - 1
        if first > last:
            raise SourceError(f'range "{range}" is backwards')
        return tuple(
            Revision(
                id=ids[number], summary=f"change {number}", parents=tuple(ids[max(0, number - 1) : number])
            )
            for number in _numbers(first, last)
        )

    def within(self, range: str) -> frozenset[str]:
        """Give the ids of a range."""
        return frozenset(revision.id for revision in self.history(range))

    def merge(self, revision: Revision) -> None:
        """Give nothing: it is a straight line."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Compare each revision's files with those of the one before."""
        files = [dict(self.planted[self._number(each.id)][1]) for each in revisions]
        return ((), *(_different(before, after) for before, after in pairwise(files)))

    def content(self, revision: Revision) -> str:
        """Name a revision's files by their content."""
        return content_key(dict(self.planted[self._number(revision.id)][1]))

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Write a revision's files."""
        if all(name != revision.id for name, _ in self.planted) or Path(directory).exists():
            raise CheckoutFailed(f"{revision.id}: cannot be put into {directory}")
        for name, text in self.planted[self._number(revision.id)][1].items():
            path = Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with Path(log).open("a") as file:
            file.write(f"wrote {revision.id} to {directory}\n")

    def _number(self, name: str) -> int:
        for number, (known, _) in enumerate(self.planted):
            if known == name:
                return number
        raise SourceError(f'no revision "{name}"')


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _numbers(first: int, last: int) -> range:
    return range(first, last + 1)
