"""How fast the store takes and gives samples, and what room one needs.

``python -m benchmarks.store --samples 200000`` fills a store on a local disk: first outcome by outcome, each
on disk before the next, as `run` does it, then the rest in batches, as `import` would. A sample is one value
of one metric; an outcome is one invocation with all its values. With ``--store postgresql://…`` an empty database of
a server is filled instead.

``python -m benchmarks.store writers --store postgresql://…`` lets eight processes write at once, and counts.

``python -m benchmarks.store page FILE…`` makes a page of what this, ``benchmarks.web`` and ``benchmarks.report``
printed with ``--json``, each into a file.
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
from benchmarks.store.one import measure
from benchmarks.store.page import PAGE, page, read
from benchmarks.store.writers import WRITERS, write, write_at_once
from perftrail.store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> int:
    """Measure and print a table, or JSON; the exit code says whether anything was lost."""
    if sys.argv[1:2] == ["writer"]:
        write(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    asked = _asked()
    if asked.what == "page":
        made = page(read(asked.files))
        if asked.write:
            PAGE.write_text(made, encoding="utf-8")
        else:
            print(made)
        return 0
    if asked.what == "writers":
        counted = asdict(write_at_once(asked.store, samples=asked.samples, writers=asked.writers))
        _tell(counted, asked.store, as_json=asked.json)
        return int(any(counted[name] for name in ("missing", "different", "unasked")))
    with tempfile.TemporaryDirectory(dir=asked.directory) as directory:
        location = asked.store or str(Path(directory) / "results.db")
        results = measure(location, samples=asked.samples, durable=max(1, asked.durable), seed=asked.seed)
        _tell(asdict(results), location, as_json=asked.json)
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["one", "writers", "page"], default="one")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="what was printed with --json, to make a page of"
    )
    parser.add_argument("--samples", type=int, default=200_000, help="values to keep, all metrics together")
    parser.add_argument("--durable", type=int, default=1000, help="outcomes to commit one by one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="where the store is put: the disk to measure")
    parser.add_argument("--store", metavar="URL", help="an empty database of a server")
    parser.add_argument("--writers", type=int, default=WRITERS, help="how many write at once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write the page {PAGE.name}")
    asked = parser.parse_intermixed_args()
    if asked.what == "writers" and asked.store is None:
        parser.error("writers need a server: --store postgresql://USER@HOST/DATABASE")
    return asked


def _tell(results: Mapping[str, float], location: str, *, as_json: bool) -> None:
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
