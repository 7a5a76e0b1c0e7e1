"""What may repair a group of failures: lines to paste into the study file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.measure.failure_groups import error_text
from perftrail.studyfile.writing import toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.measure.failure_groups import FailedRange, FailureGroup
    from perftrail.model.build import Recipe


LONGEST_REASON = 120

_HEADER = re.compile(r"fatal error: ['\"]?([\w+-][\w./+-]*)['\"]?(?:: No such file|.*file not found)")
_TWICE = re.compile(r"multiple definition of")
_WARNING = re.compile(r"\[-W(?:error[=,])?(?:-W)?([a-z][a-z0-9+-]*)\]")
_CXX = re.compile(r"\.(?:cc|cpp|cxx|c\+\+|C|hpp|hh)\b")
_NOT_IN_TREE = re.compile(r"cannot find -l|Killed|command not found|: not found$")
"""Failures that no change of the tree repairs: a missing library or tool, or too little memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One remedy: what it does, and the lines that add it to a study file."""

    does: str
    lines: tuple[str, ...]


def remedies(group: FailureGroup, recipe: Recipe) -> tuple[Remedy, ...]:
    """Return remedies for failures of one range of revisions; empty if there are none."""
    if group.failed_range is None or group.failure.is_of_machine:
        return ()
    return tuple(_remedies(group, group.failed_range, recipe))


def _remedies(group: FailureGroup, failed_range: FailedRange, recipe: Recipe) -> Iterator[Remedy]:
    range_ = f"range = {toml(failed_range.range)}"
    if group.failure.stage == "relink":
        yield Remedy(does="measure them without relinking", lines=("[[build.when]]", range_, "relink = []"))
        return
    if group.failure.stage == "build" and not _NOT_IN_TREE.search(group.line):
        does, line = _repair(group.line, recipe)
        yield Remedy(does=does, lines=("[[build.when]]", range_, line))
    reason = error_text(group.line)
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
    yield Remedy(does="skip them", lines=("[[source.skip]]", range_, f"reason = {toml(reason)}"))


def _repair(line: str, recipe: Recipe) -> tuple[str, str]:
    """Return what may repair a build that fails with a line, and the study file's key for it."""
    if found := _HEADER.search(line):
        name = found[1]
        if ".." not in name.split("/"):
            inside = "{ " + toml(f"compat/{name}") + " = " + toml(f"include/{name}") + " }"
            return "add the missing header where the build looks for it", f"overlay = {inside}"
    name = "CXXFLAGS" if _CXX.search(line) else "CFLAGS"
    flag = "-fcommon" if _TWICE.search(line) else ""
    if not flag and (warning := _WARNING.search(line)):
        flag = f"-Wno-error={warning[1]}"
    if flag:
        flags = f"{recipe.env.get(name, '-O2')} {flag}".strip()
        return "compile with the defaults of older compilers", f"env = {{ {name} = {toml(flags)} }}"
    return "repair them with a patch", 'patch = ["fixes/old.patch"]'
