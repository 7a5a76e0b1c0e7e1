"""Programs whose cost depends on their path: with random paths, equal builds do not differ systematically."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.printing import perftrail
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.sources.repositories import Repository
from tests.starting import Started

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STUDY = """\
[source]
kind = "git"
location = "{location}"

[build]
steps = [{steps}]
outputs = [{outputs}]

[benchmark.work]
build = [{benchmark_build}]
command = "{command}"
{env}
metrics = {{ {metrics} }}

[measure]
invocations = {invocations}
warmups = 0
{measure}
"""

PROGRAM = """\
/* Allocates blocks whose sizes depend on the program's own path, as a table keyed by file names does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *volatile revision = "%d";

int main(int count, char **words)
{
    uint32_t hash = 2166136261u;
    size_t pages = 0;
    for (const char *at = words[0]; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (size_t block = 0; block < strlen(words[0]); block++, hash = hash * 1664525u + 1013904223u) {
        size_t bytes = 1 + hash %% 65536;
        char *memory = malloc(bytes);
        if (memory == NULL || count != 1)
            return 1;
        memset(memory, 1, bytes);
        pages += (bytes + 4095) / 4096;
    }
    printf("cost %%zu\\naligned %%zu\\n", pages, (size_t)((uintptr_t)words[0] %% 64));
    return 0;
}
"""


def a_study(
    tmp_path: Path,
    *,
    steps: str = "'cc -O1 -o program program.c'",
    outputs: str = "'program'",
    benchmark_build: str = "",
    command: str = "{build}/program",
    env: str = "",
    measure: str = "",
    metrics: Sequence[str] = ("cost",),
    invocations: int = 8,
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write a study of two revisions that differ in a text that no invocation uses."""
    repository = Repository(tmp_path / "repository")
    for revision in (1, 2):
        repository.commit({"program.c": PROGRAM % revision, "revision": str(revision), **(files or {})})
    study = tmp_path / "study"
    study.mkdir()
    (study / "perftrail.toml").write_text(
        STUDY.format(
            location=repository.path,
            steps=steps,
            outputs=outputs,
            benchmark_build=benchmark_build,
            command=command,
            env=env,
            measure=measure,
            metrics=", ".join(f"{name} = {{ pattern = '{name} ([0-9]+)' }}" for name in metrics),
            invocations=invocations,
        )
    )
    return study


def values(study: Path, metric: str = "cost") -> list[list[float]]:
    """Run a study; return a metric's values by revision, in the order of their ordinals."""
    report = json.loads(perftrail("run", study, "--json").stdout)
    assert report["failures"] == []
    return stored_values(study, metric)


def stored_values(study: Path, metric: str) -> list[list[float]]:
    """Return the stored values of a metric by revision, in the order of their ordinals."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(perftrail("export", "--format", "csv", study).stdout)):
        if row["metric"] == metric:
            found[row["revision"]][int(row["invocation"])] = float(row["value"])
    return [[each[ordinal] for ordinal in sorted(each)] for each in found.values()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that ran, with random paths."""
    study = a_study(tmp_path_factory.mktemp("random"), metrics=("cost", "aligned"))
    perftrail("run", study)
    return study


def test_equal_programs_cost_the_same_in_every_pair_and_vary_between_pairs(ran: Path) -> None:
    one, other = stored_values(ran, "cost")
    assert one == other
    assert len(set(one)) >= 6
    assert list((ran / ".perftrail" / "paths").iterdir()) == []


def test_the_alignment_of_the_path_varies_between_pairs_but_not_within_one(ran: Path) -> None:
    one, other = stored_values(ran, "aligned")
    assert one == other
    assert len(set(one)) >= 5


def test_without_random_paths_equal_programs_differ_systematically(tmp_path: Path) -> None:
    one, other = values(a_study(tmp_path, measure="vary_path = false", invocations=4))
    assert len(set(one)) == len(set(other)) == 1
    assert one != other


def test_the_program_of_a_benchmark_build_has_random_paths_too(tmp_path: Path) -> None:
    study = a_study(
        tmp_path,
        benchmark_build="'cc -O1 -o {out}/program {build}/program.c'",
        command="{out}/program",
        outputs="'*.c'",
    )
    one, other = values(study)
    assert one == other
    assert len(set(one)) >= 6


@needs_sandbox
def test_paths_are_random_in_a_sandbox_too(tmp_path: Path) -> None:
    study = a_study(tmp_path, measure="\n[sandbox]\nmemory = '1GiB'")
    one, other = values(study)
    assert one == other
    assert len(set(one)) >= 6


def test_a_program_finds_the_library_next_to_it(tmp_path: Path) -> None:
    study = a_study(
        tmp_path,
        files={
            "shared.c": "int cost(void) { return 7; }\n",
            "main.c": '#include <stdio.h>\nint cost(void);\nint main(void) { printf("cost %d\\n", cost()); }\n',
        },
        steps=(
            "'mkdir -p lib', 'cc -shared -fPIC -o lib/libshared.so shared.c', "
            "'''cc -o main main.c -Llib -lshared '-Wl,-rpath,$ORIGIN/lib' '''"
        ),
        outputs="'main', 'lib', 'revision'",
        command="{build}/main",
        invocations=2,
    )
    assert {cost for each in values(study) for cost in each} == {7.0}


def test_python_imports_from_a_random_path_and_finds_its_own_files(tmp_path: Path) -> None:
    module = (
        "from pathlib import Path\n"
        "here = Path(__file__)\n"
        "assert here.resolve().parent.name == 'tree', here\n"
        "assert here.with_name('revision').read_text() in '12'\n"
        "print('cost', len(str(here)))\n"
    )
    study = a_study(
        tmp_path,
        files={"module.py": module},
        steps="",
        outputs="'module.py', 'revision'",
        command="python3 -m module",
        env="env = { PYTHONPATH = '{build}' }",
        invocations=4,
    )
    one, other = values(study)
    assert one == other
    assert len(set(one)) >= 2


def test_a_virtual_environment_in_the_build_works_at_a_random_path(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, inside\n"
        "assert pathlib.Path(sys.prefix).name == 'venv', sys.prefix\n"
        "assert sys.prefix != sys.base_prefix\n"
        "print('cost', len(sys.prefix))\n"
    )
    study = a_study(
        tmp_path,
        files={"program.py": program},
        steps="'python3 -m venv --without-pip venv', 'touch $(echo venv/lib/python3*/site-packages)/inside.py'",
        outputs="'program.py', 'revision'",
        command="{build}/venv/bin/python {build}/program.py",
        invocations=4,
    )
    one, other = values(study)
    assert one == other
    assert len(set(one)) >= 2


def test_tools_that_do_not_follow_links_enter_the_build(tmp_path: Path) -> None:
    study = a_study(
        tmp_path,
        steps="",
        outputs="'revision', 'program.c'",
        command="find {build} -name program.c | wc -l | sed 's/^ */cost /'",
        env="shell = true",
        invocations=2,
    )
    assert {cost for each in values(study) for cost in each} == {1.0}


@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_removes_the_links_to_its_builds(tmp_path: Path, stop_signal: signal.Signals) -> None:
    study = a_study(tmp_path, command="sh -c 'sleep 60' {build}")
    links = study / ".perftrail" / "paths"
    with (
        Path(os.devnull).open("wb") as output,
        Started(("run", str(study)), output.fileno(), output.fileno()) as process,
    ):
        try:
            deadline = time.monotonic() + 60.0
            while not (links.is_dir() and any(links.iterdir())):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(stop_signal)
            assert process.wait(30) == 130
        finally:
            process.send_signal(signal.SIGKILL)
    assert list(links.iterdir()) == []
