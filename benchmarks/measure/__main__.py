"""``python -m benchmarks.measure``: every tool on every target, interleaved, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure.page import PAGE, goals_table, page, values_table
from benchmarks.measure.peers import default_directory, install
from benchmarks.measure.rows import goals, rows
from benchmarks.measure.tools import tools
from benchmarks.measure.trial import build_targets, run_all
from perftrail.process.launcher import Launcher

FLOOR_KIB = {"musl": 64.0, "glibc": 704.0}


def main() -> int:
    """Measure with all installed tools and print. The exit code is 0 if every goal is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="only tools whose names begin with this, and perftrail")
    parser.add_argument("--peers", type=Path, default=default_directory(), help="where peers are installed")
    parser.add_argument(
        "--install-peers", action="store_true", help="install the peers first: apt, cargo, pip"
    )
    parser.add_argument("--write", action="store_true", help=f"write the page {PAGE.name}")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for line in install(options.peers) if options.install_peers else []:
        print(line, file=sys.stderr)
    found, missing = tools(options.peers)
    if options.only is not None:
        found = [tool for tool in found if tool.name.startswith((options.only, "perftrail"))]
    with tempfile.TemporaryDirectory() as directory:
        build_targets(Path(directory))
        records = run_all(
            found,
            Path(directory),
            rounds=options.rounds,
            seed=options.seed,
            on_progress=lambda line: print(line, file=sys.stderr),
        )
    for record in records:
        for target, error in record.failures.items():
            missing.append(f"{record.tool} on {target}: {error.strip()}")
    with Launcher() as launcher:
        floor = FLOOR_KIB[launcher.start().libc]
    table = rows(records)
    reached = goals(table, floor_goal_kib=floor)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(table, reached, missing, rounds=options.rounds, seed=options.seed))
    if options.json:
        lines = {"rows": [asdict(row) for row in table], "goals": [asdict(goal) for goal in reached]}
        print(json.dumps({**lines, "missing": missing}, indent=2))
    else:
        print(values_table(table), goals_table(reached), *missing, sep="\n\n")
    return 0 if all(goal.met for goal in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
