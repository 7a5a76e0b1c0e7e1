"""Draft of a first study: source, build and benchmark, each choice with its reason; and the examined files."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from perftrail.model.field import LONGEST_NAME
from perftrail.model.placeholders import fill_some
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.suite import SuiteKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Files by their path below one directory, whether each is executable, and the texts that were read.

    `prefix` is that directory's path from the revision's root, empty for the root itself. `name` is the
    program's usual name. Names are untrusted: only those that `is_safe_path` accepts are written to a study.
    """

    name: str
    is_executable: Mapping[str, bool]
    texts: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def __contains__(self, path: str) -> bool:
        return path in self.is_executable

    def __iter__(self) -> Iterator[str]:
        return iter(self.is_executable)

    def text(self, path: str) -> str:
        """Return a file's text, empty if it was not read."""
        return self.texts.get(path, "")

    def first(self, *paths: str) -> str | None:
        """Return the first of these paths that exists."""
        return next((path for path in paths if path in self.is_executable), None)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the files that match a pattern, shallow ones first; ``*`` spans directories."""
        found = (path for path in self.is_executable if fnmatchcase(path, pattern))
        return tuple(sorted(found, key=lambda path: (path.count("/"), path)))

    def has_directory(self, path: str) -> bool:
        """Whether there are files below a path."""
        return any(each.startswith(f"{path}/") for each in self.is_executable)

    def build_directory(self) -> str:
        """Return the name of a build directory that this directory does not contain."""
        return "build-perftrail" if "build" in self or self.has_directory("build") else "build"

    def directories(self) -> tuple[str, ...]:
        """Return the subdirectories of this directory."""
        return tuple(dict.fromkeys(path.partition("/")[0] for path in self.is_executable if "/" in path))

    def below(self, directory: str) -> Tree:
        """Return the files of one directory, as a separate tree."""
        start = f"{directory}/"
        return Tree(
            name=self.name,
            is_executable={
                path.removeprefix(start): executable
                for path, executable in self.is_executable.items()
                if path.startswith(start)
            },
            texts={
                path.removeprefix(start): text for path, text in self.texts.items() if path.startswith(start)
            },
            prefix=self.path(directory),
        )

    def path(self, path: str) -> str:
        """Return the path of an existing or built file, from the revision's root."""
        return "/".join(part for part in (self.prefix, path) if part)

    def word(self, path: str = "") -> str:
        """Return a path as one word of a command, starting with ``{build}``.

        >>> Tree(name="a", is_executable={}, prefix="src").word("a {b}")
        "{build}/'src/a {{b}}'"
        """
        whole = self.path(path)
        return fill_some("{build}/{path}", {"path": whole}, shlex.quote) if whole else "{build}"


def is_safe_path(path: str) -> bool:
    """Whether a path is safe in a shell line: printable, no blanks, no option, no shell characters.

    >>> [is_safe_path(path) for path in ("bench/run.sh", "a b", "-rf", "$(x)")]
    [True, False, False, False]
    """
    return (
        path.isprintable()
        and not path.startswith(("-", "/", "~"))
        and not set(path) & set(" '\"`$\\{}*?[]<>|&;()#!")
        and ".." not in path.split("/")
    )


def metric_name(words: str) -> str:
    """Return a name for a metric, from the words with which a tool names its result.

    >>> metric_name("sum 1000"), metric_name("9 lives/quick")
    ('time_sum_1000', 'time_9_lives_quick')
    """
    return f"time_{re.sub(r'[^A-Za-z0-9]+', '_', words).strip('_')}"[:LONGEST_NAME]


def table(within: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table inside tables, an empty one if there is none.

    >>> table({"a": {"b": {"c": 1}}}, "a", "b"), table({"a": []}, "a", "b")
    ({'c': 1}, {})
    """
    found: object = within
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object) -> str:
    """Return a value if it is text, else empty text."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a list, empty for other values."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A shell line of a recipe, with its reason or possible changes."""

    line: str
    why: str


MOST_METRICS = 20
"""Largest number of proposed metrics of one benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMetric:
    """A metric that the command prints, and its unit: a pattern with one group, or an item of another tool's format.

    `reads` is that format; `pick` chooses among several values.
    """

    unit: str
    pattern: str = ""
    reads: str = ""
    item: str = ""
    pick: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkDraft:
    """A first benchmark. `placeholder`: the command only shows that the program starts. `needs_shell`: a shell runs it.

    `build` are lines that build its files in ``{out}``.
    `uses` are the paths that the command runs, from the revision's root. `printed` are the metrics that it prints.
    `directory` is where it runs, from the revision's root; empty for an empty directory.
    """

    name: str
    command: str
    why: str
    directory: str = ""
    needs_shell: bool = False
    placeholder: bool = False
    build: tuple[Step, ...] = ()
    uses: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, PrintedMetric] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDraft:
    """The benchmark suite of a project, in the terms of `[suite]`; it takes the place of a benchmark."""

    kind: SuiteKind
    why: str
    program: tuple[str, ...] = ()
    path: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


SUITE = "bench"
"""Name of a drafted suite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDraft:
    """A build of a program by one build system.

    `manifest` is the file that identifies it; `tools` are the programs that its lines start. `outputs` are
    paths from the revision's root, empty if unknown. `unaffected_by` are globs of files that neither the build nor the
    benchmark reads. `hints` are comments for the recipe, `notes` are for the user.
    """

    system: str
    manifest: str
    tools: tuple[str, ...]
    steps: tuple[Step, ...]
    benchmark: BenchmarkDraft
    outputs: tuple[str, ...] = ()
    outputs_why: str = ""
    unaffected_by: tuple[str, ...] = ()
    unaffected_why: str = ""
    notes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    suite: SuiteDraft | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDraft:
    """The source of a program's revisions, in the terms of `[source]`.

    `range` is empty for the whole history; `revisions` counts those in the range, 0 if unknown.
    `troubles` are problems of the history, with remedies.
    """

    kind: str
    location: str
    range: str = ""
    range_why: str = ""
    revisions: int = 0
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDraft:
    """A first study, before it is written. `others` are further build systems that were found.

    `load` is the number of busy CPUs of this machine in the last minute, `cpus` the number of its CPUs.
    """

    name: str
    directory: str
    source: SourceDraft
    build: BuildDraft | None
    others: tuple[BuildDraft, ...] = ()
    load: float = 0.0
    cpus: int = 1

    @property
    def metric(self) -> str:
        """The metric to search: one that the benchmark prints, else CPU time on a busy machine, else wall time.

        Empty for a suite: all its benchmarks.
        """
        if self.build is not None and self.build.suite is not None:
            return ""
        printed = self.build.benchmark.printed if self.build is not None else {}
        return next(iter(printed), "cpu" if self.is_busy else "wall")

    @property
    def is_busy(self) -> bool:
        """Whether other programs use enough CPUs that wall time is noisy."""
        return self.load >= BUSY_SHARE * self.cpus

    @property
    def metric_reason(self) -> str:
        """Why this metric is the first choice."""
        if self.metric == "cpu":
            return (
                f"this machine is busy (load {self.load:.1f} on {counted(self.cpus, 'CPU')}), which disturbs CPU time "
                "less than wall time; use wall for a program that waits or has threads"
            )
        return "the time from start to end" if self.metric == "wall" else "the benchmark prints it"


BUSY_SHARE = 0.5
"""Share of busy CPUs from which wall time is considered noisy."""


BENCHMARK_NAME = re.compile(r"(?i)(?<!work)bench")
"""Names of benchmarks."""

_NOT_BENCHMARKS = re.compile(
    r"(?i)(?:^|[_/.-])(?:compare|plot|report|stats?|setup|gen(?:erate)?|conftest|__init__|lib)"
)
"""Names of files that accompany a benchmark, for example to prepare it or to show its results."""

_BENCHMARK_DIRECTORIES = frozenset({"bench", "benches", "benchmark", "benchmarks", "perf"})

INTERPRETERS = {".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node"}

COMMON_OPTIONS = ("--version", "--help")
"""Options that most programs have; a benchmark uses the one that the program's sources contain."""

SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")
"""Suffixes of source files that may contain a program's options."""

OPTION_SOURCES = re.compile(r"(?i)main|cli|option|usage|args")
"""Names of source files that may contain options, in addition to the one with the program's name."""

PLACEHOLDER = "a placeholder: it only shows that the program starts; replace it by a real benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that a build creates: its name and its path in the tree. `unconditional`: it is always built."""

    name: str
    path: str
    unconditional: bool = True


def choose_program(programs: Sequence[Program], name: str) -> Program | None:
    """Choose the program to run: a benchmark, else the program with the project's name, else the first.

    Programs that some builds omit come last.
    """
    folded = _folded(name)

    def rank(program: Program) -> tuple[bool, bool, bool, bool, int]:
        own = _folded(program.name)
        return (
            not program.unconditional,
            not BENCHMARK_NAME.search(program.name),
            own != folded,
            not (own in folded or folded in own),
            program.path.count("/"),
        )

    suitable = [program for program in programs if is_safe_path(program.path) and not _is_test(program)]
    return min(suitable, key=rank, default=None)


def program_benchmark(tree: Tree, program: Program, *, option: str | None = None) -> BenchmarkDraft:
    """Return a benchmark that runs a built program; one that is not a benchmark gets an option like --version.

    `option` is that option, by default one that the program's sources contain.
    """
    word = tree.word(program.path)
    path = tree.path(program.path)
    if BENCHMARK_NAME.search(program.name):
        why = "the benchmark program of this tree; add the arguments that it needs"
        return BenchmarkDraft(name="bench", command=word, why=why, uses=(path,))
    option = option or next((each for each in COMMON_OPTIONS if _mentions(tree, each, program)), "")
    command = f"{word} {option}".rstrip()
    return BenchmarkDraft(name="start", command=command, why=PLACEHOLDER, placeholder=True, uses=(path,))


def script_benchmark(tree: Tree, suffixes: Sequence[str]) -> BenchmarkDraft | None:
    """Return a benchmark that runs a benchmark script of the tree in one of these languages, or `None`."""
    scripts = [path for path in tree if _is_script(tree, path, suffixes)]
    if not scripts:
        return None
    path = min(
        scripts, key=lambda each: (not BENCHMARK_NAME.search(PurePosixPath(each).name), each.count("/"), each)
    )
    interpreter = INTERPRETERS.get(PurePosixPath(path).suffix, "")
    command = f"{interpreter} {tree.word(path)}".lstrip()
    why = "a benchmark script of this tree; add the arguments that it needs"
    directory = str(PurePosixPath(path).parent)
    uses = tree.path(path if directory == "." else directory)
    return BenchmarkDraft(name="bench", command=command, why=why, uses=(uses,))


def placeholder_benchmark(tree: Tree, manifest: str) -> BenchmarkDraft:
    """Return a placeholder for a tree without anything to run: a command that works for every revision."""
    why = "a placeholder: perftrail found nothing to run; replace it by a small program that uses the library"
    return BenchmarkDraft(name="start", command=f"test -e {tree.word(manifest)}", why=why, placeholder=True)


def _mentions(tree: Tree, option: str, program: Program) -> bool:
    """Whether the source files of a program contain an option, as typed or as in getopt's tables."""
    stems = {path: PurePosixPath(path).stem for path in tree.texts if path.endswith(SOURCE_SUFFIXES)}
    sources = [path for path, stem in stems.items() if stem == program.name or OPTION_SOURCES.search(stem)]
    known = (option, f'"{option.removeprefix("--")}"')
    return any(words in tree.text(path) for path in sources for words in known)


def _is_script(tree: Tree, path: str, suffixes: Sequence[str]) -> bool:
    here = PurePosixPath(path)
    if (
        not is_safe_path(path)
        or path.count("/") > 2
        or _NOT_BENCHMARKS.search(here.stem)
        or here.name.startswith(".")
    ):
        return False
    has_benchmark_name = BENCHMARK_NAME.search(here.stem) is not None
    runs_benchmarks = here.stem.lower() in {"run", "main"} and here.parent.name in _BENCHMARK_DIRECTORIES
    if not (has_benchmark_name or runs_benchmarks) or "test" in here.stem.lower():
        return False
    if here.suffix == ".py":
        return ".py" in suffixes and _runs(tree.text(path))
    return here.suffix in suffixes if here.suffix else tree.is_executable[path]


def _runs(text: str) -> bool:
    """Whether a Python file does something if it is run, and does not only define what others import."""
    if "__main__" in text:
        return True
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(each, ast.For | ast.While | ast.With)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
        for each in statements
    )


def _is_test(program: Program) -> bool:
    parts = [*PurePosixPath(program.path).parts[:-1], program.name]
    return not BENCHMARK_NAME.search(program.name) and any(
        re.search(r"(?i)(?:^|[_-])(?:tests?|fuzz(?:er)?|examples?)(?:$|[_-])|_test|test_", part)
        for part in parts
    )


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
