"""Use an installed perftrail as a new user does, and count with the programs of its wheel. Needs no other package.

    python release/first_use.py PATH/TO/perftrail

`make release` starts it with the wheel of this machine, and the release workflow in containers with glibc and musl.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PRELOADED = ("allocations", "locks")
"""Metrics that a preloaded object counts, in a dynamically linked program for glibc."""

STUDY = """\
[study]
title = "Which counts does an installed perftrail store?"

[source]
kind = "directory"
location = "."

[measure]
warmups = 0
invocations = 2
"""

BENCHMARK = """
[benchmark.{name}]
command = "{python} -c pass"
counters = [{counters}]
"""


def counts(perftrail: str, names: tuple[str, ...], directory: Path) -> dict[str, list[float]]:
    """Measure a start of Python with each counter in a new study, and return the values of each metric."""
    benchmarks = [
        BENCHMARK.format(name=name or "time", python=sys.executable, counters=f'"{name}"' if name else "")
        for name in ("", *names)
    ]
    (directory / "perftrail.toml").write_text(STUDY + "".join(benchmarks))
    subprocess.run([perftrail, "run"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    exported = subprocess.run(
        [perftrail, "export", "--format", "csv"], cwd=directory, check=True, capture_output=True, text=True
    )
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(exported.stdout.splitlines()):
        found.setdefault(row["metric"], []).append(float(row["value"]))
    return found


def main(perftrail: str) -> None:
    """Print one line for each step, and exit with an error if a step fails or a count is missing."""
    glibc = "musl" not in str(sysconfig.get_config_var("HOST_GNU_TYPE"))
    with tempfile.TemporaryDirectory(prefix="perftrail-first-use-") as name:
        directory = Path(name)
        version = subprocess.run([perftrail, "--version"], check=True, capture_output=True, text=True).stdout
        print(version.strip())
        measured = [perftrail, "measure", "--runs", "5", "--", "true"]
        subprocess.run(measured, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        print("measured a command")
        found = counts(perftrail, PRELOADED if glibc else (), directory)
        for metric in ("wall", "cpu", "peak_memory", *(PRELOADED if glibc else ())):
            if not found.get(metric) or min(found[metric]) <= 0:
                sys.exit(f"{perftrail}: no values of {metric}: {found.get(metric)}")
        print(f"{len(found)} metrics, for example wall {min(found['wall']):.4f} s")
        if glibc:
            print(", ".join(f"{min(found[metric]):.0f} {metric}" for metric in PRELOADED))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()))
