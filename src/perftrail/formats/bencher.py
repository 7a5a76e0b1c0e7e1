"""Bencher Metric Format: each benchmark's metrics, the median with its interval; a file for each revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.rows import revision_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.study import Study


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return medians, with their bounds if there are several values."""
    return revision_files(samples, _document)


def _document(samples: Sequence[Exported]) -> Json:
    document: dict[str, dict[str, Json]] = {}
    for each in samples:
        bounds: dict[str, Json] = {"lower_value": each.low, "upper_value": each.high}
        measure: dict[str, Json] = {"value": each.median, **(bounds if len(each.values) > 1 else {})}
        name = f"{each.metric} ({each.unit})" if each.unit else each.metric
        document.setdefault(each.name, {})[name] = measure
    return dict(document)
