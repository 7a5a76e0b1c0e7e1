"""divan: a recorded list of version 0.1.21, and the shell lines with a program that behaves like it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.formats.printed import read_metrics
from perftrail.model.metrics import Metric
from perftrail.model.placeholders import fill
from perftrail.model.suite import Suite, SuiteItem
from perftrail.suites import divan

SUITE = Suite(kind="divan", program=("perftrail-bench/*",), seconds=0.1)

TREE = """\
d
├─ plain
├─ sized
├─ text
├─ both
│  ├─ u32
│  ╰─ u64
├─ constant
│  ├─ 4
│  ╰─ 8
├─ inner
│  ├─ ignored  (ignored)
│  ╰─ plain
╰─ typed
   ╰─ Vec<u8>

"""
TABLE = """\
d                fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ plain         72.12 ns      │ 90.43 ns      │ 85.58 ns      │ 84.23 ns      │ 100     │ 6400
├─ sized                       │               │               │               │         │
│  ├─ 10         4.943 ns      │ 8.018 µs      │ 10 ns         │ 88.72 ns      │ 100     │ 51200
│  ╰─ 1000       385.2 ns      │ 387.8 ns      │ 386.6 ns      │ 386.4 ns      │ 100     │ 800
├─ text                        │               │               │               │         │
│  ├─ a b        2.297 ns      │ 10.69 ns      │ 2.321 ns      │ 2.405 ns      │ 100     │ 204800
│  ╰─ it's       2.634 ns      │ 2.674 ns      │ 2.644 ns      │ 2.644 ns      │ 100     │ 102400
├─ both                        │               │               │               │         │
│  ├─ u32                      │               │               │               │         │
│  │  ╰─ 1                     │               │               │               │         │
│  │     ├─ t=1  4.326 ns      │ 18.16 ns      │ 4.855 ns      │ 4.84 ns       │ 100     │ 102400
│  │     ╰─ t=2  3.201 ns      │ 7.076 ns      │ 3.927 ns      │ 4.469 ns      │ 100     │ 51200
│  ╰─ u64                      │               │               │               │         │
│     ╰─ 1                     │               │               │               │         │
│        ├─ t=1  7.291 ns      │ 7.351 ns      │ 7.312 ns      │ 7.316 ns      │ 100     │ 51200
│        ╰─ t=2  5.334 ns      │ 27.91 ns      │ 6.449 ns      │ 6.687 ns      │ 50      │ 25600
├─ constant                    │               │               │               │         │
│  ├─ 4          2.604 ns      │ 2.947 ns      │ 2.929 ns      │ 2.885 ns      │ 100     │ 102400
│  ╰─ 8          3.662 ns      │ 19.56 ns      │ 4.552 ns      │ 4.541 ns      │ 100     │ 102400
├─ inner                       │               │               │               │         │
│  ├─ ignored    (ignored)     │               │               │               │         │
│  ╰─ plain      31.73 ns      │ 122.6 ns      │ 50 ms         │ 32.9 ns       │ 100     │ 12800
╰─ typed                       │               │               │               │         │
   ╰─ Vec<u8>    0.345 ns      │ 6.391 ns      │ 0.408 ns      │ 0.498 ns      │ 100     │ 204800
"""
LISTED = f"\nperftrail: program perftrail-bench/d\n{TREE}{TABLE}\n"

ROW = """\
d          fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ plain   72.12 ns      │ 90.43 ns      │ 85.58 ns      │ 84.23 ns      │ 100     │ 6400
"""
PROGRAM = """\
#!/bin/sh
# DIVAN_THREADS
echo "$(pwd) $*" >> '{build}/log'
case "$1" in --list) cat '{build}/tree'; exit 0;; esac
for last; do :; done
case "$*" in *--exact*) ;; *) cat '{build}/table'; exit 0;; esac
[ "$last" = 'd::it'\\''s $(touch owned) {{build}}' ] && cat '{build}/row'
exit 0
"""


def items() -> dict[str, SuiteItem]:
    return {
        f"{each.name}[{each.point}]" if each.point.values else each.name: each
        for each in divan.read_listing(LISTED, SUITE)
    }


@pytest.fixture
def build(tmp_path: Path) -> Path:
    build = tmp_path / "build"
    program = build / "perftrail-bench/crates/a/d"
    program.parent.mkdir(parents=True)
    (build / "crates/a").mkdir(parents=True)
    program.write_text(
        PROGRAM.replace("{{build}}", "BRACES").format(build=build).replace("BRACES", "{build}")
    )
    program.chmod(0o755)
    for name, text in {"tree": TREE, "table": TABLE, "row": ROW}.items():
        (build / name).write_text(text)
    return build


def start(line: str, build: Path) -> subprocess.CompletedProcess[str]:
    shell = fill(line, {"build": str(build)}, quote=lambda text: f"'{text}'")
    return subprocess.run(["sh", "-c", shell], cwd=build.parent, capture_output=True, text=True, check=False)


def test_arguments_constants_and_threads_are_parameters() -> None:
    assert list(items()) == [
        "d::plain",
        "d::sized[arg=10]",
        "d::sized[arg=1000]",
        "d::text[arg=a b]",
        "d::text[arg=it's]",
        "d::both::u32[arg=1 threads=1]",
        "d::both::u32[arg=1 threads=2]",
        "d::both::u64[arg=1 threads=1]",
        "d::both::u64[arg=1 threads=2]",
        "d::constant[const=4]",
        "d::constant[const=8]",
        "d::inner::plain",
        "d::typed::Vec<u8>",
    ]


def test_a_selector_is_the_path_by_which_divan_filters() -> None:
    found = {name: each.selector.split("\t")[2] for name, each in items().items()}
    assert found["d::sized[arg=10]"] == "d::sized::10"
    assert found["d::both::u64[arg=1 threads=2]"] == "d::both::u64::1"
    assert found["d::constant[const=8]"] == "d::constant::8"


def test_an_invocation_has_fixed_samples_that_take_the_time_of_the_suite() -> None:
    found = items()
    assert found["d::sized[arg=10]"].iterations == 200 * 10_000
    assert "--sample-count 10000 --sample-size 200 " in divan.command(SUITE, found["d::sized[arg=10]"])
    assert "--sample-count 2 --sample-size 1 " in divan.command(SUITE, found["d::inner::plain"])
    assert "--sample-count 10000 --sample-size 1024 " in divan.command(SUITE, found["d::typed::Vec<u8>"])
    assert " --threads 2 " in divan.command(SUITE, found["d::both::u64[arg=1 threads=2]"])
    assert "--threads" not in divan.command(SUITE, found["d::plain"])


def test_only_a_name_of_several_programs_begins_with_its_program() -> None:
    listed = f"{LISTED}\nperftrail: program perftrail-bench/crates/a/d\nd\n╰─ plain\n\n{ROW}"
    names = {each.name for each in divan.read_listing(listed, SUITE)}
    assert {"d/d::plain", "crates/a/d/d::plain", "d::inner::plain"} <= names
    assert "d::plain" not in names


def test_a_program_lists_and_measures_in_the_directory_of_its_package(build: Path) -> None:
    suite = Suite(kind="divan", program=("perftrail-bench/*/*/*",), seconds=0.1)
    other = build / "perftrail-bench/crates/a/other"
    other.write_text('#!/bin/sh\necho ran > "$0.ran"\n')
    other.chmod(0o755)
    listed = start(divan.listing(suite), build)
    assert listed.returncode == 0, listed.stderr
    found = divan.read_listing(listed.stdout, suite)
    assert len(found) == len(items())
    start(divan.command(suite, found[0]), build)
    assert {each.split()[0] for each in (build / "log").read_text().splitlines()} == {str(build / "crates/a")}
    assert not list(build.rglob("*.ran"))


def test_a_hostile_name_selects_only_itself_and_runs_nothing(build: Path) -> None:
    selector = "1\tperftrail-bench/crates/a/d\td::it's $(touch owned) {build}"
    done = start(divan.command(SUITE, SuiteItem(name="n", selector=selector, iterations=10)), build)
    metric = Metric(reads=divan.READS, item_metric="wall", unit="s", pick="median")
    measured: object = read_metrics({"time": metric}, done.stdout, log="")
    assert measured == {"time": pytest.approx(85.58e-9)}
    assert not list(build.parent.rglob("owned"))


@pytest.mark.parametrize("program", ["perftrail-bench/crates/a/d", "perftrail-bench/none"])
def test_a_missing_benchmark_or_program_prints_nothing(build: Path, program: str) -> None:
    done = start(
        divan.command(SUITE, SuiteItem(name="n", selector=f"1\t{program}\td::gone", iterations=1)), build
    )
    assert (done.returncode, done.stdout) == (0, "")
