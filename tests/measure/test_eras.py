"""Every verb distinguishes skipped revisions, and unknown names are errors of the study file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import SourceError, StudyError
from perftrail.find.loop import IncludedPositions
from perftrail.measure.events import Skipped
from perftrail.measure.session import Session
from perftrail.measure.sources import eras_of
from perftrail.model.process import Exited
from perftrail.model.recipe import Build, Era
from perftrail.model.source import Skip, Source
from perftrail.model.study import Study
from perftrail.results.selection import Selection
from perftrail.search.answer import Answer, Change, Suspicion, Verdict
from perftrail.verbs.attempt import Attempt
from perftrail.verbs.check import study_plan
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

ALL = Selection()


def skipping(*skips: Skip, **changes: object) -> Study:
    return a_study(source=Source(kind="git", location="/repository", skip=skips), **changes)


MIDDLE = Skip(range="r2..r3", reason="never compiled")


def session_of(study: Study, tmp_path: Path, builder: FakeBuilder, starter: FakeStarter) -> Session:
    return a_session(study, tmp_path, source=builder.source, starter=starter, builder=builder)


def test_a_run_builds_no_skipped_revision_and_reports_why(tmp_path: Path) -> None:
    builder, starter = FakeBuilder(FakeSource(5)), FakeStarter(seconds=lambda _: 0.1)
    single = Skip(revision="r4", reason="hangs")
    session = session_of(skipping(MIDDLE, single), tmp_path, builder, starter)
    events, report = drain(Run(session, ALL).events())
    assert builder.built_ids == ["r0", "r1"]
    assert {number_of(arguments) for arguments in starter.started} == {0, 1}
    assert (report.cells, report.measured, report.failures) == (2, 2, {})
    assert report.as_json()["skipped_revisions"] == [
        {"revision": "r2", "reason": "never compiled"},
        {"revision": "r3", "reason": "never compiled"},
        {"revision": "r4", "reason": "hangs"},
    ]
    reported = [event.skipped for event in events if isinstance(event, Skipped)]
    assert [(each.reason, len(each.revisions)) for each in reported] == [("never compiled", 2), ("hangs", 1)]


def test_a_plan_counts_no_build_of_skipped_revisions(tmp_path: Path) -> None:
    builder, starter = FakeBuilder(FakeSource(5)), FakeStarter(seconds=lambda _: 0.1)
    plan = study_plan(session_of(skipping(MIDDLE), tmp_path, builder, starter), ALL)
    assert (plan.subjects, plan.failed, len(plan.revisions)) == (3, 0, 5)
    assert [each.reason for each in plan.skipped_revisions] == ["never compiled"]


def test_a_trial_leaves_out_skipped_revisions(tmp_path: Path) -> None:
    builder = FakeBuilder(FakeSource(5), broken={"r0"})
    starter = FakeStarter(seconds=lambda _: 0.1, ended=lambda _: Exited(code=0))
    session = session_of(skipping(MIDDLE), tmp_path, builder, starter)
    _, report = drain(Attempt(session, ALL, count=5).events())
    assert [str(subject) for subject in report.tried] == ["r0", "r1", "r4"]
    [advised] = report.failure_groups
    assert advised.group.failed_range is not None
    assert [each.lines[0] for each in advised.remedies] == ["[[build.when]]", "[[source.skip]]"]


def test_every_name_that_the_history_lacks_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "perftrail.toml"
    file.write_text(
        '[source]\nkind = "git"\n\n[[source.skip]]\nreason = "x"\nrevision = "r02"\n\n'
        '[[source.skip]]\nreason = "x"\nrange = "r0..r1"\n\n[[build.when]]\nrange = "..v9"\n'
    )
    study = skipping(
        Skip(revision="r02", reason="x"),
        Skip(range="r0..r1", reason="x"),
        file=str(file),
        build=Build(when=(Era(range="..v9"),)),
    )

    class Source(FakeSource):
        def within(self, range: str) -> frozenset[str]:
            ids = {each.id for each in self.history()}
            for name in range.split(".."):
                if name and name not in ids:
                    raise SourceError(f'/repository: no revision "{name}"')
            return frozenset(ids)

    with pytest.raises(StudyError) as caught:
        eras_of(study, Source(3), searched=Source(3))
    mistakes = [f"{each.line}: {each.key}: {each.message}" for each in caught.value.mistakes]
    assert mistakes == [
        '6: source.skip[0].revision: no revision "r02"; did you mean "r2"?',
        '13: build.when[0].range: no revision "v9"',
    ]


def answer(*positions: int) -> Answer:
    change = Change(positions=positions, confidence=0.99, before=1.0, after=0.0, effect=None)
    return Answer(
        verdict=Verdict.FOUND, changes=(change,), confidence=0.99, minimum_detectable=0.1, reason="so"
    )


def test_skipped_revisions_before_a_culprit_are_candidates() -> None:
    gaps = IncludedPositions(positions=(0, 1, 4, 5))
    assert gaps.answer(answer(3)).changes[0].positions == (5,)
    assert gaps.answer(answer(3)).verdict is Verdict.FOUND
    between = gaps.answer(answer(2))
    assert (between.verdict, between.changes[0].positions) == (Verdict.RANGE, (2, 3, 4))
    assert "skips" in between.reason
    smaller, likely = (
        answer(2).changes[0],
        Suspicion(positions=(2,), confidence=0.5, evidence=1.0, needed=200.0, blocks_left=None, possible=1.0),
    )
    others = gaps.answer(replace(answer(3), below_threshold=(smaller,), suspected=(likely,), unseen=(1, 3)))
    assert others.below_threshold[0].positions == others.suspected[0].positions == (2, 3, 4)
    assert others.unseen == (1, 5)
    assert replace(answer(1), reason="so") == IncludedPositions(positions=(0, 1)).answer(answer(1))


def test_the_probability_of_skipped_revisions_counts_for_the_next_one() -> None:
    gaps = IncludedPositions(positions=(0, 1, 4))
    assert gaps.weights((0.0, 1.0, 2.0, 3.0, 4.0)) == (0.0, 1.0, 9.0)
    assert IncludedPositions(positions=(0, 1)).weights(None) is None
