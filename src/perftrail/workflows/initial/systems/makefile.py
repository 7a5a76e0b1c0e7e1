"""Reads a makefile without running it: its variables, its targets and what they run."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"^(?:export\s+|override\s+)?([\w.-]+)\s*(\?=|:{0,3}=|\+=)\s*(.*)$")
_RULE = re.compile(r"^([^\s:=#][^:=#]*?)\s*::?(?!=)\s*([^=;]*)(?:;(.*))?$")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)[)}]")
_MOST_LENGTH = 10_000
_DEEPEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One explicit target: its name, what it needs, the lines it runs, and whether it is only a name."""

    target: str
    needs: tuple[str, ...]
    lines: tuple[str, ...]
    phony: bool


def rules(text: str) -> tuple[Rule, ...]:
    r"""Read the explicit rules of a makefile, variables filled in as far as it gives them.

    Conditions are not looked at: what stands in them counts.

    >>> [rule.target for rule in rules("P = prog\nall: $(P)\n$(P): a.o\n\tcc -o $@ a.o\n.PHONY: all\n")]
    ['all', 'prog']
    """
    variables = _variables(text)
    found: dict[str, tuple[list[str], list[str]]] = {}
    current: list[str] = []
    for line in _logical(text):
        if line.startswith("\t"):
            for target in current:
                found[target][1].append(_filled(line.strip(), variables))
            continue
        rule = None if _ASSIGNMENT.match(line) else _RULE.match(line)
        if rule is None:
            current = current if not line.strip() else []
            continue
        current = _filled(rule[1], variables).split()
        for target in current:
            needs, lines = found.setdefault(target, ([], []))
            needs += _filled(rule[2], variables).replace("|", " ").split()
            lines += [rule[3].strip()] if rule[3] else []
    phony = set(found.get(".PHONY", ([], []))[0])
    return tuple(
        Rule(target=target, needs=tuple(needs), lines=tuple(lines), phony=target in phony)
        for target, (needs, lines) in found.items()
        if not target.startswith(".") and "%" not in target and "$" not in target
    )


def variable(text: str, name: str) -> tuple[str, ...]:
    r"""The words of a variable, those that are variables again filled in or left out.

    >>> variable("bin_PROGRAMS = a \\\n  b # two\nbin_PROGRAMS += c", "bin_PROGRAMS")
    ('a', 'b', 'c')
    """
    variables = _variables(text)
    return tuple(word for word in _filled(variables.get(name, ""), variables).split() if "$" not in word)


def _variables(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _logical(text):
        given = None if line.startswith("\t") else _ASSIGNMENT.match(line)
        if given is None:
            continue
        name, how, value = given[1], given[2], given[3].partition(" #")[0].strip()
        if how == "+=" and name in found:
            found[name] = f"{found[name]} {value}"[:_MOST_LENGTH]
        else:
            found.setdefault(name, value)
    return found


def _logical(text: str) -> list[str]:
    """The lines of a makefile, continued ones in one; comments left out."""
    joined = re.sub(r"\\\n[ \t]*", " ", text)
    return [line for line in joined.splitlines() if not line.lstrip(" ").startswith("#")]


def _filled(text: str, variables: dict[str, str]) -> str:
    for _ in range(_DEEPEST):
        filled = _REFERENCE.sub(lambda found: variables.get(found[1], ""), text)[:_MOST_LENGTH]
        if filled == text:
            break
        text = filled
    return text
