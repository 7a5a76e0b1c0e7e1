"""The speed of a store, and the size of a sample.

``python -m benchmarks.store --samples 200000`` fills a store on a local disk: first outcome by outcome, each on disk
before the next, like `run`, then the rest in batches, like `import`. A sample is one value of one metric; an outcome is
one invocation with all its values. With ``--store postgresql://…`` it fills an empty database of a server instead.

``python -m benchmarks.store writers --store postgresql://…`` starts eight parallel writers, and counts the rows.

``python -m benchmarks.store page FILE…`` creates a page from files with the output of this command, of
``benchmarks.web`` and of ``benchmarks.report`` with ``--json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import database, load, measured_on
from benchmarks.store.page import PAGE, page, read
from benchmarks.store.single_writer import measure
from benchmarks.store.writers import WRITERS, write, write_in_parallel
from perftrail.store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> int:
    """Measure and print a table, or JSON. The exit code is 1 if anything was lost."""
    if sys.argv[1:2] == ["writer"]:
        write(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    options = _options()
    if options.what == "page":
        text = page(read(options.files))
        if options.write:
            PAGE.write_text(text, encoding="utf-8")
        else:
            print(text)
        return 0
    if options.what == "writers":
        counts = asdict(write_in_parallel(options.store, samples=options.samples, writers=options.writers))
        _print(counts, options.store, as_json=options.json)
        return int(any(counts[name] for name in ("missing", "different", "unexpected")))
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        location = options.store or str(Path(directory) / "results.db")
        results = measure(
            location, samples=options.samples, durable=max(1, options.durable), seed=options.seed
        )
        _print(asdict(results), location, as_json=options.json)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["one", "writers", "page"], default="one")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files with the output of --json, for page")
    parser.add_argument("--samples", type=int, default=200_000, help="values to store, of all metrics")
    parser.add_argument("--durable", type=int, default=1000, help="outcomes to commit one by one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="where to create the store: the disk to measure")
    parser.add_argument("--store", metavar="URL", help="an empty database of a server")
    parser.add_argument("--writers", type=int, default=WRITERS, help="number of parallel writers")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write the page {PAGE.name}")
    options = parser.parse_intermixed_args()
    if options.what == "writers" and options.store is None:
        parser.error("writers need a server: --store postgresql://USER@HOST/DATABASE")
    return options


def _print(results: Mapping[str, float], location: str, *, as_json: bool) -> None:
    if as_json:
        about = {
            "store": shown(location),
            "database": database(location),
            "taken": measured_on(),
            "load": load(),
        }
        print(json.dumps({**about, **results}, indent=2))
        return
    print(shown(location))
    for name, value in results.items():
        print(f"{name.replace('_', ' '):36} {value:>14,.{0 if isinstance(value, int) else 2}f}")


if __name__ == "__main__":
    sys.exit(main())
