"""``python -m benchmarks.report.staged …``: the command line itself, with the time of its stages on standard error.

Times are of the process's own CPU, a stage's inner stages counted in it; that of the second process, which looks for
change points and draws, is told as a whole. The last value is the peak memory of this one in bytes.
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
    "look the builds and cells up": "perftrail.results.measured.MeasuredHere.__init__",
    "read the samples": "perftrail.store.sql.SqlStore.samples",
    "hand every metric out for change points": "perftrail.present.report.gathered.begin_changes",
    "wait for the change points": "perftrail.results.changes.PendingChanges.outcome",
    "gather all of that": "perftrail.present.report.report.gather",
    "put the page together": "perftrail.present.report.report.make_report",
    "wait for the charts": "perftrail.present.html_page.Drawings.drawn",
    "write their images": "perftrail.present.html_page.write_images",
    "write the page": "perftrail.present.html_page.to_html",
}
"""What each stage is called, and the function that it is."""

PEAK = "peak_memory_bytes"


def main() -> None:
    """Run perftrail with the arguments given, its stages timed."""
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
        spent["processes beside it"] = used.children_user + used.children_system
        spent["everything"] = spent["this process"] + spent["processes beside it"]
        spent[PEAK] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(spent), file=sys.stderr)


def _add(spent: dict[str, float], stage: str, seconds: float) -> None:
    spent[stage] += seconds


def _time(name: str, told: Callable[[float], None]) -> None:
    """Put a function in place of one that is reached by its dotted name: the same, and its time is told."""
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
            told(time.process_time() - began)

    setattr(owner, parts[-1], timed)


if __name__ == "__main__":
    main()
