"""Rules for `[build]`, its eras, `[variants]`, overlays, patches and `[sandbox]`."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.placeholders import (
    COMMON_PLACEHOLDERS,
    DATE,
    LAYOUT,
    OUT,
    insert_texts,
    names,
    source_placeholder,
    split_command,
)
from perftrail.model.wording import nearest, quoted
from perftrail.studyfile.problems import MissingFile
from perftrail.studyfile.rules.texts import (
    check_environment,
    check_placeholders,
    check_relink,
    control_wrong,
    inside_wrong,
    output_wrong,
    range_wrong,
)

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.recipe import Build, Era, Variant, VariantBuild
    from perftrail.model.study import Study
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


MOST_COMPARED_FILES = 2000
"""Largest number of files of a directory that are compared with a misspelt name."""


def check_repairs(
    recipe: Build | Era | VariantBuild, path: KeyPath, problems: Problems, *, study: Path
) -> None:
    """Report files that the study does not have, and invalid paths in the tree."""
    by_target: dict[str, str] = {}
    for file, target in recipe.overlay.items():
        key = (*path, "overlay", file)
        if wrong := _file_wrong(file, study) or _overlay_path_wrong(target):
            problems.add(key, wrong)
        elif (other := by_target.setdefault(posixpath.normpath(target), file)) != file:
            problems.add(key, f"has the same target as {quoted(other)}: {quoted(target)}")
    for index, file in enumerate(recipe.patch):
        if wrong := _file_wrong(file, study):
            problems.add((*path, "patch"), wrong, item=index)


def _file_wrong(file: str, study: Path) -> str | None:
    if file.startswith(("/", "~")):
        return f"{quoted(file)} is not below the study's directory; copy the file into it"
    if wrong := inside_wrong(file, of="the study's directory"):
        return wrong
    path = study / file
    try:
        if path.is_file():
            return None
        exists = path.exists()
        neighbours = files_in(path.parent, below=study)
    except (OSError, ValueError) as error:
        return f"{quoted(file)} cannot be read: {error}"
    if exists:
        return f"{quoted(file)} is not a file; name each file of a directory"
    near = nearest(file, neighbours)
    return MissingFile(
        f"{quoted(file)} is not in the study's directory"
        + (f"; did you mean {quoted(near)}?" if near else "; create it, or correct the path")
    )


def _overlay_path_wrong(path: str) -> str | None:
    if wrong := inside_wrong(path, of="the revision's root"):
        return wrong
    parts = posixpath.normpath(path).split("/")
    if parts == ["."] or path.endswith("/"):
        return f"{quoted(path)} is a directory; name the file in it"
    if parts[0] == ".git":
        return f"{quoted(path)} belongs to git; choose another path"
    return None


def files_in(directory: Path, *, below: Path) -> list[str]:
    """Return the files of a directory relative to another one, sorted; none if the directory does not exist.

    It reads at most `MOST_COMPARED_FILES` entries. Raises `OSError` if the directory cannot be read.
    """
    if not directory.is_dir():
        return []
    entries = (each for each, _ in zip(directory.iterdir(), range(MOST_COMPARED_FILES), strict=False))
    return sorted(str(each.relative_to(below)) for each in entries if each.is_file())


def check_sandbox(study: Study, problems: Problems) -> None:
    """Report a sandbox that is opened without a reason, or completely."""
    sandbox = study.sandbox
    for index, path in enumerate(sandbox.readable):
        if wrong := _path_wrong(path):
            problems.add(("sandbox", "readable"), wrong, item=index)
    if sandbox.why.strip():
        return
    for key, opened in (("network", sandbox.network != "none"), ("readable", bool(sandbox.readable))):
        if opened:
            problems.add(("sandbox", key), "opens the sandbox; write the reason in sandbox.why")


def _path_wrong(path: str) -> str | None:
    if not path.startswith(("/", "~/")):
        return f"{quoted(path)}: write ~/PATH or /PATH"
    parts = path.split("/")
    if ".." in parts:
        return f'{quoted(path)}: write it without ".."'
    if not any(part not in {"", "."} for part in parts[1:]):
        return f"{quoted(path)} would show everything; name what is needed in it"
    return control_wrong(path)


RELINK_NEEDS_OUTPUTS = (
    "needs outputs, because a relinked build stores nothing else; name what the benchmarks use"
)


def always_known(study: Study) -> tuple[str, ...]:
    """Return the placeholders that every line of a study may contain."""
    return (*COMMON_PLACEHOLDERS, *map(source_placeholder, study.sources))


def every_part(study: Study) -> tuple[str, ...]:
    """Return the parts that variants define for commands and builds of benchmarks."""
    return tuple(dict.fromkeys(name for each in study.variants.values() for name in each.run.parts))


def check_variants(study: Study, problems: Problems) -> None:
    """Report variants that cannot be built or run."""
    shared = _parameters_of_all(study)
    for name, variant in study.variants.items():
        path: KeyPath = ("variants", name)
        _check_folder(study, variant, path, problems)
        _check_recipe(study, variant.build, (*path, "build"), problems)
        if not variant.rebuild:
            for key in ("build", "directory"):
                if problems.has_key((*path, key)):
                    wrong = "has no effect with rebuild = false; remove one of them"
                    problems.add((*path, key), wrong)
        if names_readable(study, problems):
            running = (*always_known(study), OUT, *shared)
            run, at = variant.run, (*path, "run")
            check_environment(run.env, (*at, "env"), problems, known=running)
            check_placeholders(run.prefix, (*at, "prefix"), problems, known=running)
            _check_parts(study, name, problems)


def names_readable(study: Study, problems: Problems) -> bool:
    """Return whether the names of variants, benchmarks, derived metrics and parameters were read, with values.

    A value that only uses these names can then be checked, whatever other mistakes the study has.
    """
    parameters = [values for each in study.benchmarks.values() for values in each.parameters.values()]
    return (
        all(problems.readable((table,), depth=1) for table in ("benchmark", "derived", "variants"))
        and all(problems.readable(("benchmark", name, "parameters")) for name in study.benchmarks)
        and all(parameters)
    )


def _check_folder(study: Study, variant: Variant, path: KeyPath, problems: Problems) -> None:
    folder, at = variant.directory, (*path, "directory")
    if folder is None:
        return
    if study.source.kind != "directory":
        kind = study.source.kind
        wrong = f"is for a directory source; in a {kind} one write build.directory"
        problems.add(at, wrong, about=("source", "kind"))
    elif wrong_path := inside_wrong(folder, of="source.location"):
        problems.add(at, wrong_path)
    elif not Path(study.source.location, folder).is_dir():
        wrong = f"{quoted(folder)} is not a directory in {study.source.location}"
        problems.add(at, wrong, about=("source", "location"))


def _check_parts(study: Study, name: str, problems: Problems) -> None:
    """Report unused parts, and benchmarks with a missing part."""
    parts, path = study.variants[name].run.parts, ("variants", name, "run", "parts")
    running = (*always_known(study), OUT)
    reserved = {
        *running,
        LAYOUT,
        "variant",
        *(key for each in study.benchmarks.values() for key in each.parameters),
    }
    used = {part for benchmark in study.benchmarks.values() for part in _named(benchmark)}
    for part, text in parts.items():
        at = (*path, part)
        if part in reserved:
            problems.add(at, f"{quoted(part)} is already in use; choose another name")
        elif part not in used:
            problems.add(at, f"no benchmark's command or build names {{{part}}}")
        check_placeholders((text,), at, problems, known=(*running, *_parameters_of_all(study)))
    for title, benchmark in study.benchmarks.items():
        if not benchmark.runs_for(name):
            continue
        for part in _named(benchmark):
            if part in every_part(study) and part not in parts:
                wrong = f"benchmark.{title} names {{{part}}}, which this variant lacks; add run.parts.{part}"
                problems.add(("variants", name), wrong)
        command = insert_texts(benchmark.command, parts)
        if parts and not benchmark.shell and (wrong_words := _words_wrong(command)):
            problems.add(path, wrong_words, about=("benchmark", title))


def _named(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the placeholders in a benchmark's command and build."""
    return tuple(
        dict.fromkeys(
            part for line in (benchmark.command, *benchmark.build, *benchmark.relink) for part in names(line)
        )
    )


def _words_wrong(command: str) -> str | None:
    try:
        split_command(command)
    except ValueError as error:
        return f"{quoted(command)} {error}"
    return None


def _parameters_of_all(study: Study) -> tuple[str, ...]:
    """Return the parameters that every benchmark has: a variant runs with each of them."""
    each = [tuple(benchmark.parameters) for benchmark in study.benchmarks.values()]
    return tuple(name for name in each[0] if all(name in names for names in each)) if each else ()


def check_builds(study: Study, problems: Problems) -> None:
    """Report recipes that cannot work."""
    directory = Path(study.directory)
    _check_recipe(study, study.build, ("build",), problems)
    check_repairs(study.build, ("build",), problems, study=directory)
    _check_incremental(study.build, problems)
    for number, era in enumerate(study.build.when):
        path: KeyPath = ("build", "when", number)
        if wrong := range_wrong(era.range, words=False):
            problems.add((*path, "range"), wrong)
        _check_recipe(study, era, path, problems)
        check_repairs(era, path, problems, study=directory)
    check_variants(study, problems)
    for name, variant in study.variants.items():
        check_repairs(variant.build, ("variants", name, "build"), problems, study=directory)


def _check_recipe(
    study: Study, recipe: Build | Era | VariantBuild, path: KeyPath, problems: Problems
) -> None:
    if recipe.directory is not None and (wrong := inside_wrong(recipe.directory, of="the build directory")):
        problems.add((*path, "directory"), wrong)
    for index, output in enumerate(recipe.outputs or ()):
        if wrong := output_wrong(output, study.sources):
            problems.add((*path, "outputs"), wrong, item=index)
    # A directory's files as they are now have no date.
    known = (*always_known(study), *((DATE,) if study.source.kind != "directory" else ()))
    check_placeholders(recipe.steps or (), (*path, "steps"), problems, known=known)
    check_environment(recipe.env, (*path, "env"), problems, known=known)
    check_relink(recipe.relink or (), (*path, "relink"), problems, known=always_known(study))
    if recipe.relink and not (recipe.outputs or study.build.outputs):
        problems.add((*path, "relink"), RELINK_NEEDS_OUTPUTS, about=("build", "outputs"))


def _check_incremental(build: Build, problems: Problems) -> None:
    for index, pattern in enumerate(build.unaffected_by):
        if wrong := inside_wrong(pattern, of="the revision's tree"):
            problems.add(("build", "unaffected_by"), wrong, item=index)
    if build.incremental and not build.outputs:
        problems.add(
            ("build", "incremental"),
            "needs outputs: perftrail reuses the tree for the next revision and stores only the outputs; "
            "name what the benchmarks use",
        )
