"""The pages' commands: each block runs or says why not, and every option and key exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import click
import jsonschema
import pytest

from perftrail import studyfile
from perftrail.cli.main import cli
from perftrail.errors import StudyError
from tests.copied import copy_study
from tests.docs.pages import DOCS, Block, blocks, make_history, perftrail_lines
from tests.starting import REPOSITORY, start

if TYPE_CHECKING:
    from pathlib import Path

GUIDES = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [
    page
    for page in (
        REPOSITORY / "README.md",
        *sorted(DOCS.glob("*.md")),
        *GUIDES,
        *sorted((DOCS / "explanation").glob("*.md")),
    )
    if not page.is_symlink()
]
RUN = [DOCS / "index.md", *GUIDES]
COMMAND = re.compile(r"^(?:perftrail|git|pip|sudo|curl|docker|make) ", re.MULTILINE)


def names(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", RUN, ids=names)
def test_each_block_of_commands_runs_or_says_why_not(page: Path) -> None:
    wrong: list[str] = []
    for block in blocks(page):
        reason = block.comment.removeprefix("not run: ")
        if block.kind in {"console", "sh"} and block.comment != "run" and reason in {"", block.comment}:
            wrong.append(f"{block.place}: write <!-- run --> or <!-- not run: REASON --> before the block")
        if block.kind == "" and COMMAND.search(block.text):
            wrong.append(f"{block.place}: a block of commands begins with ```console")
        wrong += [
            f"{block.place}: no file {file}"
            for file in re.findall(r"tests/\S+\.py", reason)
            if not (REPOSITORY / file).is_file()
        ]
    assert wrong == []


def problem(words: list[str]) -> str | None:
    """Return what the command line does not accept of words: a command, an option, or its value of a choice."""
    command: click.Command | None = cli
    name = "perftrail"
    context = None
    while True:
        assert command is not None
        context = click.Context(command, info_name=name, parent=context)
        try:
            values, rest, _ = command.make_parser(context).parse_args(list(words))
        except click.BadOptionUsage:
            return None  # a sentence names an option without its value
        except click.UsageError as error:
            return error.format_message()
        for param in command.params:
            if isinstance(param.type, click.Choice) and isinstance(values.get(str(param.name)), str):
                value = values[str(param.name)]
                if value not in param.type.choices and not value.isupper():
                    return f"{param.name} is not {value}"
        if not isinstance(command, click.Group) or not rest:
            return None
        name, words = rest[0], rest[1:]
        if name not in command.list_commands(context):
            return None if name.isupper() else f"no command {name}"
        command = command.get_command(context, name)


def test_every_option_in_the_pages_exists() -> None:
    found = [(place, words) for page in PAGES for place, words in perftrail_lines(page)]
    assert len(found) > 200
    told = [(place, words, problem(words)) for place, words in found]
    assert [each for each in told if each[2]] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["find", "--no-such-option", "--", "x", "--y"], "No such option"),
        (["store", "burn"], "no command burn"),
        (["export", "--format", "punched-cards"], "format_name is not punched-cards"),
    ],
)
def test_a_wrong_option_is_found(words: list[str], message: str) -> None:
    assert message in (problem(words) or "")


def optional(schema: Any) -> Any:
    """Return a JSON Schema of parts of files: no key is required."""
    if isinstance(schema, dict):
        return {
            key: optional(each) for key, each in schema.items() if key != "required" or isinstance(each, dict)
        }
    return [optional(each) for each in schema] if isinstance(schema, list) else schema


def test_every_part_of_a_study_has_keys_and_values_that_exist() -> None:
    validator = jsonschema.Draft202012Validator(optional(json.loads(json.dumps(studyfile.schema()))))
    parts = [block for page in PAGES for block in blocks(page) if block.kind == "toml"]
    assert len(parts) > 40
    wrong = [
        f"{part.place}: {error.json_path}: {error.message}"
        for part in parts
        for error in validator.iter_errors(tomllib.loads(part.text))
    ]
    assert wrong == []


MISSING = re.compile(r"does not exist|is not a directory|no such file")


def test_every_whole_study_is_valid_but_for_files_that_the_page_lacks(tmp_path: Path) -> None:
    wrong: list[str] = []
    whole = [
        block
        for page in PAGES
        for block in blocks(page)
        if block.kind == "toml" and {"source", "benchmark"} <= tomllib.loads(block.text).keys()
    ]
    assert len(whole) >= 4
    for block in whole:
        (tmp_path / "perftrail.toml").write_text(block.text, "utf-8")
        try:
            studyfile.load(str(tmp_path / "perftrail.toml"))
        except StudyError as error:
            wrong += [
                f"{block.place}: {line}" for line in str(error).splitlines() if not MISSING.search(line)
            ]
    assert wrong == []


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pages") / "history"
    make_history(directory)
    code, output = run("perftrail run", directory)
    assert code == 0, output
    return directory


def run(line: str, directory: Path) -> tuple[int, str]:
    """Run a command line; a plain line of perftrail needs no new Python."""
    environment = {
        **os.environ,
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",  # noqa: PTH120
        "HOME": str(directory.parent),
        "PAGER": "cat",
    }
    if line.startswith("perftrail ") and not re.search(r"[|<>&*$]", line):
        done = start(*shlex.split(line, comments=True)[1:], cwd=directory, env=environment)
    else:
        done = subprocess.run(
            ["bash", "-c", line], cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
    return done.returncode, done.stdout + done.stderr


MEASURING = {
    "index.md",
    "backport.md",
    "find.md",
    "from-hyperfine.md",
    "git.md",
    "measure.md",
    "old-revisions.md",
}
"""Pages with searches and comparisons, which may also wait until the machine is quiet."""


def running(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.comment == "run"]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long, pytest.mark.slow("waiting")])
        if page.name in MEASURING
        else page
        for page in RUN
        if running(page)
    ],
    ids=names,
)
def test_the_commands_of_a_page_run_in_their_order(page: Path, history: Path, tmp_path: Path) -> None:
    directory = tmp_path / "clone"
    copy_study(history, directory)
    done: set[str] = set()
    for block in running(page):
        for line in block.commands:
            if line in done:
                continue
            done.add(line)
            code, output = run(line, directory)
            assert code == 0, f"{block.place}: {line}\n{output}"
