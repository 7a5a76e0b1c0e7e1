"""The benchmarks of stores, the dashboard and reports, at a size for a test, and the page that is made of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.store.page import page, read

STUDY = ("--revisions", "24", "--benchmarks", "1", "--invocations", "3", "--more", "1", "--times", "1")


def printed(into: Path, benchmark: str, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a benchmark; give the file with what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{benchmark}", "--json", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode in codes, done.stderr
    file = into / f"{benchmark}-{len(list(into.iterdir()))}.json"
    file.write_text(done.stdout)
    return str(file)


@pytest.mark.slow("processor")
def test_both_databases_are_filled_served_reported_and_compared(tmp_path: Path, postgresql: str) -> None:
    into, study = tmp_path / "printed", tmp_path / "study"
    into.mkdir()
    sizes = ("--samples", "1600", "--durable", "3", "--directory", str(tmp_path))
    whose = ("--study", str(study), "--store", postgresql)
    files = [
        printed(into, "store", *sizes),
        # how quick a busy machine is decides nothing here
        printed(into, "web", *STUDY, *whose, "--renew", codes=(0, 1)),
        printed(into, "report", *STUDY, *whose, codes=(0, 1)),
    ]
    store, web, report = read(files)
    assert store["samples"] == 1600
    assert store["database"].startswith("SQLite 3.")
    assert web["database"].startswith("PostgreSQL 1")
    assert [*web["pages"]] == ["one at a time", "4 at once", "while the store is written and read again"]
    for times in web["pages"].values():
        assert all(0 < each["median_ms"] <= each["p95_ms"] <= each["worst_ms"] for each in times.values())
    assert report["report"]["peak_memory_bytes"] > 10_000_000
    reported = page(read(files))
    assert f"| bytes for each sample | {store['bytes_each_sample']:.1f} |" in reported
    assert (
        "| page | PostgreSQL, one at a time | PostgreSQL, 4 at once | PostgreSQL, during writes |" in reported
    )
    assert f"| time | {report['report']['passed']:.1f} s |" in reported
    assert "cret" not in reported + json.dumps([store, web, report])
