"""Detect CMake, and read the commands of CMakeLists.txt files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import (
    BENCHMARK_NAME,
    BuildDraft,
    Program,
    Step,
    SuiteDraft,
    choose_program,
    is_safe_path,
    placeholder_benchmark,
    program_benchmark,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.verbs.init.draft import Tree


_TOKEN = re.compile(
    r"""
      \#\[(?P<hashes>=*)\[.*?\](?P=hashes)\]         # a bracket comment
    | \#[^\n]*                                       # a comment
    | \[(?P<signs>=*)\[\n?(?P<bracket>.*?)\](?P=signs)\]
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<sign>[()])
    | (?P<plain>(?:[^\s()"\#\\]|\\.)+)
    """,
    re.VERBOSE | re.DOTALL,
)

_OPENS = frozenset({"if", "foreach", "while", "function", "macro"})
_CLOSES = frozenset({"endif", "endforeach", "endwhile", "endfunction", "endmacro"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command: its lower-case name and its arguments. `unconditional`: it is not inside a condition."""

    name: str
    arguments: tuple[str, ...]
    unconditional: bool


def calls(text: str) -> tuple[Call, ...]:
    r"""Read every command of a file in order; unreadable parts are skipped.

    >>> calls('if(X) # why\nADD_EXECUTABLE("a b" main.c)\nendif()')[1]
    Call(name='add_executable', arguments=('a b', 'main.c'), unconditional=False)
    """
    found, depth = [], 0
    for name, arguments in _commands(text):
        if name in _CLOSES:
            depth = max(0, depth - 1)
        found.append(Call(name=name, arguments=arguments, unconditional=depth == 0))
        if name in _OPENS:
            depth += 1
    return tuple(found)


def _commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    name, arguments, nested = "", list[str](), 0
    for token in _TOKEN.finditer(text):
        sign = token["sign"]
        if sign == "(":
            nested += 1
        elif sign == ")":
            nested = max(0, nested - 1)
            if nested == 0 and name:
                yield name, tuple(arguments)
                name, arguments = "", []
        else:
            value = next(
                (token[kind] for kind in ("bracket", "quoted", "plain") if token[kind] is not None), None
            )
            if value is not None and nested:
                arguments.append(value)
            elif value is not None:
                name, arguments = value.lower(), []


MANIFEST = "CMakeLists.txt"
_OUT = "CMAKE_RUNTIME_OUTPUT_DIRECTORY"
_MOST_FILES = 200
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def detect(tree: Tree) -> BuildDraft | None:
    """Read the targets of a tree that is built with CMake."""
    if MANIFEST not in tree:
        return None
    build_directory = tree.build_directory()
    lists = _CMakeLists(tree, build_directory)
    lists.read("", unconditional=True)
    program = choose_program(lists.programs(), lists.variables.get("PROJECT_NAME", tree.name))
    needs_options = program is not None and not program.unconditional and BENCHMARK_NAME.search(program.name)
    options = "".join(f" -D{name}=ON" for name in lists.options) if needs_options else ""
    suite = _suite(tree, lists, build_directory)
    if suite is not None:
        options = "".join(f" -D{name}=ON" for name in lists.options)
    libraries = [name for name in lists.libraries if is_safe_path(name)]
    outputs: tuple[str, ...] = ()
    why = "revisions with equal programs are measured once"
    if suite is not None:
        outputs = suite.program
    elif program is not None:
        outputs = (tree.path(program.path),)
    elif libraries:
        outputs = (tree.path(f"{build_directory}/lib"),)
        why = "revisions with equal libraries are measured once"
    return BuildDraft(
        system="cmake",
        manifest=MANIFEST,
        tools=("cmake",),
        steps=(
            Step(
                line=f"cmake -S . -B {build_directory} -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF{options}"
                f' -D{_OUT}="$PWD/{build_directory}/bin" -DCMAKE_ARCHIVE_OUTPUT_DIRECTORY="$PWD/{build_directory}/lib"',
                why="optimised; libraries inside the program; all outputs in one directory, wherever the sources move",
            ),
            Step(
                line=f"cmake --build {build_directory} --parallel {{cpus}}",
                why="add --target NAME to build less than everything",
            ),
        ),
        outputs=outputs,
        outputs_why=why,
        benchmark=program_benchmark(tree, program) if program else placeholder_benchmark(tree, MANIFEST),
        hints=()
        if options
        else tuple(f"-D{name}=ON builds the benchmarks of this tree" for name in lists.options),
        suite=suite,
    )


_GOOGLE = frozenset({"benchmark", "benchmark_main", "benchmark::benchmark", "benchmark::benchmark_main"})
"""CMake's names of Google Benchmark."""


def _suite(tree: Tree, lists: _CMakeLists, build_directory: str) -> SuiteDraft | None:
    """Return the programs that link Google Benchmark; by their usual names if a macro links them."""
    linked = [each.path for each in lists.programs() if each.name in lists.with_benchmark]
    named = any(
        path.endswith(MANIFEST) and any(name in tree.text(path) for name in _GOOGLE if "::" in name)
        for path in tree
    )
    if not linked and not named:
        return None
    programs = [path for path in linked if is_safe_path(path)] or [f"{build_directory}/bin/*[Bb]ench*"]
    return SuiteDraft(
        kind="google-benchmark",
        program=tuple(map(tree.path, programs)),
        why="every program that uses Google Benchmark",
    )


@dataclass
class _CMakeLists:
    """The content of a tree's CMakeLists.txt files, read from the root."""

    tree: Tree
    build_directory: str
    variables: dict[str, str] = field(default_factory=dict)
    executables: dict[str, Program] = field(default_factory=dict)
    output_names: dict[str, str] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    with_benchmark: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def programs(self) -> list[Program]:
        """Return every program, by its output name."""
        found = []
        for target, program in self.executables.items():
            name = self.output_names.get(target, program.name)
            path = program.path.removesuffix(program.name) + name
            found.append(Program(name=name, path=path, unconditional=program.unconditional))
        return found

    def read(self, directory: str, *, unconditional: bool) -> None:
        """Read one directory's file, and those of the directories that it adds; `unconditional`: it is always added."""
        path = f"{directory}/{MANIFEST}".lstrip("/")
        if path in self.seen or len(self.seen) >= _MOST_FILES:
            return
        self.seen.add(path)
        for call in calls(self.tree.text(path)):
            if call.arguments:
                self._note(call, directory, unconditional=unconditional and call.unconditional)

    def _note(self, call: Call, directory: str, *, unconditional: bool) -> None:
        first, *rest = (self._filled(each, directory) for each in call.arguments)
        match call.name:
            case "project":
                self.variables.setdefault("PROJECT_NAME", first)
            case "set" if rest:
                self.variables[first] = rest[0]
            case "add_subdirectory":
                self.read(f"{directory}/{first}".strip("/"), unconditional=unconditional)
            case "add_executable" if not {"IMPORTED", "ALIAS"} & set(rest):
                output_directory = self.variables.get(_OUT, f"{self.build_directory}/bin")
                program = Program(
                    name=first,
                    path=f"{output_directory}/{first}",
                    unconditional=unconditional and "EXCLUDE_FROM_ALL" not in rest and "WIN32" not in rest,
                )
                self.executables.setdefault(first, program)
            case "add_library" if not {"IMPORTED", "ALIAS", "INTERFACE", "OBJECT"} & set(rest):
                self.libraries.append(first)
            case "set_target_properties" if "OUTPUT_NAME" in rest[:-1]:
                self.output_names[first] = rest[rest.index("OUTPUT_NAME") + 1]
            case "target_link_libraries" if _GOOGLE & set(rest):
                self.with_benchmark.add(first)
            case "option" if BENCHMARK_NAME.search(first) and is_safe_path(first) and rest[1:2] != ["ON"]:
                self.options.append(first)
            case _:
                pass

    def _filled(self, text: str, directory: str) -> str:
        here = {
            "CMAKE_BINARY_DIR": self.build_directory,
            "PROJECT_BINARY_DIR": self.build_directory,
            "CMAKE_CURRENT_BINARY_DIR": f"{self.build_directory}/{directory}".rstrip("/"),
            "CMAKE_SOURCE_DIR": ".",
            "PROJECT_SOURCE_DIR": ".",
            **self.variables,
        }
        return _VARIABLE.sub(lambda found: here.get(found[1], found[0]), text)
