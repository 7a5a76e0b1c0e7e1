"""Small benchmarks of Tcl: its files agree with the study, their answers are correct, and the study runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.formats import read
from tests.e2e.printing import perftrail

STUDY = Path(__file__).parents[2] / "studies" / "tcl-suite"
FILES = sorted((STUDY / "suite").glob("*.bench"))
MOST_ITERATIONS = 1000
"""The default maximum of tclbench."""


def names(file: Path) -> list[str]:
    return re.findall(r'^ *bench -desc "([^"]+)"', file.read_text(), flags=re.MULTILINE)


def test_each_benchmark_of_the_files_is_a_point_of_the_study_and_the_other_way_round() -> None:
    study = studyfile.load(str(STUDY / "perftrail.toml"))
    planned = {
        name: [f"{name.upper()} {what}" for what in benchmark.parameters["what"]]
        for name, benchmark in study.benchmarks.items()
    }
    assert planned == {name: names(STUDY / "suite" / f"{name}.bench") for name in planned}
    assert set(planned) == {file.stem for file in FILES}
    assert len(planned) >= 8
    assert sum(map(len, planned.values())) >= 24


def test_both_versions_get_the_same_requests() -> None:
    study = studyfile.load(str(STUDY / "perftrail.toml"))
    old, new = study.variants.values()
    assert set(old.run.parts) == set(new.run.parts)
    assert study.source.location == "debian:tcl8.6"
    assert study.sources["tcl9"].location == "debian:tcl9.0"
    for part, meant in old.run.parts.items():
        assert new.run.parts[part] == meant.replace("{build}", "{source.tcl9}").replace("8.6", "9.0")


def test_instructions_are_counted_of_the_same_builds_and_benchmarks() -> None:
    timed, counted = (studyfile.load(str(STUDY / name)) for name in ("perftrail.toml", "instructions.toml"))
    assert (timed.build, timed.source, timed.sources) == (counted.build, counted.source, counted.sources)
    assert timed.variants == counted.variants
    assert counted.benchmarks["expr"].build == timed.benchmarks["expr"].build
    assert set(counted.benchmarks["expr"].parameters["what"]) <= set(
        timed.benchmarks["expr"].parameters["what"]
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_benchmark_checks_its_answer_and_repeats_no_oftener_than_tclbench_does(file: Path) -> None:
    found = re.split(r"^ *bench ", file.read_text(), flags=re.MULTILINE)[1:]
    assert len(found) == len(set(names(file))) > 0
    for text in found:
        assert re.search(r"-result \S", text), text
        [iterations] = re.findall(r"-iter (\d+)", text)
        assert int(iterations) <= MOST_ITERATIONS


@pytest.fixture(scope="module")
def tree(allocators: Path) -> Path:
    """Tcl's tree, built."""
    [found] = (allocators / ".perftrail" / "builds").glob("*/tree")
    return found


@pytest.fixture(scope="module")
def shell(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    created = tmp_path_factory.mktemp("shell") / "shell"
    words = (
        f"cc -I {tree}/generic -o {created} {STUDY}/shell.c {tree}/unix/libtcl8.6.a -lz -ldl -lm -lpthread"
    )
    subprocess.run(words.split(), check=True)
    return created


def run(shell: Path, tree: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, STUDY / "bench.tcl", *words],
        env={"TCL_LIBRARY": str(tree / "library")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow("builds")
def test_every_answer_is_right_and_what_is_printed_is_what_tclbench_prints(shell: Path, tree: Path) -> None:
    done = run(shell, tree, "-iterations", "1", *FILES)
    assert done.returncode == 0, done.stderr
    series = read(done.stdout.encode(), name="the output", format="tclbench").series
    assert [each.benchmark for each in series] == [name for file in FILES for name in names(file)]
    assert {each.subject for each in series} == {"8.6.13"}
    assert all(each.values[0] > 0.0 for each in series)


@pytest.mark.slow("builds")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('bench -desc "A" -body {expr {1 + 1}} -result 3', 'A: gives "2", not "3"'),
        ('bench -desc "A" -body {error "no way"}', "A: no way"),
        ('bench -desc "A" -body {threads 2 {error "in a thread"}}', "in a thread"),
        ('bench -desc "A" -body {threads 0 {}}', "from 1 to 1000 threads, not 0"),
        ('bench -nothing "A"', "unknown option -nothing"),
        ("set nothing 1", "no benchmark of"),
    ],
)
def test_nothing_is_timed_that_did_not_do_its_work(
    shell: Path, tree: Path, tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "wrong.bench").write_text(f"{text}\n")
    done = run(shell, tree, tmp_path / "wrong.bench")
    assert (done.returncode, expected in done.stderr) == (1, True), done.stderr
    assert "VERSIONS" not in done.stdout


@pytest.mark.slow("builds")
def test_files_of_tclbench_itself_go(shell: Path, tree: Path, tmp_path: Path) -> None:
    """These also use shortened options in any order, code 666 for tests that cannot be measured, and output files."""
    (tmp_path / "own.bench").write_text(
        "set file [bench_tmpfile]\n"
        'proc lacking {} {return -code 666 "N/A"}\nbench -body {lacking} -desc "NOT had"\n'
        'bench -iters 5 -bod {close [open $file w]} -desc {FILE, "made"} -pos {bench_rm $file}\n'
        'bench -desc "OTHER" -body {error "not matched"}\n'
    )
    done = run(shell, tree, "-match", "[NF]*", tmp_path / "own.bench")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["0 VERSIONS: 1:8.6.13", "1 {NOT had} N/A"]
    assert lines[3] == "2 BENCHMARKS 1:8.6.13"
    [created] = read(done.stdout.encode(), name="the output", format="tclbench").series
    assert created.benchmark == 'FILE, "made"'


@pytest.mark.slow("builds")
def test_the_study_runs_and_compares_one_version_with_the_other(tree: Path, tmp_path: Path) -> None:
    """One built Tcl replaces both versions, reduced to the files that a benchmark needs."""
    study, created = tmp_path / "study", tmp_path / "tcl"
    shutil.copytree(STUDY, study, ignore=shutil.ignore_patterns(".perftrail", "answers"))
    shutil.copytree(tree / "library", created / "library", ignore=shutil.ignore_patterns("tzdata"))
    shutil.copytree(tree / "generic", created / "generic", ignore=shutil.ignore_patterns("*.c"))
    (created / "unix").mkdir()
    shutil.copy(tree / "unix" / "libtcl8.6.a", created / "unix")
    text = (study / "perftrail.toml").read_text()
    text = re.sub(
        r'kind = "release"\nlocation = .*\nindex = .*', f'kind = "directory"\nlocation = "{created}"', text
    )
    text = re.sub(r"steps = \[.*?\n?\]\n", "steps = []\n", text, flags=re.DOTALL)
    text = text.replace("libtcl9.0.a", "libtcl8.6.a").replace(
        "invocations = 24", "invocations = 2\nwarmups = 0"
    )
    (study / "perftrail.toml").write_text(text)
    some = ["--only=benchmark=expr,thread", "--only=what=loop-braced,big,start"]
    data = json.loads(perftrail("run", study, "--json", *some).stdout)
    assert (data["failures"], data["measured"]) == ([], 6)
    shown = json.loads(perftrail("show", study, "--json").stdout)
    held = {row["benchmark"]: row["by_benchmark"] for row in shown if row["by_benchmark"]}
    assert {name: len(each["points"]) for name, each in held.items()} == {"expr": 2, "thread": 1}
    assert {each["verdict"] for each in held.values()} == {"unclear"}
    report = perftrail("report", "--format", "markdown", study).stdout
    assert "Every benchmark relative to tcl8.6" in report
    assert "1 cannot be measured" in report
