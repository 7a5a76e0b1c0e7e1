"""Otava's input: for each benchmark at a point a CSV with a row for each revision, and one otava.yaml for all."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from perftrail.formats.rows import file_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.metrics import Better
    from perftrail.model.study import Study

_DIRECTIONS: Mapping[Better, int] = {"lower": -1, "higher": 1}
TIME, COMMIT, VALUE = "time", "commit", "value"
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""Time of the first revision if the history does not have all times; each next one is a day later."""


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return medians in the order of the history. Each metric is a test, because rows need a value in every column."""
    series: dict[str, list[Exported]] = defaultdict(list)
    for each in samples:
        series[f"{each.name} {each.metric}"].append(each)
    files: dict[str, bytes] = {}
    tests = []
    for name, those in series.items():
        file = file_name(name, files, ".csv")
        files[file] = _table(those)
        tests.append(_test(file, those[0]))
    files["otava.yaml"] = f"tests:\n{''.join(tests)}".encode()
    return files


def _table(samples: Sequence[Exported]) -> bytes:
    dates = {each.subject.revision.id: each.subject.revision.time for each in samples}
    days = {id: (_FIRST + timedelta(days=day)).isoformat() for day, id in enumerate(dates)}
    times = dates if all(dates.values()) else days
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, COMMIT, VALUE])
    for each in samples:
        id = each.subject.revision.id
        writer.writerow([times[id], id, each.median])
    return text.getvalue().encode()


def _test(file: str, sample: Exported) -> str:
    """Return a test of the configuration; JSON is YAML, so that no name needs its own quotes."""
    metric = {"direction": _DIRECTIONS[sample.better], "scale": 1, "column": VALUE}
    test = {
        "type": "csv",
        "file": file,
        "time_column": TIME,
        "attributes": [COMMIT],
        "metrics": {sample.metric: metric},
        "csv_options": {"delimiter": ",", "quote_char": '"'},
    }
    return f"  {json.dumps(file.removesuffix('.csv'))}: {json.dumps(test)}\n"
