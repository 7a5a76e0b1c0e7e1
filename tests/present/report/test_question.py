"""The first screen answers the study's question: the metric of `find`, else the derived one; and claims."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.find.answer import FindRequest
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Derived
from perftrail.model.recipe import Variant, VariantRun
from perftrail.model.study import Claim, FindPolicy, Invocations, MeasurePolicy
from perftrail.model.subject import Revision
from perftrail.model.target import parse_metric, resolve
from perftrail.present.html_page import to_markdown
from perftrail.present.report.report import make_report
from perftrail.results.selection import Choice, Selection
from perftrail.search.budget import Budget
from perftrail.verbs.compare import Compare, CompareRequest
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, FakeWatcher
from tests.find.test_find import request_for
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from perftrail.present.html_page import Page

WALL = Choice(metrics=(parse_metric("wall"),))
RATIO = Derived(benchmark="work", value="wall[threads=1] / wall[threads=4]", better="higher")
VARIANTS = {
    name: Variant(rebuild=False, run=VariantRun(parts={"kind": f"--{name}"})) for name in ("plain", "pooled")
}


def seconds(arguments: tuple[str, ...]) -> float:
    """The pooled variant takes half the time, except with one thread, where both are equal."""
    _, kind, threads = arguments
    return 0.1 if threads == "1" or kind == "--plain" else 0.05


def report(tmp_path: Path, *, watcher: FakeWatcher | None = None, **changes: object) -> Page:
    """A report of two variants that were measured in turns."""
    study = a_study(
        benchmarks={
            "work": Benchmark(command="{build}/work {kind} {threads}", parameters={"threads": (1, 4)})
        },
        variants=VARIANTS,
        measure=MeasurePolicy(invocations=Invocations(least=20, most=20), warmups=0),
        **changes,
    )
    session = a_session(
        study, tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=seconds), watcher=watcher
    )
    drain(Run(session, Selection()).events())
    return make_report(session, tmp_path)


def test_without_a_question_the_largest_difference_is_reported(tmp_path: Path) -> None:
    page = report(tmp_path)
    assert page.verdict.sentence.startswith("work.wall against plain: pooled ")
    assert page.lead is not None
    assert page.lead.name == "curve-work-wall-threads"


def test_noisy_samples_are_reported_but_decide_nothing(tmp_path: Path) -> None:
    page = report(tmp_path, watcher=FakeWatcher.with_conditions(*[NOISY] * 200))
    assert (
        "pooled 29 % less, but that is no evidence: other processes used the machine" in page.verdict.sentence
    )
    assert page.verdict.tone == "unclear"
    [measured] = [each for each in page.sections if each.name == "measured"]
    assert any(re.search(r"busy \((\d+) of \1 medians\)\.", each) for each in measured.paragraphs), (
        "two variants at two points: a row is not a sample"
    )


def test_a_difference_far_down_the_list_is_reported(tmp_path: Path) -> None:
    last = 24
    study = a_study(
        benchmarks={f"b{n}": Benchmark(command=f"{{build}}/work {{kind}} {n}") for n in range(last + 1)},
        variants=VARIANTS,
        measure=MeasurePolicy(invocations=Invocations(least=20, most=20), warmups=0),
    )
    starter = FakeStarter(seconds=lambda words: 0.05 if words[1:] == ("--pooled", str(last)) else 0.1)
    session = a_session(study, tmp_path, source=FakeSource(1), starter=starter)
    drain(Run(session, Selection()).events())
    assert make_report(session, tmp_path).verdict.sentence.startswith(
        f"b{last}.wall against plain: pooled 50 % less"
    )


def test_a_derived_ratio_is_the_question(tmp_path: Path) -> None:
    page = report(tmp_path, derived={"ratio": RATIO})
    assert page.verdict.sentence.startswith("work.ratio against plain: pooled ")
    assert page.verdict.sentence.endswith("(better).")
    assert page.verdict.tone == "better"
    assert page.lead is not None
    assert page.lead.name == "against"
    assert page.lead.tables[0].rows[0][1] == "work.ratio"


def test_the_metric_of_find_is_the_question_though_another_differs_more(tmp_path: Path) -> None:
    page = report(tmp_path, derived={"ratio": RATIO}, find=FindPolicy(metric=("wall[threads=1]",)))
    assert page.verdict.sentence.startswith("No difference")
    assert " from plain in work.wall threads=1; " in page.verdict.sentence
    [counted] = [fact.text for fact in page.verdict.facts if fact.label == "Comparisons"]
    assert "certainly differ" in counted
    assert page.lead is not None
    assert page.lead.name == "curve-work-wall-threads"


@pytest.mark.parametrize(("band", "verdict"), [("..0.6", "reproduced"), ("1..", "not reproduced")])
def test_claims_are_in_the_page_with_their_results(tmp_path: Path, band: str, verdict: str) -> None:
    claims = {
        "half": Claim(
            says="pooled takes half | the time",
            metric="wall",
            variant="pooled",
            against="plain",
            ratio=band,
            at={"threads": (4,)},
        ),
        "lost": Claim(says="nobody has it", cannot="it is lost"),
        **{f"more-{number}": Claim(says=f"more {number}", cannot="lost") for number in range(40)},
    }
    page = report(tmp_path, claims=claims)
    section = next(each for each in page.sections if each.name == "claims")
    assert section.paragraphs == (f"1 {verdict} and 41 cannot be measured.",)
    [table] = section.tables
    reported, judged, found = table.rows[0]
    assert (reported, judged) == ("pooled takes half | the time", verdict)
    assert found.startswith("pooled / plain = 0.")
    assert f"in wall at threads 4; claimed {band}" in found
    assert table.rows[1] == ("nobody has it", "cannot be measured", "it is lost")
    assert next(fact.text for fact in page.verdict.facts if fact.label == "Claims") == section.paragraphs[0]
    assert "| more 39 | cannot be measured | lost |" in to_markdown(page), "no claim is cut off"


def test_without_claims_none_is_mentioned(tmp_path: Path) -> None:
    assert "Claims" not in to_markdown(report(tmp_path))


@dataclass
class SourceWithBranch(FakeSource):
    """The study's range ends at r19; r20 to r29 are a branch that a range can name."""

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        return FakeSource(20).history() if range is None else FakeSource(30).history(range)


def test_the_search_of_a_gated_branch_does_not_replace_the_answer_of_the_study(tmp_path: Path) -> None:
    study = a_study(
        measure=MeasurePolicy(invocations=Invocations(least=5, most=20), warmups=0),
        find=FindPolicy(metric=("wall",)),
    )
    starter = FakeStarter(seconds=lambda words: 0.1 if number_of(words) < 12 else 0.15)
    session = a_session(study, tmp_path, source=SourceWithBranch(20), starter=starter)
    for searched in (None, "r19..r24"):
        request = FindRequest(
            goal=(resolve(study, "wall"),),
            range=searched,
            threshold=0.05,
            confidence=0.99,
            budget=Budget(invocations=300),
        )
        drain(Find(session, request).events())
    drain(Compare(session, CompareRequest(base="r18", head="r19", choice=WALL)).events())
    page = make_report(session, tmp_path)
    assert "r12" in page.verdict.sentence
    assert page.lead is not None
    assert page.lead.name == "history-work-wall", "the first chart is the answer's"
    assert any(each.title.startswith("r19 compared with r18") for each in page.sections)
    assert page.verdict.sentence.startswith("Found: ")
    [steps] = [each for each in page.sections if each.name == "search"]
    assert any("between r0 and r19" in each for each in steps.paragraphs)


def test_several_changes_are_rows_of_one_table(tmp_path: Path) -> None:
    def stairs(arguments: tuple[str, ...]) -> float:
        return 0.1 * 1.5 ** sum(number_of(arguments) >= step for step in (8, 16, 24))

    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=8, most=8), warmups=0))
    starter = FakeStarter(seconds=stairs)
    session = a_session(study, tmp_path, source=FakeSource(32), starter=starter)
    drain(Find(session, request_for((resolve(study, "wall"),))).events())
    drain(Run(session, Selection()).events())
    page = make_report(session, tmp_path)
    assert page.verdict.sentence.startswith("Several: 3 changes")
    assert page.verdict.table is not None
    assert page.verdict.table.head == ("revision", "change", "levels", "probability", "evidence")
    assert [row[0].split()[0] for row in page.verdict.table.rows] == ["r8", "r16", "r24"]
    labels = [fact.label for fact in page.verdict.facts]
    assert labels == ["Whole difference", "Cost"], "no fact is about one change only"
    assert page.verdict.facts[0].text.startswith("The rest, without these changes, is ")
    assert page.lead is not None
    changes = page.lead.tables[0]
    assert [row[0].split()[0] for row in changes.rows] == ["r8", "r16", "r24"]
    assert not [each for each in page.lead.paragraphs if each.startswith("Changed at")]
    [lines] = [part for part in to_markdown(page).split("\n\n") if part.startswith("| revision")]
    assert lines.count("certified in") == 3
