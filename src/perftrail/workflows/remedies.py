"""What may help a stretch of history that fails for one cause: lines to paste into the study file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.workflows.initial.writing import toml
from perftrail.workflows.troubles import gist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.build import Recipe
    from perftrail.workflows.troubles import Stretch, Trouble

LONGEST_REASON = 120

_HEADER = re.compile(r"fatal error: ['\"]?([\w+-][\w./+-]*)['\"]?(?:: No such file|.*file not found)")
_TWICE = re.compile(r"multiple definition of")
_WARNING = re.compile(r"\[-W(?:error[=,])?(?:-W)?([a-z][a-z0-9+-]*)\]")
_CXX = re.compile(r"\.(?:cc|cpp|cxx|c\+\+|C|hpp|hh)\b")
_ELSEWHERE = re.compile(r"cannot find -l|No space left|Killed|command not found|: not found$")
"""What no change of the tree mends: a library or a tool is lacking, or the machine is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One way to go on: what it does, and the lines that say so in a study file."""

    does: str
    lines: tuple[str, ...]


def remedies(trouble: Trouble, recipe: Recipe) -> tuple[Remedy, ...]:
    """Give what may help against a trouble that is one stretch; nothing where it is none."""
    if trouble.stretch is None:
        return ()
    return tuple(_remedies(trouble, trouble.stretch, recipe))


def _remedies(trouble: Trouble, stretch: Stretch, recipe: Recipe) -> Iterator[Remedy]:
    range_ = f"range = {toml(stretch.range)}"
    if trouble.failure.stage == "relink":
        yield Remedy(
            does="measure them as their recipe links them", lines=("[[build.when]]", range_, "relink = []")
        )
        return
    if trouble.failure.stage == "build" and not _ELSEWHERE.search(trouble.line):
        does, line = _repair(trouble.line, recipe)
        yield Remedy(does=does, lines=("[[build.when]]", range_, line))
    reason = gist(trouble.line)
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
    yield Remedy(does="leave them out", lines=("[[source.skip]]", range_, f"reason = {toml(reason)}"))


def _repair(line: str, recipe: Recipe) -> tuple[str, str]:
    """Say what may mend a build that fails with a line, and the key that does it."""
    if found := _HEADER.search(line):
        name = found[1]
        if ".." not in name.split("/"):
            inside = "{ " + toml(f"compat/{name}") + " = " + toml(f"include/{name}") + " }"
            return "put the missing header where they look for it", f"overlay = {inside}"
    name = "CXXFLAGS" if _CXX.search(line) else "CFLAGS"
    flag = "-fcommon" if _TWICE.search(line) else ""
    if not flag and (warning := _WARNING.search(line)):
        flag = f"-Wno-error={warning[1]}"
    if flag:
        flags = f"{recipe.env.get(name, '-O2')} {flag}".strip()
        return "compile them as compilers did then", f"env = {{ {name} = {toml(flags)} }}"
    return "mend them with a patch of yours", 'patch = ["fixes/old.patch"]'
