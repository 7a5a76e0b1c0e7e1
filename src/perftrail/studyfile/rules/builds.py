"""Rules for `[build]`, its eras and `[variants]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.placeholders import MACHINE, OUT
from perftrail.studyfile.rules.texts import inside_wrong, range_wrong, unknown_placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.recipe import Build, Era, Variant
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath


def check_builds(study: Study, complaints: Complaints) -> None:
    """Complain about recipes that cannot be followed."""
    _check_recipe(study.build, ("build",), complaints)
    for number, era in enumerate(study.build.when):
        path: KeyPath = ("build", "when", number)
        if wrong := range_wrong(era.range, open_ends=True):
            complaints.add((*path, "range"), wrong)
        _check_recipe(era, path, complaints)
    shared = _parameters_of_all(study)
    for name, variant in study.variants.items():
        _check_variant(variant, ("variants", name), complaints, parameters=shared)


def check_environment(
    env: Mapping[str, str],
    path: KeyPath,
    complaints: Complaints,
    *,
    known: tuple[str, ...],
    parameters: KeyPath | None = None,
) -> None:
    """Complain about unknown placeholders in variables."""
    for name, value in env.items():
        check_placeholders((value,), (*path, name), complaints, known=known, parameters=parameters)


def check_placeholders(
    texts: tuple[str, ...],
    path: KeyPath,
    complaints: Complaints,
    *,
    known: tuple[str, ...],
    parameters: KeyPath | None = None,
) -> None:
    """Complain about unknown placeholders in texts of one key; `parameters` is where more are declared."""
    for name, wrong in unknown_placeholders(texts, known).items():
        complaints.add(path, wrong, about=None if parameters is None else (*parameters, name))


def _check_recipe(recipe: Build | Era, path: KeyPath, complaints: Complaints) -> None:
    if recipe.directory is not None and (wrong := inside_wrong(recipe.directory, of="the build directory")):
        complaints.add((*path, "directory"), wrong)
    for output in recipe.outputs or ():
        if wrong := inside_wrong(output, of="the build directory"):
            complaints.add((*path, "outputs"), wrong)
    check_placeholders(recipe.steps or (), (*path, "steps"), complaints, known=MACHINE)
    check_environment(recipe.env, (*path, "env"), complaints, known=MACHINE)


def _check_variant(
    variant: Variant, path: KeyPath, complaints: Complaints, *, parameters: tuple[str, ...]
) -> None:
    check_placeholders(variant.build.steps or (), (*path, "build", "steps"), complaints, known=MACHINE)
    check_environment(variant.build.env, (*path, "build", "env"), complaints, known=MACHINE)
    if not variant.rebuild and complaints.stands((*path, "build")):
        complaints.add((*path, "build"), "has no effect with rebuild = false; remove one of them")
    if not complaints.clean(("benchmark",)):
        return
    running = (*MACHINE, OUT, *parameters)
    check_environment(variant.run.env, (*path, "run", "env"), complaints, known=running)
    check_placeholders(variant.run.prefix, (*path, "run", "prefix"), complaints, known=running)


def _parameters_of_all(study: Study) -> tuple[str, ...]:
    """Name the parameters that every benchmark has: a variant is run with each of them."""
    each = [tuple(benchmark.parameters) for benchmark in study.benchmarks.values()]
    return tuple(name for name in each[0] if all(name in names for names in each)) if each else ()
