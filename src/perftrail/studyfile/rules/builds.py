"""Rules for `[build]`, its eras, `[variants]`, overlays, patches and `[sandbox]`."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.placeholders import (
    LAYOUT,
    MACHINE,
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
    from perftrail.studyfile.problems import KeyPath, Problems


MOST_LOOKED_AT = 2000
"""Largest number of files of a directory that are compared with a misspelt name."""


def check_repairs(
    recipe: Build | Era | VariantBuild, path: KeyPath, complaints: Problems, *, study: Path
) -> None:
    """Report files that the study does not have, and invalid places in the tree."""
    taken: dict[str, str] = {}
    for file, place in recipe.overlay.items():
        key = (*path, "overlay", file)
        if wrong := _file_wrong(file, study) or _place_wrong(place):
            complaints.add(key, wrong)
        elif (other := taken.setdefault(posixpath.normpath(place), file)) != file:
            complaints.add(key, f"goes where {quoted(other)} goes, to {quoted(place)}")
    for file in recipe.patch:
        if wrong := _file_wrong(file, study):
            complaints.add((*path, "patch"), wrong)


def _file_wrong(file: str, study: Path) -> str | None:
    if wrong := inside_wrong(file, of="the study's directory"):
        return wrong
    path = study / file
    try:
        if path.is_file():
            return None
        there = path.exists()
        around = files_in(path.parent, below=study)
    except (OSError, ValueError) as error:
        return f"{quoted(file)} cannot be read: {error}"
    if there:
        return f"{quoted(file)} is not a file; name each file of a directory"
    near = nearest(file, around)
    return MissingFile(
        f"{quoted(file)} is not in the study's directory"
        + (f"; did you mean {quoted(near)}?" if near else "")
    )


def _place_wrong(place: str) -> str | None:
    if wrong := inside_wrong(place, of="the revision's root"):
        return wrong
    parts = posixpath.normpath(place).split("/")
    if parts == ["."] or place.endswith("/"):
        return f"{quoted(place)} is a directory; name the file in it"
    if parts[0] == ".git":
        return f"{quoted(place)} belongs to git; no repair may go there"
    return None


def files_in(directory: Path, *, below: Path) -> list[str]:
    """Return the files of a directory relative to another one, sorted; none if the directory does not exist.

    It reads at most `MOST_LOOKED_AT` entries. Raises `OSError` if the directory cannot be read.
    """
    if not directory.is_dir():
        return []
    entries = (each for each, _ in zip(directory.iterdir(), range(MOST_LOOKED_AT), strict=False))
    return sorted(str(each.relative_to(below)) for each in entries if each.is_file())


def check_sandbox(study: Study, complaints: Problems) -> None:
    """Report a sandbox that is opened without a reason, or completely."""
    sandbox = study.sandbox
    for path in sandbox.readable:
        if wrong := _path_wrong(path):
            complaints.add(("sandbox", "readable"), wrong)
    if sandbox.why.strip():
        return
    for key, opened in (("network", sandbox.network != "none"), ("readable", bool(sandbox.readable))):
        if opened:
            complaints.add(("sandbox", key), "opens the sandbox: say in sandbox.why what for")


def _path_wrong(path: str) -> str | None:
    if not path.startswith(("/", "~/")):
        return f"{quoted(path)}: write ~/PATH or /PATH"
    parts = path.split("/")
    if ".." in parts:
        return f'{quoted(path)}: write it without ".."'
    if not any(part not in {"", "."} for part in parts[1:]):
        return f"{quoted(path)} would show everything; name what is needed in it"
    return control_wrong(path)


RELINK_NEEDS_OUTPUTS = "needs outputs: only they are kept of a relinked build; name what the benchmarks use"


def always_known(study: Study) -> tuple[str, ...]:
    """Return the placeholders that every line of a study may contain."""
    return (*MACHINE, *map(source_placeholder, study.sources))


def every_part(study: Study) -> tuple[str, ...]:
    """Return the parts that variants define for commands and builds of benchmarks."""
    return tuple(dict.fromkeys(name for each in study.variants.values() for name in each.run.parts))


def check_variants(study: Study, complaints: Problems) -> None:
    """Report variants that cannot be built or run."""
    shared = _parameters_of_all(study)
    for name, variant in study.variants.items():
        path: KeyPath = ("variants", name)
        _check_folder(study, variant, path, complaints)
        _check_build(study, variant.build, (*path, "build"), complaints)
        if not variant.rebuild:
            for key in ("build", "directory"):
                if complaints.stands((*path, key)):
                    wrong = "has no effect with rebuild = false; remove one of them"
                    complaints.add((*path, key), wrong)
        if complaints.clean(("benchmark",)):
            running = (*always_known(study), OUT, *shared)
            run, at = variant.run, (*path, "run")
            check_environment(run.env, (*at, "env"), complaints, known=running)
            check_placeholders(run.prefix, (*at, "prefix"), complaints, known=running)
            _check_parts(study, name, complaints)


def _check_folder(study: Study, variant: Variant, path: KeyPath, complaints: Problems) -> None:
    folder, at = variant.directory, (*path, "directory")
    if folder is None:
        return
    if study.source.kind != "directory":
        kind = study.source.kind
        wrong = f"is for a directory source; in a {kind} one write build.directory"
        complaints.add(at, wrong, about=("source", "kind"))
    elif wrong_path := inside_wrong(folder, of="source.location"):
        complaints.add(at, wrong_path)
    elif not Path(study.source.location, folder).is_dir():
        wrong = f"{quoted(folder)} is not a directory in {study.source.location}"
        complaints.add(at, wrong, about=("source", "location"))


def _check_build(study: Study, build: VariantBuild, path: KeyPath, complaints: Problems) -> None:
    known = always_known(study)
    if build.directory is not None and (wrong := inside_wrong(build.directory, of="the build directory")):
        complaints.add((*path, "directory"), wrong)
    for output in build.outputs or ():
        if wrong := output_wrong(output, study.sources):
            complaints.add((*path, "outputs"), wrong)
    check_placeholders(build.steps or (), (*path, "steps"), complaints, known=known)
    check_environment(build.env, (*path, "env"), complaints, known=known)
    check_relink(build.relink or (), (*path, "relink"), complaints, known=known)
    if build.relink and not (build.outputs or study.build.outputs):
        complaints.add((*path, "relink"), RELINK_NEEDS_OUTPUTS, about=("build", "outputs"))


def _check_parts(study: Study, name: str, complaints: Problems) -> None:
    """Report unused parts, and benchmarks with a missing part."""
    parts, path = study.variants[name].run.parts, ("variants", name, "run", "parts")
    running = (*always_known(study), OUT)
    taken = {
        *running,
        LAYOUT,
        "variant",
        *(key for each in study.benchmarks.values() for key in each.parameters),
    }
    used = {part for benchmark in study.benchmarks.values() for part in _named(benchmark)}
    for part, text in parts.items():
        at = (*path, part)
        if part in taken:
            complaints.add(at, f"{quoted(part)} is already in use; choose another name")
        elif part not in used:
            complaints.add(at, f"no benchmark's command or build names {{{part}}}")
        check_placeholders((text,), at, complaints, known=(*running, *_parameters_of_all(study)))
    for title, benchmark in study.benchmarks.items():
        if not benchmark.points(name):
            continue
        for part in _named(benchmark):
            if part in every_part(study) and part not in parts:
                wrong = f"benchmark.{title} names {{{part}}}, which this variant lacks; add run.parts.{part}"
                complaints.add(("variants", name), wrong)
        command = insert_texts(benchmark.command, parts)
        if parts and not benchmark.shell and (wrong_words := _words_wrong(command)):
            complaints.add(path, wrong_words, about=("benchmark", title))


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


def check_builds(study: Study, complaints: Problems) -> None:
    """Report recipes that cannot work."""
    directory = Path(study.directory)
    _check_recipe(study, study.build, ("build",), complaints)
    check_repairs(study.build, ("build",), complaints, study=directory)
    _check_speed(study.build, complaints)
    for number, era in enumerate(study.build.when):
        path: KeyPath = ("build", "when", number)
        if wrong := range_wrong(era.range, words=False):
            complaints.add((*path, "range"), wrong)
        _check_recipe(study, era, path, complaints)
        check_repairs(era, path, complaints, study=directory)
    check_variants(study, complaints)
    for name, variant in study.variants.items():
        check_repairs(variant.build, ("variants", name, "build"), complaints, study=directory)


def _check_recipe(study: Study, recipe: Build | Era, path: KeyPath, complaints: Problems) -> None:
    if recipe.directory is not None and (wrong := inside_wrong(recipe.directory, of="the build directory")):
        complaints.add((*path, "directory"), wrong)
    for output in recipe.outputs or ():
        if wrong := output_wrong(output, study.sources):
            complaints.add((*path, "outputs"), wrong)
    check_placeholders(recipe.steps or (), (*path, "steps"), complaints, known=always_known(study))
    check_environment(recipe.env, (*path, "env"), complaints, known=always_known(study))
    check_relink(recipe.relink or (), (*path, "relink"), complaints, known=always_known(study))
    if recipe.relink and not (recipe.outputs or study.build.outputs):
        complaints.add((*path, "relink"), RELINK_NEEDS_OUTPUTS, about=("build", "outputs"))


def _check_speed(build: Build, complaints: Problems) -> None:
    for pattern in build.unaffected_by:
        if wrong := inside_wrong(pattern, of="the revision's tree"):
            complaints.add(("build", "unaffected_by"), wrong)
    if build.incremental and not build.outputs:
        complaints.add(
            ("build", "incremental"),
            "needs outputs: the tree is reused for the next revision, and only outputs stay; "
            "name what the benchmarks use",
        )
