"""A configure script, whoever wrote it: autoconf, with or without automake, or a hand."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import LLD_SHUFFLES, Building, Program, Step
from perftrail.verbs.init.systems.make import first_trial, linked_programs, made_program, rules, variable

if TYPE_CHECKING:
    from perftrail.verbs.init.tree import Tree

_SOURCES = ("configure.ac", "configure.in")
_GENERATORS = ("autogen.sh", "buildconf.sh", "buildconf", "bootstrap.sh", "bootstrap")
_KINDS = ("bin_PROGRAMS", "noinst_PROGRAMS")
"""Of automake's variables, those whose programs plain make makes; run from the build directory either way."""


def detect(tree: Tree) -> Building | None:
    """Read the programs of a tree that is made with configure and make."""
    script, source = tree.first("configure"), tree.first(*_SOURCES)
    if script is None and source is None:
        return None
    first = () if script is not None else (_generation(tree),)
    options = _options(tree.text(source or ""))
    known = rules(tree.text(tree.first("Makefile.am", "Makefile.in") or ""))
    programs = _programs(tree) or linked_programs(tree, known)
    manifest = source or script or ""
    trial = first_trial(tree, known, programs, manifest=manifest)
    return Building(
        system="autotools",
        manifest=manifest,
        tools=("autoconf", "automake", "make") if first else ("make",),
        steps=(
            *first,
            Step(
                line=" ".join((_run(tree, "configure"), *options)),
                why="libraries inside the program, which is then no script that starts it"
                if options
                else "./configure --help lists what may be added",
            ),
            Step(line="make -j{cpus}", why="name a target to make less than everything"),
        ),
        outputs=trial.uses,
        outputs_why="revisions whose program is the same are measured once",
        env={"NOCONFIGURE": "1"} if any("./" in each.line for each in first) else {},
        trial=trial,
        relink=_relink(made_program(tree, programs, trial)),
    )


def _relink(program: Program | None) -> tuple[Step, ...]:
    """How the program is linked again: by the linker's flags, as libtool refuses another compiler."""
    if program is None:
        return ()
    return (
        Step(
            line=f'rm -f {shlex.quote(program.path)} && make -j{{cpus}} LDFLAGS="{LLD_SHUFFLES}"',
            why="lld (package lld) shuffles object files; with CFLAGS=-ffunction-sections in the steps, functions",
        ),
    )


def _generation(tree: Tree) -> Step:
    """How the configure script comes to be, where a revision does not hold it."""
    generator = tree.first(*_GENERATORS)
    line = _run(tree, generator) if generator else "autoreconf --force --install"
    return Step(line=line, why="makes the configure script, which the history does not hold")


def _run(tree: Tree, script: str) -> str:
    """How a script is run: one that the history does not hold is made runnable by what makes it."""
    return f"./{script}" if tree.programs.get(script, True) else f"sh ./{script}"


def _options(source: str) -> tuple[str, ...]:
    libtool = re.search(r"^\s*(?:LT_INIT|A[CM]_PROG_LIBTOOL)\b", source, re.MULTILINE)
    return ("--disable-shared",) if libtool else ()


def _programs(tree: Tree) -> list[Program]:
    """The programs that automake's files name, or that a makefile to be filled in links."""
    found = []
    for file in tree.matching("*Makefile.am"):
        directory, _, name = file.rpartition("/")
        if name != "Makefile.am":
            continue
        for kind in _KINDS:
            for program in variable(tree.text(file), kind):
                path = f"{directory}/{program}".lstrip("/")
                found.append(Program(name=program, path=path, sure="@" not in program))
    return found
