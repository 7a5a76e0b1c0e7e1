"""Rules for `[build]`, its eras and `[variants]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.studyfile.rules.repairs import check_repairs
from perftrail.studyfile.rules.texts import (
    check_environment,
    check_placeholders,
    check_relink,
    inside_wrong,
    output_wrong,
    range_wrong,
)
from perftrail.studyfile.rules.variants import RELINK_NEEDS_OUTPUTS, always_known, check_variants

if TYPE_CHECKING:
    from perftrail.model.recipe import Build, Era
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath


def check_builds(study: Study, complaints: Complaints) -> None:
    """Complain about recipes that cannot be followed."""
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


def _check_recipe(study: Study, recipe: Build | Era, path: KeyPath, complaints: Complaints) -> None:
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


def _check_speed(build: Build, complaints: Complaints) -> None:
    for pattern in build.unaffected_by:
        if wrong := inside_wrong(pattern, of="the revision's tree"):
            complaints.add(("build", "unaffected_by"), wrong)
    if build.incremental and not build.outputs:
        complaints.add(
            ("build", "incremental"),
            "needs outputs: the tree goes on to the next revision, and only they are kept; "
            "name what the benchmarks use",
        )
