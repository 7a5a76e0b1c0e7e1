"""Rules across the values of a study file; each module covers some tables.

- `source`: `[source]`, `[sources]` and skips.
- `builds`: `[build]`, `[variants]`, overlays, patches and `[sandbox]`.
- `benchmarks`: `[benchmark]` and its input files.
- `fixtures`: lines around invocations, and `[service]`.
- `metrics`: metrics, `[derived]`, `[find]` and `[claims]`.
- `texts`: paths, ranges, patterns and placeholders; `[watch]` and studies of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.studyfile.rules.benchmarks import check_benchmarks
from perftrail.studyfile.rules.builds import check_builds, check_sandbox
from perftrail.studyfile.rules.fixtures import check_fixtures
from perftrail.studyfile.rules.metrics import check_claims, check_derived, check_find, check_metrics
from perftrail.studyfile.rules.source import check_sources
from perftrail.studyfile.rules.texts import check_samples, check_watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.study import Study
    from perftrail.studyfile.problems import Problems


def check(study: Study, problems: Problems, *, written_locations: Mapping[str, str]) -> None:
    """Report every contradiction in a study with readable values.

    `written_locations` are the sources' locations as written in the file, by name.
    """
    check_samples(study, problems)
    if study.source.kind != "samples":
        check_builds(study, problems)
        check_benchmarks(study, problems)
        check_fixtures(study, problems)
        check_metrics(study, problems)
        check_derived(study, problems)
        check_claims(study, problems)
        check_find(study, problems)
        check_sandbox(study, problems)
        check_watch(study, problems)
    check_sources(study, problems, written_locations=written_locations)
