"""Help of every command: own and common options apart, two examples that parse, documentation that exists."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perftrail.cli.help import EXAMPLES, PAGES
from perftrail.cli.main import COMMANDS, cli
from perftrail.model.wording import DOCUMENTATION, page_address
from perftrail.present.console import Watcher, errors, output
from perftrail.present.output_settings import Settings, settings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def restored() -> object:
    """Restore the settings that a command line changes for its process."""
    before = (settings.color, settings.quiet, settings.verbose)
    yield
    settings.color, settings.quiet, settings.verbose = before


def found(name: str) -> click.Command:
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_common_options_two_examples_and_the_documentation(name: str) -> None:
    done = CliRunner().invoke(cli, [name, "--help"], prog_name="perftrail")
    text = done.output
    assert (done.exit_code, text.startswith(f"Usage: perftrail {name}")) == (0, True), text
    if name != "store":
        assert "\nCommon options:\n" in text
        assert "--color [auto|always|never]" in text.partition("\nCommon options:\n")[2]
    assert text.count("\n  perftrail ") + text.count("\n  sudo perftrail ") >= 2
    assert text.rstrip().endswith(f"Documentation: {page_address(PAGES[name])}")
    assert (DOCS / PAGES[name]).is_file()


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, every in EXAMPLES.items() for line, _ in every]
)
def test_every_example_is_a_valid_command_line(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.json").touch()
    (tmp_path / "criterion").mkdir()
    words = shlex.split(line.partition("perftrail ")[2])
    assert words[0] == name
    command, rest = found(name), words[1:]
    if isinstance(command, click.Group):
        inner = command.get_command(click.Context(command), rest[0])
        assert inner is not None
        command, rest = inner, rest[1:]
    command.make_context(name, list(rest))


def test_one_meaning_of_o_in_all_commands() -> None:
    of = {name: [param.name for param in found(name).params if "-o" in param.opts] for name in COMMANDS}
    with_output = {"init", "compare", "publish", "report", "backport", "export", "import"}
    assert {name: each for name, each in of.items() if each} == {name: ["output"] for name in with_output}


def test_colours_follow_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for color, has in (("always", True), ("never", False), ("auto", False)):
        settings.color = color
        with errors().capture() as captured:
            pass
        console = output()
        with console.capture() as captured:
            console.print("text", style="red")
        assert ("\x1b[" in captured.get()) is has, color


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (Settings(), "progress\nwarning\n"),
        (Settings(quiet=True), "warning\n"),
        (Settings(verbose=True), "progress\nwarning\nmaking r1\n"),
    ],
)
def test_quiet_and_verbose_select_the_printed_progress(
    chosen: Settings, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.quiet, settings.verbose = chosen.quiet, chosen.verbose
    with Watcher() as watcher:
        watcher._print_now("progress", style="dim")
        watcher._print_now("warning", style="yellow")
        watcher._show_status("making r1")
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("name", ["run", "find", "compare", "check", "watch", "backport", "explain", "build"])
def test_commands_with_progress_can_be_quiet_or_verbose(name: str) -> None:
    options = {opt for param in found(name).params for opt in param.opts}
    assert {"-q", "--quiet", "-v", "--verbose"} <= options


def test_the_old_name_of_the_maximum_of_pairs_leads_to_the_new_one() -> None:
    result = CliRunner().invoke(found("compare"), ["HEAD~1", "HEAD", "--max-runs", "9"])
    assert result.exit_code == 2
    assert "--max-runs" in result.output
    assert "--max-pairs" in result.output


def test_git_perftrail_is_perftrail() -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["git", "perftrail", "compare", "-h"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("Usage: perftrail compare "), done.stderr


def test_the_address_of_the_documentation_is_that_of_the_project() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Documentation"] == f"{DOCUMENTATION}/"
