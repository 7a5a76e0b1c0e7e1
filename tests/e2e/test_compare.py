"""The gate end to end: a real history, real builds, every format, hostile names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail_here
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

HOSTILE = "x\x1b[31m @all ::error::no <img src=x> `tick` | ##[add-mask]x #1 $(touch pwned) \u202e"

STUDY = """\
[study]
title = "Is it slower? <script>alert(1)</script> ::error::x"

[source]
kind = "git"
location = "{repository}"

[benchmark.work]
command = "sh {{build}}/work {{size}}"
parameters = {{ size = [1, 2], words = ["a|b `c` <i>@all::error::d"] }}
metrics.steps = {{ pattern = 'steps ([0-9]+)', unit = "n" }}
metrics.rate = {{ pattern = 'rate ([0-9]+)', unit = "n", better = "higher" }}

[benchmark.still]
command = "sh {{build}}/still"
metrics.steps = {{ pattern = 'steps ([0-9]+)', unit = "n" }}

[measure]
invocations = "3..30"
warmups = 0
"""


def files(steps: int, rate: int = 100, **others: str) -> dict[str, str]:
    return {
        "work": f"echo steps $(({steps} * $1))\necho rate {rate}\n",
        "still": f"# {steps} {rate}\necho steps 7\n",
        **others,
    }


class History:
    """A base, an equal head, a head that is 10 % worse in steps and better in rate, and a broken head."""

    def __init__(self, path: Path) -> None:
        self.repository = Repository(path)
        self.base = self.repository.commit(files(100), subject="begin")
        self.equal = self.repository.commit(files(100), subject="say more")
        self.slower = self.repository.commit(files(110, 120), subject=HOSTILE)
        self.broken = self.repository.commit(files(110, 120, work="exit 3\n"), subject="break it")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history") / "repository")


@pytest.fixture(scope="module")
def study(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("study") / "perftrail.toml"
    file.write_text(STUDY.format(repository=history.repository.path))
    return file


def compare(
    *words: str, expect: int, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    done = start("compare", *words, cwd=cwd, env={**os.environ, **(env or {})})
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def answer(history: History, study: Path) -> dict[str, Any]:
    done = compare(history.base, history.slower, str(study), "--fail-on", "slower", "--json", expect=3)
    return dict(json.loads(done.stdout))


def test_the_gate_fails_and_names_the_metric(answer: dict[str, Any]) -> None:
    verdicts = {each["name"]: each["verdict"] for each in answer["comparisons"]}
    assert verdicts == {
        "work.steps[size=1]": "slower",
        "work.steps[size=2]": "slower",
        "work.rate[size=1]": "faster",
        "work.rate[size=2]": "faster",
        "still.steps": "same",
    }
    assert answer["tripped"]
    effects = [each["effect"]["value"] for each in answer["comparisons"]]
    assert effects == pytest.approx([1.1, 1.1, 1.0, 1.2, 1.2])


def test_a_repeated_comparison_starts_nothing_and_has_the_same_answer(
    answer: dict[str, Any], history: History, study: Path
) -> None:
    done = compare(history.base, history.slower, str(study), "--fail-on", "slower", "--json", expect=3)
    again = json.loads(done.stdout)
    assert again["fresh"] == 0
    assert again["comparisons"] == answer["comparisons"]


def test_the_answer_is_printed_first_and_the_next_command_last(
    answer: dict[str, Any], history: History, study: Path
) -> None:
    done = compare(history.base, history.slower, str(study), "--fail-on", "slower", expect=3)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "gate failed: 2 of 5 metrics worse, 2 better: work.steps[size=1] 10 % more in every pair"
    )
    assert lines[-1].startswith("Next: perftrail find ")
    assert f"--range {history.base[:10]}..{history.slower[:10]}" in lines[-1]
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_every_format_is_written_and_hostile_text_is_escaped(
    answer: dict[str, Any], history: History, study: Path, tmp_path: Path
) -> None:
    forms = ("github", "gitlab", "junit", "metrics", "plain", "svg", "png")
    also = [word for form in forms for word in ("--also", f"{form}={tmp_path / form}")]
    compare(history.base, history.slower, str(study), *also, expect=0)
    comment = (tmp_path / "github").read_text()
    assert (tmp_path / "gitlab").read_text() == comment
    assert comment.startswith("<!-- perftrail compare ")
    assert not re.search(r"(?<!\\)<(script|img|i>)", comment)
    assert not re.search(r"@all|\n::error|##\[", comment)
    assert "│" in comment
    assert "<details><summary>1 unchanged metric</summary>" in comment
    assert "perftrail find" in comment
    root = ET.fromstring((tmp_path / "junit").read_text())
    assert [suite.get("name") for suite in root] == ["work", "still"]
    metrics = (tmp_path / "metrics").read_text()
    assert metrics.endswith("# EOF\n")
    assert re.search(
        r'^perftrail_worse\{benchmark="still",metric="steps",unit="n",variant="plain"\} 0.0$', metrics, re.M
    )
    assert (tmp_path / "plain").read_text().splitlines()[0].startswith("2 of 5 metrics worse")
    assert (tmp_path / "svg").read_text().startswith("<svg")
    assert (tmp_path / "png").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.rglob("pwned"))


def executed(lines: Sequence[str]) -> list[str]:
    """Return the lines that GitHub's runner executes: those outside the blocks that a secret token ends."""
    found, token = [], ""
    for line in lines:
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.rpartition(":")[2]
        else:
            found.append(line)
    assert not token, "the runner would execute nothing of the following steps"
    return found


def test_only_a_github_job_gets_a_summary_and_annotations(
    answer: dict[str, Any], history: History, study: Path, tmp_path: Path
) -> None:
    summary, comment = tmp_path / "summary", tmp_path / "comment.md"
    done = compare(
        history.base,
        history.broken,
        str(study),
        *("--fail-on", "slower", "--format", "github", "--output", str(comment)),
        expect=1,
        env={
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(study.parent.parent),
        },
    )
    assert summary.read_text().strip() == comment.read_text().strip()
    lines = done.stderr.splitlines()
    commands = executed(lines)
    assert commands
    relative = study.relative_to(study.parent.parent)
    assert all(line.startswith(f"::error file={relative},line=1,title=") for line in commands)
    assert not any("::" in line.removeprefix("::").partition("::")[0] for line in commands)


def test_equal_builds_are_the_same_without_an_invocation(history: History, study: Path) -> None:
    words = ("--fail-on", "any", "--confidence", "0.95", "--json")
    report = json.loads(compare(history.base, history.equal, str(study), *words, expect=0).stdout)
    assert report["fresh"] == 0
    assert report["repeat"].endswith(" --confidence 0.95")
    assert all(each["one_build"] for each in report["comparisons"])


def test_uncommitted_changes_are_not_measured_and_are_reported(history: History, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", history.repository.path, checkout], check=True)
    subprocess.run(["git", "-C", checkout, "reset", "-q", "--hard", history.slower], check=True)
    file = tmp_path / "perftrail.toml"
    file.write_text(STUDY.format(repository=checkout))
    words = ("HEAD~1", "HEAD", str(file), "--benchmark", "still", "--json")
    assert json.loads(compare(*words, expect=0).stdout)["notes"] == []
    (checkout / "still").write_text("echo steps 1000\n")
    report = json.loads(compare(*words, expect=0).stdout)
    assert [note.partition(":")[0] for note in report["notes"]] == [
        "the working tree has uncommitted changes, which are not measured"
    ]
    assert report["verdict"] == "same"


def test_uncommitted_changes_are_compared_and_their_check_out_stays_as_it_is(
    history: History, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", history.repository.path, checkout], check=True)
    subprocess.run(["git", "-C", checkout, "reset", "-q", "--hard", history.slower], check=True)
    file = tmp_path / "perftrail.toml"
    file.write_text(STUDY.format(repository=checkout))
    words = (str(file), "--benchmark", "still", "--json")
    (checkout / "still").write_text("echo steps 1000\n")

    def status() -> str:
        command = ["git", "-C", str(checkout), "status", "--porcelain"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    before = status()
    report = json.loads(compare("HEAD", ".", *words, expect=0).stdout)
    assert report["head"]["label"] == "working tree (1 file changed)"
    assert report["head"]["summary"] == "still"
    assert report["verdict"] == "slower"
    assert status() == before
    repeated = json.loads(compare("HEAD", ".", *words, expect=0).stdout)
    assert repeated["fresh"] == 0
    nothing = json.loads(compare("HEAD", "--staged", *words, expect=0).stdout)
    assert nothing["notes"] == [
        "nothing is staged: base and head are the same revision; "
        'to compare the changes of the working tree, write "." instead of --staged'
    ]
    subprocess.run(["git", "-C", checkout, "add", "still"], check=True)
    staged = json.loads(compare("HEAD", "--staged", *words, expect=0).stdout)
    assert staged["head"]["label"] == "staged (1 file changed)"
    assert staged["fresh"] == 0, "the same content was measured already"
    both = json.loads(compare(".", "--staged", *words, expect=0).stdout)
    assert both["notes"] == [
        "the working tree contains what is staged, and nothing else: base and head are the same revision"
    ]
    subprocess.run(["git", "-C", checkout, "reset", "-q", "--hard"], check=True)
    clean = json.loads(compare("HEAD", ".", *words, expect=0).stdout)
    assert clean["notes"] == ["the working tree has no changes: base and head are the same revision"]
    unstaged = json.loads(compare("HEAD", "--staged", *words, expect=0).stdout)
    assert unstaged["notes"] == ["nothing is staged: base and head are the same revision"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such", "HEAD"), "no revision"),
        (("HEAD", "HEAD~1", "--metric", "speed"), "--metric speed"),
        (("HEAD", "HEAD~1", "--also", "pdf=x"), "--also pdf=x"),
        (("HEAD", "HEAD~1", "--threshold", "5"), "--threshold"),
        (("HEAD", "HEAD~1", "--confidence", "1"), "--confidence"),
        (("HEAD", "HEAD~1", "--budget", "soon"), '--budget "soon": is not a duration'),
    ],
)
def test_wrong_usage_exits_2_with_the_reason(study: Path, words: tuple[str, ...], reason: str) -> None:
    done = perftrail_here("compare", *words[:2], study, *words[2:], expect=2)
    assert reason in done.stderr


def test_what_differs_besides_the_program_is_named(history: History, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    base = repository.commit({**files(100), "app/requirements.txt": "simplejson==3.0\n"})
    head = repository.commit({**files(100, 101), "app/requirements.txt": "simplejson==3.1\n"})
    study = tmp_path / "perftrail.toml"
    recipe = ": '<new>' `true`"
    era = f'\n[build]\nsteps = ["true old"]\n[[build.when]]\nrange = "{head}.."\nsteps = ["{recipe}"]\n'
    study.write_text(STUDY.format(repository=repository.path) + era)
    answer = json.loads(compare(base, head, str(study), "--json", expect=0).stdout)
    assert answer["differences"] == [
        {"name": "recipe", "base": "true old", "head": recipe},
        {"name": "app/requirements.txt", "base": "", "head": ""},
    ]
    assert any("GNU ld" in tool or tool.startswith("ld") for tool in answer["tools"])
    comment = compare(base, head, str(study), "--format", "github", expect=0).stdout
    assert r"its recipe does: base \`true old\`, head \`: '\<new\>' \`true\`\`" in comment
    assert "app/requirements.txt differs" in comment.replace("\\", "")
