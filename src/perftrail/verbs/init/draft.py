"""What a first study proposes: how to build a program, and what to run of it. Every choice has its reason.

Chooses what a first study runs: a benchmark that is there, else the program that was built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.verbs.init.tree import usable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.verbs.init.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A shell line of a recipe, and why it is there or what may be changed of it."""

    line: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A metric that the command prints: a regular expression with one group, and the unit."""

    pattern: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A benchmark to begin with. `placeholder`: it only shows that the program starts.

    `build` are lines that make what it needs in ``{out}``, `relink` lines that link it in another order; `uses` are
    paths of the tree, from the revision's root, that it runs; `printed` are the metrics that it prints.
    """

    name: str
    command: str
    why: str
    placeholder: bool = False
    build: tuple[Step, ...] = ()
    relink: tuple[Step, ...] = ()
    uses: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, Printed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """How a build system makes a program.

    `manifest` is the file that told; `tools` are the programs that its lines start. `outputs` are paths
    from the revision's root, none when they cannot be known. `hints` are comments for the recipe. `relink` are lines
    that link what was built in another order for each ``{layout}``, or `never_linked` says why there are none.
    """

    system: str
    manifest: str
    tools: tuple[str, ...]
    steps: tuple[Step, ...]
    trial: Trial
    outputs: tuple[str, ...] = ()
    outputs_why: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    relink: tuple[Step, ...] = ()
    never_linked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Where a program's revisions come from, as `[source]` asks for them.

    `range` is empty for all there is, `revisions` counts what the range spans, 0 when that is not known.
    `troubles` say what is wrong with it and the remedy.
    """

    kind: str
    location: str
    range: str = ""
    range_why: str = ""
    revisions: int = 0
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A first study, before it is written. `others` are the build systems that were found beside it."""

    name: str
    directory: str
    history: History
    building: Building | None
    others: tuple[Building, ...] = ()


BENCH = re.compile(r"(?i)(?<!work)bench")
"""A name that says it is a benchmark."""

_ASIDE = re.compile(
    r"(?i)(?:^|[_/.-])(?:compare|plot|report|stats?|setup|gen(?:erate)?|conftest|__init__|lib)"
)
"""Names of what stands beside a benchmark: it prepares it, or shows what came of it."""

_PLACES = frozenset({"bench", "benches", "benchmark", "benchmarks", "perf"})

INTERPRETERS = {".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node"}

ANSWERS = ("--version", "--help")
"""What most programs know; looked for in their sources where nothing else tells."""

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")
"""How sources end that may speak of a program's options."""

MAIN = re.compile(r"(?i)main|cli|option|usage|args")
"""Names of sources that may speak of options beside the one that is called as the program is."""

PLACEHOLDER = "a placeholder: it only shows that the program starts; put real work in its place"


LLD_SHUFFLES = "-fuse-ld=lld -Wl,--shuffle-sections=.text*={layout}"
"""Flags with which compilers have lld place the sections of code in an order that a seed decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that a build makes: its name and its path below the tree. `sure`: whatever the options."""

    name: str
    path: str
    sure: bool = True


def choose(programs: Sequence[Program], name: str) -> Program | None:
    """Choose the program to run: a benchmark, the one that is called as the project is, else the first.

    Those that may not be built come after all others.
    """
    folded = _folded(name)

    def rank(program: Program) -> tuple[bool, bool, bool, bool, int]:
        own = _folded(program.name)
        return (
            not program.sure,
            not BENCH.search(program.name),
            own != folded,
            not (own in folded or folded in own),
            program.path.count("/"),
        )

    fit = [program for program in programs if usable(program.path) and not _is_test(program)]
    return min(fit, key=rank, default=None)


def of_program(tree: Tree, program: Program, *, answer: str | None = None) -> Trial:
    """Run a program that was built: as it is when it is a benchmark, else for its version.

    `answer` is the argument to give it; without one it is what the program's sources speak of.
    """
    word = tree.word(program.path)
    path = tree.path(program.path)
    if BENCH.search(program.name):
        why = "the benchmark program of this tree; give it the arguments that it needs"
        return Trial(name="bench", command=word, why=why, uses=(path,))
    known = answer or next((each for each in ANSWERS if _speaks_of(tree, each, program)), "")
    command = f"{word} {known}".rstrip()
    return Trial(name="start", command=command, why=PLACEHOLDER, placeholder=True, uses=(path,))


def of_script(tree: Tree, suffixes: Sequence[str]) -> Trial | None:
    """Run a benchmark script that is there, in one of these languages; none when none looks like one."""
    scripts = [path for path in tree if _is_script(tree, path, suffixes)]
    if not scripts:
        return None
    path = min(scripts, key=lambda each: (not BENCH.search(PurePosixPath(each).name), each.count("/"), each))
    interpreter = INTERPRETERS.get(PurePosixPath(path).suffix, "")
    command = f"{interpreter} {tree.word(path)}".lstrip()
    why = "a benchmark script of this tree; give it the arguments that it needs"
    place = str(PurePosixPath(path).parent)
    uses = tree.path(path if place == "." else place)
    return Trial(name="bench", command=command, why=why, uses=(uses,))


def nothing(tree: Tree, manifest: str) -> Trial:
    """What stands for a benchmark when nothing can be run: something that works for every revision."""
    why = "a placeholder: nothing here can be run as it is; write a small program that uses this one"
    return Trial(name="start", command=f"test -e {tree.word(manifest)}", why=why, placeholder=True)


def _speaks_of(tree: Tree, option: str, program: Program) -> bool:
    """Whether the sources of a program know an option: as it is typed, or as getopt's tables have it."""
    stems = {path: PurePosixPath(path).stem for path in tree.texts if path.endswith(SOURCES)}
    asked = [path for path, stem in stems.items() if stem == program.name or MAIN.search(stem)]
    known = (option, f'"{option.removeprefix("--")}"')
    return any(words in tree.text(path) for path in asked for words in known)


def _is_script(tree: Tree, path: str, suffixes: Sequence[str]) -> bool:
    here = PurePosixPath(path)
    if not usable(path) or path.count("/") > 2 or _ASIDE.search(here.stem) or here.name.startswith("."):
        return False
    says_so = BENCH.search(here.stem) is not None
    runs = here.stem.lower() in {"run", "main"} and here.parent.name in _PLACES
    if not (says_so or runs) or "test" in here.stem.lower():
        return False
    if here.suffix == ".py":
        return ".py" in suffixes and "__main__" in tree.text(path)
    return here.suffix in suffixes if here.suffix else tree.programs[path]


def _is_test(program: Program) -> bool:
    parts = [*PurePosixPath(program.path).parts[:-1], program.name]
    return not BENCH.search(program.name) and any(
        re.search(r"(?i)(?:^|[_-])(?:tests?|fuzz(?:er)?|examples?)(?:$|[_-])|_test|test_", part)
        for part in parts
    )


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
