"""`perftrail measure` as a process: its contract, hyperfine's options, and hostile text."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perftrail.cli.main import main
from perftrail.present.trial import WIDTH, _wrapped, result_lines
from tests.cli.calling import called
from tests.present.test_exports import found
from tests.starting import Started, start

FEW = ("-r", "3")


def measure(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return start("measure", *arguments, cwd=cwd, env={**os.environ, **(env or {})})


def test_json_has_every_key_of_the_contract() -> None:
    done = measure("--json", *FEW, "true", "true")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert [result["command"] for result in written["results"]] == ["true", "true"]
    for result in written["results"]:
        assert result["invocations"] == 3
        for metric in ("wall", "cpu", "peak_memory", "peak_memory_tree", "page_faults"):
            value = result["metrics"][metric]
            assert set(value) >= {"unit", "values", "estimate"}
        assert result["metrics"]["peak_memory"]["method"] == "rusage"
        assert isinstance(result["flags"], list)
    assert {each["metric"] for each in written["comparison"]} == {"wall", "cpu", "peak_memory"}
    assert all(each["verdict"] in ("faster", "slower", "same", "unclear") for each in written["comparison"])


def test_arguments_after_the_dashes_are_one_command() -> None:
    code = "import sys; sys.exit(sys.argv[1:] != ['a b', '--json', '-n', '$(x)'])"
    done = measure("--json", *FEW, "--", sys.executable, "-c", code, "a b", "--json", "-n", "$(x)")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["invocations"] == 3


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    mark = tmp_path / "touched"
    done = measure(*FEW, "-L", "x", f"$(touch {mark}),`touch {mark}`", "echo \x1b[31m {x}")
    assert done.returncode == 0, done.stderr
    assert not mark.exists()
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b" in done.stdout


def test_the_answer_for_people_names_values_and_verdicts() -> None:
    done = measure(*FEW, "-n", "one", "-n", "two", "true", "true")
    assert done.returncode == 0, done.stderr
    assert "A  one" in done.stdout
    assert "B against A" in done.stdout
    assert "peak memory" in done.stdout
    assert done.stderr == ""


def test_hyperfines_options_are_accepted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    done = measure(
        "-N", "-w", "1", "-r", "2", "-i", "-s", f"sh -c 'echo setup >> {log}'", "-p", f"echo prepare >> {log}",
        "--conclude", f"echo conclude >> {log}", "-c", f"echo cleanup >> {log}", "-L", "c", "0,1",
        "--export-json", "out.json", "--export-markdown", "out.md", "--export-csv", "out.csv", "sh -c 'exit {c}'",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert log.read_text().split() == [*["setup", "prepare", "conclude"] * 2, *["prepare", "conclude"] * 4, "cleanup",
                                       "cleanup"]  # fmt: skip
    results = json.loads((tmp_path / "out.json").read_text())["results"]
    assert [(result["parameters"], result["exit_codes"]) for result in results] == [
        ({"c": "0"}, [0, 0]),
        ({"c": "1"}, [1, 1]),
    ]
    assert (tmp_path / "out.md").read_text().startswith("| Command |")
    assert (tmp_path / "out.csv").read_text().startswith("command,mean")


@pytest.mark.parametrize("shell", [("--shell",), ("-S",), ("--shell=sh",), ("--shell", "bash"), ("-S", "sh")])
def test_a_shell_is_shown_and_takes_no_command_as_its_name(shell: tuple[str, ...]) -> None:
    done = called("measure", "-r", "2", "-w", "0", "--json", *shell, "true; true")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert [result["command"] for result in written["results"]] == ["true; true"]
    assert written["shell"]["invocations"] == 2


def test_the_time_of_a_shell_is_not_subtracted_from_the_printed_times() -> None:
    printed = " ".join(measure(*FEW, "--shell", "true; true").stdout.split())
    assert "Every wall time above includes this time." in printed


def test_a_command_that_fails_is_reported_and_exits_1() -> None:
    done = measure("false")
    assert done.returncode == 1
    assert done.stdout == ""
    assert '"false": exit code 1' in done.stderr
    assert "-i" in done.stderr
    assert "Traceback" not in done.stderr


def test_arguments_without_dashes_get_a_hint() -> None:
    done = measure("sh", "-r", "2", "1")
    assert done.returncode == 1
    assert "perftrail measure -- " in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a | b",),
        ("-r", "3", "-m", "2", "true"),
        ("-m", "5", "-M", "2", "true"),
        ("-r", "0", "true"),
        ("-w", "-1", "true"),
        ("--precision", "nan", "true"),
        ("--threshold", "0", "true"),
        ("-L", "n", "1", "true"),
        ("--cpus", "9999", "true"),
        ("--cpus", "x", "true"),
        ("--timeout", "soon", "true"),
        ("--memory-limit", "1", "true"),
        ("--budget", "0", "true"),
        ("--input", "/no/such/file", "true"),
        ("--output", "pipe", "true"),
        ("--export-json", "/no/such/directory/x", "true"),
        ("-n", "a", "-n", "b", "true"),
        ("-D", "1", "true"),
        ("true", "--", "true"),
    ],
)
def test_invalid_arguments_are_wrong_usage_before_anything_runs(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["measure", *arguments])
    output = capsys.readouterr()
    assert ended.value.code == 2, output
    assert output.out == ""
    assert output.err


def test_input_output_cpus_and_timeout_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("hello")
    done = measure(
        *FEW, "--input", "in", "--output", "out", "--cpus", "0", "--timeout", "10s", "cat", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "hello"
    shown = measure("-r", "1", "--show-output", "echo shown")
    assert shown.stderr == "shown\n"
    late = measure("--timeout", "0.1", "sleep 10")
    assert late.returncode == 1
    assert "timed out after 0.1 s" in late.stderr


def test_an_ascii_terminal_gets_ascii() -> None:
    done = measure(*FEW, "-L", "n", "0.001,0.002,0.003", "sleep {n}", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "o" in done.stdout


def test_an_interruption_prints_partial_results_and_leaves_nothing_running(tmp_path: Path) -> None:
    words = ["measure", "--json", "-r", "200", "-p", f"sh -c 'echo x >> {tmp_path}/runs'", "sleep 0.05"]
    runs = tmp_path / "runs"
    with (
        (tmp_path / "out").open("wb") as out,
        (tmp_path / "err").open("wb") as err,
        Started(words, out.fileno(), err.fileno()) as process,
    ):
        while not (runs.exists() and len(runs.read_text().split()) > 3):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130, (tmp_path / "err").read_text()
    written = json.loads((tmp_path / "out").read_text())
    assert written["interrupted"]
    assert written["results"][0]["invocations"] >= 1


@pytest.mark.parametrize("count", [1, 2, 3, 5, 30])
def test_every_line_fits_eighty_columns(count: int) -> None:
    values = tuple(str(number) for number in range(1, count + 1))
    long = "program " + "with-many-words " * 9
    for answer in (
        found(*[f"{long}{value}" for value in values]),
        found(f"{long}{{n}}", parameters={"n": values}),
        found(f"{long}{{n}}", f"{long}x {{n}}", parameters={"n": values}),
    ):
        assert max(len(line) for line, _ in result_lines(answer)) <= WIDTH


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    for padding in range(WIDTH):
        lines = _wrapped(
            f"{'x' * padding} a change below 15 % would not have been detected in 12 pairs of 1.5 ms", 0
        )
        assert not any(re.match(r"%|pairs|ms", line) for line in lines[1:])
        assert "\u00a0" not in "".join(lines)


def test_an_option_stays_on_one_line() -> None:
    for padding in range(WIDTH):
        lines = _wrapped(f"{'x' * padding} measure more: --min-runs 150", 0)
        assert sum("--min-runs" in line for line in lines) == 1
