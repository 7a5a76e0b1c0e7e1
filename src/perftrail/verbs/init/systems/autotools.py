"""Detect configure scripts: autoconf, with or without automake, or handwritten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import BuildDraft, Program, Step
from perftrail.verbs.init.systems.make import (
    choose_benchmark,
    linked_programs,
    rules,
    variable,
)

if TYPE_CHECKING:
    from perftrail.verbs.init.draft import Tree

_SOURCES = ("configure.ac", "configure.in")
_GENERATORS = ("autogen.sh", "buildconf.sh", "buildconf", "bootstrap.sh", "bootstrap")
_KINDS = ("bin_PROGRAMS", "noinst_PROGRAMS")
"""Variables of automake whose programs plain make builds; they run from the build directory either way."""


def detect(tree: Tree) -> BuildDraft | None:
    """Read the programs of a tree that is built with configure and make."""
    script, source = tree.first("configure"), tree.first(*_SOURCES)
    if script is None and source is None:
        return None
    first = () if script is not None else (_generation(tree),)
    options = _options(tree.text(source or ""))
    known = rules(tree.text(tree.first("Makefile.am", "Makefile.in") or ""))
    programs = _programs(tree) or linked_programs(tree, known)
    manifest = source or script or ""
    benchmark = choose_benchmark(tree, known, programs, manifest=manifest)
    return BuildDraft(
        system="autotools",
        manifest=manifest,
        tools=("autoconf", "automake", "make") if first else ("make",),
        steps=(
            *first,
            Step(
                line=" ".join((_run(tree, "configure"), *options)),
                why="libraries inside the program, which is then not a wrapper script"
                if options
                else "./configure --help lists further options",
            ),
            Step(line="make -j{cpus}", why="name a target to build less than everything"),
        ),
        outputs=benchmark.uses,
        outputs_why="revisions with equal programs are measured once",
        env={"NOCONFIGURE": "1"} if any("./" in each.line for each in first) else {},
        benchmark=benchmark,
    )


def _generation(tree: Tree) -> Step:
    """Return how to generate a configure script that is not in the history."""
    generator = tree.first(*_GENERATORS)
    line = _run(tree, generator) if generator else "autoreconf --force --install"
    return Step(line=line, why="generates the configure script, which is not in the history")


def _run(tree: Tree, script: str) -> str:
    """Return how to run a script: a generated script becomes executable when it is generated."""
    return f"./{script}" if tree.is_executable.get(script, True) else f"sh ./{script}"


def _options(source: str) -> tuple[str, ...]:
    libtool = re.search(r"^\s*(?:LT_INIT|A[CM]_PROG_LIBTOOL)\b", source, re.MULTILINE)
    return ("--disable-shared",) if libtool else ()


def _programs(tree: Tree) -> list[Program]:
    """Return the programs that automake's files name, or that a makefile template links."""
    found = []
    for file in tree.matching("*Makefile.am"):
        directory, _, name = file.rpartition("/")
        if name != "Makefile.am":
            continue
        for kind in _KINDS:
            for program in variable(tree.text(file), kind):
                path = f"{directory}/{program}".lstrip("/")
                found.append(Program(name=program, path=path, unconditional="@" not in program))
    return found
