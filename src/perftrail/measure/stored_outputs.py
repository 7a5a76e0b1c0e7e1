"""Read new metrics from the stored outputs of invocations, so that these need not be repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.measurement import Outcome
    from perftrail.model.metrics import Metric


def missing_metrics(declared: Iterable[str], outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Return the declared metrics that no outcome has; none if no outcome has values."""
    valued = [set(each.values) for each in outcomes if isinstance(each, Measurement)]
    return frozenset(declared).difference(*valued) if valued else frozenset()


def with_metrics(
    outcomes: Iterable[Outcome], metrics: Mapping[str, Metric], *, runnable: str
) -> Sequence[Outcome]:
    """Return outcomes under another runnable's key, with more metrics from their stored outputs.

    Outcomes whose output is not stored, or does not contain the metrics, are left out. Failed invocations stay as
    they are.
    """
    found: list[Outcome] = []
    for each in outcomes:
        key = replace(each.key, runnable=runnable)
        if not isinstance(each, Measurement):
            found.append(replace(each, key=key))
            continue
        methods: dict[str, str] = {}
        values = read_metrics(metrics, _output(each), log=each.log, methods=methods)
        if not isinstance(values, Failure):
            found.append(
                replace(each, key=key, values={**each.values, **values}, methods={**each.methods, **methods})
            )
    return found


def _output(measurement: Measurement) -> str:
    """Return the stored output of an invocation; empty if it printed nothing, or if its log was removed."""
    log = Path(measurement.log)
    try:
        return log.read_text(encoding="utf-8", errors="replace") if measurement.log and log.is_file() else ""
    except OSError:
        return ""
