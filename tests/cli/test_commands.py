"""The command line: its output for people and programs, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perftrail.cli.main import COMMANDS, GROUPS
from tests.cli.calling import called
from tests.e2e.histories import make_history, write_study
from tests.starting import Started, start

GOOD = """\
[study]
title = "a"
[source]
kind = "directory"
location = "."
[benchmark.echo]
command = "echo hello"
"""


def perftrail(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return start(*arguments, cwd=cwd)


def test_help_shows_every_command_in_its_group_and_the_exit_codes() -> None:
    done = perftrail("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "130" in done.stdout
    lines = done.stdout.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options", *GROUPS]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from perftrail.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'numpy', 'scipy', 'sqlalchemy', 'cattrs', 'tomllib', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_check_of_a_study_without_samples_imports_no_numbers_and_no_database(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    code = (
        "import sys; from perftrail.cli.main import main\n"
        "try: main(['check'])\n"
        "except SystemExit as ended: assert ended.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sqlalchemy', 'jinja2', 'pypi_simple', 'email', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_mistyped_command_is_answered_with_the_near_miss() -> None:
    done = called("fnd")
    assert done.returncode == 2
    assert 'unknown command "fnd"; did you mean "find"?' in done.stderr


def test_an_unknown_command_is_wrong_usage() -> None:
    done = called("fnid")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_every_mistake_of_a_study_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "perftrail.toml"
    text = GOOD.replace('title = "a"', 'titel = "a"')
    file.write_text(text.replace("[benchmark.echo]", "[benchmark.echo]\ncolour = 1"))
    done = perftrail("check", str(file))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert any(line.startswith(f"{file}:2: study.titel: ") for line in lines)
    assert any(line.startswith(f"{file}:7: benchmark.echo.colour: ") for line in lines)
    assert done.stdout == ""


def test_without_a_study_the_nearest_file_upwards_is_used(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    done = called("check", "--json", cwd=inside)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revisions"] == 1


def test_without_any_study_the_remedy_is_printed(tmp_path: Path) -> None:
    done = called("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "perftrail.toml" in done.stderr


def test_an_unknown_metric_names_the_near_miss(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = called("find", str(tmp_path), "--metric", "wal")
    assert done.returncode == 2
    assert '"wall"' in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--threshold", "0"), ("--confidence", "1.5"), ("--budget", "soon"), ("--variant", "nobody")],
)
def test_invalid_values_are_wrong_usage(tmp_path: Path, arguments: tuple[str, str]) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = called("find", str(tmp_path), "--metric", "wall", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert arguments[0].removeprefix("--") in done.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A study of six invocations that was run, and what its run printed."""
    study = tmp_path_factory.mktemp("measured")
    (study / "perftrail.toml").write_text(
        GOOD + '[measure]\ninvocations = 6\n[find]\nmetric = "wall"\nthreshold = 0.05\n'
    )
    return study, perftrail("run", str(study), "--json")


def test_a_run_measures_and_a_second_run_starts_nothing(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    study, done = measured
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measured"] == 1
    [row] = json.loads(called("show", study, "--json").stdout)
    assert (row["metric"], row["unit"], row["count"]) == ("wall", "s", 6)
    assert row["estimate"]["low"] <= row["estimate"]["value"] <= row["estimate"]["high"]
    assert json.loads(perftrail("run", str(study), "--json").stdout)["invocations"] == 0


def test_a_dry_run_shows_the_plan_and_builds_nothing(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = called("run", str(tmp_path), "--dry-run", "--json")
    assert json.loads(done.stdout)["builds"]["left"] == 1
    assert not (tmp_path / ".perftrail" / "results.db").exists()


def test_a_dry_run_ends_with_the_command_whose_plan_it_is(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    study, _ = measured
    done = called("run", "--dry-run", "--only", "benchmark=ec*", cwd=study)
    assert done.stdout.splitlines()[-1] == "Next: perftrail run --only 'benchmark=ec*'", done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--confidence", "120%"),
            '"120%" is not a fraction above 0 and below 1; write for example 99% or 0.99',
        ),
        (("--threshold", "5percent"), "write for example 2% or 0.02"),
        (("--metric", "works", "--threshold", "5"), "5: is not a fraction above 0 and below 1"),
        (("--budget", "3weeks"), '--budget "3weeks": is not a duration; write seconds'),
    ],
)
def test_an_invalid_option_shows_an_example_of_a_valid_one(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = called("find", str(tmp_path), *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_run_without_any_sample_exits_1(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD.replace("echo hello", "no-such-program-anywhere"))
    done = perftrail("run", str(tmp_path), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"][0]["stage"] == "start"


def test_only_chooses_a_part_of_the_plan(tmp_path: Path) -> None:
    history = make_history(tmp_path / "repository", commits=3, culprit=None, unbuildable=range(0), steps=1000)
    study = write_study(tmp_path / "study", history)
    done = called("check", str(study), "--only", f"revision={history.commits[1]}", "--json")
    assert json.loads(done.stdout)["subjects"] == 1
    wrong = called("check", str(study), "--only", "revison=x")
    assert wrong.returncode == 2
    assert "revision" in wrong.stderr


def test_a_pipe_gets_no_colours(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("check", str(tmp_path))
    assert "\x1b" not in done.stdout + done.stderr


def test_the_schema_is_json() -> None:
    done = called("check", "--schema")
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")


def test_show_prints_failed_builds_and_comparisons_for_programs(tmp_path: Path) -> None:
    history = make_history(
        tmp_path / "repository", commits=3, culprit=None, unbuildable=range(1, 2), steps=1000
    )
    study = write_study(tmp_path / "study", history)
    assert perftrail("run", str(study)).returncode == 0
    found = json.loads(called("show", str(study), "--failures", "--json").stdout)
    [group] = found["failures"]
    assert (group["stage"], group["revisions"]) == ("build", [history.commits[1]])
    assert found["skipped"] == []
    printed = called("show", str(study), "--failures").stdout
    assert "1 failure at build: " in printed
    assert printed.strip() in called("show", str(study)).stdout
    assert json.loads(called("show", str(study), "--comparisons", "--json").stdout) == []
    missing = called("show", str(study), "--comparisons")
    assert (missing.returncode, missing.stderr) == (
        1,
        "no comparison yet; compare two revisions with: perftrail compare BASE HEAD\n",
    )
    both = called("show", str(study), "--comparisons", "--failures")
    assert both.returncode == 2
    assert "--comparisons cannot be combined with --failures" in both.stderr


def test_show_without_samples_names_the_next_command(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    for arguments in (("show",), ("show", "--search")):
        done = called(*arguments, str(tmp_path))
        assert done.returncode == 1
        assert "perftrail" in done.stderr


def test_a_second_perftrail_names_the_process_with_the_lock(tmp_path: Path) -> None:
    slow = GOOD.replace("echo hello", "sleep 30")
    (tmp_path / "perftrail.toml").write_text(slow)
    lock = tmp_path / ".perftrail" / "results.db.lock"
    with (
        (tmp_path / "output").open("wb") as output,
        Started(["run", str(tmp_path)], output.fileno(), output.fileno()) as first,
    ):
        try:
            while not (lock.exists() and str(first.pid) in lock.read_text()):
                assert first.poll() is None
                time.sleep(0.01)
            done = called("run", str(tmp_path), "--no-wait")
        finally:
            first.send_signal(signal.SIGKILL)
    assert done.returncode == 1
    assert str(first.pid) in done.stderr


def test_numpy_uses_one_thread_and_measured_programs_do_not_inherit_the_setting() -> None:
    code = (
        "import os; from perftrail.cli.main import keep_to_one_thread\n"
        "keep_to_one_thread()\n"
        "import numpy; numpy.ones((400, 400)) @ numpy.ones((400, 400))\n"
        "print(len(os.listdir('/proc/self/task')), 'OMP_NUM_THREADS' in dict(os.environ))\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    assert done.stdout == "1 False\n"


def test_measured_programs_inherit_the_users_thread_settings() -> None:
    shown = 'echo "threads: ${OMP_NUM_THREADS-as many as there are}" >&2'
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    for environment, reported in ((own, "as many as there are"), ({**own, "OMP_NUM_THREADS": "3"}, "3")):
        done = start("measure", "--shell", "-r", "1", "-w", "0", "--show-output", shown, env=environment)
        assert f"threads: {reported}" in done.stdout + done.stderr
