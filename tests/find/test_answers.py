"""Answers of `find`: layouts, other changed metrics, branches of broken merges, and searches that end early."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindTable
from perftrail.find.find import Find
from perftrail.measure.events import BuilderMessage
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Derived
from perftrail.model.process import Command, Exited, NotStarted, Ran
from perftrail.model.recipe import Build
from perftrail.model.subject import Branch, Merge
from perftrail.model.target import resolve
from perftrail.present.answer_details import inside_words, print_table
from perftrail.present.answer_sentence import (
    also_words,
    answer_facts,
    certificate_words,
    change_facts,
    headline_of,
    stored_answers,
)
from perftrail.present.next_find import FindCommand
from perftrail.search.answer import Verdict
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, FakeWatcher
from tests.find.test_find import STUDY, find, request, request_for, stepping_at
from tests.measure.fake_session import a_session, a_study, drain

RELINKED = a_study(build=Build(relink=("sh relink.sh {layout}",)))


def number_of_build(arguments: tuple[str, ...]) -> int:
    """Return the number of the revision, for any layout of its build."""
    return int(arguments[0].split("/")[2].split(".")[0].removeprefix("r"))


def relinked_at(culprit: int) -> FakeStarter:
    return FakeStarter(seconds=lambda arguments: 0.1 if number_of_build(arguments) < culprit else 0.13)


def test_each_block_of_a_certificate_has_a_new_layout(tmp_path: Path) -> None:
    source, store = FakeSource(20), MemoryStore()
    builder, starter = FakeBuilder(source), relinked_at(8)
    session = a_session(RELINKED, tmp_path, source=source, starter=starter, builder=builder, store=store)
    _, answer = find(session)
    [change] = answer.answer.changes
    assert change.positions == (8,)
    assert change.certificate is not None
    assert change.certificate.layouts == change.certificate.blocks >= 8
    [record] = store.searches()
    layouts = [
        step.action["layout"]
        for step in store.steps(record.key, record.machine)
        if "certificate" in step.action
    ]
    assert len(set(layouts)) == len(layouts) == change.certificate.blocks
    assert not any("relink" in line for line in certificate_words(change_facts(answer, 0)))
    requests = [links for _, links in builder.relinks if len(links) > 1]
    assert max(map(len, requests)) == 8, "one request links several layouts"


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> FindAnswer:
    """The answer about a history without a change."""
    directory = tmp_path_factory.mktemp("unchanged")
    return find(a_session(STUDY, directory, source=FakeSource(10), starter=stepping_at(99)))[1]


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> FindAnswer:
    """The answer about a history whose ninth revision made the program slower, and changed nothing else."""
    directory = tmp_path_factory.mktemp("slower")
    return find(a_session(STUDY, directory, source=FakeSource(20), starter=stepping_at(8)))[1]


@pytest.mark.parametrize(("used", "is_mostly_noisy"), [(0, False), (4, False), (30, True)])
def test_an_answer_none_of_mostly_noisy_samples_states_that(
    unchanged: FindAnswer, used: int, is_mostly_noisy: bool
) -> None:
    answer = replace(unchanged, noisy=used, invocations=40)
    assert answer.answer.verdict == "none"
    assert answer.as_json()["mostly_noisy"] is is_mostly_noisy
    words = " while other processes used the machine, probability "
    assert (words in headline_of([answer_facts(answer)])) is is_mostly_noisy
    unclear = replace(answer, answer=replace(answer.answer, verdict=Verdict.UNCLEAR))
    assert words not in headline_of([answer_facts(unclear)])


def test_without_relinking_the_answer_recommends_it_unless_the_change_is_large(
    tmp_path: Path, slower: FindAnswer
) -> None:
    assert any(
        "to rule that out, measure ten layouts with [build] relink" in line
        for line in certificate_words(change_facts(slower, 0))
    )
    doubled = FakeStarter(seconds=lambda arguments: 0.1 if number_of(arguments) < 8 else 0.2)
    _, large = find(a_session(STUDY, tmp_path / "large", source=FakeSource(20), starter=doubled))
    assert not any("relink" in line for line in certificate_words(change_facts(large, 0)))
    changes: Any = slower.as_json()["changes"]
    assert changes[0]["certificate"]["layouts"] == 1
    assert changes[0]["certificate"]["error"] <= 0.01


def test_an_answer_about_several_metrics_also_recommends_relinking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(20), starter=stepping_at(8))
    targets = tuple(resolve(STUDY, metric) for metric in ("wall", "peak_memory"))
    _, table = drain(Find(session, request_for(targets)).events())
    assert isinstance(table, FindTable)
    print_table(table, FindCommand(threshold=0.05, benchmarks=STUDY.benchmarks))
    [line] = [each for each in " ".join(capsys.readouterr().out.split()).split("  ") if "relink" in each]
    assert "the memory layouts of these builds may cause the difference; to rule that out" in line


def test_builds_that_cannot_be_relinked_are_measured_as_they_are(tmp_path: Path) -> None:
    source = FakeSource(20)
    builder = FakeBuilder(source, unlinkable=range(1, 1000))
    session = a_session(RELINKED, tmp_path, source=source, starter=relinked_at(8), builder=builder)
    events, answer = drain(Find(session, request(session)).events())
    assert isinstance(answer, FindAnswer)
    assert answer.answer.changes[0].positions == (8,)
    assert answer.answer.changes[0].certificate is not None
    assert answer.answer.changes[0].certificate.layouts == 1
    assert [
        each.text for each in events if isinstance(each, BuilderMessage) and "no such option" in each.text
    ]


@dataclass
class MemoryDoublingStarter(FakeStarter):
    """Also uses twice the memory from a revision on."""

    hungry_from: int = 1000

    def run(self, command: Command) -> Ran:
        ran = super().run(command)
        factor = 2 if number_of(command.arguments) >= self.hungry_from else 1
        return replace(ran, max_rss_bytes=factor * (1 << 20))


def test_other_metrics_that_a_culprit_changed_are_reported(tmp_path: Path) -> None:
    starter = MemoryDoublingStarter(
        seconds=lambda arguments: 0.1 if number_of(arguments) < 8 else 0.08, hungry_from=8
    )
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(20), starter=starter))
    assert also_words(change_facts(answer, 0)) == "it also changed peak_memory 2.00 times (worse)"
    changes: Any = answer.as_json()["changes"]
    [also] = changes[0]["also_changed"]
    assert also["metric"] == "peak_memory"
    assert also["effect"]["value"] == pytest.approx(2.0)


def test_unchanged_metrics_are_not_reported_with_the_culprit(slower: FindAnswer) -> None:
    assert also_words(change_facts(slower, 0)) == ""


def test_a_point_that_got_worse_is_reported_with_a_ratio_that_got_better(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work {threads}", parameters={"threads": (1, 8)})},
        derived={
            "speedup": Derived(value="wall[threads=1] / wall[threads=8]", benchmark="work", better="higher")
        },
    )

    def seconds(arguments: tuple[str, ...]) -> float:
        changed, threads = number_of(arguments) >= 8, arguments[1]
        if threads == "8":
            return 0.4 if changed else 0.1
        return 2.0 if changed else 0.2

    session = a_session(study, tmp_path, source=FakeSource(20), starter=FakeStarter(seconds=seconds))
    _, answer = find(session, "speedup")
    assert answer.answer.changes[0].positions == (8,)
    words = also_words(change_facts(answer, 0))
    assert "wall at threads=1" in words
    assert "(worse)" in words


def branch_of(numbers: range, *, at: int) -> dict[str, Merge]:
    revisions = FakeSource(2000).history()
    branch = Branch(base=revisions[at - 3], revisions=tuple(revisions[number] for number in numbers))
    return {f"r{at}": Merge(revision=revisions[at], trunk=revisions[at - 1], branches=(branch,))}


def test_the_branch_of_a_merge_that_cannot_be_built_is_searched(tmp_path: Path) -> None:
    source = FakeSource(40, merges=branch_of(range(1000, 1007), at=20))
    builder = FakeBuilder(source, broken={"r20"})
    starter = FakeStarter(
        seconds=lambda arguments: (
            0.13 if number_of(arguments) in {*range(20, 40), *range(1004, 1007)} else 0.1
        )
    )
    _, answer = find(a_session(STUDY, tmp_path, source=source, starter=starter, builder=builder))
    assert str(answer.answer.verdict) == "range"
    assert answer.answer.changes[0].positions == (20, 21)
    assert [each.id for each in answer.inside[0].candidates] == ["r1004"]
    assert any("came with the branch" in line for line in inside_words(answer.inside[0]))


@pytest.mark.parametrize(
    ("command", "stage", "reason"),
    [
        ("nowhere-to-be-found {build}", "exec", "cannot start nowhere-to-be-found: no such command"),
        ("{build}/work", "stdin", "cannot read standard input from /nowhere/input: no such file"),
    ],
)
def test_a_failure_that_is_independent_of_the_revision_ends_the_search_after_three(
    tmp_path: Path, command: str, stage: str, reason: str
) -> None:
    study = a_study(benchmarks={"work": Benchmark(command=command, stdin="/nowhere/input")})
    source = FakeSource(40)
    builder = FakeBuilder(source)
    starter = FakeStarter(
        seconds=lambda _: 0.1, ended=lambda _: NotStarted(errno=2, message="ENOENT", stage=stage)
    )
    starter.run = lambda command: replace(  # type: ignore[method-assign] # its arguments name no build
        Ran.uncounted(NotStarted(errno=2, message="ENOENT", stage=stage), began=0.0, now=0.0)
    )
    session = a_session(study, tmp_path, source=source, starter=starter, builder=builder)
    with pytest.raises(
        NoAnswer, match=f"r0, r1 and r2 all failed for one reason: start: {re.escape(reason)}"
    ):
        find(session)
    assert len(set(builder.built_ids)) == 3


def test_a_program_that_the_builds_lack_does_not_end_the_search(tmp_path: Path) -> None:
    starter = stepping_at(30)
    missing = NotStarted(errno=2, message="exec: No such file or directory", stage="exec")
    starter.ended = lambda arguments: missing if number_of(arguments) < 10 else Exited(code=0)
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(40), starter=starter))
    assert answer.answer.changes[0].positions == (30,)


def test_a_machine_that_is_always_noisy_still_gets_an_answer(tmp_path: Path) -> None:
    watcher = FakeWatcher.with_conditions(*[NOISY] * 1000)
    session = a_session(STUDY, tmp_path, source=FakeSource(40), starter=stepping_at(17), watcher=watcher)
    _, answer = find(session)
    assert [change.positions for change in answer.answer.changes] == [(17,)]
    assert answer.noisy > 0


def test_a_difference_of_the_ends_below_the_threshold_is_stated(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=lambda words: 0.1 if number_of(words) < 17 else 0.098, noise=0.002)
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(40), starter=starter))
    assert str(answer.answer.verdict) == "none"
    ends: Any = answer.as_json()["ends"]
    assert ends["low"] <= 0.98 <= ends["high"] < 1
    account = answer_facts(answer).account
    assert re.fullmatch(r"from end to end (1|2)\.\d+ % less \(95 % interval × 0\.9\d+ to 0\.9\d+\)", account)
    assert any("a change below the threshold at r17: " in line for line in answer_facts(answer).doubts)


def test_changes_below_the_threshold_are_worded_from_the_stored_answer() -> None:
    below: dict[str, Any] = {"revisions": ["r7"], "effect": {"value": 1.03, "low": 1.02, "high": 1.04}}
    (answer,) = stored_answers({"verdict": "none", "metric": "wall", "below_threshold": [below]}, {})
    (line,) = answer.doubts
    assert line.startswith("a change below the threshold at r7: 3.0 % more")


def test_a_suspected_change_is_worded_from_the_stored_answer() -> None:
    suspected: dict[str, Any] = {
        "revisions": ["r7"],
        "confidence": 0.9,
        "evidence": 14.2,
        "needed": 200.0,
        "blocks_left": 90,
        "possible": None,
    }
    (answer,) = stored_answers({"verdict": "unclear", "metric": "wall", "suspected": [suspected]}, {})
    assert answer.doubts == ("likely r7, not certified: evidence 14 of the 200 needed, about 90 more rounds",)
