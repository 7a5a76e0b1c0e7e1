"""LNT's report, version 2: every value of time and memory of each benchmark; a file for each revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.rows import revision_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.study import Study

_FIELDS = {"wall": "execution_time", "peak_memory": "mem_bytes"}
"""Fields of LNT's schema for programs, by perftrail's metrics."""


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return every value of the metrics of LNT's schema, because LNT uses the smallest time."""
    return revision_files(samples, _document)


def missing_metrics(samples: Sequence[Exported]) -> frozenset[str]:
    """Return the metrics without a field in LNT's schema."""
    return frozenset(each.metric for each in samples if each.metric not in _FIELDS)


def _document(samples: Sequence[Exported]) -> Json:
    kept = [each for each in samples if each.metric in _FIELDS]
    if not kept:
        return None
    tests: dict[str, dict[str, Json]] = {}
    for each in kept:
        tests.setdefault(each.name, {"name": each.name})[_FIELDS[each.metric]] = list(each.numbers)
    started = sorted(each.started for each in kept if each.started)
    revision = kept[0].subject.revision
    return {
        "format_version": "2",
        "machine": {"name": kept[0].machine},
        "run": {
            "start_time": _second(started[0]) if started else "",
            "end_time": _second(started[-1]) if started else "",
            "llvm_project_revision": revision.id,
        },
        "tests": list(tests.values()),
    }


def _second(moment: str) -> str:
    """Return a time in LNT's form, in whole seconds."""
    return moment[:19]
