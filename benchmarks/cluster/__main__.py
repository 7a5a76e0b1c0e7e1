"""``python -m benchmarks.cluster makespan|rounds|kills|namespaces|engines``: benchmarks of several machines.

`makespan` builds the same subjects with one worker and with more. `rounds` simulates searches of simulated histories
with parallel builds. `kills` kills workers of a running study with -9 at random instants and compares the store with
that of one process without workers. `namespaces` searches a history on machines that only a network connects, each in
a separate network namespace, and on this machine; it needs root. `engines` searches histories with one slower revision
on a busy machine with each engine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.cluster import engines, kills, makespan, namespaces, rounds


def main() -> int:
    """Run one of them and print the result. The exit code is 1 if something was lost, done twice or different."""
    options = _parser().parse_args()
    if options.what == "rounds":
        print(rounds.table(options.revisions, options.workers, trials=options.trials, seed=options.seed))
        return 0
    if options.what == "makespan":
        print(
            makespan.table(
                options.subjects, options.workers, seconds=options.seconds, scratch=Path(options.scratch)
            )
        )
        return 0
    if options.what == "engines":
        print(engines.table(options.searches, seed=options.seed, scratch=Path(options.scratch)))
        return 0
    if options.what == "namespaces":
        return _namespaces(options.machines, scratch=Path(options.scratch))
    found = kills.kill_workers(
        options.kills, machines=options.machines, seed=options.seed, scratch=Path(options.scratch)
    )
    print(found)
    return 0 if found.nothing_lost else 1


def _namespaces(machines: int, *, scratch: Path) -> int:
    try:
        found = namespaces.search(machines, revisions=12, scratch=scratch)
    except namespaces.NoNamespaces as error:
        print(f"not tried: {error}")
        return 0
    print(found)
    return 0 if found.agreed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("what", choices=("makespan", "rounds", "kills", "namespaces", "engines"))
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 4], help="numbers of workers, one after the other"
    )
    parser.add_argument("--subjects", type=int, default=60, help="makespan: number of subjects")
    parser.add_argument("--seconds", type=float, default=1.0, help="makespan: how long each build waits")
    parser.add_argument(
        "--revisions", type=int, nargs="+", default=[100, 1000, 10_000], help="rounds: histories"
    )
    parser.add_argument("--trials", type=int, default=100, help="rounds: searches for each row")
    parser.add_argument("--searches", type=int, default=20, help="engines: searches with each engine")
    parser.add_argument("--kills", type=int, default=20, help="kills: number of kills")
    parser.add_argument("--machines", type=int, default=4, help="kills, namespaces: number of workers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scratch", default="/var/tmp", help="directory for temporary repositories and results"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
