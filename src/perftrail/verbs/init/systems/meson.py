"""Detect Meson."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.placeholders import fill_some
from perftrail.model.wording import quoted
from perftrail.verbs.init.draft import (
    BenchmarkDraft,
    BuildDraft,
    Program,
    Step,
    choose_program,
    is_safe_path,
    placeholder_benchmark,
    program_benchmark,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.verbs.init.draft import Tree

MANIFEST = "meson.build"

_TOKEN = re.compile(
    r"""
      \#[^\n]*
    | '''(?P<long>.*?)'''
    | '(?P<text>(?:[^'\\\n]|\\.)*)'
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>[()\[\]:,=.])
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENS = frozenset({"if", "foreach"})
_CLOSES = frozenset({"endif", "endforeach"})


def detect(tree: Tree) -> BuildDraft | None:
    """Read the executables of a tree that is built with Meson."""
    if MANIFEST not in tree or not re.search(r"\bproject\s*\(", tree.text(MANIFEST)):
        return None
    build_directory = tree.build_directory()
    programs = [
        replace(each, path=f"{build_directory}/{each.path}")
        for each in _executables(tree, "", unconditional=True)
        if each.name
    ]
    declared = next(_declared(tree, programs), None)
    program = choose_program(programs, _project(tree) or tree.name) if declared is None else declared.program
    return BuildDraft(
        system="meson",
        manifest=MANIFEST,
        tools=("meson", "ninja"),
        steps=(
            Step(
                line=f"meson setup {build_directory} --buildtype=release --default-library=static",
                why="optimised; libraries inside the program",
            ),
            Step(
                line=f"meson compile -C {build_directory} -j {{cpus}}",
                why="name targets to build less than everything",
            ),
        ),
        outputs=(tree.path(program.path),) if program else (),
        outputs_why="revisions with equal programs are measured once",
        benchmark=_benchmark(tree, program, declared),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """A benchmark that a build declares with `benchmark()`: its name, program and arguments."""

    name: str
    program: Program
    arguments: tuple[str, ...]


def _benchmark(tree: Tree, program: Program | None, declared: _Declared | None) -> BenchmarkDraft:
    if program is None:
        return placeholder_benchmark(tree, MANIFEST)
    if declared is None:
        return program_benchmark(tree, program)
    words = [
        tree.word(program.path),
        *(fill_some("{word}", {"word": each}, shlex.quote) for each in declared.arguments),
    ]
    return BenchmarkDraft(
        name="bench",
        command=" ".join(words),
        why=f"benchmark {quoted(declared.name)} of {MANIFEST}",
        uses=(tree.path(program.path),),
    )


def _declared(tree: Tree, programs: Sequence[Program]) -> Iterator[_Declared]:
    """Yield the declared benchmarks whose program and arguments are known."""
    by_name = {each.name: each for each in programs}
    for path in tree.matching(f"*{MANIFEST}"):
        content = _WITHOUT_COMMENTS.sub(lambda found: found["kept"] or "", tree.text(path))
        variables = dict(_ASSIGNED.findall(content))
        for found in _DECLARED.finditer(content):
            name = found["program"] or variables.get(found["variable"], "")
            arguments = tuple(_TEXT.findall(found["arguments"] or ""))
            is_plain = _TEXT.sub("", found["arguments"] or "").strip(" \t\n,") == ""
            if name in by_name and is_plain and is_safe_path(by_name[name].path):
                yield _Declared(name=found["name"], program=by_name[name], arguments=arguments)


_WITHOUT_COMMENTS = re.compile(r"(?P<kept>'(?:[^'\\\n]|\\.)*')|#[^\n]*")
_TEXT = re.compile(r"'([^'\\\n]*)'")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)\s*=\s*executable\s*\(\s*'([^'\\\n]*)'")
_DECLARED = re.compile(
    r"\bbenchmark\s*\(\s*'(?P<name>[^'\\\n]*)'\s*,\s*"
    r"(?:executable\s*\(\s*'(?P<program>[^'\\\n]*)'[^()]*\)|(?P<variable>[A-Za-z_]\w*))\s*"
    r"(?:,\s*args\s*:\s*\[(?P<arguments>[^\]]*)\])?\s*[,)]"
)


def _project(tree: Tree) -> str:
    return next((first for name, first, _ in _calls(tree.text(MANIFEST)) if name == "project"), "")


def _executables(tree: Tree, directory: str, *, unconditional: bool) -> Iterator[Program]:
    """Return the executables of one directory's file and of those that it enters, by their path in the build."""
    path = f"{directory}/{MANIFEST}".lstrip("/")
    for name, first, always in _calls(tree.text(path)):
        if name == "executable" and first:
            yield Program(
                name=first, path=f"{directory}/{first}".lstrip("/"), unconditional=unconditional and always
            )
        elif name == "subdir" and first:
            inside = f"{directory}/{first}".strip("/")
            if inside != directory:
                yield from _executables(tree, inside, unconditional=unconditional and always)


def _calls(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each call: the function, its first argument if that is a text, and whether it is unconditional."""
    tokens = [token for token in _TOKEN.finditer(text) if not token[0].startswith("#")]
    depth = 0
    for at, token in enumerate(tokens):
        word = token["word"]
        if word in _OPENS:
            depth += 1
        elif word in _CLOSES:
            depth = max(0, depth - 1)
        elif word and at + 2 < len(tokens) and tokens[at + 1]["sign"] == "(":
            argument = tokens[at + 2]
            yield word, argument["text"] or argument["long"] or "", depth == 0
