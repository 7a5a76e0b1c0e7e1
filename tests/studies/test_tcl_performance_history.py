"""The study of Tcl's history runs from its files: one history in two repositories, one answer, a correct back-port."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail
from tests.sources.fossil_repositories import needs_fossil

STUDY = Path(__file__).parents[2] / "studies" / "tcl-performance-history"
FILES = ("perftrail.toml", "git.toml", "whole.toml", "releases.toml", "backport.toml")
INNER = "Make the fewest digits that read back the default"
MERGE = "Merge numerics"
PATCH = Path("backport", "epoch-cache.patch")


def output(*words: str | Path, home: Path, read: bytes = b"") -> str:
    """Run a client without user settings, and return its output."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "USER": "reader"}
    return subprocess.run(words, input=read, env=environment, capture_output=True, check=True).stdout.decode()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study with a short history and short runs."""
    study = tmp_path_factory.mktemp("studies") / "history"
    shutil.copytree(STUDY, study, ignore=shutil.ignore_patterns(".perftrail", "history", "answers"))
    for name in FILES:
        text = (study / name).read_text()
        text = re.sub(r"numbers = \[\d+\]", "numbers = [4000]", text)
        text = re.sub(r'invocations = "8\.\.\d+"', "invocations = 2", text)
        (study / name).write_text(text)
    output(sys.executable, study / "write_history.py", "--length", "30", study / "history", home=study)
    return study


def test_three_files_ask_one_question() -> None:
    first, in_git, whole = (tomllib.loads((STUDY / name).read_text()) for name in FILES[:3])
    assert in_git.pop("source") == {**first["source"], "kind": "git", "location": "history/numtext.git"}
    assert first.pop("source") == {**whole.pop("source"), "touching": ["src/pool.c"]}
    assert first == in_git == whole


@needs_fossil
@pytest.mark.slow("builds")
def test_both_repositories_have_the_same_trees_and_parents(small: Path, tmp_path: Path) -> None:
    repository = small / "history" / "numtext.git"
    stream = output("fossil", "export", "--git", small / "history" / "numtext.fossil", home=tmp_path)
    copy = tmp_path / "copy.git"
    output("git", "init", "-q", "--bare", copy, home=tmp_path)
    output("git", "-C", copy, "fast-import", "--quiet", read=stream.encode(), home=tmp_path)
    logs = []
    for each in (repository, copy):
        lines = output("git", "-C", each, "log", "--all", "--format=%H %T %s|%P", home=tmp_path).splitlines()
        named = {line.split()[0]: line.split("|")[0].partition(" ")[2] for line in lines}
        logs.append(
            sorted(
                (named[line.split()[0]], [named[id_] for id_ in line.split("|")[1].split()]) for line in lines
            )
        )
    assert len(logs[0]) > 50
    assert logs[0] == logs[1]


@needs_fossil
@pytest.mark.slow("builds")
def test_the_merge_and_the_check_in_inside_it_are_found_in_both(small: Path, tmp_path: Path) -> None:
    """By the length of the texts, which changed in the same merge and does not depend on the machine's load."""
    answers = []
    for name in ("perftrail.toml", "git.toml"):
        reported = perftrail(
            "find", small / name, "--json", "--metric", "length[threads=1]", "--store", tmp_path / name
        )
        answer: dict[str, Any] = json.loads(reported.stdout)
        [change] = answer["changes"]
        assert answer["verdict"] == "found"
        assert change["effect"]["low"] > 1.2
        answers.append(
            [subject(small, name, id_) for found in (change, change["inside"]) for id_ in found["revisions"]]
        )
    assert answers == [[MERGE, INNER]] * 2


def subject(small: Path, name: str, id_: str) -> str:
    """Return the comment of a check-in."""
    history = small / "history"
    if name == "git.toml":
        return output(
            "git", "-C", history / "numtext.git", "log", "-1", "--format=%s", id_, home=small
        ).strip()
    ask = f"SELECT comment FROM event JOIN blob ON rid = objid WHERE uuid = '{id_}'"
    return output("fossil", "sql", "--readonly", "-R", history / "numtext.fossil", ask, home=small).strip(
        "'\n"
    )


@needs_fossil
@pytest.mark.slow("builds")
def test_every_thread_sees_what_was_written_and_none_waits(small: Path, tmp_path: Path) -> None:
    only = ["--only", "benchmark=sees", "--only", "readers=4"]
    ran = perftrail("run", small / "backport.toml", "--json", "--store", tmp_path, *only)
    data = json.loads(ran.stdout)
    assert (data["points"], data["failures"]) == (data["measured"], [])
    perftrail(
        "run", small / "backport.toml", "--store", tmp_path, "--only", "benchmark=mt", "--only", "threads=2"
    )
    shown = perftrail("show", small / "backport.toml", "--json", "--metric", "locks", "--store", tmp_path)
    locks = {row["variant"]: row["estimate"]["value"] for row in json.loads(shown.stdout) if row["estimate"]}
    assert locks == {"released": 4000, "backported": 2}


@needs_fossil
@pytest.mark.slow("builds")
@pytest.mark.parametrize(
    ("right", "wrong", "variant"),
    [("+static _Atomic ", "+static ", "backported-sanitized"), ("+    epoch++;", "+    ;", "backported")],
    ids=["without an atomic epoch", "without a new epoch"],
)
def test_a_wrong_back_port_is_reported(
    small: Path, tmp_path: Path, right: str, wrong: str, variant: str
) -> None:
    study = tmp_path / "study"
    shutil.copytree(small, study, ignore=shutil.ignore_patterns(".perftrail"))
    patch = (study / PATCH).read_text()
    assert patch.count(right) == 1
    (study / PATCH).write_text(patch.replace(right, wrong))
    only = ["--only", "benchmark=sees", "--only", f"variant={variant}"]
    ran = perftrail("run", study / "backport.toml", "--json", *only, expect=1)
    assert [failure["stage"] for failure in json.loads(ran.stdout)["failures"]] == ["crash"]
