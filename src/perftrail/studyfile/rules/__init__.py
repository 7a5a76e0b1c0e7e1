"""Rules across the values of a study file; each module covers some tables.

- `source`: `[source]`, `[sources]` and skips.
- `builds`: `[build]`, `[variants]`, overlays, patches and `[sandbox]`.
- `benchmarks`: `[benchmark]` and its input files.
- `metrics`: metrics, `[derived]`, `[find]` and `[claims]`.
- `texts`: paths, ranges, patterns and placeholders; `[watch]` and studies of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.studyfile.rules.benchmarks import check_benchmarks
from perftrail.studyfile.rules.builds import check_builds, check_sandbox
from perftrail.studyfile.rules.metrics import check_claims, check_derived, check_find, check_metrics
from perftrail.studyfile.rules.source import check_sources
from perftrail.studyfile.rules.texts import check_samples, check_watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.study import Study
    from perftrail.studyfile.problems import Problems


def check(study: Study, complaints: Problems, *, written_locations: Mapping[str, str]) -> None:
    """Report every contradiction in a study with readable values.

    `written_locations` are the sources' locations as written in the file, by name.
    """
    check_samples(study, complaints)
    if study.source.kind != "samples":
        check_builds(study, complaints)
        check_benchmarks(study, complaints)
        check_metrics(study, complaints)
        check_derived(study, complaints)
        check_claims(study, complaints)
        check_find(study, complaints)
        check_sandbox(study, complaints)
        check_watch(study, complaints)
    check_sources(study, complaints, written_locations=written_locations)
