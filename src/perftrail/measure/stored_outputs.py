"""Where the outputs of invocations are stored; new metrics are read from them, so that no invocation is repeated."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.formats.printed import read_metrics
from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.measurement import InvocationKey, Outcome
    from perftrail.model.metrics import Metric


SMALL_BYTES = 4096
"""Outputs up to this size stay separate files: each takes one block of a disk in any case."""


class EqualOutputs:
    """Lets equal outputs share their space on disk, because a program often prints the same in each invocation.

    Equal files become hard links of the first of them. So an output must be removed before it is written again.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, bytes], Path] = {}

    def share(self, log: Path) -> None:
        """Replace a complete output by a link to an equal one. A file that cannot be linked stays as it is."""
        with suppress(OSError):
            if log.stat().st_size <= SMALL_BYTES:
                return
            with log.open("rb") as content:
                key = log.suffix, file_digest(content, "sha256").digest()
            first = self._first.get(key, log)
            self._first[key] = log
            if first != log:
                link = log.with_name(f"{log.name}.link")
                link.unlink(missing_ok=True)
                os.link(first, link)
                link.replace(log)


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
