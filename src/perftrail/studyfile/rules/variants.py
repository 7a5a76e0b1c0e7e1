"""Rules for `[variants]`: folders of their own, builds, and parts of commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.placeholders import (
    LAYOUT,
    MACHINE,
    OUT,
    names,
    put_texts,
    source_placeholder,
    split_command,
)
from perftrail.model.wording import quoted
from perftrail.studyfile.rules.texts import (
    check_environment,
    check_placeholders,
    check_relink,
    inside_wrong,
    output_wrong,
)

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.recipe import Variant, VariantBuild
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath


RELINK_NEEDS_OUTPUTS = "needs outputs: only they are kept of a relinked build; name what the benchmarks use"


def always_known(study: Study) -> tuple[str, ...]:
    """Name the placeholders that may stand in every line of a study."""
    return (*MACHINE, *map(source_placeholder, study.sources))


def every_part(study: Study) -> tuple[str, ...]:
    """Name the parts that variants give to benchmarks' commands and builds."""
    return tuple(dict.fromkeys(name for each in study.variants.values() for name in each.run.parts))


def check_variants(study: Study, complaints: Complaints) -> None:
    """Complain about variants that cannot be built or run."""
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


def _check_folder(study: Study, variant: Variant, path: KeyPath, complaints: Complaints) -> None:
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
        wrong = f"{quoted(folder)} is no directory in {study.source.location}"
        complaints.add(at, wrong, about=("source", "location"))


def _check_build(study: Study, build: VariantBuild, path: KeyPath, complaints: Complaints) -> None:
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


def _check_parts(study: Study, name: str, complaints: Complaints) -> None:
    """Complain about parts that stand for nothing, and about benchmarks that lack one."""
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
            complaints.add(at, f"{quoted(part)} stands for something else already; choose another name")
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
        command = put_texts(benchmark.command, parts)
        if parts and not benchmark.shell and (wrong_words := _words_wrong(command)):
            complaints.add(path, wrong_words, about=("benchmark", title))


def _named(benchmark: Benchmark) -> tuple[str, ...]:
    """Name the placeholders in a benchmark's command and build."""
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
    """Name the parameters that every benchmark has: a variant is run with each of them."""
    each = [tuple(benchmark.parameters) for benchmark in study.benchmarks.values()]
    return tuple(name for name in each[0] if all(name in names for names in each)) if each else ()
