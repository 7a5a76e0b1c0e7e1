"""Rules for the files that commands read: those of the study must exist before anything is built."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.placeholders import fill, names, put_texts, split_command
from perftrail.model.wording import listed, nearest, quoted
from perftrail.studyfile.rules.repairs import files_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath

MOST_FILES = 1000
"""Files of one benchmark that are looked for, so that reading a study with many points stays fast."""

REMEDY = "create it first; what builds make belongs below {build} or {out}"

_HERE = "{study}"
_PLAIN = re.compile(r"\{study\}/[^:,;=*?\[\]|<>$]+")
"""A word that is a path and nothing else: no list, no option with its value, no pattern."""

_READ = re.compile(r"(?<!<)<\s*[\"']?(\{study\}/[^\s'\"<>|;&()$*?\[\]]+)")
"""What a shell line reads; a path elsewhere in it may be one that the line creates or tests for."""

_WRITES = re.compile(r"-o|--?\w*(?:out|log|write|save|dump|cache|tmp|temp)[\w-]*", re.IGNORECASE)
"""An option whose value the command may create."""


def check_inputs(study: Study, benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> None:
    """Complain about files of the study that a benchmark reads and that do not exist.

    Whatever a build makes is unknown here: paths below ``{build}``, ``{out}`` and other sources, and paths of
    the study that a build line names.
    """
    made = _made(study, benchmark)
    stdin, command = (*path, "stdin"), (*path, "command")
    parts = [("variants", name, "run", "parts") for name in study.variants]
    if not complaints.clean((*path, "parameters"), (*path, "exclude"), stdin, command, *parts):
        return
    if benchmark.stdin is not None:
        read = _filled(study, benchmark, lambda _: [benchmark.stdin or ""])
        if wrong := _missing(study, read, made, a_directory=False):
            complaints.add(stdin, wrong)
    words = _filled(study, benchmark, lambda variant: _read_by(study, benchmark, variant))
    if wrong := _missing(study, words, made, a_directory=True):
        complaints.add(command, wrong)


def _read_by(study: Study, benchmark: Benchmark, variant: str) -> list[str]:
    """Give the paths of the study that a command plainly reads in a variant."""
    line = put_texts(benchmark.command, study.variants[variant].run.parts)
    if benchmark.shell:
        return _READ.findall(line)
    words = split_command(line)
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if _PLAIN.fullmatch(word) and not _WRITES.fullmatch(before)
    ]


def _filled(study: Study, benchmark: Benchmark, texts: Callable[[str], Iterable[str]]) -> list[str]:
    """Fill parameters into texts at every point of every variant; ``{study}`` stays, each result comes once."""
    found: dict[str, None] = {}
    for variant in study.variants:
        wanted = list(texts(variant))
        varies = any(name in benchmark.parameters for text in wanted for name in names(text))
        for point in benchmark.points(variant) if wanted else ():
            values = {name: str(value) for name, value in point.as_dict().items()}
            found.update(dict.fromkeys(fill(text, values) for text in wanted))
            if not varies or len(found) > MOST_FILES:
                break
    return list(found)


def _missing(
    study: Study, paths: Iterable[str], made: Callable[[str], bool], *, a_directory: bool
) -> str | None:
    """Say which of these paths do not exist, `None` when all that can be known do.

    `a_directory` says whether a directory will do.
    """
    missing: list[str] = []
    for path in paths:
        if set(names(path)) - {"study"} or made(path):
            continue
        there = Path(fill(path, {"study": study.directory}))
        try:
            if there.is_dir() and not a_directory:
                return f"{quoted(path)} is a directory; name a file in it"
            if there.exists():
                continue
        except (OSError, ValueError) as error:
            return f"{quoted(path)} cannot be read: {error}"
        missing.append(path)
    if not missing:
        return None
    told = f"no such file: {listed(map(quoted, missing), 'and')}"
    near = _near(study, missing[0])
    return f"{told}; did you mean {quoted(near)}?" if near else f"{told}; {REMEDY}"


def _near(study: Study, path: str) -> str | None:
    if not path.startswith(_HERE):
        return None
    directory, below = Path(study.directory), path.removeprefix(_HERE).lstrip("/")
    try:
        near = nearest(below, files_in((directory / below).parent, below=directory))
    except (OSError, ValueError):
        return None
    return f"{_HERE}/{near}" if near else None


def _made(study: Study, benchmark: Benchmark) -> Callable[[str], bool]:
    """Return whether a build line may make a path: it names the path, or a directory that holds it."""
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
