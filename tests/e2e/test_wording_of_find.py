"""One stored search in every output: the same sentence, number and interval."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perftrail.present.dashboard.snapshot import take_snapshot
from tests.e2e.printing import mean_ratio, perftrail, program, write_study
from tests.e2e.test_find_inside import commit_line, commit_merge
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")


class Searched(NamedTuple):
    """A study, the first line of its search, the merge and the revision inside it that the search must find."""

    study: Path
    sentence: str
    merge: str
    culprit: str


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """A searched study whose culprit is inside a merge, and has a hostile message."""
    root = tmp_path_factory.mktemp("wording")
    repository = Repository(root / "repository")
    trunk = commit_line(repository, [100] * 4, branch="main")
    side = commit_line(repository, [100] * 2, branch="side", onto=trunk[1])
    culprit = repository.commit(
        program(140, name="culprit"), subject="Go <b>slow</b> & `steady`", parents=[side[-1]], branch="side"
    )
    merge = commit_merge(repository, 140, trunk[-1], culprit)
    commit_line(repository, [140] * 2, branch="main", onto=merge)
    study = write_study(root / "study", repository)
    return Searched(study, perftrail("find", study).stdout.splitlines()[0], merge, culprit)


def as_in_terminal(text: str) -> str:
    """Return a sentence without its first capital and its full stop, as the terminal prints it."""
    return text[:1].lower() + text[1:].removesuffix(".")


def test_every_output_has_the_sentence_of_the_terminal(searched: Searched, tmp_path: Path) -> None:
    study, sentence, merge, culprit = searched
    assert re.fullmatch(
        rf"found: {culprit[:10]} “Go <b>slow</b> & `steady`”, which {merge[:10]} merged, changed cost: "
        r"(39|40|41) % more \(worse; × 1\.\d+, 95 % interval 1\.\d+ to 1\.\d+\), probability [0-9a-z. ]+ %",
        sentence,
    )
    assert perftrail("show", study, "--search").stdout.splitlines().count(sentence) == 1
    page = take_snapshot(str(study), store=None).page
    assert page is not None
    assert as_in_terminal(page.verdict.sentence) == sentence
    printed: dict[str, Any] = json.loads(perftrail("report", study, "-o", tmp_path / "html", "--json").stdout)
    assert as_in_terminal(printed["verdict"]) == sentence
    text = html.unescape(re.sub("<[a-z/][^>]*>", "", (tmp_path / "html" / "index.html").read_text()))
    assert sentence.partition(": ")[2] in text.replace("\N{NO-BREAK SPACE}", " ")
    markdown = perftrail("report", study, "--format", "markdown").stdout
    assert "which" in markdown
    assert sentence.partition("changed cost: ")[2] in html.unescape(markdown).replace("\\", "")
    [interval] = re.findall(r"× [0-9.]+, 95 % interval [0-9.]+ to [0-9.]+", sentence)
    for text in (perftrail("show", study).stdout, markdown):
        assert set(re.findall(r"× [0-9.]+, 95 % interval [0-9.]+ to [0-9.]+", " ".join(text.split()))) == {
            interval
        }


def test_the_number_is_the_probability_of_everything_that_is_named(searched: Searched) -> None:
    answer: dict[str, Any] = json.loads(perftrail("find", searched.study, "--json").stdout)
    [change] = answer["changes"]
    assert change["revisions"] == [searched.merge]
    inside = change["inside"]
    assert (inside["origin"], inside["revisions"], inside["inside"]) == ("branch", [searched.culprit], None)
    assert inside["confidence"] >= 0.99
    # A 95 % interval misses in 5 % of cases, but only narrowly.
    assert inside["effect"]["low"] / 1.01 <= mean_ratio(100, 140) <= inside["effect"]["high"] * 1.01
    joint = change["confidence"] * inside["confidence"]
    page = take_snapshot(str(searched.study), store=None).page
    assert page is not None
    [certainty] = [fact.text for fact in page.verdict.facts if fact.label == "Certainty"]
    percent = float(certainty.split(" %")[0].removeprefix("more than "))
    assert percent <= joint * 100 + 0.1
    assert f"probability {certainty.partition(' that')[0]}" in page.verdict.sentence
