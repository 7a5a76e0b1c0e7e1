"""Suites end to end: real suites of pytest-benchmark and asv in a real history, in resident processes and in others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail_here
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{repository}"

[suite.bench]
kind = "{kind}"
path = "{path}"
seconds = 0.02
env = {{ PYTEST_DISABLE_PLUGIN_AUTOLOAD = "1" }}
{more}
[measure]
invocations = "3..10"
quiet_threshold = 100

[find]
threshold = "30%"
"""

TESTS = """\
import pytest
from work import work


@pytest.fixture(scope="module")
def data():
    return list(range(100))


@pytest.mark.parametrize("size", [1, 2])
def test_work(benchmark, size):
    benchmark(work, size)


def test_sum(benchmark, data):
    benchmark(sum, data)


def test_without_the_fixture():
    print("noise on standard output")
"""

ASV = """\
from work import work


class Suite:
    params = [1, 2]
    param_names = ["size"]

    def time_work(self, size):
        work(size)

    def peakmem_work(self, size):
        return bytearray(1000 * size)


def track_size():
    return 42


class Cached:
    def setup_cache(self):
        return list(range(100))

    def time_sum(self, values):
        sum(values)
"""


def work(loops: int) -> str:
    return f"def work(size):\n    return sum(number * number for number in range({loops} * size))\n"


def files(loops: int, *, tests: str = TESTS) -> dict[str, str]:
    return {
        "benches/work.py": work(loops),
        "benches/test_work.py": tests,
        "benchmarks/__init__.py": "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n",
        "benchmarks/work.py": work(loops),
        "benchmarks/suite.py": ASV,
    }


class History:
    """Nine revisions: the sixth is eight times as slow; the last has another test, and lacks one."""

    def __init__(self, path: Path) -> None:
        self.repository = Repository(path)
        self.ids = [
            self.repository.commit(
                {**files(500 if number < 5 else 4000), "n": str(number)}, subject=f"n {number}"
            )
            for number in range(8)
        ]
        tests = TESTS.replace("test_sum", "test_total")
        self.ids.append(self.repository.commit(files(4000, tests=tests), subject="rename a test"))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("suites") / "repository")


def study(directory: Path, history: History, *, kind: str, path: str, more: str = "") -> Path:
    directory.mkdir(exist_ok=True)
    text = STUDY.format(repository=history.repository.path, kind=kind, path=path, more=more)
    (directory / "perftrail.toml").write_text(text)
    return directory


def run(*words: str, code: int = 0) -> Any:
    """Run perftrail with the Python of the tests as python3, which has the tools of the suites."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = start(*words, env={**os.environ, "PATH": path})
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if "--json" in words else done


def by_name(compared: Any) -> dict[str, Any]:
    return {each["name"]: each for each in compared["comparisons"]}


def test_a_comparison_measures_every_benchmark_that_both_revisions_have(
    tmp_path: Path, history: History
) -> None:
    directory = study(tmp_path / "pytest", history, kind="pytest-benchmark", path="benches")
    compared = run("compare", history.ids[0], history.ids[-1], str(directory), "--json")
    found = by_name(compared)
    assert set(found) == {
        "benches/test_work.py::test_work.time[size=1]",
        "benches/test_work.py::test_work.time[size=2]",
    }
    assert {each["verdict"] for each in found.values()} == {"slower"}
    assert compared["appeared"] == ["benches/test_work.py::test_total"]
    assert compared["disappeared"] == ["benches/test_work.py::test_sum"]
    assert not compared["failures"]


@pytest.fixture(scope="module")
def measured(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose first revision was measured three times by a resident process."""
    root = tmp_path_factory.mktemp("resident") / "study"
    directory = study(root, history, kind="pytest-benchmark", path="benches")
    (directory / "perftrail.toml").write_text(
        (directory / "perftrail.toml").read_text().replace('"3..10"', '"3..3"')
    )
    run("run", str(directory), "--only", f"revision={history.ids[0][:12]}")
    return directory


def test_a_resident_process_measures_each_benchmark_once(measured: Path) -> None:
    exported = perftrail_here("export", measured, "--format", "jsonl").stdout.splitlines()
    samples = [json.loads(line) for line in exported]
    assert len(samples) == 3 * 3
    seeds = [each.get("seed") for each in samples]
    assert seeds is not None
    left = [each for each in Path("/proc").iterdir() if each.name.isdigit() and _serves(each, measured)]
    assert not left


def _serves(process: Path, directory: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return "python_suite.py" in command and str(directory) in command


def test_a_process_of_its_own_for_each_invocation_gives_the_same_verdict(
    tmp_path: Path, history: History
) -> None:
    more = "resident = false\nselect = '::test_work'"
    directory = study(tmp_path / "separate", history, kind="pytest-benchmark", path="benches", more=more)
    metric = "benches/test_work.py::test_work.time[size=2]"
    compared = run("compare", history.ids[0], history.ids[6], str(directory), "--json", "--metric", metric)
    assert {name: each["verdict"] for name, each in by_name(compared).items()} == {metric: "slower"}
    assert not (directory / ".perftrail" / "logs" / "resident").exists()


def test_a_search_names_the_revision_that_changed_a_benchmark_of_a_suite(
    tmp_path: Path, history: History
) -> None:
    directory = study(tmp_path / "find", history, kind="pytest-benchmark", path="benches")
    # Scatter of a busy machine is far below this threshold, and the change far above it.
    (directory / "perftrail.toml").write_text(
        (directory / "perftrail.toml").read_text().replace("30%", "60%")
    )
    metric = "benches/test_work.py::test_work.time[size=2]"
    answer = run(
        "find", str(directory), "--metric", metric, "--range", f"{history.ids[3]}..{history.ids[6]}", "--json"
    )
    assert answer["verdict"] == "found"
    assert answer["changes"][0]["revisions"] == [history.ids[5]]


def test_asv_has_parameters_memory_values_and_a_cache(tmp_path: Path, history: History) -> None:
    directory = study(tmp_path / "asv", history, kind="asv", path="benchmarks")
    compared = run(
        "compare",
        history.ids[0],
        history.ids[6],
        str(directory),
        "--json",
        "--confidence",
        "0.8",
        "--max-pairs",
        "8",
    )
    found = by_name(compared)
    assert set(found) == {
        "suite.Suite.time_work.time[size=1]",
        "suite.Suite.time_work.time[size=2]",
        "suite.Suite.peakmem_work.memory[size=1]",
        "suite.Suite.peakmem_work.memory[size=2]",
        "suite.Cached.time_sum.time",
        "suite.track_size.value",
    }
    assert found["suite.Suite.time_work.time[size=2]"]["effect"]["value"] > 2.0
    assert found["suite.Suite.peakmem_work.memory[size=1]"]["unit"] == "B"
    assert found["suite.track_size.value"]["head"]["value"] == pytest.approx(42)


def test_a_suite_that_cannot_be_listed_is_reported_with_its_log(tmp_path: Path, history: History) -> None:
    directory = study(tmp_path / "broken", history, kind="pytest-benchmark", path="no-such-directory")
    done = run("compare", history.ids[0], history.ids[1], str(directory), code=1)
    assert "suite bench" in done.stderr
    assert "cannot be listed" in done.stderr
    assert "no suite was listed" in done.stderr


def test_only_selected_benchmarks_run_and_only_until_their_iterations_are_known(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    source = f"""
def mark(name):
    with open({str(marks)!r}, "a") as file:
        file.write(name + "\\n")

def time_chosen(): mark("chosen")
time_chosen.number = time_chosen.repeat = 1

def time_other(): mark("other")
"""
    repository = Repository(tmp_path / "repository")
    ids = [
        repository.commit({"benchmarks/__init__.py": f"n = {n}\n", "benchmarks/suite.py": source})
        for n in (1, 2)
    ]
    text = STUDY.format(repository=repository.path, kind="asv", path="benchmarks", more="")
    (tmp_path / "perftrail.toml").write_text(text)
    done = run("check", str(tmp_path), "--try", "1", "--bench", "chos.n")
    assert "iterations of 1 benchmark chosen" in done.stderr
    assert done.stderr.count("2 benchmarks") == 2
    assert "other" not in marks.read_text()
    done = run("compare", *ids, str(tmp_path), "--bench", "chosn", code=1)
    last = done.stderr.splitlines()[-1]
    assert '--bench "chosn" matches none of 2 benchmarks, for example suite.time_chosen' in last
    assert "choose" not in done.stderr


def test_after_failed_builds_the_last_line_names_them(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    ids = [repository.commit({"n": str(n)}) for n in (1, 2)]
    text = STUDY.format(
        repository=repository.path, kind="asv", path="benchmarks", more='\n[build]\nsteps = ["false"]\n'
    )
    (tmp_path / "perftrail.toml").write_text(text)
    done = run("compare", *ids, str(tmp_path), "--bench", "time", code=1)
    assert "no revision was built" in done.stderr.splitlines()[-1]
    again = run("compare", *ids, str(tmp_path), "--bench", "time", code=1)
    assert "as in an earlier run (--retry-failed repeats it): " in again.stderr


def test_stored_lists_are_enough_to_show_samples(measured: Path) -> None:
    assert "test_work" in perftrail_here("show", measured).stdout
