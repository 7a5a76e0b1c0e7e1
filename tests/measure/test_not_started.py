"""Errors of a program that does not start name it and the nearest files of the build, or its missing input."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from perftrail.measure.failed_invocation import not_started
from perftrail.model.process import Command, NotStarted


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for name, mode in (("prog", 0o755), ("bench", 0o755), ("notes.txt", 0o644)):
        (tmp_path / name).write_text("#!/nowhere/interpreter\n")
        (tmp_path / name).chmod(mode)
    return tmp_path


def message_of(
    build: Path, program: str, *, stage: str = "exec", number: int = errno.ENOENT, stdin: str = ""
) -> str:
    command = Command(arguments=(program,), environment={}, directory="/", stdin=stdin or None)
    return not_started(NotStarted(errno=number, message="", stage=stage), command, build=str(build))


def test_a_missing_program_is_named_with_the_nearest_of_the_build(build: Path) -> None:
    assert message_of(build, f"{build}/prgo") == (
        "cannot start {build}/prgo: no such file; did you mean {build}/prog?"
    )
    assert message_of(build, f"{build}/elsewhere") == (
        "cannot start {build}/elsewhere: no such file; the build has: {build}/bench, {build}/prog"
    )
    assert message_of(build, "./prog") == "cannot start ./prog: no such file; did you mean {build}/prog?"
    assert message_of(build, "bench") == (
        "cannot start bench: no such command in the search path; did you mean {build}/bench?"
    )


def test_an_empty_build_says_so(tmp_path: Path) -> None:
    assert message_of(tmp_path, f"{tmp_path}/prog") == (
        "cannot start {build}/prog: no such file; the build has no programs"
    )


def test_a_program_whose_interpreter_is_missing_is_no_missing_program(build: Path) -> None:
    assert message_of(build, f"{build}/prog").startswith(
        "cannot start {build}/prog: the interpreter in its first line"
    )
    assert message_of(build, f"{build}/notes.txt", number=errno.EACCES) == (
        "cannot start {build}/notes.txt: permission denied"
    )


def test_a_missing_input_file_is_named(build: Path) -> None:
    assert message_of(build, f"{build}/prog", stage="stdin", stdin="/data/input") == (
        "cannot read standard input from /data/input: no such file"
    )


def test_a_missing_directory_of_the_command_is_named(build: Path) -> None:
    command = Command(arguments=("./prog",), environment={}, directory=f"{build}/nowhere")
    ended = NotStarted(errno=errno.ENOENT, message="", stage="chdir")
    assert not_started(ended, command, build=str(build)) == (
        "cannot start ./prog in {build}/nowhere: chdir: no such directory"
    )
