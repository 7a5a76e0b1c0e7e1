"""Change points along measured revisions, and the prior of a search from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perftrail.find.loop import prior_from_samples
from perftrail.measure.events import now
from perftrail.measure.session import Session
from perftrail.model.json_data import Json
from perftrail.model.plan import Cell
from perftrail.model.store_records import SearchRecord
from perftrail.model.study import Invocations, MeasurePolicy, Study
from perftrail.model.target import resolve
from perftrail.present.dashboard.regressions import regressions
from perftrail.present.report.data import read_report_data
from perftrail.results.changes import HistoryChange, history_changes, with_answers
from perftrail.results.rows import rows
from perftrail.results.selection import Selection
from perftrail.results.show import show
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

REVISIONS = 40
STEP = 25
LATER = "9999"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRevisions(Selection):
    """Some revisions."""

    ids: frozenset[str]

    def includes(self, cell: Cell) -> bool:
        return cell.subject.revision.id in self.ids


def study() -> Study:
    return a_study(measure=MeasurePolicy(invocations=Invocations(least=4, most=4), warmups=0))


def step(arguments: tuple[str, ...]) -> float:
    return 0.1 if number_of(arguments) < STEP else 0.15


def measured(
    tmp_path: Path,
    numbers: Sequence[int] = range(REVISIONS),
    *,
    same_as: dict[str, str] | None = None,
    store: MemoryStore | None = None,
) -> Session:
    """A session in which a run has measured these revisions."""
    source = FakeSource(REVISIONS, same_as=same_as or {})
    starter = FakeStarter(seconds=step, noise=0.02)
    session = a_session(study(), tmp_path, source=source, starter=starter, store=store)
    drain(Run(session, SelectedRevisions(ids=frozenset(f"r{number}" for number in numbers))).events())
    return session


def changes(session: Session) -> tuple[HistoryChange, ...]:
    return history_changes(session.source.history(), rows(session)).points


def test_a_change_is_reported_with_its_revision_and_its_effect(tmp_path: Path) -> None:
    [change] = changes(measured(tmp_path))
    assert change.row.metric == "wall"
    assert [revision.id for revision in change.candidates] == ["r25"]
    assert (change.previous.id, change.earliest.id, change.latest.id) == ("r24", "r25", "r25")
    assert change.point.low < 1.5 < change.point.high
    data = change.as_json()
    assert data["revisions"] == ["r25"]
    assert data["effect"] == {
        "value": change.point.effect,
        "low": change.point.low,
        "high": change.point.high,
    }


def test_a_change_that_a_search_certified_is_never_called_small(tmp_path: Path) -> None:
    session = measured(tmp_path)
    found = history_changes(session.source.history(), rows(session))
    small = replace(found.points[0], point=replace(found.points[0].point, alert=False))
    found = replace(found, points=(small,))
    certified: dict[str, Json] = {"revisions": ["r25"], "effect": {"value": 1.4, "low": 1.3, "high": 1.5}}
    other: dict[str, Json] = {**certified, "revisions": ["r24"]}
    for change, is_alert in ((certified, True), (other, False)):
        answer: dict[str, Json] = {"metric": "work.wall", "variant": "plain", "changes": [change]}
        record = SearchRecord(key="k", machine="m", question={}, answer=answer)
        [shown] = with_answers(found, session.study, [record]).points
        assert shown.point.alert is is_alert
        assert (shown.point.effect == 1.4) is is_alert


def test_revisions_that_were_not_measured_stay_candidates(tmp_path: Path) -> None:
    [change] = changes(measured(tmp_path, [0, 3, 6, 9, 12, 15, 18, 21, 24, 28, 31, 34, 37]))
    assert change.row.subject.revision.id == "r28"
    assert [revision.id for revision in change.candidates] == ["r25", "r26", "r27", "r28"]
    assert (change.previous.id, change.earliest.id) == ("r24", "r25")


def test_revisions_with_one_artefact_speak_once(tmp_path: Path) -> None:
    same = {f"r{number}": "r30" for number in range(31, REVISIONS)}
    session = measured(tmp_path, same_as=same | {"r24": "r23", "r22": "r21"})
    [change] = changes(session)
    assert [revision.id for revision in change.candidates] == ["r25"]
    assert change.previous.id == "r24"
    spoiled = FakeStarter(seconds=lambda arguments: 0.2 if number_of(arguments) == 30 else 0.1)
    odd = a_session(
        study(), tmp_path, source=FakeSource(REVISIONS, same_as=same), starter=spoiled, store=MemoryStore()
    )
    drain(Run(odd, Selection()).events())
    assert len({row.runnables for row in rows(odd)}) == 31
    assert all(change.point.p_value > 1e-8 for change in changes(odd)), "ten revisions, one build"


def test_a_search_begins_where_the_store_shows_a_change(tmp_path: Path) -> None:
    session = measured(tmp_path, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36])
    target = resolve(session.study, "wall")
    history = session.source.history()
    weights = prior_from_samples(session, target, history, before=LATER)
    assert weights is not None
    assert len(weights) == REVISIONS
    assert weights[25] == max(weights)
    assert min(weights) > 0.0
    part = prior_from_samples(session, target, history[10:], before=LATER)
    assert part is not None
    assert part[15] == max(part)


def test_samples_of_the_search_itself_are_no_prior(tmp_path: Path) -> None:
    began = now()
    session = measured(tmp_path)
    target = resolve(session.study, "wall")
    assert prior_from_samples(session, target, session.source.history(), before=began) is None
    assert prior_from_samples(session, target, session.source.history(), before=LATER) is not None


@pytest.mark.parametrize("numbers", [[0], [0, 1, 2], range(20)])
def test_without_a_change_a_search_gets_no_prior(tmp_path: Path, numbers: Sequence[int]) -> None:
    session = measured(tmp_path, numbers)
    assert changes(session) == ()
    assert (
        prior_from_samples(session, resolve(session.study, "wall"), session.source.history(), before=LATER)
        is None
    )


def test_a_report_and_the_regressions_leave_out_what_show_lists_below_the_alert_level(tmp_path: Path) -> None:
    def seconds(arguments: tuple[str, ...]) -> float:
        number = number_of(arguments)
        return 0.1 * (1.0 if number < 60 else 1.016 if number < 120 else 1.2)

    session = a_session(
        study(), tmp_path, source=FakeSource(150), starter=FakeStarter(seconds=seconds, noise=0.02)
    )
    drain(Run(session, Selection()).events())
    shown = show(session)
    assert [(each.candidates[-1].id, each.point.alert) for each in shown.changes.ranked] == [
        ("r120", True),
        ("r60", False),
    ]
    plain = json.loads(json.dumps(shown.as_json()))
    assert {row["revision"]: row["change"]["rank"] for row in plain if row["change"]} == {"r120": 1, "r60": 2}
    data = read_report_data(session, tmp_path)
    assert [each.candidates[-1].id for each in data.changes] == ["r120"]
    assert [each.revisions[-1].id for each in regressions(data)] == ["r120"]
