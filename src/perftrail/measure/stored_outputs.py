"""Where the outputs of invocations are stored; new metrics are read from them, so that no invocation is repeated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.measurement import InvocationKey, Outcome
    from perftrail.model.metrics import Metric


def log_name(key: InvocationKey) -> str:
    """Return the common part of the names of an invocation's logs, below the directory of logs."""
    return f"runs/{key.runnable}/{key.machine[:8]}-{key.phase}-{key.ordinal}"


def missing_metrics(declared: Iterable[str], outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Return the declared metrics that no outcome has; none if no outcome has values."""
    valued = [set(each.values) for each in outcomes if isinstance(each, Measurement)]
    return frozenset(declared).difference(*valued) if valued else frozenset()


def with_metrics(
    outcomes: Iterable[Outcome], metrics: Mapping[str, Metric], *, runnable: str, logs: Path
) -> Sequence[Outcome]:
    """Return outcomes under another runnable's key, with more metrics from their stored outputs.

    `logs` is the present directory of logs: it may have been moved since an outcome was stored. Outcomes whose output
    is not stored, or does not contain the metrics, are left out. Failed invocations stay as they are.
    """
    found: list[Outcome] = []
    for each in outcomes:
        key = replace(each.key, runnable=runnable)
        if not isinstance(each, Measurement):
            found.append(replace(each, key=key))
            continue
        methods: dict[str, str] = {}
        values = read_metrics(metrics, _output(each, logs), log=each.log, methods=methods)
        if not isinstance(values, Failure):
            found.append(
                replace(each, key=key, values={**each.values, **values}, methods={**each.methods, **methods})
            )
    return found


def _output(measurement: Measurement, logs: Path) -> str:
    """Return the stored output of an invocation; empty if it printed nothing, or if its log was removed."""
    if not measurement.log:
        return ""
    for log in (Path(measurement.log), logs / f"{log_name(measurement.key)}.out"):
        with suppress(OSError):
            return log.read_text(encoding="utf-8", errors="replace")
    return ""
