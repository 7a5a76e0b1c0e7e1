"""Part of a plan, as `--only` chooses it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.plan import Cell
    from perftrail.model.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Cells that match one of the patterns of every name: `revision`, `variant`, `benchmark` or a parameter."""

    rules: tuple[tuple[str, str], ...] = ()

    def wants(self, cell: Cell) -> bool:
        """Whether a cell belongs to the selection. A parameter that a benchmark lacks does not exclude it."""
        return all(
            any(_matches(cell, name, pattern) for other, pattern in self.rules if other == name)
            for name in {name for name, _ in self.rules}
        )


def select(study: Study, texts: Sequence[str]) -> Selection:
    """Read ``NAME=PATTERN`` or ``NAME=PATTERN,PATTERN`` rules. Raises `UsageError` for a name the study lacks."""
    names = {"revision", "variant", "benchmark"}
    for benchmark in study.benchmarks.values():
        names.update(benchmark.parameters)
    rules = []
    for text in texts:
        name, equals, pattern = text.partition("=")
        if not equals or name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}=…?" if near else f"; choose from {', '.join(sorted(names))}"
            raise UsageError(f"--only {text}: write NAME=PATTERN{hint}")
        rules.append((name, pattern))
    return Selection(rules=tuple(rules))


def _matches(cell: Cell, name: str, pattern: str) -> bool:
    """Whether a cell is what a rule asks for: its whole pattern, which a label with commas needs, or one of several."""
    return any(_matches_one(cell, name, each) for each in (pattern, *pattern.split(",")))


def _matches_one(cell: Cell, name: str, pattern: str) -> bool:
    revision = cell.subject.revision
    if name == "revision":
        return revision.id.startswith(pattern) or any(
            fnmatchcase(text, pattern) for text in (revision.id, revision.label) if text
        )
    if name == "variant":
        return fnmatchcase(cell.subject.variant, pattern)
    if name == "benchmark":
        return fnmatchcase(cell.benchmark, pattern)
    point = cell.point.as_dict()
    return name not in point or fnmatchcase(str(point[name]), pattern)
