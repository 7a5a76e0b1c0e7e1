"""The check-ins of a history by their parents: what lies between two of them, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.sources.walking import Line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """One check-in. `time` is ISO 8601 or empty; the first of `parents` is the one it was made on."""

    id: str
    time: str
    comment: str
    parents: tuple[str, ...]


class Graph:
    """A whole history. Parents that are not there, as of a clone that lacks them, lead nowhere."""

    def __init__(self, check_ins: Iterable[CheckIn]) -> None:
        self._check_ins: Mapping[str, CheckIn] = {each.id: each for each in check_ins}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._check_ins

    def __getitem__(self, id_: str) -> CheckIn:
        return self._check_ins[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._check_ins)

    def parents(self, id_: str) -> tuple[str, ...]:
        """Give the parents that are there, the one it was made on first."""
        return tuple(parent for parent in self._check_ins[id_].parents if parent in self._check_ins)

    def primary(self, id_: str) -> str:
        """Give the check-in that one was made on, empty when there is none."""
        first = self._check_ins[id_].parents[:1]
        return first[0] if first and first[0] in self._check_ins else ""

    def ancestors(self, id_: str) -> frozenset[str]:
        """Give what a check-in contains, itself among it."""
        seen, left = {id_}, [id_]
        while left:
            for parent in self.parents(left.pop()):
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return frozenset(seen)

    def descendants(self, id_: str, *, among: Collection[str]) -> frozenset[str]:
        """Give what contains a check-in, itself among it, and lies in a set that holds all in between."""
        seen = {id_}
        for each in self.in_order(among):
            if not seen.isdisjoint(self.parents(each)):
                seen.add(each)
        return frozenset(seen)

    def trunk(self, tip: str) -> list[str]:
        """Give the line that leads to a check-in by what each was made on, oldest first."""
        line = [tip]
        while above := self.primary(line[-1]):
            line.append(above)
        return line[::-1]

    def in_order(self, ids: Collection[str]) -> list[str]:
        """Give check-ins with parents before children, each merged line in one piece just before its merge.

        It is the order of ``git rev-list --topo-order --reverse``, and needs no dates.
        """
        children = dict.fromkeys(ids, 0)
        for id_ in ids:
            for parent in self.parents(id_):
                if parent in children:
                    children[parent] += 1
        left = sorted(id_ for id_, count in children.items() if not count)
        order = []
        while left:
            id_ = left.pop()
            order.append(id_)
            for parent in self.parents(id_):
                if parent in children:
                    children[parent] -= 1
                    if not children[parent]:
                        left.append(parent)
        return order[::-1]

    def fork(self, one: str, other: str) -> str:
        """Give the last check-in that both contain, empty when there is none."""
        shared = self.ancestors(one) & self.ancestors(other)
        return self.in_order(shared)[-1] if shared else ""

    def joined(self, trunk: str, tip: str) -> Line:
        """Give the line that leads to `tip` by what each was made on, back to what `trunk` contains."""
        outside = self.ancestors(trunk)
        line = self.trunk(tip)
        own = [id_ for id_ in line if id_ not in outside]
        return Line(base=line[-len(own) - 1] if len(own) < len(line) else "", ids=tuple(own))
