"""Which files the texts of a study name."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.builds import named_files as named_files_module
from perftrail.builds.named_files import named_files, temporary_directories


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study's directory below another one with a file."""
    study = tmp_path / "study"
    for name in ("run.py", "data/n.txt", "data/5.txt", "my data.txt", "x", "y", "a,b", "../else where"):
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_text(name)
    return study


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{study}/run.py --data '{study}/data/{size}.txt'", ("data/5.txt", "run.py")),
        ("cat {study}/data/*.txt", ("data/5.txt", "data/n.txt")),
        ("A={study}/x:{study}/y prog", ("x", "y")),
        ("cat '{study}/my data.txt'", ("my data.txt",)),
        ("cat {study}/my\\ data.txt", ("my data.txt",)),
        ("{study}/my data.txt", ("my data.txt",)),
        ("sh -c 'cat \"{study}/my data.txt\" | wc'", ("my data.txt",)),
        ("cd {study} && cat data/n.txt | wc > y", ("data/n.txt",)),
        ("cd {study}/data && cat n.txt ../x", ("data", "data/n.txt", "x")),
        ("prog --file={study}/x -f{study}/y {study}/a,b", ("a,b", "x", "y")),
        ("wc < {study}/x > {study}/y", ("x",)),
        ("prog -o {study}/y --output={study}/y", ()),
        (
            "prog --benchmark_out={study}/x --json-output-file {study}/x --logfile={study}/x -out {study}/x",
            (),
        ),
        ("{study}/run.py --log {study}/x --benchmark_out={study}/y", ("run.py",)),
        ("sh -c 'prog --log={study}/x && cat {study}/y'", ("y",)),
        ("prog --layout {study}/x --timeout={study}/y", ("x", "y")),
        ("prog | tee {study}/x && prog | tee -a {study}/y && cat {study}/a,b", ("a,b",)),
        ("PATH={study}/data:{build}/bin:/usr/bin", ("data",)),
        ("prog {study}/{revision}.txt", ("my data.txt",)),
        ("prog {study}/missing {build}/x /missing", ("missing",)),
        ("awk '{ print $1' {study}/x", ("x",)),
        ("{build}/prog --fast {size}", ()),
    ],
)
def test_files_are_found_in_common_spellings(study: Path, text: str, found: tuple[str, ...]) -> None:
    assert named_files([text], {"size": 5}, below=study) == found


def test_absolute_paths_and_those_in_the_home_directory_are_found(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files_module, "temporary_directories", tuple)
    monkeypatch.setenv("HOME", str(study))
    outside = str(study.parent / "else where")
    assert named_files([outside], {}, below=study) == (outside,)
    assert named_files([f"cat '{outside}' {study}/x"], {}, below=study) == (outside, "x")
    assert named_files(["cat ~/x -f$HOME/y"], {}, below=study) == ("x",)
    assert named_files(["cat ~/x $HOME/y"], {}, below=study) == ("x", "y")


@pytest.mark.parametrize(
    "text",
    [
        "cmake -S {study} -B {out}",
        "{build}/prog --dir={study} --seed {revision}",
        "cd {study} && {build}/n.txt",
        "cd {study} && ./{revision}",
        "cd {study} && cat $DIR/{revision}",
    ],
)
def test_a_relative_word_that_begins_with_an_open_placeholder_names_nothing(study: Path, text: str) -> None:
    assert named_files([text], {}, below=study) == ()


def test_an_open_placeholder_after_a_literal_beginning_is_a_glob(study: Path) -> None:
    assert named_files(["cd {study} && cat data/{revision}.txt"], {}, below=study) == (
        "data/5.txt",
        "data/n.txt",
    )


def test_globs_read_the_tree_below_a_directory_only_in_the_study(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, bool]] = []

    def recorded(path: str, *, recursive: bool) -> list[str]:
        read.append((path, recursive))
        return []

    monkeypatch.setattr("glob.glob", recorded)
    texts = ["rsync --exclude=/**/.git {study}/x", "rg -g '/*/*.c' /{build}", "cat {study}/**/n /usr/**/n"]
    assert named_files(texts, {}, below=study) == ("**/n", "x")
    assert read == [(f"{study}/**/n", True), ("///usr/**/n", False)]


def test_temporary_files_outside_of_the_study_are_no_inputs(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files_module, "temporary_directories", lambda: (str(study.parent),))
    texts = [f"cat '{study.parent}/else where' {study}/x"]
    assert named_files(texts, {}, below=study) == ("x",)
    assert {"/tmp", "/var/tmp"} <= {*temporary_directories()}


def test_a_variable_may_name_the_directory_of_the_study(study: Path) -> None:
    assert named_files(["{study}", "cat $DIR/data/n.txt ${DIR}/x"], {}, below=study) == ("data/n.txt", "x")
