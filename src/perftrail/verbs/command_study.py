"""Studies without a study file: of one command line, or of the build and the benchmark that `init` detects.

A command in a repository without a perftrail.toml works on such a study. Its directory is the root of the repository.
perftrail writes its text into the results there (`COMMAND_STUDY`), where later commands find it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.placeholders import COMMON_PLACEHOLDERS, OUT, fill_some, names
from perftrail.model.wording import quoted
from perftrail.results_directory import create, verify
from perftrail.studyfile import COMMAND_STUDY, FILE_NAME, no_study
from perftrail.studyfile.writing import toml
from perftrail.verbs.init.start import draft_study, repository_root, write_text
from perftrail.verbs.init.study_text import study_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from perftrail.model.benchmark import Value
    from perftrail.verbs.init.draft import StudyDraft
    from perftrail.verbs.init.start import RepositoryRoot

BENCHMARK = "command"
"""Name of the benchmark of a command line."""

PRINTED = "printed"
"""Name of a metric whose pattern has no named group."""

AND = "&&"
OPERATORS = frozenset({AND, "||", "|", "&", ";", "<", ">", ">>", "2>", "2>&1", "&>"})
"""Words that only a shell understands."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)

_GROUP = re.compile(r"\(\?P<([A-Za-z_]\w*)>", re.ASCII)

KEEP = "perftrail init --last"
"""The command that keeps such a study."""

_LONGEST_STEPS = 100
"""Length of the build lines that are printed; the study has all of them."""

_HEAD = (
    "# The study of the last command line. perftrail replaces it with the next one; to keep it as perftrail.toml:\n",
    f"# {KEEP}\n",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What to build and to measure: the words after ``--``, and their options.

    `build` are shell lines; without them, the words before the last ``&&`` build, else the build is detected.
    `patterns` are regular expressions of printed metrics, `range` is the range of the history, empty for all of it.
    """

    words: tuple[str, ...]
    build: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    range: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStudy:
    """A study that was written for a repository without one: its file, and in words what was detected."""

    file: Path
    detected: str = ""


def write_command_study(command: CommandLine, directory: Path) -> WrittenStudy:
    """Write the study of a command line that was typed in a directory of a repository.

    Raises `UsageError` outside a repository, and for a command line without a command.
    """
    root = repository_root(directory)
    if root is None:
        raise UsageError(
            f"{directory}: is not in a git or Fossil check-out, whose revisions a command after -- needs; to measure "
            "it without a history, use perftrail measure"
        )
    build, measured = _split_at_build(command)
    _refuse_own_paths(command.words, root.directory)
    draft = None if build else draft_study(root.directory, study=root.directory, system=None)
    text = "\n".join(_command_text(command, build, measured, root, draft)) + "\n"
    return WrittenStudy(file=_write(text, root.directory), detected="" if draft is None else _detected(draft))


def write_detected_study(directory: Path) -> WrittenStudy:
    """Write the study of a repository with the build and the benchmark that `init` detects.

    Raises `UsageError` outside a repository, and if there is no benchmark to measure.
    """
    root = repository_root(directory)
    if root is None:
        raise no_study(directory)
    draft = draft_study(root.directory, study=root.directory, system=None)
    if draft.build is None or (draft.build.suite is None and draft.build.benchmark.placeholder):
        raise UsageError(
            f"no {FILE_NAME} in {directory} or above, and perftrail found no benchmark in {root.directory}; "
            "write the command to measure after --, or create a study with: perftrail init"
        )
    return WrittenStudy(
        file=_write("".join(_HEAD) + study_text(draft), root.directory), detected=_detected(draft)
    )


def keep_command_study(directory: Path, *, force: bool) -> Path:
    """Write the study of the last command line as the repository's study file; its results stay in use.

    Raises `UsageError` if there was no command line, or if a study file exists and `force` is not set.
    """
    root = repository_root(directory)
    if root is None or not (last := root.directory / COMMAND_STUDY).is_file():
        raise UsageError(
            f"{directory}: no command line was measured here; measure one, for example with: "
            "perftrail compare HEAD~1 HEAD -- ./bench"
        )
    verify(last.parent)
    file = root.directory / FILE_NAME
    if file.exists() and not force:
        raise UsageError(f"{file}: a study exists already; overwrite it with --force")
    lines = last.read_text("utf-8").splitlines(keepends=True)
    write_text(file, "".join(line for line in lines if line not in _HEAD))
    return file


def _detected(draft: StudyDraft) -> str:
    if draft.build is None:
        return "perftrail found no build system, so nothing is built; --build LINE builds"
    steps = " && ".join(step.line for step in draft.build.steps)
    if len(steps) > _LONGEST_STEPS:
        steps = f"{steps[:_LONGEST_STEPS].rstrip()}…"
    manifest = posixpath.join(draft.directory, draft.build.manifest)
    suite = f"suite: {draft.build.suite.kind}; " if draft.build.suite is not None else ""
    return f"{suite}build: {steps} ({draft.build.system}, because of {quoted(manifest)})"


def _write(text: str, root: Path) -> Path:
    file = root / COMMAND_STUDY
    with suppress(OSError):  # `write_text` reports it
        create(verify(file.parent))
    write_text(file, text)
    return file


def _split_at_build(command: CommandLine) -> tuple[tuple[str, ...], str | tuple[str, ...]]:
    """Return the lines that build, and what is measured: a shell line, or words.

    >>> _split_at_build(CommandLine(words=("./build.sh", "&&", "./bench", "parse")))
    (('./build.sh',), ('./bench', 'parse'))
    >>> _split_at_build(CommandLine(words=("make && ./bench a | wc",)))
    (('make',), './bench a | wc')
    >>> _split_at_build(CommandLine(words=("cat", "a b", "|", "./bench"), build=("make",)))
    (('make',), "cat 'a b' | ./bench")
    """
    words = command.words
    if not any(word.strip() for word in words):
        raise UsageError("write the command to measure after --, for example: -- ./bench parse")
    if len(words) == 1 and len(words[0].split()) > 1:
        before, found, measured = words[0].rpartition(AND)
        split = bool(found) and not command.build and _is_complete(before) and _is_complete(measured)
        lines = (before.strip(),) if split else command.build
        return lines, measured.strip() if split else words[0]
    if AND in words and not command.build:
        at = len(words) - 1 - words[::-1].index(AND)
        lines, words = (shell_line(words[:at]),), words[at + 1 :]
        if not lines[0] or not words:
            raise UsageError(
                "&& needs words on both sides: the build before it, the command to measure after it"
            )
    else:
        lines = command.build
    return lines, shell_line(words) if OPERATORS.intersection(words) else words


def _refuse_own_paths(words: Sequence[str], root: Path) -> None:
    """Raise `UsageError` for a path into the check-out: every revision would use that file instead of its own."""
    for word in words:
        if word == str(root) or word.startswith(f"{root}/"):
            raise UsageError(
                f"{quoted(word)} is in your check-out, so every revision would use the same file; write it relative to "
                "the present directory, or as {build}/…"
            )


def _is_complete(line: str) -> bool:
    """Return whether a part of a shell line is a complete line: no open quote and no open parenthesis."""
    try:
        return bool(shlex.split(line)) and line.count("(") == line.count(")")
    except ValueError:
        return False


def shell_line(words: Sequence[str]) -> str:
    """Return words as one shell line; operators and placeholders stay outside of quotes.

    >>> shell_line(["A=b c", "./bench", "-n{n}", "|", "sort"])
    "A='b c' ./bench '-n'{n}'' | sort"
    """
    return " ".join(word if word in OPERATORS else _shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment:
        return f"{assignment[1]}={_shell_word(assignment[2])}"
    line = shlex.quote(word)
    for name in names(word):
        line = line.replace(f"{{{name}}}", f"'{{{name}}}'")
    return line


def _literal(text: str, known: Iterable[str]) -> str:
    """Return a text of the command line with literal braces, except those of known placeholders.

    >>> _literal("{cpus} {a} {print}", ["cpus"])
    '{cpus} {{a}} {{print}}'
    """
    return fill_some(text, {name: f"{{{name}}}" for name in names(text) if name not in known})


def _command_text(
    command: CommandLine,
    build: tuple[str, ...],
    measured: str | tuple[str, ...],
    root: RepositoryRoot,
    draft: StudyDraft | None,
) -> Iterator[str]:
    """Yield the lines of the study of a command line."""
    here = toml(root.prefix or ".")
    yield from (line.rstrip("\n") for line in _HEAD)
    yield "[source]"
    yield f"kind = {toml(root.kind)}"
    yield 'location = "."'
    if command.range:
        yield f"range = {toml(command.range)}"
    yield ""
    yield "[build]"
    if draft is None:
        yield f"directory = {here}"
        steps = [_literal(line, COMMON_PLACEHOLDERS) for line in build]
    elif draft.build is None:
        steps = []
    else:
        yield f"# build system: {draft.build.system}, because of {quoted(draft.build.manifest)}"
        yield f"directory = {toml(draft.directory or '.')}"
        steps = [step.line for step in draft.build.steps]
        if draft.build.env:
            yield f"env = {_table(draft.build.env.items())}"
    yield f"steps = [{', '.join(map(toml, steps))}]"
    if command.outputs:
        yield f"outputs = [{', '.join(map(toml, command.outputs))}]"
    yield ""
    yield f"[benchmark.{BENCHMARK}]"
    yield f"directory = {here}"
    yield from _command_lines(measured, (*COMMON_PLACEHOLDERS, OUT, *command.parameters))
    if command.parameters:
        axes = (f"{name} = [{', '.join(map(_value, values))}]" for name, values in command.parameters.items())
        yield f"parameters = {{ {', '.join(axes)} }}"
    metrics = dict(_printed(command.patterns))
    yield from (f"metrics.{name} = {{ pattern = {toml(pattern)} }}" for name, pattern in metrics.items())
    yield ""
    yield "[find]"
    yield f"metric = [{', '.join(map(toml, metrics or ('wall',)))}]"


def _command_lines(measured: str | tuple[str, ...], known: Sequence[str]) -> Iterator[str]:
    """Yield the command and its environment: leading ``NAME=value`` words of a command without a shell."""
    if isinstance(measured, str):
        yield f"command = {toml(_literal(measured, known))}"
        yield "shell = true"
        return
    environment = {}
    words = list(measured)
    while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
        environment[assignment[1]] = _literal(assignment[2], known)
        words.pop(0)
    if not words:
        raise UsageError(f"{shlex.join(measured)}: names no program to run")
    yield f"command = {toml(shlex.join(_literal(word, known) for word in words))}"
    if environment:
        yield f"env = {_table(environment.items())}"


def _printed(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the pattern of each printed metric; a named group is its name.

    >>> dict(_printed(["TIME=(?P<real>[0-9.]+)", "a ([0-9]+)", "b ([0-9]+)"]))
    {'real': 'TIME=(?P<real>[0-9.]+)', 'printed': 'a ([0-9]+)', 'printed_2': 'b ([0-9]+)'}
    """
    unnamed = 0
    for pattern in patterns:
        if named := _GROUP.search(pattern):
            yield named[1], pattern
        else:
            unnamed += 1
            yield PRINTED if unnamed == 1 else f"{PRINTED}_{unnamed}", pattern


def _value(value: Value) -> str:
    return toml(value) if isinstance(value, str) else repr(value)


def _table(items: Iterable[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{toml(name)} = {toml(value)}" for name, value in items) + " }"
