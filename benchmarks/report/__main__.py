"""``python -m benchmarks.report``: a report of a long history, written by the command itself and opened in a browser.

A store is filled with samples of a real repository's revisions; nothing is built. Then `perftrail report` is
started several times as a process of its own, and its page opened several times in Chromium. Prints medians,
and the CPU time beside the time that passed: on a machine that others use, only the first says what it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import taken
from benchmarks.report.filling import Size, fill
from benchmarks.report.opening import opening_seconds

GOAL_WRITTEN, GOAL_OPENED = 10.0, 2.0


def main() -> int:
    """Fill, write, open, print; the exit code says whether the goals were met."""
    asked = _asked()
    size = Size(
        revisions=asked.revisions, benchmarks=asked.benchmarks, invocations=asked.invocations, more=asked.more
    )
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        directory = Path(asked.study or scratch)
        if not (directory / "perftrail.toml").exists():
            print(f"filling a store with {size.samples:,} samples", file=sys.stderr)
            fill(directory, size, seed=asked.seed)
        runs = [_write(directory, Path(scratch, "report")) for _ in range(asked.times)]
        page = Path(scratch, "report", "index.html")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        opened = opening_seconds(page, chromium=chromium, times=asked.times) if chromium else []
        text, bytes_ = page.read_text(encoding="utf-8"), page.stat().st_size
    return _tell(runs, opened, bytes_, _data_bytes(text))


def _write(study: Path, report: Path) -> dict[str, float]:
    """Write a report in a process of its own: its stages' CPU seconds, and the time that passed."""
    command = [sys.executable, "-m", "benchmarks.report.staged", "report", "-o", str(report), str(study)]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    passed = time.perf_counter() - began
    stages: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
    return {**stages, "passed": passed}


def _data_bytes(text: str) -> int:
    """How much of a page is data."""
    found: list[str] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    return sum(len(each.encode()) for each in found)


def _tell(runs: list[dict[str, float]], opened: list[float], page: int, data: int) -> int:
    medians = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
    print(f"{taken()}; load {os.getloadavg()[0]:.1f}, {len(runs)} repetitions")
    for stage, seconds in medians.items():
        print(f"{stage:32} {seconds:8.2f} s{'' if stage == 'passed' else ' of CPU'}")
    print(f"{'page':32} {page / 1e6:8.2f} MB, of which {data / 1e6:.2f} MB are data")
    if opened:
        print(f"{'opened, first screen drawn':32} {statistics.median(opened):8.2f} s")
    written = medians["passed"] < GOAL_WRITTEN
    return 0 if written and opened and statistics.median(opened) < GOAL_OPENED else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--benchmarks", type=int, default=20)
    parser.add_argument("--invocations", type=int, default=5, help="of each benchmark of each revision")
    parser.add_argument(
        "--more", type=int, default=0, help="metrics in each invocation that are not reported"
    )
    parser.add_argument("--times", type=int, default=5, help="how often the page is written and opened")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--study", help="keep the study here, or use the one that was filled here before")
    parser.add_argument("--scratch", help="where to put the rest")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
