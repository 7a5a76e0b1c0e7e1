"""Suites of Go: what test programs print, and the lines that start one benchmark."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.placeholders import fill
from perftrail.model.suite import Suite, SuiteItem
from perftrail.suites import go
from tests.needs import needs

SUITE = Suite(kind="go", program=("perftrail-bench/**/*.test",), seconds=0.1)

OUTPUT = """
perftrail: program perftrail-bench/./bench.test
goos: linux
BenchmarkRoot-2 \t  846331\t        1.2 ns/op
PASS

perftrail: program perftrail-bench/./internal/parse/bench.test
BenchmarkParse/n=100-2         \t   28456\t       400 ns/op\t       0 B/op\t       0 allocs/op
BenchmarkParse/n=1000-2        \t    2845\t      4000 ns/op
BenchmarkUtf8/with_space/x=a=b-2  \t    2845\t      1e+06 ns/op
--- BENCH: BenchmarkUtf8-2
PASS
"""


def items() -> dict[tuple[str, str], SuiteItem]:
    return {(each.name, str(each.point)): each for each in go.read_listing(OUTPUT, SUITE)}


def test_a_listing_has_packages_and_parameters_without_the_number_of_threads() -> None:
    assert list(items()) == [
        ("Root", ""),
        ("internal/parse.Parse", "n=100"),
        ("internal/parse.Parse", "n=1000"),
        ("internal/parse.Utf8/with_space", "x=a=b"),
    ]


def test_iterations_fill_the_time_of_an_invocation() -> None:
    found = items()
    assert found["internal/parse.Parse", "n=100"].iterations == 250_000
    assert found["internal/parse.Utf8/with_space", "x=a=b"].iterations == 100
    assert found["Root", ""].iterations == 83_333_333


def test_a_name_that_ends_in_a_number_keeps_it_on_a_machine_with_one_cpu() -> None:
    output = "\nperftrail: program perftrail-bench/a.test\nBenchmarkA-4 10 5 ns/op\nBenchmarkB-8 10 5 ns/op\n"
    assert [each.name for each in go.read_listing(output, SUITE)] == ["A-4", "B-8"]


def test_a_benchmark_is_started_alone_in_the_directory_of_its_package() -> None:
    line = go.command(SUITE, items()["internal/parse.Parse", "n=100"])
    assert line.startswith("cd {build}/internal/parse && ")
    assert "-test.bench '^BenchmarkParse$/^n=100$' -test.benchtime 250000x" in line


def test_hostile_names_stay_one_word() -> None:
    item = SuiteItem(name="x", selector="perftrail-bench/a.test\tX/$(touch pwned);'{build}", point=Point())
    line = fill(go.command(SUITE, item), {"build": "/b"})
    words = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {line.split(' -test.bench ')[1].split(' -test.benchtime')[0]}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert words == "^BenchmarkX$/^\\$\\(touch\\ pwned\\);'\\{build\\}$\n"


SCRIPT = """\
#!/bin/sh
# Answers like the test program that Go builds of PACKAGE.
while [ $# -gt 0 ]; do
    case "$1" in -test.run) tests=$2 ;; -test.bench) wanted=$2 ;; -test.benchtime) time=$2 ;; esac
    shift
done
[ "$tests" = '^$' ] && [ -n "$time" ] && [ -e x_test.go ] || exit 1
case "$wanted" in . | '^BenchmarkFile$') echo "BenchmarkFile-2    846    1200 ns/op" ;; esac
case "$wanted" in . | '^BenchmarkSub$/^size=3$') echo "BenchmarkSub/size=3-2    846331    1.2 ns/op" ;; esac
echo PASS
"""

PACKAGE = """\
package deep

import (
\t"os"
\t"testing"
)

func BenchmarkFile(b *testing.B) {
\tfor i := 0; i < b.N; i++ {
\t\tif _, err := os.Stat("x_test.go"); err != nil {
\t\t\tb.Fatal(err)
\t\t}
\t}
}

func BenchmarkSub(b *testing.B) {
\tb.Run("size=3", func(b *testing.B) {
\t\tfor i := 0; i < b.N; i++ {
\t\t}
\t})
}
"""


def write_script(module: Path) -> None:
    program = module / "perftrail-bench" / "deep" / "bench.test"
    program.write_text(SCRIPT)
    program.chmod(0o755)


def build_with_go(module: Path) -> None:
    (module / "go.mod").write_text("module example.invalid/x\n\ngo 1.20\n")
    words = ["go", "test", "-c", "-o", "perftrail-bench/deep/bench.test", "./deep"]
    subprocess.run(words, cwd=module, check=True)


@pytest.mark.parametrize(
    "build",
    [
        write_script,
        pytest.param(build_with_go, marks=[needs("go"), pytest.mark.long, pytest.mark.slow("builds")]),
    ],
)
def test_a_module_is_listed_and_each_benchmark_runs_alone(
    build: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x_test.go").write_text(PACKAGE)
    (tmp_path / "perftrail-bench" / "deep").mkdir(parents=True)
    build(tmp_path)
    listed = _shell(go.listing(SUITE), tmp_path)
    found = {(each.name, str(each.point)): each for each in go.read_listing(listed, SUITE)}
    assert list(found) == [("deep.File", ""), ("deep.Sub", "size=3")]
    assert "BenchmarkSub/size=3" in _shell(go.command(SUITE, found["deep.Sub", "size=3"]), tmp_path)
    absent = SuiteItem(name="x", selector="perftrail-bench/deep/bench.test\tNone", iterations=1)
    assert "ns/op" not in _shell(go.command(SUITE, absent), tmp_path)
    missing = SuiteItem(name="x", selector="perftrail-bench/deep/other.test\tNone", iterations=1)
    assert _shell(go.command(SUITE, missing), tmp_path) == ""


def _shell(line: str, build: Path) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", fill(line, {"build": str(build)})], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
