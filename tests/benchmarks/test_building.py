"""The benchmark of building revisions, on a small history."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.sources.repositories import Repository

MAKEFILE = "program: main.o\n\t$(CC) -o $@ main.o\nmain.o: main.c\n"


def test_both_ways_are_timed_and_every_output_compared(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(3):
        repository.commit({"Makefile": MAKEFILE, "main.c": f"int main(void) {{ return {number // 2}; }}\n"})
    ran = subprocess.run(
        [
            sys.executable, "-m", "benchmarks.building", repository.path, "HEAD~2..HEAD",
            "--step", "make", "--output", "program", "--scratch", tmp_path, "--jobs", "2",
        ],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    *lines, at_once = ran.stdout.splitlines()
    summary = dict(line.rsplit(maxsplit=1) for line in lines if not line.endswith(" s"))
    assert summary["revisions"] == "3", ran.stderr
    assert summary["output files compared"] == "3"
    assert summary["differ in a byte"] == "0"
    assert ran.stderr.count("every byte") == 3
    assert at_once.startswith("2 at once: ") and at_once.endswith(
        "0 of 6 compared files differ in what counts"
    )
