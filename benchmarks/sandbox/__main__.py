"""``python -m benchmarks.sandbox``: one program inside and outside a sandbox, in pairs, as a table."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.machine import measured_on
from benchmarks.markdown import table
from benchmarks.sandbox.pairs import Row, calibrate_targets, measure_pairs
from perftrail.measure.sandboxes import Sandboxes
from perftrail.model.sandbox import Sandbox
from perftrail.model.wording import quantity
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "benchmarks" / "results" / "sandbox.md"
BEGIN, END = "<!-- made by benchmarks.sandbox: begin -->", "<!-- made by benchmarks.sandbox: end -->"
CREATIONS = 30


def measure(pairs: int) -> tuple[list[Row], float]:
    """Measure all pairs; also return the seconds to create a sandbox."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, ExitStack() as stack:
        study = Path(name).resolve() / "study"
        results = study / ".perftrail"
        builds = results / "builds"
        builds.mkdir(parents=True)
        program = str(builds / "target")
        subprocess.run(["cc", "-O2", "-o", program, str(Path(__file__).with_name("targets.c"))], check=True)
        outside = stack.enter_context(Launcher())
        sandboxes = Sandboxes(Sandbox(), study_directory=str(study), results=results, outside=outside.start())
        sandboxes.prepare()
        creation_seconds = []
        for _ in range(CREATIONS):
            began = time.perf_counter()
            with sandboxes.sandboxed("run", ()):
                creation_seconds.append(time.perf_counter() - began)
        inside = stack.enter_context(sandboxes.sandboxed("run", ()))
        logs = str(results / "logs")
        rows = [
            row
            for target in calibrate_targets(outside, program, logs=logs)
            for row in measure_pairs(outside, inside, target, pairs=pairs, logs=logs)
        ]
    return rows, median(creation_seconds)


def page_text(rows: Sequence[Row], seconds_to_make: float, *, pairs: int) -> str:
    """Return the values for the page."""
    units = {"peak_memory": "B", "peak_memory_tree": "B"}
    lines = [
        (
            row.target,
            row.metric,
            quantity(row.outside, units.get(row.metric, "s")),
            f"{row.ratio.effect:.4f}",
            f"{row.ratio.low:.4f} to {row.ratio.high:.4f}",
        )
        for row in rows
    ]
    head = ("program", "metric", "outside", "inside / outside", f"{rows[0].ratio.confidence:.1%} interval")
    creation = f"Creating a sandbox takes {quantity(seconds_to_make, 's')} (median of {CREATIONS})."
    return f"{measured_on()}; {pairs} pairs of each.\n\n{table([head, *lines])}\n\n{creation}\n"


def main() -> None:
    """Measure, print, and with --write write the values into their page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--write", action="store_true", help=f"write the values into {PAGE.name}")
    options = parser.parse_args()
    rows, seconds_to_make = measure(options.pairs)
    text = page_text(rows, seconds_to_make, pairs=options.pairs)
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
