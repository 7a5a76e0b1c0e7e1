"""``python -m benchmarks.changepoints``: every detector on the same histories, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.changepoints.annotated import annotated_table, read
from benchmarks.changepoints.cases import CASES, Row, measure
from benchmarks.changepoints.page import PAGE, goals, goals_table, rewritten, values_table
from benchmarks.changepoints.peers import PEERS, install, is_installed
from benchmarks.measure.peers import default_directory

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> int:
    """Run all installed detectors and print. The exit code is 0 if every goal is met."""
    options = _parser().parse_args()
    missing = install(options.peers) if options.install_peers else []
    found = [peer for peer in PEERS if is_installed(peer, options.peers)]
    absent = [peer.title for peer in PEERS if peer not in found]
    if absent:
        missing.append(f"not installed (--install-peers does): {', '.join(absent)}")
    if options.annotated is not None:
        print(annotated_table(read(options.annotated), found, options.peers))
        return 0
    rows: list[Row] = []
    for case in CASES:
        if case.name in options.skip:
            continue
        for row in measure(case, found, options.peers, seed=options.seed, scale=options.scale):
            print(f"{row.case}: {row.detector}: F1 {row.f1:.3f}, {row.seconds:.2f} s", file=sys.stderr)
            rows.append(row)
    _print(rows, as_json=options.json)
    print(*missing, sep="\n", file=sys.stderr)
    if options.write:
        page = rewritten(PAGE.read_text(encoding="utf-8"), rows, missing, seed=options.seed)
        PAGE.write_text(page, encoding="utf-8")
    return 0 if all(goal.met for goal in goals(rows)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changepoints", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--scale", type=float, default=1.0, help="number of series, as a multiple of that of each case")
    add("--skip", action="append", default=[], choices=[case.name for case in CASES], help="leave a case out")
    add("--annotated", type=Path, help="a directory of real series with annotations, instead of simulations")
    add("--peers", type=Path, default=default_directory(), help="where peers are installed")
    add("--install-peers", action="store_true", help="install the peers first, by pip")
    add("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    add("--json", action="store_true")
    return parser


def _print(rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        results = {"rows": [asdict(row) for row in rows], "goals": [asdict(goal) for goal in goals(rows)]}
        print(json.dumps(results, indent=2))
    else:
        print(values_table(rows), goals_table(rows), sep="\n\n")


if __name__ == "__main__":
    sys.exit(main())
