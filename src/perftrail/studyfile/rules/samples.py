"""Rules for studies of samples that other tools took: nothing is built and nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints

_OF_RUNS = (
    "sources",
    "build",
    "variants",
    "benchmark",
    "derived",
    "claims",
    "measure",
    "find",
    "sandbox",
    "watch",
)
"""The tables that say how something is built, run or looked for by running it."""


def check_samples(study: Study, complaints: Complaints) -> None:
    """Complain about tables that say nothing here, and about samples beside what is run."""
    if study.source.kind == "samples":
        for table in _OF_RUNS:
            if complaints.stands((table,)):
                complaints.add((table,), "says nothing about samples that were taken elsewhere; leave it out")
    for name, source in study.sources.items():
        if source.kind == "samples" and complaints.trusts(("sources", name, "kind")):
            complaints.add(
                ("sources", name, "kind"), "samples are a study of their own; write them as [source]"
            )
