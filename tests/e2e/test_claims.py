"""Claims are judged by samples, and answers that should be equal are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail, perftrail_here

pytestmark = pytest.mark.slow("starts")

COST = """\
test "$2" -le "$3" || exit 1
echo "cost $(($1 * ($2 + $2 * $2 / 100000)))"
echo "answer $(($2 + $4))"
"""

STUDY = """\
[study]
title = "What do they cost?"

[source]
kind = "directory"
location = "."

[variants.single]
rebuild = false
run.parts = { factor = "1", most = "1000", wrong = "0" }

[variants.double]
rebuild = false
run.parts = { factor = "2", most = "400", wrong = "0" }

[variants.broken]
directory = "broken"
build.steps = ["echo 'error: no compiler' >&2; exit 1"]
run.parts = { factor = "1", most = "1000", wrong = "0" }

[benchmark.work]
command = "sh {study}/cost.sh {factor} {size} {most} {wrong}"
parameters = { size = [100, 200, 400, 800, 1000] }
[benchmark.work.metrics]
cost = { pattern = 'cost ([0-9]+)' }
answer = { pattern = 'answer ([0-9]+)', same = true }

[measure]
invocations = 5
warmups = 0
quiet_threshold = 1000  # other load does not change the printed values

[claims.twice]
says = "double costs twice as much"
metric = "cost"
variant = "double"
against = "single"
ratio = "1.9..2.1"
at = { size = [100, 200, 400] }

[claims.cheaper]
says = "double is cheaper"
metric = "work.cost"
variant = "double"
against = "single"
ratio = "..1"

[claims.too-few]
says = "double costs twice as much at the smallest size"
metric = "cost"
variant = "double"
against = "single"
ratio = "1.9..2.1"
at = { size = [100] }

[claims.linear]
says = "single grows with the size"
metric = "cost"
variant = "single"
along = "size"
exponent = "0.9..1.1"

[claims.stops]
says = "double stops at 400"
metric = "cost"
variant = "double"
along = "size"
reaches = "..799"

[claims.goes-on]
says = "single stops at 1000"
metric = "cost"
variant = "single"
along = "size"
reaches = "..1000"

[claims.unbuilt]
says = "broken is slow"
metric = "cost"
variant = "broken"
against = "single"
ratio = "1.."

[claims.lost]
says = "the lost | library is slow"
cannot = "no copy exists"
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("claims")
    (root / "broken").mkdir()
    (root / "cost.sh").write_text(COST)
    (root / "perftrail.toml").write_text(STUDY)
    perftrail("run", root)
    return root


def judged(study: Path) -> dict[str, dict[str, Any]]:
    judgements: list[dict[str, Any]] = json.loads(perftrail_here("show", "--claims", "--json", study).stdout)
    return {each["name"]: each for each in judgements}


def test_each_claim_gets_its_verdict(study: Path) -> None:
    assert {name: each["verdict"] for name, each in judged(study).items()} == {
        "twice": "reproduced",
        "cheaper": "not reproduced",
        "too-few": "unclear",
        "linear": "reproduced",
        "stops": "reproduced",
        "goes-on": "unclear",
        "unbuilt": "cannot be measured",
        "lost": "cannot be measured",
    }


def test_a_verdict_has_its_evidence(study: Path) -> None:
    found = judged(study)
    assert found["twice"]["ratio"] == pytest.approx({"value": 2.0, "low": 2.0, "high": 2.0})
    assert found["twice"]["pairs"] in (12, 15), (
        "five at each point, without one that a suspended machine spoils"
    )
    assert len(found["twice"]["points"]) == 3
    assert (found["stops"]["reaches"], found["stops"]["refused"], found["stops"]["stage"]) == (
        400,
        800,
        "crash",
    )
    assert "no compiler" in found["unbuilt"]["reason"]


def test_claims_are_reported_in_sentences_and_as_a_table(study: Path) -> None:
    words = perftrail_here("show", "--claims", study).stdout
    assert "reproduced: double costs twice as much" in words
    assert (
        "double / single = 2.000 [2.000, 2.000] in cost at size 100, 200 and 400; claimed 1.9..2.1" in words
    )
    assert words.splitlines()[-1] == "3 reproduced, 1 not reproduced, 2 unclear and 2 cannot be measured"
    table = perftrail_here("show", "--claims", "--markdown", study).stdout.splitlines()
    assert table[-1] == "| the lost \\| library is slow | no copy exists | cannot be measured |"


def test_a_different_answer_fails_the_run(study: Path, tmp_path: Path) -> None:
    wrong = STUDY.replace('most = "400", wrong = "0"', 'most = "400", wrong = "7"')
    (tmp_path / "broken").mkdir()
    (tmp_path / "cost.sh").write_text(COST)
    (tmp_path / "perftrail.toml").write_text(wrong)
    ran = perftrail("run", tmp_path, "--only", "size=200,400", expect=1)
    assert "work.answer at size=200 should be equal, but differs: 200 (" in ran.stdout
    report = json.loads(perftrail("run", tmp_path, "--only", "size=200,400", "--json", expect=1).stdout)
    assert [each["point"] for each in report["disagreements"]] == [{"size": 200}, {"size": 400}]
    assert [each["value"] for each in report["disagreements"][0]["values"]] == [200.0, 207.0]


def test_an_answer_is_checked_and_not_shown_as_a_value(study: Path) -> None:
    rows = json.loads(perftrail_here("show", study, "--json").stdout)
    assert {row["metric"] for row in rows} == {"cost"}


def test_claims_without_samples_have_no_answer(study: Path, tmp_path: Path) -> None:
    done = perftrail_here("show", "--claims", study, "--store", tmp_path, expect=1)
    assert "measure with: perftrail run" in done.stderr
