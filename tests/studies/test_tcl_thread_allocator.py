"""The study of Tcl's allocators: its files agree, and in a small run of it the old allocator waits for its lock."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perftrail import studyfile
from tests.e2e.printing import perftrail

STUDY = Path(__file__).parents[2] / "studies" / "tcl-thread-allocator"
FILES = ("perftrail.toml", "preloaded.toml", "tcl9.toml")


@pytest.mark.parametrize("name", FILES)
def test_a_file_measures_each_build_with_as_many_runs_on_as_many_threads(name: str) -> None:
    study = studyfile.load(str(STUDY / name))
    [benchmark] = study.benchmarks.values()
    assert benchmark.command == "{out}/driver {threads} 25 {study}/expr.tcl"
    assert {1, 2, 25} <= set(benchmark.parameters["threads"])
    assert {"per-thread", "shared", "malloc"} <= set(study.variants)


def test_what_is_preloaded_goes_with_the_same_builds() -> None:
    plain, preloaded = (studyfile.load(str(STUDY / name)) for name in ("perftrail.toml", "preloaded.toml"))
    assert (plain.build, plain.source) == (preloaded.build, preloaded.source)
    for name, variant in preloaded.variants.items():
        [built] = [each for each in plain.variants if name.startswith(each)]
        assert variant.build == plain.variants[built].build
        assert ("LD_PRELOAD" in variant.run.env) == (name != built)


@pytest.mark.slow("builds")
def test_the_old_allocator_takes_its_lock_for_each_object_and_finds_it_held_with_eight_threads(
    allocators: Path,
) -> None:
    shown = perftrail("show", allocators, "--json", "--metric", "locks", "--metric", "contended_locks").stdout
    found = {(row["metric"], row["point"]["threads"]): row["estimate"]["value"] for row in json.loads(shown)}
    assert found["locks", 1] == pytest.approx(found["locks", 8], rel=0.01)
    assert found["locks", 1] > 2e6
    assert found["contended_locks", 1] == 0
    assert found["contended_locks", 8] > 0


@pytest.mark.slow("builds")
def test_the_driver_fails_where_a_run_did_not_do_its_work(allocators: Path, tmp_path: Path) -> None:
    [driver] = (allocators / ".perftrail" / "builds").glob("*/bench/*/driver")
    (tmp_path / "wrong.tcl").write_text("clock clicks")
    for words, reported in (
        ("1 2 wrong.tcl", "another answer"),
        ("2 9 none.tcl", "couldn't read"),
        ("1", "usage"),
    ):
        done = subprocess.run(
            [driver, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, reported in done.stderr) == (1, True), done.stderr
