"""What must hold between the values of a study file; each module has the rules of some tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.studyfile.rules.benchmarks import check_benchmarks
from perftrail.studyfile.rules.builds import check_builds
from perftrail.studyfile.rules.metrics import check_derived, check_find, check_metrics
from perftrail.studyfile.rules.source import check_source

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints


def check(study: Study, complaints: Complaints, *, written_location: str) -> None:
    """Complain about everything that does not make sense in a study whose values could be read.

    `written_location` is `source.location` as it stands in the file.
    """
    check_source(study, complaints, written_location=written_location)
    check_builds(study, complaints)
    check_benchmarks(study, complaints)
    check_metrics(study, complaints)
    check_derived(study, complaints)
    check_find(study, complaints)
