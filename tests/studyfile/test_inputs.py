"""Files that commands read: those of the study must exist, and missing ones are reported before the first build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.model.wording import quoted
from tests.cli.calling import called
from tests.studyfile.studies import complaints, read

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[source]
kind = "directory"
location = "repository"

[build]
steps = [{steps}]

[benchmark.it]
parameters = {{ size = [5, 7] }}
{lines}
"""
REMEDY = "create it first; files that builds create belong below {build} or {out}"


def study(*lines: str, steps: str = "") -> str:
    return STUDY.format(lines="\n".join(lines), steps=steps)


def test_every_missing_file_is_reported_with_its_line(tmp_path: Path) -> None:
    reported = complaints(
        tmp_path, study('command = "sort {study}/words {size}"', 'stdin = "{study}/{size}.txt"')
    )
    assert reported == [
        f'perftrail.toml:10: benchmark.it.command: no such file: "{{study}}/words"; {REMEDY}',
        f'perftrail.toml:11: benchmark.it.stdin: no such file: "{{study}}/5.txt" and "{{study}}/7.txt"; {REMEDY}',
    ]


def test_a_file_that_is_almost_there_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "words.txt").touch()
    (complaint,) = complaints(tmp_path, study('command = "cat {size}"', 'stdin = "{study}/in/wrods.txt"'))
    assert complaint.endswith('; did you mean "{study}/in/words.txt"?')


def test_files_that_exist_are_no_mistake(tmp_path: Path) -> None:
    for name in ("words", "5.txt", "7.txt"):
        (tmp_path / name).touch()
    assert not complaints(tmp_path, study('command = "sort {study}/words"', 'stdin = "{study}/{size}.txt"'))


def test_a_relative_standard_input_is_one_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "5.txt").touch()
    (tmp_path / "other_machines").mkdir()
    monkeypatch.chdir(tmp_path / "other_machines")
    found = read(tmp_path, study('command = "cat {size}"', 'stdin = "5.txt"'))
    assert found.benchmarks["it"].stdin == "{study}/5.txt"
    (complaint,) = complaints(tmp_path, study('command = "cat"', 'stdin = "{size}.txt"'))
    assert 'no such file: "{study}/7.txt"' in complaint


@pytest.mark.parametrize("path", ["{build}/words", "{out}/words", "/dev/null"])
def test_a_standard_input_elsewhere_stays_as_it_is(tmp_path: Path, path: str) -> None:
    found = read(tmp_path, study('command = "cat {size}"', f'stdin = "{path}"'))
    assert found.benchmarks["it"].stdin == path


def test_a_standard_input_in_the_home_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "input.txt").touch()
    found = read(tmp_path, study('command = "true"', 'stdin = "~/input.txt"'))
    assert found.benchmarks["it"].stdin == str(tmp_path / "input.txt")
    assert complaints(tmp_path, study('command = "true"', 'stdin = "~/output.txt"')) == [
        f"perftrail.toml:11: benchmark.it.stdin: no such file: {quoted(f'{tmp_path}/output.txt')}; {REMEDY}".replace(
            f"{tmp_path}/", ""
        )
    ]


def test_a_home_directory_that_no_shell_expands_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert complaints(tmp_path, study('command = "wc ~/input.txt"')) == [
        'perftrail.toml:10: benchmark.it.command: only a shell expands "~/input.txt"; write /home/ann/input.txt'
    ]
    assert not complaints(tmp_path, study('command = "wc ~/input.txt"', "shell = true"))


def test_a_standard_input_is_a_file(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study('command = "cat {size}"', 'stdin = "repository"'))
    assert complaint == (
        'perftrail.toml:11: benchmark.it.stdin: "{study}/repository" is a directory; name a file in it'
    )


def test_an_absolute_standard_input_must_exist_too(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study('command = "cat {size}"', f'stdin = "{tmp_path}/none"'))
    assert "benchmark.it.stdin: no such file:" in complaint


@pytest.mark.parametrize(
    "command",
    [
        "sort {build}/words {out}/words {size}",  # made by the build
        "sort -o {study}/sorted /dev/null",  # written
        "sort --output-file {study}/sorted /dev/null",
        "sort --files={study}/a,{study}/b",  # not plainly one path
        "sort {study}/*.txt",
        "sort {study}/made {study}/data/words",  # the steps below name them
    ],
)
def test_what_may_come_into_being_later_is_no_mistake(tmp_path: Path, command: str) -> None:
    steps = "'touch {study}/made', 'cd {study}/data; make words'"
    assert not complaints(tmp_path, study(f'command = "{command}"', steps=steps))


def test_of_a_shell_line_only_what_it_reads_must_exist(tmp_path: Path) -> None:
    shell = ("command = 'test -f {study}/a || sort > {study}/b < {study}/{size}'", "shell = true")
    (complaint,) = complaints(tmp_path, study(*shell))
    assert complaint.endswith(f'command: no such file: "{{study}}/5" and "{{study}}/7"; {REMEDY}')


def test_a_file_that_a_variant_s_part_names_must_exist(tmp_path: Path) -> None:
    (tmp_path / "first").touch()
    variants = (
        '[variants.one]\nrun.parts = { input = "{study}/first" }',
        '[variants.two]\nrun.parts = { input = "{study}/other" }',
    )
    (complaint,) = complaints(tmp_path, study('command = "sort {input}"', *variants))
    assert 'no such file: "{study}/other"' in complaint


def test_a_point_that_is_left_out_needs_no_file(tmp_path: Path) -> None:
    (tmp_path / "5.txt").touch()
    lines = ('command = "cat"', 'stdin = "{size}.txt"', "exclude = [{ size = 7 }]")
    assert not complaints(tmp_path, study(*lines))


def test_a_misspelt_placeholder_is_reported_alone(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, study('command = "cat"', 'stdin = "{study}/{sise}.txt"'))
    assert "unknown placeholder" in complaint


@pytest.mark.parametrize("written", ["{build/program", "{build/program {size}", "{build}/program {size"])
def test_a_brace_that_is_not_closed_is_reported(tmp_path: Path, written: str) -> None:
    (complaint,) = complaints(tmp_path, study(f'command = "{written}"'))
    name = "{size" if written.startswith("{build}") else "{build"
    assert complaint.endswith(f'command: the brace of "{name}" is not closed; write {name}}}')


@pytest.mark.parametrize("command", ["check", "run", "find", "compare"])
def test_no_command_builds_before_a_missing_file_is_reported(tmp_path: Path, command: str) -> None:
    text = study('command = "cat {size}"', 'stdin = "none"', steps="'touch {study}/built'")
    (complaint,) = complaints(tmp_path, text)
    words = ["a", "b"] if command == "compare" else []
    ended = called(command, *words, tmp_path)
    assert ended.returncode == 2
    assert complaint.partition(": ")[2] in ended.stderr
    assert not (tmp_path / "built").exists()
    assert not (tmp_path / ".perftrail").exists()
