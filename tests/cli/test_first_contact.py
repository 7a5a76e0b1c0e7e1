"""What a new user sees: the commands to start with, questions of `init`, the machine at a first run, next commands."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from perftrail.cli.commands.doctor import print_at_first_run
from perftrail.cli.main import FIRST, cli
from perftrail.present.output_settings import settings
from tests.cli.calling import called
from tests.e2e.terminal import Terminal
from tests.sources.repositories import Repository
from tests.verbs.init.projects import PROJECTS

PROGRAM = Path(sys.executable).with_name("perftrail")
"""The installed command."""

NOT_CI = {"CI": "", "TERM": "xterm", "COLUMNS": "200"}


def test_without_arguments_perftrail_prints_three_commands_to_start_with() -> None:
    done = called()
    assert (done.returncode, done.stdout) == (2, "")
    assert len(FIRST) == 3
    assert all(f"  {line}  " in done.stderr for line, _ in FIRST)
    assert "perftrail --help lists all commands" in done.stderr


def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "tiny")
    commits = [
        made.commit({**PROJECTS[0].files, **PROJECTS[3].files, "n": str(number)}) for number in range(8)
    ]
    made.tag("v1.0", commits[0])
    made.tag("v1.1", commits[2])
    return made


def test_init_asks_in_a_terminal_and_writes_the_answers(tmp_path: Path) -> None:
    path = repository(tmp_path).path
    with Terminal("init", cwd=path, env=NOT_CI) as terminal:
        terminal.read_until("Build system (cmake, make) [cmake]: ")
        terminal.type("make\r")
        terminal.read_until("[v1.1]: ")
        terminal.type("v0\r")
        terminal.read_until('Error: "v0": no such revision here')
        terminal.read_until("[v1.1]: ")
        terminal.type("v1.0\r")
        terminal.read_until("[{build}/tiny --version]: ")
        terminal.type("./tiny parse | wc\r")
        terminal.read_until("perftrail check")
        assert terminal.exit_code() == 0
    study = tomllib.loads((path / "perftrail.toml").read_text("utf-8"))
    assert study["source"]["range"] == "v1.0..HEAD"
    assert study["build"]["steps"] == ["make -j{cpus}"]
    assert "outputs" not in study["build"]
    command = study["benchmark"]["command"]
    assert (command["command"], command["directory"], command["shell"]) == ("./tiny parse | wc", ".", True)
    assert called("check", cwd=path).returncode == 0


def test_enter_accepts_what_init_detected(tmp_path: Path) -> None:
    path = repository(tmp_path).path
    with Terminal("init", "-o", "asked.toml", cwd=path, env=NOT_CI) as terminal:
        assert terminal.exit_code() == 0
        assert "Enter accepts" not in terminal.output  # there is an option
    with Terminal("init", cwd=path, env={**NOT_CI, "CI": "true"}) as terminal:
        assert terminal.exit_code() == 0
        assert "Enter accepts" not in terminal.output
    silent = (path / "perftrail.toml").read_text("utf-8")
    (path / "perftrail.toml").unlink()
    with Terminal("init", cwd=path, env=NOT_CI) as terminal:
        terminal.read_until("Enter accepts")
        terminal.type("\r\r\r")
        assert terminal.exit_code() == 0
    asked = (path / "perftrail.toml").read_text("utf-8")
    of_load = ("# cpu:", "# wall:", "metric =")
    assert [line for line in asked.splitlines() if not line.startswith(of_load)] == [
        line for line in silent.splitlines() if not line.startswith(of_load)
    ]


def test_the_first_run_on_a_machine_reports_it_once_on_a_terminal(tmp_path: Path) -> None:
    shown = []
    for _ in range(2):
        env = {**NOT_CI, "XDG_CACHE_HOME": str(tmp_path)}
        with Terminal("measure", "--runs=1", "--warmup=0", "true", env=env) as terminal:
            assert terminal.exit_code() == 0
            shown.append("First run on this machine: " in terminal.output)
            assert shown[-1] == ("perftrail doctor" in terminal.output)
    assert shown == [True, False]


class FakeTerminal(io.StringIO):
    """Text on a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_first_run_for_programs_in_ci_or_without_a_terminal_leaves_the_report_to_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def printed(stream: io.StringIO, *, as_json: bool = False, ci: str = "", quiet: bool = False) -> str:
        with monkeypatch.context() as patch, click.Context(cli) as context:
            patch.setattr(sys, "stderr", stream)
            patch.setattr(settings, "quiet", quiet)
            patch.setenv("CI", ci)
            context.params["as_json"] = as_json
            print_at_first_run()
        return stream.getvalue()

    assert printed(FakeTerminal(), as_json=True) == ""
    assert printed(FakeTerminal(), ci="true") == ""
    assert printed(FakeTerminal(), quiet=True) == ""
    assert printed(io.StringIO()) == ""
    assert "First run on this machine: " in printed(FakeTerminal())
    assert printed(FakeTerminal()) == ""


@pytest.mark.parametrize(
    ("start", "next_command"), [("path", f"{PROGRAM} check"), ("name", "perftrail check")]
)
def test_the_next_command_starts_the_perftrail_that_printed_it(
    start: str, next_command: str, tmp_path: Path
) -> None:
    path = f"{PROGRAM.parent}:{os.environ['PATH']}" if start == "name" else os.defpath
    environment = {**os.environ, "PATH": path}
    words = ["perftrail" if start == "name" else str(PROGRAM), "init"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, executable=PROGRAM
    )
    assert done.stdout.splitlines()[-1].endswith(f"then {next_command}")
    (tmp_path / "perftrail.toml").write_text("[study]\n")
    wrong = subprocess.run(
        [*words, "--last"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert wrong.stderr.endswith(f"{next_command.removesuffix('check')}compare HEAD~1 HEAD -- ./bench\n")
