"""Detect a makefile, and read its variables, targets and commands without running it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import (
    BenchmarkDraft,
    BuildDraft,
    Program,
    Step,
    choose_program,
    is_safe_path,
    placeholder_benchmark,
    program_benchmark,
    script_benchmark,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.verbs.init.draft import Tree


_ASSIGNMENT = re.compile(r"^(?:export\s+|override\s+)?([\w.-]+)\s*(\?=|:{0,3}=|\+=)\s*(.*)$")
_RULE = re.compile(r"^([^\s:=#][^:=#]*?)\s*::?(?!=)\s*([^=;]*)(?:;(.*))?$")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)[)}]")
_MOST_LENGTH = 10_000
_DEEPEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One explicit target: its name, its prerequisites, its commands, and whether it is phony."""

    target: str
    needs: tuple[str, ...]
    lines: tuple[str, ...]
    phony: bool


def rules(text: str) -> tuple[Rule, ...]:
    r"""Read the explicit rules of a makefile, with its own variables expanded.

    Conditions are ignored: their content counts.

    >>> [rule.target for rule in rules("P = prog\nall: $(P)\n$(P): a.o\n\tcc -o $@ a.o\n.PHONY: all\n")]
    ['all', 'prog']
    """
    variables = _variables(text)
    found: dict[str, tuple[list[str], list[str]]] = {}
    current: list[str] = []
    for line in _logical(text):
        if line.startswith("\t"):
            for target in current:
                found[target][1].append(_expanded(line.strip(), variables))
            continue
        rule = None if _ASSIGNMENT.match(line) else _RULE.match(line)
        if rule is None:
            current = current if not line.strip() else []
            continue
        current = _expanded(rule[1], variables).split()
        for target in current:
            needs, lines = found.setdefault(target, ([], []))
            needs += _expanded(rule[2], variables).replace("|", " ").split()
            lines += [rule[3].strip()] if rule[3] else []
    phony = set(found.get(".PHONY", ([], []))[0])
    return tuple(
        Rule(target=target, needs=tuple(needs), lines=tuple(lines), phony=target in phony)
        for target, (needs, lines) in found.items()
        if not target.startswith(".") and "%" not in target and "$" not in target
    )


def variable(text: str, name: str) -> tuple[str, ...]:
    r"""Return the words of a variable, with nested variables expanded or omitted.

    >>> variable("bin_PROGRAMS = a \\\n  b # two\nbin_PROGRAMS += c", "bin_PROGRAMS")
    ('a', 'b', 'c')
    """
    variables = _variables(text)
    return tuple(word for word in _expanded(variables.get(name, ""), variables).split() if "$" not in word)


def _variables(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _logical(text):
        assignment = None if line.startswith("\t") else _ASSIGNMENT.match(line)
        if assignment is None:
            continue
        name, how, value = assignment[1], assignment[2], assignment[3].partition(" #")[0].strip()
        if how == "+=" and name in found:
            found[name] = f"{found[name]} {value}"[:_MOST_LENGTH]
        else:
            found.setdefault(name, value)
    return found


def _logical(text: str) -> list[str]:
    """Return the lines of a makefile, with continued lines joined and without comments."""
    joined = re.sub(r"\\\n[ \t]*", " ", text)
    return [line for line in joined.splitlines() if not line.lstrip(" ").startswith("#")]


def _expanded(text: str, variables: dict[str, str]) -> str:
    for _ in range(_DEEPEST):
        filled = _REFERENCE.sub(lambda found: variables.get(found[1], ""), text)[:_MOST_LENGTH]
        if filled == text:
            break
        text = filled
    return text


MANIFESTS = ("GNUmakefile", "makefile", "Makefile")
"""Names of makefiles, in make's search order."""

_BENCHMARK_TARGETS = ("bench", "benchmark", "benchmarks", "perf")
_TESTS = ("check", "test")
_OUTPUT_OPTION = re.compile(r"\s-o\s*(\S+)")
_ENTERED_DIRECTORY = re.compile(r"-C\s+(\w[\w./-]*)|\bcd\s+(\w[\w./-]*)")


def detect(tree: Tree) -> BuildDraft | None:
    """Read the targets of a tree that has a makefile."""
    manifest = tree.first(*MANIFESTS)
    if manifest is None:
        return None
    known = rules(tree.text(manifest))
    benchmark = choose_benchmark(tree, known, linked_programs(tree, known), manifest=manifest)
    return BuildDraft(
        system="make",
        manifest=manifest,
        tools=("make",),
        steps=(
            Step(
                line="make -j{cpus}",
                why="builds the default target; name another one, or add flags; without -j if builds fail at random",
            ),
        ),
        outputs=benchmark.uses,
        outputs_why="revisions with equal programs are measured once",
        benchmark=benchmark,
    )


def choose_benchmark(
    tree: Tree, known: Iterable[Rule], programs: Sequence[Program], *, manifest: str
) -> BenchmarkDraft:
    """Choose what to run in a tree built with make: its benchmark target, a script, its program, its tests."""
    names = {rule.target for rule in known}
    program = choose_program(programs, tree.name)
    target = next((each for each in _BENCHMARK_TARGETS if each in names), None)
    if target is not None:
        why = "the benchmark target of this tree; running its program directly measures better"
        return _target(tree, target, why)
    script = script_benchmark(tree, (".sh", ".bash"))
    if script is not None:
        return script
    if program is not None:
        return program_benchmark(tree, program)
    tests = next((each for each in _TESTS if each in names), None)
    if tests is not None:
        why = "no benchmark and no program was found: the tests are real work; replace them by a benchmark"
        return _target(tree, tests, why)
    return placeholder_benchmark(tree, manifest)


def _target(tree: Tree, target: str, why: str) -> BenchmarkDraft:
    return BenchmarkDraft(name="bench", command=f"make --silent -C {tree.word()} {target}", why=why)


def linked_programs(tree: Tree, known: Sequence[Rule]) -> list[Program]:
    """Return the programs that a makefile links, and those of the directories that it enters."""
    wanted = _wanted(known)
    found = _linked(known, "", unconditional=True)
    always = {directory for rule in known if rule.target in wanted for directory in _entered(rule)}
    for directory in dict.fromkeys(directory for rule in known for directory in _entered(rule)):
        manifest = tree.first(*(f"{directory}/{name}" for name in MANIFESTS))
        if manifest is not None:
            found += _linked(rules(tree.text(manifest)), directory, unconditional=directory in always)
    return found


def _linked(known: Sequence[Rule], directory: str, *, unconditional: bool) -> list[Program]:
    """Return targets that are linked into a file of their name; those that plain make builds are unconditional."""
    wanted = _wanted(known)
    return [
        Program(
            name=rule.target.rpartition("/")[2],
            path=f"{directory}/{rule.target}".lstrip("/"),
            unconditional=unconditional and rule.target in wanted,
        )
        for rule in known
        if not rule.phony and is_safe_path(rule.target) and _makes_program(rule)
    ]


def _wanted(known: Sequence[Rule]) -> set[str]:
    """Return the targets that plain make builds, starting from the first target."""
    needs = {rule.target: rule.needs for rule in known}
    wanted: set[str] = set()
    waiting = [rule.target for rule in known[:1]]
    while waiting:
        target = waiting.pop()
        if target not in wanted:
            wanted.add(target)
            waiting += needs.get(target, ())
    return wanted


def _entered(rule: Rule) -> list[str]:
    return [a or b for line in rule.lines for a, b in _ENTERED_DIRECTORY.findall(line)]


def _makes_program(rule: Rule) -> bool:
    if re.search(r"\.\w+$", rule.target):
        return False
    if not rule.lines:
        return f"{rule.target}.o" in rule.needs or f"{rule.target}.c" in rule.needs
    outputs = {name for line in rule.lines if " -c " not in line for name in _OUTPUT_OPTION.findall(line)}
    return bool(outputs & {"$@", "$(@)", rule.target} or any(name.startswith("$@") for name in outputs))
