"""Rules for `[benchmark]`: commands, parameters, exclusions, and input files that must exist."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import expanded
from perftrail.model.benchmark import MOST_POINTS
from perftrail.model.fixture import fixture_placeholders
from perftrail.model.placeholders import (
    COMMON_PLACEHOLDERS,
    LAYOUT,
    OUT,
    fill,
    insert_texts,
    names,
    split_command,
)
from perftrail.model.suite import RESIDENT_KINDS
from perftrail.model.target import TargetError, known_value
from perftrail.model.wording import listed, nearest, quoted, suggestion
from perftrail.studyfile.problems import MissingFile
from perftrail.studyfile.rules.builds import always_known, every_part, files_in
from perftrail.studyfile.rules.texts import check_environment, check_placeholders, check_relink, inside_wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from perftrail.model.benchmark import Benchmark, Value
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.study import Study
    from perftrail.model.suite import SuiteKind
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


MOST_FILES = 1000
"""Largest number of checked files of one benchmark, so that reading a study stays fast."""

REMEDY = "create it first; files that builds create belong below {build} or {out}"

_HERE = "{study}"
_RELATIVE = re.compile(r"(?![-/{])(?=.*[./])[^=:*?\\]+")
"""A word with a dot or a slash that can be the relative path of a file."""

_PLAIN = re.compile(r"\{study\}/[^:,;=*?\[\]|<>$]+")
"""A word that is only a path: not a list, an option with a value, or a pattern."""

_READ = re.compile(r"(?<!<)<\s*[\"']?(\{study\}/[^\s'\"<>|;&()$*?\[\]]+)")
"""An input redirection of a shell line. The line may create or test other paths itself."""

_WRITES = re.compile(r"-o|--?\w*(?:out|log|write|save|dump|cache|tmp|temp)[\w-]*", re.IGNORECASE)
"""An option whose value the command may create."""


def check_inputs(study: Study, benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    """Report files of the study that a benchmark reads and that do not exist.

    Outputs of builds are unknown here: paths below ``{build}``, ``{out}`` and other sources, and paths of the
    study that a build line names.
    """
    is_created = _created_by_builds(study, benchmark)
    stdin, command = (*path, "stdin"), (*path, "command")
    parts = [("variants", name, "run", "parts") for name in study.variants]
    if benchmark.stdin is not None and problems.readable(stdin):
        read = _filled(study, benchmark, path, problems, lambda _: [benchmark.stdin or ""])
        if wrong := _missing(study, read, is_created, a_directory=False):
            problems.add(stdin, wrong)
    if not problems.readable(command) or not _can_split(benchmark) or not problems.clean(*parts):
        return
    words = _filled(study, benchmark, path, problems, lambda variant: _read_by(study, benchmark, variant))
    if wrong := _missing(study, words, is_created, a_directory=True):
        problems.add(command, wrong)
    if not benchmark.shell:
        for word in [word for word in split_command(benchmark.command) if word.startswith("~/")][:1]:
            problems.add(command, f"only a shell expands {quoted(word)}; write {expanded(word)}")
    if benchmark.directory is not None:
        return
    near = _filled(
        study, benchmark, path, problems, lambda variant: _relative_words(study, benchmark, variant)
    )
    for word in [word for word in near if Path(study.directory, word).is_file()][:1]:
        problems.add(
            command,
            f"{quoted(word)} is a file of the study, but the command runs in an empty directory; "
            f"write {{study}}/{word.removeprefix('./')}",
        )


def _can_split(benchmark: Benchmark) -> bool:
    try:
        return benchmark.shell or bool(split_command(benchmark.command))
    except ValueError:
        return False


def _read_by(study: Study, benchmark: Benchmark, variant: str) -> list[str]:
    """Return the paths of the study that a command clearly reads in a variant."""
    line = insert_texts(benchmark.command, study.variants[variant].run.parts)
    if benchmark.shell:
        return _READ.findall(line)
    words = split_command(line)
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if _PLAIN.fullmatch(word) and not _WRITES.fullmatch(before)
    ]


def _relative_words(study: Study, benchmark: Benchmark, variant: str) -> list[str]:
    """Return the words of a command that are probably relative paths of files that it reads; none of a shell's line."""
    if benchmark.shell:
        return []
    words = split_command(insert_texts(benchmark.command, study.variants[variant].run.parts))
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if _RELATIVE.fullmatch(word) and not _WRITES.fullmatch(before)
    ]


def _filled(
    study: Study,
    benchmark: Benchmark,
    path: KeyPath,
    problems: Problems,
    texts: Callable[[str], Iterable[str]],
) -> list[str]:
    """Fill parameters into texts at every point of every variant; ``{study}`` stays, each result occurs once.

    Texts with parameters are left out if the parameters or exclusions at `path` have mistakes.
    """
    are_points_known = problems.clean((*path, "parameters"), (*path, "exclude"))
    found: dict[str, None] = {}
    for variant in study.variants:
        wanted = list(texts(variant))
        varying = [text for text in wanted if any(name in benchmark.parameters for name in names(text))]
        if not are_points_known:
            found.update(dict.fromkeys(text for text in wanted if text not in varying))
            continue
        for point in benchmark.each_point(variant) if wanted else ():
            values = {name: str(value) for name, value in point.as_dict().items()}
            found.update(dict.fromkeys(fill(text, values) for text in wanted))
            if not varying or len(found) > MOST_FILES:
                break
    return list(found)


def _missing(
    study: Study, paths: Iterable[str], is_created: Callable[[str], bool], *, a_directory: bool
) -> str | None:
    """Return a message about missing files; `None` if all known files exist.

    `a_directory` states whether directories are allowed.
    """
    missing: list[str] = []
    for path in paths:
        if set(names(path)) - {"study"} or is_created(path):
            continue
        file = Path(fill(path, {"study": study.directory}))
        try:
            if file.is_dir() and not a_directory:
                return f"{quoted(path)} is a directory; name a file in it"
            if file.exists():
                continue
        except (OSError, ValueError) as error:
            return f"{quoted(path)} cannot be read: {error}"
        missing.append(path)
    if not missing:
        return None
    wrong = f"no such file: {listed(map(quoted, missing), 'and')}"
    near = _near(study, missing[0])
    return MissingFile(f"{wrong}; did you mean {quoted(near)}?" if near else f"{wrong}; {REMEDY}")


def _near(study: Study, path: str) -> str | None:
    if not path.startswith(_HERE):
        return None
    directory, below = Path(study.directory), path.removeprefix(_HERE).lstrip("/")
    try:
        near = nearest(below, files_in((directory / below).parent, below=directory))
    except (OSError, ValueError):
        return None
    return f"{_HERE}/{near}" if near else None


def _created_by_builds(study: Study, benchmark: Benchmark) -> Callable[[str], bool]:
    """Return whether a build line may create a path: the line names the path, or a directory above it."""
    builds: list[Build | Era | VariantBuild] = [study.build, *study.build.when]
    builds += [variant.build for variant in study.variants.values()]
    lines = [line for build in builds for line in build.steps or ()]
    named = {word.rstrip("/") for line in (*lines, *benchmark.build) for word in _study_words(line)}
    return lambda path: any(path == word or path.startswith(f"{word}/") for word in named)


def _study_words(line: str) -> Iterator[str]:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    yield from (_HERE + word.partition(_HERE)[2].rstrip(";") for word in words if _HERE in word)


NEED_PROGRAMS: Mapping[SuiteKind, str] = {
    "criterion": "the built benchmark programs",
    "divan": "the built benchmark programs",
    "go": "the built test programs",
    "google-benchmark": "the built programs",
    "jmh": "the jar with the benchmarks",
}
"""What `program` names for each tool that needs it."""

RESERVED = (*COMMON_PLACEHOLDERS, OUT, LAYOUT, "variant")
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1", "2>", "&>"})


_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
"""Text that no shell would read as operators."""


def check_benchmarks(study: Study, problems: Problems) -> None:
    """Report benchmarks that cannot run."""
    if problems.has_key(("suite",)):
        check_suites(study, problems)
    elif not problems.has_key(("benchmark",)):
        problems.add_unreadable(("benchmark",), "missing; commands to run, with their parameters and metrics")
    elif not study.benchmarks and problems.clean(("benchmark",)):
        problems.add(("benchmark",), "there must be at least one; write [benchmark.NAME] with its command")
    for name, benchmark in study.benchmarks.items():
        path = ("benchmark", name)
        _check_parameters(benchmark, path, problems)
        _check_lines(study, benchmark, path, problems)
        _check_exclusions(study, benchmark, path, problems)
        check_inputs(study, benchmark, path, problems)
        for index, end in enumerate(benchmark.retry_on):
            if re.fullmatch(r"exit ([1-9]\d{0,2})|SIG[A-Z0-9]+", end) is None:
                wrong = f'{quoted(end)} names no end of a program; write "exit 77" or "SIGKILL"'
                problems.add((*path, "retry_on"), wrong, item=index)


def check_suites(study: Study, problems: Problems) -> None:
    """Report suites that cannot be listed."""
    if not study.suites and not study.benchmarks and problems.clean(("suite",)):
        problems.add(("suite",), "there must be at least one; write [suite.NAME] with its kind")
    for name, suite in study.suites.items():
        path = ("suite", name)
        try:
            re.compile(suite.select)
        except re.error as error:
            problems.add((*path, "select"), f"{quoted(suite.select)} is not a regular expression: {error}")
        if suite.kind in NEED_PROGRAMS and not suite.program:
            problems.add((*path, "program"), f"missing: {NEED_PROGRAMS[suite.kind]}, relative to the build")
        for key, texts in (("program", suite.program), ("path", (suite.path,))):
            for text in texts:
                if text.startswith("/") or ".." in text.split("/"):
                    problems.add((*path, key), f"{quoted(text)} must be relative to the build, and inside it")
        if suite.resident and suite.kind not in RESIDENT_KINDS:
            kinds = listed(RESIDENT_KINDS, "and")
            problems.add((*path, "resident"), f"{suite.kind} has no resident process; {kinds} have one")
        check_environment(suite.env, (*path, "env"), problems, known=always_known(study), parameters=path)


def _check_lines(study: Study, benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    known = (*benchmark.parameters, *always_known(study), OUT, *fixture_placeholders(benchmark))
    in_parts = (*known, *every_part(study))
    parameters = (*path, "parameters")
    words = _words(benchmark, (*path, "command"), problems)
    check_placeholders(words, (*path, "command"), problems, known=in_parts, parameters=parameters)
    check_placeholders(benchmark.build, (*path, "build"), problems, known=in_parts, parameters=parameters)
    check_relink(benchmark.relink, (*path, "relink"), problems, known=in_parts, parameters=parameters)
    check_environment(benchmark.env, (*path, "env"), problems, known=known, parameters=parameters)
    if benchmark.directory is not None and (
        wrong := inside_wrong(benchmark.directory, of="the build directory")
    ):
        problems.add((*path, "directory"), wrong)
    if benchmark.stdin is not None:
        stdin = (benchmark.stdin,)
        check_placeholders(stdin, (*path, "stdin"), problems, known=known, parameters=parameters)
        if not benchmark.stdin.strip():
            problems.add((*path, "stdin"), "names no file")


def _words(benchmark: Benchmark, path: KeyPath, problems: Problems) -> tuple[str, ...]:
    command = benchmark.command
    if not command.strip():
        problems.add(path, "names no program to run")
    if benchmark.shell or not command.strip():
        return (command,)
    for word in sorted(_SHELL_WORDS.intersection(_QUOTED.sub("q", command).split())):
        problems.add(path, f"{quoted(word)} only works in a shell; write shell = true, or quote it")
    try:
        return split_command(command)
    except ValueError as error:
        problems.add(path, f"{quoted(command)} {error}")
        return (command,)


def _check_parameters(benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    for name, values in benchmark.parameters.items():
        at = (*path, "parameters", name)
        if name in RESERVED:
            problems.add(at, f"{quoted(name)} is already in use; choose another name")
        if not values:
            problems.add(at, "has no values; write at least one")
        for wrong in _repeated(values):
            problems.add(at, wrong)
    count = math.prod(len(values) for values in benchmark.parameters.values())
    if count > MOST_POINTS:
        problems.add((*path, "parameters"), f"span more than {MOST_POINTS} points; use fewer values")


def _repeated(values: tuple[Value, ...]) -> tuple[str, ...]:
    seen: set[Value] = set()
    twice: dict[str, None] = {}
    for value in values:
        if value in seen or str(value) in seen:
            twice[f"{_written(value)} occurs twice; remove one of them"] = None
        seen |= {value, str(value)}
    return tuple(twice)


def _written(value: Value) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _check_exclusions(study: Study, benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    for number, rule in enumerate(benchmark.exclude):
        at: KeyPath = (*path, "exclude", number)
        if not rule and problems.clean(at):
            problems.add((*path, "exclude"), f"item {number + 1} is empty and would exclude every point")
        for name, value in rule.items():
            _check_exclusion(study, benchmark, path, problems, at=(*at, name), value=value)
    trusted = problems.clean((*path, "parameters"), (*path, "exclude"))
    if trusted and problems.readable(("variants",), depth=1) and not _any_point(study, benchmark):
        problems.add((*path, "exclude"), "excludes every point in every variant; nothing is left to run")


def _check_exclusion(
    study: Study,
    benchmark: Benchmark,
    path: KeyPath,
    problems: Problems,
    *,
    at: KeyPath,
    value: Value,
) -> None:
    name = str(at[-1])
    if name == "variant":
        if value not in study.variants:
            wrong = f"no variant {_written(value)}{suggestion(str(value), study.variants)}"
            problems.add(at, wrong, about=("variants", str(value)))
    elif name not in benchmark.parameters:
        known = (*benchmark.parameters, "variant")
        near = nearest(name, known)
        hint = f"did you mean {quoted(near)}?" if near else f"there are {listed(known, 'and')}"
        problems.add(at, f'no parameter "{name}"; {hint}', about=(*path, "parameters", name))
    else:
        try:
            if known_value(benchmark, name, value) != value:
                wrong = f"{_written(value)} is text in one place and a number in the other"
                problems.add(at, wrong, about=(*path, "parameters", name))
        except TargetError as error:
            problems.add(at, str(error), about=(*path, "parameters", name))


def _any_point(study: Study, benchmark: Benchmark) -> bool:
    rules: tuple[Mapping[str, Value], ...] = benchmark.exclude
    return not rules or any(benchmark.runs_for(variant) for variant in study.variants)
