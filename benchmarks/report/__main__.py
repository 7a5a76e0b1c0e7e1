"""``python -m benchmarks.report``: the time to show a long history, to write its report and to open it in a browser.

It fills a store with samples of a real repository's revisions, without builds. Then it starts `perftrail report`
several times in a new process, and opens its page several times in Chromium. It prints medians of the wall and the CPU
time: on a shared machine, only the CPU time is reliable. With ``--more 9`` the store has ten million samples. ``python
-m benchmarks.store page`` creates a page from the output of ``--json``.
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

from benchmarks.machine import database, load, measured_on
from benchmarks.report.filling import Size, fill
from benchmarks.report.opening import opening_seconds
from benchmarks.report.stages import PEAK
from perftrail import studyfile
from perftrail.opening import results_database

GOAL_WRITTEN, GOAL_OPENED = 10.0, 2.0


def main() -> int:
    """Fill, write, open, print. The exit code is 0 if the goals are met."""
    options = _options()
    size = Size(
        revisions=options.revisions,
        benchmarks=options.benchmarks,
        invocations=options.invocations,
        more=options.more,
    )
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        directory = Path(options.study or scratch)
        if not (directory / "perftrail.toml").exists():
            print(f"filling a store with {size.samples * (1 + size.more):,} samples", file=sys.stderr)
            directory.mkdir(exist_ok=True)
            fill(directory, size, seed=options.seed, store=options.store)
        location = results_database(studyfile.load(str(directory / "perftrail.toml")), options.store)
        show = _show(directory, options.store)
        runs = [_write(directory, Path(scratch, "report"), options.store) for _ in range(options.times)]
        page = Path(scratch, "report", "index.html")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        opened = opening_seconds(page, chromium=chromium, times=options.times) if chromium else []
        text, bytes_ = page.read_text(encoding="utf-8"), page.stat().st_size
        where = database(location)
    medians = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
    written = medians["passed"] < GOAL_WRITTEN
    if options.json:
        results = {
            "database": where,
            "samples": size.samples * (1 + size.more),
            "taken": measured_on(),
            "load": load(),
            "repetitions": len(runs),
            "report": medians,
            "show": show,
            "page_bytes": bytes_,
            "opened_seconds": statistics.median(opened) if opened else None,
        }
        print(json.dumps(results, indent=2))
    else:
        _print(len(runs), medians, opened, bytes_, _data_bytes(text))
        print(f"show: {show['cpu']:.2f} s of CPU, {show['passed']:.2f} s, {show[PEAK] / 2**20:.0f} MiB")
    return 0 if written and opened and statistics.median(opened) < GOAL_OPENED else 1


def _write(study: Path, report: Path, store: str | None) -> dict[str, float]:
    """Write a report twice, in separate processes: return the CPU seconds of its stages, its memory and the wall time.

    The process that times the stages loads all modules first, so the other process measures the wall time.
    """
    where = ["--store", store] if store else []
    arguments = ["report", "-o", str(report), *where, str(study)]
    stages: dict[str, float] = json.loads(_run("benchmarks.report.stages", arguments).splitlines()[-1])
    began = time.perf_counter()
    _run("perftrail", arguments)
    return {**stages, "passed": time.perf_counter() - began}


def _show(study: Path, store: str | None) -> dict[str, float]:
    """Print a study's samples into a file; return the CPU and the wall seconds, and the peak memory in bytes."""
    words = [sys.executable, "-m", "perftrail", "show", *(["--store", store] if store else []), str(study)]
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(words, stdout=file, env=usual)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    passed = time.perf_counter() - began
    return {"cpu": used.ru_utime + used.ru_stime, "passed": passed, PEAK: used.ru_maxrss * 1024.0}


def _run(module: str, arguments: list[str]) -> str:
    """Run a module in a separate process, which stores byte code as usual; return its standard error."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=usual).stderr


def _data_bytes(text: str) -> int:
    """Return the number of data bytes of a page."""
    found: list[str] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    return sum(len(each.encode()) for each in found)


def _print(times: int, medians: dict[str, float], opened: list[float], page: int, data: int) -> None:
    print(f"{measured_on()}; load {load()}, {times} repetitions")
    for stage, value in medians.items():
        if stage == PEAK:
            print(f"{'peak memory':32} {value / 2**20:8.0f} MiB")
        else:
            print(f"{stage:32} {value:8.2f} s{'' if stage == 'passed' else ' of CPU'}")
    print(f"{'page':32} {page / 1e6:8.2f} MB, of which {data / 1e6:.2f} MB are data")
    if opened:
        print(f"{'opened, first screen drawn':32} {statistics.median(opened):8.2f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--benchmarks", type=int, default=20)
    parser.add_argument("--invocations", type=int, default=5, help="of each benchmark of each revision")
    parser.add_argument(
        "--more", type=int, default=0, help="metrics in each invocation that are not reported"
    )
    parser.add_argument("--times", type=int, default=5, help="how many times the page is written and opened")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--study", help="create the study here, or use the existing one")
    parser.add_argument("--store", metavar="URL", help="an empty database of a server, or that of the study")
    parser.add_argument("--scratch", help="directory for other temporary files")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
