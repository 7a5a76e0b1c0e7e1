"""The command line: its output for people and programs, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.cli.main import COMMANDS, GROUPS
from tests.e2e.histories import make_history, write_study
from tests.starting import start

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


def test_help_names_every_command_and_the_exit_codes() -> None:
    done = perftrail("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "130" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_description_of_the_list(command: str) -> None:
    done = perftrail(command, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout


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


def test_help_shows_the_commands_in_groups() -> None:
    lines = perftrail("--help").stdout.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options", *GROUPS]


def test_a_mistyped_command_is_answered_with_the_near_miss() -> None:
    done = perftrail("fnd")
    assert done.returncode == 2
    assert 'unknown command "fnd"; did you mean "find"?' in done.stderr


def test_an_unknown_command_is_wrong_usage() -> None:
    done = perftrail("fnid")
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
    done = perftrail("check", "--json", cwd=inside)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revisions"] == 1


def test_without_any_study_the_remedy_is_printed(tmp_path: Path) -> None:
    done = perftrail("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "perftrail.toml" in done.stderr


def test_an_unknown_metric_names_the_near_miss(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("find", str(tmp_path), "--metric", "wal")
    assert done.returncode == 2
    assert '"wall"' in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--threshold", "0"), ("--confidence", "1.5"), ("--budget", "soon"), ("--variant", "nobody")],
)
def test_invalid_values_are_wrong_usage(tmp_path: Path, arguments: tuple[str, str]) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("find", str(tmp_path), "--metric", "wall", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert arguments[0].removeprefix("--") in done.stderr


def test_a_run_measures_and_a_second_run_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD + "[measure]\ninvocations = 6\n")
    done = perftrail("run", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measured"] == 1
    [row] = json.loads(perftrail("show", str(tmp_path), "--json").stdout)
    assert (row["metric"], row["unit"], row["count"]) == ("wall", "s", 6)
    assert row["estimate"]["low"] <= row["estimate"]["value"] <= row["estimate"]["high"]
    assert json.loads(perftrail("run", str(tmp_path), "--json").stdout)["invocations"] == 0


def test_a_dry_run_shows_the_plan_and_builds_nothing(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("run", str(tmp_path), "--dry-run", "--json")
    assert json.loads(done.stdout)["builds"]["left"] == 1
    assert not (tmp_path / ".perftrail" / "results.db").exists()


def test_a_dry_run_ends_with_the_command_whose_plan_it_is(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(
        GOOD + '[measure]\ninvocations = 2\n[find]\nmetric = "wall"\nthreshold = 0.05\n'
    )
    perftrail("run", str(tmp_path), "--json")
    done = perftrail("run", "--dry-run", "--only", "benchmark=ec*", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "Next: perftrail run --only 'benchmark=ec*'", done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--confidence", "120%"),
            '"120%" is not a fraction above 0 and below 1; write for example 99% or 0.99',
        ),
        (("--threshold", "5percent"), "write for example 2% or 0.02"),
        (("--budget", "3weeks"), '--budget "3weeks": is not a duration; write seconds'),
    ],
)
def test_an_invalid_option_shows_an_example_of_a_valid_one(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("find", str(tmp_path), *options)
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
    done = perftrail("check", str(study), "--only", f"revision={history.commits[1]}", "--json")
    assert json.loads(done.stdout)["subjects"] == 1
    wrong = perftrail("check", str(study), "--only", "revison=x")
    assert wrong.returncode == 2
    assert "revision" in wrong.stderr


def test_a_pipe_gets_no_colours(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    done = perftrail("check", str(tmp_path))
    assert "\x1b" not in done.stdout + done.stderr


def test_the_schema_is_json() -> None:
    done = perftrail("check", "--schema")
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")


def test_show_prints_failed_builds_and_comparisons_for_programs(tmp_path: Path) -> None:
    history = make_history(
        tmp_path / "repository", commits=3, culprit=None, unbuildable=range(1, 2), steps=1000
    )
    study = write_study(tmp_path / "study", history)
    assert perftrail("run", str(study)).returncode == 0
    found = json.loads(perftrail("show", str(study), "--failures", "--json").stdout)
    [group] = found["failures"]
    assert (group["stage"], group["revisions"]) == ("build", [history.commits[1]])
    assert found["skipped"] == []
    printed = perftrail("show", str(study), "--failures").stdout
    assert "1 failure at build: " in printed
    assert printed.strip() in perftrail("show", str(study)).stdout
    assert json.loads(perftrail("show", str(study), "--comparisons", "--json").stdout) == []
    missing = perftrail("show", str(study), "--comparisons")
    assert (missing.returncode, missing.stderr) == (
        1,
        "no comparison yet; compare two revisions with: perftrail compare BASE HEAD\n",
    )
    both = perftrail("show", str(study), "--comparisons", "--failures")
    assert both.returncode == 2
    assert "--comparisons cannot be combined with --failures" in both.stderr


def test_show_without_samples_names_the_next_command(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text(GOOD)
    for arguments in (("show",), ("show", "--search")):
        done = perftrail(*arguments, str(tmp_path))
        assert done.returncode == 1
        assert "perftrail" in done.stderr


def test_a_second_perftrail_names_the_process_with_the_lock(tmp_path: Path) -> None:
    slow = GOOD.replace("echo hello", "sleep 30")
    (tmp_path / "perftrail.toml").write_text(slow)
    first = subprocess.Popen(
        [sys.executable, "-m", "perftrail", "run", str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        lock = tmp_path / ".perftrail" / "results.db.lock"
        while not (lock.exists() and str(first.pid) in lock.read_text()):
            assert first.poll() is None
            os.sched_yield()
        done = perftrail("run", str(tmp_path), "--no-wait")
    finally:
        first.kill()
        first.wait()
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
        done = subprocess.run(
            [sys.executable, "-m", "perftrail", "measure", "--shell", "-r", "2", "--show-output", shown],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert f"threads: {reported}" in done.stdout + done.stderr
