"""One stored comparison in every output: the same sentence, number and interval."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET  # only our own output is read
from pathlib import Path
from typing import Any

import pytest

from perftrail.model.subject import Subject
from perftrail.present.dashboard.snapshot import take_snapshot
from perftrail.present.dashboard.subjects import compare_two
from tests.e2e.printing import perftrail, perftrail_here, program, write_study
from tests.json_checked import validate
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

EFFECT = r"[+-][\d.]+ % \[[+-][\d.]+, [+-][\d.]+\]"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two revisions; the second one costs 30 % more."""
    root = tmp_path_factory.mktemp("wording")
    repository = Repository(root / "repository")
    for cost in (100, 130):
        repository.commit(program(cost, name=f"cost {cost}"), subject=f"Cost <b>{cost}</b>")
    return write_study(root / "study", repository)


def visible(text: str) -> str:
    """Return the text of a page or of Markdown as a reader sees it."""
    shown = html.unescape(re.sub("<[a-z/!][^>]*>", "", text)).replace("\\", "")
    return shown.replace("\N{NO-BREAK SPACE}", " ")


def shown_comparisons(study: Path) -> list[dict[str, Any]]:
    """Return the stored comparisons that `show` prints for a program."""
    text = perftrail_here("show", study, "--comparisons", "--json").stdout
    validate("show --comparisons", text)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_every_output_has_the_sentence_and_the_numbers_of_compare(study: Path, tmp_path: Path) -> None:
    forms = {form: tmp_path / form for form in ("plain", "github", "gitlab", "junit", "json")}
    also = [word for form, file in forms.items() for word in ("--also", f"{form}={file}")]
    printed = perftrail("compare", "HEAD~1", "HEAD", study, *also).stdout.splitlines()
    sentence = printed[0]
    assert "1 of" in sentence
    [effect] = set(re.findall(EFFECT, sentence))
    assert sum(effect in line for line in printed[1:]) == 1
    for form in ("plain", "github", "gitlab", "junit"):
        text = visible(forms[form].read_text())
        assert sentence in text, form
        assert form == "junit" or text.count(effect) >= 2, form
    suites = ET.parse(forms["junit"]).getroot()
    assert {out.text for out in suites.iter("system-out")} == {sentence}
    stored: dict[str, Any] = json.loads(forms["json"].read_text())
    [row] = [each for each in stored["comparisons"] if each["verdict"] == "slower"]
    low, high = (float(number) for number in re.findall(r"[+-][\d.]+", effect)[1:])
    assert (row["effect"]["low"] - 1.0) * 100.0 == pytest.approx(low, abs=0.51)
    assert (row["effect"]["high"] - 1.0) * 100.0 == pytest.approx(high, abs=0.51)

    [known] = shown_comparisons(study)
    assert known["comparisons"] == stored["comparisons"]
    assert (known["verdict"], known["base"], known["head"]) == tuple(
        stored[name] for name in ("verdict", "base", "head")
    )
    assert known["repeat"].startswith(f"perftrail compare {stored['base']['id'][:10]} ")
    assert perftrail_here("show", study, "--comparisons").stdout.splitlines()[0] == sentence
    shown = perftrail_here("show", study).stdout
    assert f"compared with {stored['base']['id'][:10]}: {sentence}" in " ".join(shown.split())
    perftrail("report", study, "-o", tmp_path / "html")
    page = visible((tmp_path / "html" / "index.html").read_text())
    perftrail("report", study, "--format", "markdown", "-o", tmp_path / "markdown")
    markdown = visible(next((tmp_path / "markdown").glob("*.md")).read_text())
    for text in (page, markdown):
        assert sentence in text or f"{sentence[:1].upper()}{sentence[1:]}" in text
        assert text.count(effect) >= 2
        assert set(re.findall(EFFECT, text)) <= {
            found for line in printed for found in re.findall(EFFECT, line)
        }
    again: dict[str, Any] = json.loads(perftrail("report", study, "-o", tmp_path / "again", "--json").stdout)
    assert again["verdict"].removesuffix(".").casefold() == sentence.casefold()


def test_the_dashboard_has_the_same_sentence_and_interval(study: Path) -> None:
    text = perftrail("compare", "HEAD~1", "HEAD", study, "--json").stdout
    validate("compare", text)
    stored: dict[str, Any] = json.loads(text)
    sentence = perftrail("compare", "HEAD~1", "HEAD", study).stdout.splitlines()[0]
    snapshot = take_snapshot(str(study), store=None)
    assert snapshot.page is not None
    assert snapshot.page.verdict.sentence.removesuffix(".").casefold() == sentence.casefold()
    assert snapshot.report_data is not None
    old, new = (Subject(revision=each, variant="plain") for each in snapshot.report_data.revisions)
    compared = {
        each.metric: each.subject_comparison
        for each in compare_two(snapshot.report_data, snapshot.rows_of, old, new)
    }
    for row in stored["comparisons"]:
        if row["effect"] is None:
            continue
        [side_by_side] = [each for name, each in compared.items() if each and row["name"] in name]
        assert side_by_side.comparison.effect == row["effect"]["value"]
        assert (side_by_side.comparison.low, side_by_side.comparison.high) == (
            row["effect"]["low"],
            row["effect"]["high"],
        )
