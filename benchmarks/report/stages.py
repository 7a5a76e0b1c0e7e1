"""``python -m benchmarks.report.stages …``: the perftrail command, with the times of its stages on standard error.

Times are CPU times of this process; that of a stage includes its inner stages. The second process, which finds change
points and draws, has one total time. The last value is the peak memory of this process in bytes.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import resource
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STAGES = {
    "look up the builds and cells": "perftrail.results.measured.MeasuredHere.__init__",
    "read the samples": "perftrail.store.sql.SqlStore.samples",
    "start the search for change points": "perftrail.present.report.data.begin_changes",
    "wait for the change points": "perftrail.results.changes.PendingChanges.outcome",
    "read all data": "perftrail.present.report.report.read_report_data",
    "create the page": "perftrail.present.report.report.make_report",
    "wait for the charts": "perftrail.present.html_page.Drawings.drawn",
    "write their images": "perftrail.present.html_page.write_images",
    "write the page": "perftrail.present.html_page.to_html",
}
"""The name of each stage, and its function."""

PEAK = "peak_memory_bytes"


def main() -> None:
    """Run perftrail with the arguments of this command, and time its stages."""
    spent = dict.fromkeys(STAGES, 0.0)
    for stage, function in STAGES.items():
        _time(function, functools.partial(_add, spent, stage))
    from perftrail.cli.main import main as perftrail  # noqa: PLC0415 - after its parts are wrapped

    sys.argv[0] = "perftrail"
    try:
        perftrail()
    finally:
        used = os.times()
        spent["this process"] = used.user + used.system
        spent["other processes"] = used.children_user + used.children_system
        spent["everything"] = spent["this process"] + spent["other processes"]
        spent[PEAK] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(spent), file=sys.stderr)


def _add(spent: dict[str, float], stage: str, seconds: float) -> None:
    spent[stage] += seconds


def _time(name: str, on_end: Callable[[float], None]) -> None:
    """Replace the function with this dotted name by one that also passes its CPU time to `on_end`."""
    parts = name.split(".")
    owner: object = importlib.import_module(".".join(parts[:-1] if parts[-2].islower() else parts[:-2]))
    if not parts[-2].islower():
        owner = getattr(owner, parts[-2])
    whole = getattr(owner, parts[-1])

    @functools.wraps(whole)
    def timed(*arguments: object, **named: object) -> object:
        began = time.process_time()
        try:
            return whole(*arguments, **named)
        finally:
            on_end(time.process_time() - began)

    setattr(owner, parts[-1], timed)


if __name__ == "__main__":
    main()
