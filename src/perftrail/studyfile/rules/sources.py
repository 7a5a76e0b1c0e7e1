"""Rules for `[sources]` and for which source is walked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.placeholders import sources_named
from perftrail.model.source import MAIN
from perftrail.model.wording import quoted, suggestion
from perftrail.studyfile.complaints import Moved
from perftrail.studyfile.rules.skips import check_skips
from perftrail.studyfile.rules.source import check_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints


def check_sources(study: Study, complaints: Complaints, *, written_locations: Mapping[str, str]) -> None:
    """Complain about every source that cannot be read as it is described, or that nothing uses.

    `written_locations` are their locations as they stand in the file, by name.
    """
    check_source(study, complaints, written_location=written_locations[MAIN])
    check_skips(study, complaints)
    for name, source in study.sources.items():
        alike, told = replace(study, source=source), Moved(complaints, table="source", to=("sources", name))
        check_source(alike, told, written_location=written_locations[name])
        if name == MAIN:
            complaints.add(
                ("sources", name), f"{quoted(MAIN)} is what [source] is called; choose another name"
            )
    if study.along not in study.every_source:
        wrong = f"no source {quoted(study.along)}{suggestion(study.along, study.every_source)}"
        complaints.add(("study", "along"), wrong, about=("sources",))
    if complaints.clean(("build",), ("variants",), ("benchmark",)):
        used = sources_named(_texts(study))
        for name in study.sources:
            if name not in used and name != MAIN:
                wrong = f"nothing uses it; write {{source.{name}}} in build.steps or in a benchmark's lines"
                complaints.add(("sources", name), wrong)


def _texts(study: Study) -> Iterator[str]:
    """Every text in which a source may be named."""
    recipes: tuple[Build | Era | VariantBuild, ...] = (
        study.build,
        *study.build.when,
        *(variant.build for variant in study.variants.values()),
    )
    for recipe in recipes:
        yield from (*(recipe.steps or ()), *recipe.env.values(), *(recipe.outputs or ()))
    for variant in study.variants.values():
        yield from (*variant.run.env.values(), *variant.run.prefix, *variant.run.parts.values())
    for benchmark in study.benchmarks.values():
        yield from (benchmark.command, benchmark.stdin or "", *benchmark.build, *benchmark.env.values())
