"""github-action-benchmark's own JSON: two files per revision, for lower-is-better and for other metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.rows import revision_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import Better
    from perftrail.model.study import Study

_ENDINGS: dict[Better, str] = {"lower": ".smaller-is-better.json", "higher": ".bigger-is-better.json"}


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return medians with half of their intervals as ranges; summaries have none."""
    files: dict[str, bytes] = {}
    for better, ending in _ENDINGS.items():
        those = [each for each in samples if each.better == better]
        files |= revision_files(those, _document, ending=ending)
    return files


def _document(samples: Sequence[Exported]) -> Json:
    return [
        {
            "name": f"{each.name} {each.metric}",
            "unit": each.unit or "1",
            "value": each.median,
            **({"range": f"± {(each.high - each.low) / 2:.3g}"} if len(each.values) > 1 else {}),
            "extra": f"median of {len(each.values)} on {each.machine}",
        }
        for each in samples
    ]
