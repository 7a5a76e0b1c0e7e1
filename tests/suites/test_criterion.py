"""criterion.rs: lists and samples of versions 0.2 to 0.8, and the shell lines with a program that behaves like them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.formats.printed import read_metrics
from perftrail.model.benchmark import Point
from perftrail.model.metrics import Metric
from perftrail.model.placeholders import fill
from perftrail.model.suite import Suite, SuiteItem
from perftrail.suites import criterion

SUITE = Suite(kind="criterion", program=("perftrail-bench/*", "perftrail-bench/*/*"), seconds=0.2)

LISTED = """

perftrail: program perftrail-bench/c5
Gnuplot not found, using plotters backend
sum: benchmark
sizes/plain/10: benchmark
sizes/10: benchmark
sizes/it's $(touch owned) "q" {b} (a|b)*: benchmark

perftrail: program perftrail-bench/crates/old/c3
sum: bench
sizes/plain/0x10: bench
memchr/rust/huge/never: bench
tests::works: test

0 tests, 3 benchmarks
"""
TUPLE = "[[1.0,2.0,4.0],[100.0,200.0,800.0]]"
SAMPLE = '{"sampling_mode":"Linear","iters":[1.0,2.0,4.0],"times":[100.0,200.0,800.0]}'

PROGRAM = """\
#!/bin/sh
# CRITERION_HOME
echo "$(pwd) $*" >> '{log}'
case "$*" in *--list*) echo 'sum: {word}'; exit 0;; esac
for last; do :; done
if [ {whole} = 1 ] && [ "$4" != 1 ] && [ "$2" != 1 ]; then
    echo "error: The argument '$2' isn't a valid value"; exit 1
fi
if [ "$last" = '^broken$' ]; then echo "thread 'main' panicked"; exit 101; fi
[ "$last" = '^{filter}$' ] || exit 0
mkdir -p "${home}/sum/new" "${home}/sum/base"
echo "sum                     time:   [1.0 {unit} 2.0 {unit} 3.0 {unit}]"
printf '%s' '{sample}' > "${home}/sum/new/sample.json"
printf '%s' '{sample}' > "${home}/sum/base/sample.json"
"""


def installed(
    build: Path,
    *,
    at: str = "perftrail-bench/b it's",
    sample: str = SAMPLE,
    filter: str = "sum",
    word: str = "benchmark",
    unit: str = "ns",
    whole: int = 0,
    home: str = "CRITERION_HOME",
) -> str:
    program = build / at
    program.parent.mkdir(parents=True, exist_ok=True)
    text = PROGRAM
    for name, value in {
        "log": str(build / "log"),
        "sample": sample,
        "filter": filter.replace("'", "'\\''"),
        "word": word,
        "unit": unit,
        "whole": str(whole),
        "${home}": home,
    }.items():
        text = text.replace(name if "{" in name else f"{{{name}}}", f"${home}" if "{" in name else value)
    program.write_text(text)
    program.chmod(0o755)
    return at


def start(line: str, build: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    work = tmp_path / "work here"
    work.mkdir(exist_ok=True)
    shell = fill(line, {"build": str(build)}, quote=lambda text: f"'{text}'")
    done = subprocess.run(["sh", "-c", shell], cwd=work, capture_output=True, text=True, check=False)
    assert list(work.iterdir()) == []
    return done


def measured(output: str) -> object:
    metric = Metric(reads=criterion.READS, item_metric="wall", unit="s", pick="median")
    return read_metrics({"time": metric}, output, log="")


def test_names_of_old_and_new_versions_are_listed_with_their_parameters() -> None:
    found = {
        (each.name, each.point.as_dict().get("parameter")) for each in criterion.read_listing(LISTED, SUITE)
    }
    assert found == {
        ("c5/sum", None),
        ("crates/old/c3/sum", None),
        ("sizes/plain", 10),
        ("sizes", 10),
        ("sizes/plain", "0x10"),
        ('sizes/it\'s $(touch owned) "q" {b} (a|b)*', None),
        ("memchr/rust/huge/never", None),
    }


def test_a_name_does_not_depend_on_other_programs() -> None:
    one = "\nperftrail: program perftrail-bench/a\nsum: benchmark\n"
    two = f"{one}\nperftrail: program perftrail-bench/b\nmax: benchmark\n"
    assert criterion.read_listing(one, SUITE)[0] == criterion.read_listing(two, SUITE)[0]


@pytest.mark.parametrize("sample", [SAMPLE, TUPLE])
@pytest.mark.parametrize("home", ["CRITERION_HOME", "CARGO_TARGET_DIR"])
def test_the_median_of_the_samples_is_the_time_of_one_iteration(
    tmp_path: Path, sample: str, home: str
) -> None:
    build = tmp_path / "build"
    program = installed(build, sample=sample, home=home)
    line = criterion.command(SUITE, SuiteItem(name="sum", selector=f"{program}\tsum"))
    done = start(line, build, tmp_path)
    assert done.returncode == 0, done.stderr
    assert measured(done.stdout) == {"time": pytest.approx(100e-9)}


def test_an_old_version_gets_whole_seconds(tmp_path: Path) -> None:
    build = tmp_path / "build"
    program = installed(build, whole=1)
    done = start(criterion.command(SUITE, SuiteItem(name="s", selector=f"{program}\tsum")), build, tmp_path)
    assert measured(done.stdout) == {"time": pytest.approx(100e-9)}
    assert [
        each.split("--bench")[0].split(" --")[1:] for each in (build / "log").read_text().splitlines()
    ] == [
        ["warm-up-time 0.1", "measurement-time 0.2 "],
        ["warm-up-time 1", "measurement-time 1 "],
    ]


def test_a_hostile_name_selects_only_itself_and_runs_nothing(tmp_path: Path) -> None:
    build = tmp_path / "build"
    name = 'it\'s $(touch owned) `touch owned` "q" {build} a*'
    program = installed(build, filter='it\'s \\$\\(touch owned\\) `touch owned` "q" \\{build\\} a\\*')
    done = start(
        criterion.command(SUITE, SuiteItem(name="n", selector=f"{program}\t{name}")), build, tmp_path
    )
    assert measured(done.stdout) == {"time": pytest.approx(100e-9)}
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("selector", ["perftrail-bench/b\tother", "perftrail-bench/none\tsum"])
def test_a_missing_benchmark_or_program_prints_nothing(tmp_path: Path, selector: str) -> None:
    build = tmp_path / "build"
    installed(build, at="perftrail-bench/b")
    done = start(criterion.command(SUITE, SuiteItem(name="n", selector=selector)), build, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_benchmark_that_panics_fails_with_its_output(tmp_path: Path) -> None:
    build = tmp_path / "build"
    program = installed(build)
    done = start(
        criterion.command(SUITE, SuiteItem(name="n", selector=f"{program}\tbroken")), build, tmp_path
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "panicked" in done.stderr
    assert len((build / "log").read_text().splitlines()) == 1


def test_another_quantity_than_time_is_refused(tmp_path: Path) -> None:
    build = tmp_path / "build"
    program = installed(build, unit="cycles")
    done = start(criterion.command(SUITE, SuiteItem(name="n", selector=f"{program}\tsum")), build, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cycles" in done.stderr


def test_a_program_runs_in_the_directory_of_its_package(tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "crates/a").mkdir(parents=True)
    suite = Suite(kind="criterion", program=("perftrail-bench/*", "perftrail-bench/*/*/*"))
    program = installed(build, at="perftrail-bench/crates/a/parse")
    other = build / "perftrail-bench/libtest"
    other.write_text('#!/bin/sh\necho ran > "$0.ran"\n')
    other.chmod(0o755)
    listed = start(criterion.listing(suite), build, tmp_path)
    assert criterion.read_listing(listed.stdout, suite) == (
        SuiteItem(name="sum", selector=f"{program}\tsum"),
    )
    start(criterion.command(suite, SuiteItem(name="sum", selector=f"{program}\tsum")), build, tmp_path)
    assert {each.split()[0] for each in (build / "log").read_text().splitlines()} == {str(build / "crates/a")}
    assert not list(build.rglob("*.ran"))


def test_a_parameter_keeps_its_text_unless_it_is_a_number() -> None:
    listed = "\nperftrail: program p\ng/f/007: benchmark\ng/f/7: benchmark\n"
    points = [each.point for each in criterion.read_listing(listed, SUITE)]
    assert points == [Point((("parameter", "007"),)), Point((("parameter", 7),))]
