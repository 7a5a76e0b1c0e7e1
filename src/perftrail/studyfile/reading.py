"""Reading of study files: text, values, rules, and all mistakes together.

`load` returns the study, `load_readable` the readable part of a study with mistakes. `mistake` reports a mistake that
only appears when the history is read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from perftrail.errors import Mistake, StudyError, UsageError
from perftrail.file_tree import expanded, open_to_read
from perftrail.model.placeholders import fill
from perftrail.model.recipe import PLAIN, Variant
from perftrail.model.source import MAIN
from perftrail.model.study import Study
from perftrail.model.wording import nearest, quoted
from perftrail.results_directory import RESULTS
from perftrail.studyfile.key_lines import key_lines
from perftrail.studyfile.problems import Problems, key_path, line_of
from perftrail.studyfile.rules import check
from perftrail.studyfile.rules.source import absolute_location
from perftrail.studyfile.structure import Misfit, structure
from perftrail.studyfile.syntax import NotToml, read_toml

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.structure import Document


FILE_NAME = "perftrail.toml"
"""Default name of a study file."""

COMMAND_STUDY = f"{RESULTS}/study.toml"
"""The study of a command in a repository without a study file, below the root; its directory is the root."""


def no_study(
    directory: object, *, remedy: str = "name a study, or create one with: perftrail init"
) -> UsageError:
    """Return the error of a directory without a study."""
    return UsageError(f"{directory}: no {FILE_NAME} in this directory or above; {remedy}")


LARGEST_FILE_BYTES = 1 << 20
_MOST_ROUNDS = 50


def load(path: str, *, to_read: bool = False, searched: bool = True) -> Study:
    """Read a study from its file, or from the directory of that file.

    With `to_read`, its repository and its other files need not exist: stored samples can be read without them. Without
    `searched`, nobody needs the metric of searches: if it is wrong, the study has none. Raises `StudyError` with every
    mistake, for any file content.
    """
    study, mistakes = load_readable(path, to_read=to_read)
    needed = tuple(each for each in mistakes if searched or each.key.partition("[")[0] != SEARCHED_METRIC)
    if study is not None and len(needed) < len(mistakes):
        study, mistakes = replace(study, find=replace(study.find, metric=())), needed
    if study is None or mistakes:
        raise StudyError(mistakes)
    return study


SEARCHED_METRIC = "find.metric"
"""The key of the metric that searches examine by default."""


def load_readable(path: str, *, to_read: bool = False) -> tuple[Study | None, tuple[Mistake, ...]]:
    """Return what is readable of a study, `None` if that is nothing, and its mistakes.

    Raises `StudyError` if the file cannot be read or is not valid TOML, and `UsageError` for a path that is not UTF-8:
    results, pages and logs contain it.
    """
    file = Path(path)
    if _is_directory(file):
        file /= FILE_NAME
    try:
        str(file.absolute()).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{file.absolute()}: the path of a study must be UTF-8; rename the directory"
        ) from error
    shown = shown_name(file)
    text = _text(file, shown)
    data = _toml(text, shown, is_link=file.is_symlink())
    problems = Problems(shown, key_lines(text), to_read=to_read)
    document = _document(data, problems)
    if document is None:
        return None, problems.mistakes
    study = _study(document, file.absolute())
    every = {MAIN: document.source, **document.sources}
    written = {name: source.location for name, source in every.items()}
    check(study, problems, written_locations=written)
    return study, problems.mistakes


def find_upwards(start: str) -> str | None:
    """Return the nearest study file in a directory or above it, else the nearest `COMMAND_STUDY`, else `None`."""
    directory = Path(start).absolute()
    for name in (FILE_NAME, COMMAND_STUDY):
        for each in (directory, *directory.parents):
            file = each / name
            if file.is_file():
                return str(file)
    return None


def directory_of(file: Path) -> Path:
    """Return the directory of a study: that of its file, or the root above a `COMMAND_STUDY`."""
    return file.parent.parent if file.parent.name == RESULTS else file.parent


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def shown_name(file: Path) -> str:
    """Return the given name, or the path relative to the current directory if the file is below it."""
    try:
        return str(file.absolute().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(file)


def _refuse(file: str, message: str, *, line: int = 0, key: str = "file") -> Never:
    raise StudyError([Mistake(file=file, line=line, key=key, message=message)])


def _text(file: Path, shown: str) -> str:
    try:
        with open_to_read(file) as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        names = [each.name for each in file.parent.glob("*.toml")] if file.parent.is_dir() else []
        near = nearest(file.name, names)
        remedy = f"did you mean {quoted(near)}?" if near else 'create it with "perftrail init"'
        _refuse(shown, f"no such file; {remedy}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _refuse(shown, f"cannot be read: {reason.lower()}")
    if len(content) > LARGEST_FILE_BYTES:
        _refuse(shown, "is larger than 1 MiB, the limit of study files; check the path")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        _refuse(shown, f"is not UTF-8 text: byte 0x{byte:02x}; save it as UTF-8", line=line)


def _toml(text: str, shown: str, *, is_link: bool) -> dict[str, Any]:
    try:
        return read_toml(text)
    except RecursionError:
        _refuse(shown, "is nested too deeply", line=1, key="syntax")
    except NotToml as wrong:
        if is_link:  # the mistake quotes the line, but a repository may contain a link to any file
            _refuse(shown, f"is a symbolic link, and its target is not valid TOML: {os.path.realpath(shown)}")
        _refuse(shown, wrong.message, line=wrong.line, key="syntax")


def _document(data: dict[str, Any], problems: Problems) -> Document | None:
    """Return the readable part of the document; other values are reported and replaced."""
    for _ in range(_MOST_ROUNDS):
        result = structure(data)
        if not isinstance(result, tuple):
            return result
        meant = {(*misfit.path[:-1], misfit.meant) for misfit in result if misfit.meant is not None}
        # A required key that is missing may be a misspelt one.
        for misfit in (each for each in result if each.path not in meant):
            problems.add_unreadable(misfit.path, misfit.message, item=misfit.item)
            _repair(data, misfit, problems)
    return None


def _repair(data: dict[str, Any], misfit: Misfit, problems: Problems) -> None:
    """Replace or remove a value that does not fit. A misspelt key moves to the probable one, so that it is checked."""
    within: Any = data  # Any: tables and lists of unknown values
    *parents, name = misfit.path
    for part in parents:
        if isinstance(within, dict) and part not in within:
            return
        within = within[part]
    if misfit.meant is not None:
        meant = (*parents, misfit.meant)
        value = within.pop(name)
        if misfit.meant in within:
            problems.mark_suspect(meant)
        else:
            within[misfit.meant] = value
            problems.relocate(misfit.path, meant)
    elif misfit.stand_in is not None:
        within[name] = misfit.stand_in
    else:
        within.pop(name, None)


def _study(document: Document, file: Path) -> Study:
    directory = directory_of(file)
    benchmarks = document.benchmark
    only = next(iter(benchmarks)) if len(benchmarks) == 1 else ""
    return Study(
        title=document.study.title or directory.name,
        file=str(file),
        directory=str(directory),
        source=replace(document.source, location=absolute_location(document.source, directory)),
        build=document.build,
        variants=document.variants or {PLAIN: Variant()},
        benchmarks={name: _with_own_input(benchmark) for name, benchmark in benchmarks.items()},
        suites=document.suite,
        derived={
            name: replace(derived, benchmark=derived.benchmark or only)
            for name, derived in document.derived.items()
        },
        claims=document.claims,
        measure=document.measure,
        find=document.find,
        sandbox=document.sandbox,
        watch=document.watch,
        sources={
            name: replace(source, location=absolute_location(source, directory))
            for name, source in document.sources.items()
        },
        along=document.study.along,
        services=document.service,
    )


def _with_own_input(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark whose relative `stdin` is below the study's directory, and ``~/`` the user's home."""
    stdin = benchmark.stdin or ""
    if stdin.startswith("~/"):
        return replace(benchmark, stdin=str(expanded(stdin)))
    first = {name: str(values[0]) for name, values in benchmark.parameters.items() if values}
    if not stdin.strip() or fill(stdin, first).startswith(("/", "{")):
        return benchmark
    return replace(benchmark, stdin=f"{{study}}/{stdin}")


def mistake(file: str, path: KeyPath, message: str) -> Mistake:
    """Return the mistake at a path of a file that was read before."""
    try:
        lines = key_lines(Path(file).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        lines = {}
    return Mistake(
        file=shown_name(Path(file)), line=line_of(path, lines), key=key_path(path), message=message
    )
