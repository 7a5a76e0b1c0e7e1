"""Watching over fakes: the state is stored completely, alarms are at changes of level, messages are sent once."""

from __future__ import annotations

import math
import random
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import NoAnswer, NoticeFailed, StoreError, UsageError
from perftrail.find.answer import FindAnswer, FindTable
from perftrail.find.find import Find
from perftrail.measure.events import Event
from perftrail.model.benchmark import Point
from perftrail.model.expression import Reference
from perftrail.model.process import Exited
from perftrail.model.source import Source
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy, Receivers, Study
from perftrail.model.target import Target
from perftrail.present.answer_sentence import change_words
from perftrail.search.answer import Verdict as Found
from perftrail.stats.changepoints import change_points
from perftrail.stats.comparison import Comparison, Verdict
from perftrail.verbs.watch.alarms import Alarm, WatchedMetric, alarms_by_history, alarms_by_pairs
from perftrail.verbs.watch.messages import Sender, deliver, delivered
from perftrail.verbs.watch.state import (
    Level,
    PendingMessage,
    WatchState,
    read_state,
    state_on_branch,
    write_state,
)
from perftrail.verbs.watch.watch import BranchCheck, Watched, watched_range
from perftrail.webhook_and_mail import Message
from tests.fakes.memory_store import MemoryStore
from tests.fakes.receivers import dripping_server
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

WALL = Target(
    text="wall",
    name="work.wall",
    benchmark="work",
    variant="plain",
    expression=Reference("wall", Point()),
    points=(Point(),),
    open_point=Point(),
    better="lower",
    unit="s",
)


def pending(*left: str) -> PendingMessage:
    return PendingMessage(id="0123", subject="slower", text="it is\n", data={"metric": "wall"}, left=left)


FULL = WatchState(
    reference="a",
    last="b",
    levels={"work.wall@plain": (Level(revision="a", log_ratios=(0.0, 0.25)),)},
    offsets={"work.wall@plain": 0.5},
    reported=("0123",),
    unconfirmed=("work.wall@plain c",),
    pending=(pending("webhook https://there"),),
)


def test_the_state_is_read_back_as_stored(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "watch.json"
    assert read_state(file) == WatchState()
    write_state(file, FULL)
    assert read_state(file) == FULL
    assert [each.name for each in file.parent.iterdir()] == ["watch.json"]
    assert file.stat().st_mode & 0o777 == 0o600  # the address of a webhook is a secret


def test_levels_of_older_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "watch.json"
    write_state(file, FULL)
    file.write_text(file.read_text().replace('"log_ratios"', '"logs"'))
    assert read_state(file) == FULL


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 99}', '{"version": 1}', '{"version": 1, "pending": 5}', "no JSON"]
)
def test_a_foreign_file_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    file = tmp_path / "watch.json"
    file.write_text(text)
    with pytest.raises(StoreError, match="remove the file to start again"):
        read_state(file)
    assert file.read_text() == text


class FakeComparisons:
    """Levels of revisions without noise, from which comparisons are computed."""

    reference = "r0"

    def __init__(self, levels: dict[str, float]) -> None:
        self.levels = levels

    def against(self, _: Target, one: str, other: str) -> Comparison | None:
        if one not in self.levels or other not in self.levels:
            return None
        effect = self.levels[other] / self.levels[one]
        verdict = Verdict.SAME if effect == 1.0 else Verdict.SLOWER if effect > 1.0 else Verdict.FASTER
        return Comparison(
            effect=effect, low=effect, high=effect, confidence=0.99, pairs=20,
            minimum_detectable=0.01, verdict=verdict, settled=True,
        )  # fmt: skip


def measured(levels: dict[str, float]) -> WatchedMetric:
    return WatchedMetric(
        target=WALL,
        reference_logs=(0.0,),
        log_ratios={name: (math.log(value),) for name, value in levels.items() if name != "r0"},
        same=frozenset(),
        benchmark=FakeComparisons(levels),  # type: ignore[arg-type] # only what alarms ask of it
    )


@pytest.mark.parametrize(
    ("levels", "alarms"),
    [
        ({"r0": 1.0, "r1": 1.0, "r2": 1.0}, []),
        ({"r0": 1.0, "r1": 1.0, "r2": 1.2, "r3": 1.2}, [("r1", "r2")]),
        ({"r0": 1.0, "r1": 1.2, "r2": 1.0}, [("r0", "r1"), ("r1", "r2")]),
        ({"r0": 1.0, "r2": 1.2}, [("r0", "r2")]),  # r1 could not be measured
        ({"r0": 1.0, "r1": 1.03, "r2": 1.06, "r3": 1.12}, [("r2", "r3")]),  # little by little
    ],
)
def test_an_alarm_is_where_the_level_that_held_no_longer_does(
    levels: dict[str, float], alarms: list[tuple[str, str]]
) -> None:
    found = alarms_by_pairs(measured(levels), ["r1", "r2", "r3"], threshold=0.1)
    assert [(each.before, each.at) for each in found] == alarms


def test_what_each_pair_leaves_open_the_history_shows_once() -> None:
    chance = random.Random(5)
    levels = [
        Level(
            revision=f"r{number}",
            log_ratios=tuple((0.08 if number >= 12 else 0.0) + chance.gauss(0.0, 0.03) for _ in range(8)),
        )
        for number in range(24)
    ]
    [alarm] = alarms_by_history(WALL, levels, threshold=0.05, known={})
    assert alarm == Alarm(target=WALL, before="r11", at="r12")
    assert alarms_by_history(WALL, levels, threshold=0.05, known={"r12": None}) == []
    assert alarms_by_history(WALL, levels, threshold=0.2, known={}) == []
    assert alarms_by_history(WALL, levels[:12], threshold=0.05, known={}) == []


def test_a_change_below_the_alert_level_is_no_alarm() -> None:
    chance = random.Random(6)
    levels = [
        Level(revision=f"r{number}", log_ratios=((0.06 if number >= 100 else 0.0) + chance.gauss(0.0, 0.05),))
        for number in range(200)
    ]
    [point] = change_points([(number, each.log_ratios) for number, each in enumerate(levels)])
    assert not point.alert
    assert alarms_by_history(WALL, levels, threshold=0.01, known={}) == []


class FakeReceivers:
    """Accepts messages for some receivers and refuses those for others."""

    def __init__(self, *down: str) -> None:
        self.down = down
        self.sent: list[str] = []

    def send(self, message: Message, receiver: str) -> None:
        if receiver in self.down:
            raise NoticeFailed(f"{receiver} is down")
        self.sent.append(receiver)


def test_each_receiver_gets_a_message_once_and_what_is_left_is_noted_at_once() -> None:
    names = ("webhook one", "mail two", "command three")
    state = replace(FULL, pending=(pending(*names),))
    saved: list[WatchState] = []
    post = FakeReceivers("mail two")
    state = deliver(state, post.send, receivers=names, save=saved.append)
    assert post.sent == ["webhook one", "command three"]
    assert state.pending == (replace(pending("mail two"), failed="mail two is down"),)
    assert [each.left for one in saved for each in one.pending] == [names[1:], names[1:], ("mail two",)]
    post = FakeReceivers()
    state = deliver(state, post.send, receivers=names, save=saved.append)
    assert (post.sent, state.pending) == (["mail two"], ())
    assert state.reported == FULL.reported


def test_a_receiver_that_is_down_is_tried_once_and_a_refused_message_delays_no_other() -> None:
    names = ("webhook one",)
    state = replace(
        FULL, pending=tuple(replace(pending(*names), id=name) for name in ("first", "second", "third"))
    )
    tried: list[str] = []

    def send(message: Message, _: str) -> None:
        tried.append(message.id)
        if message.id == "first":
            raise NoticeFailed("too large")

    state = deliver(state, send, receivers=names, save=lambda _: None)
    assert tried == ["first"]
    state = deliver(state, send, receivers=names, save=lambda _: None)
    assert tried == ["first", "second", "third", "first"]
    assert [(each.id, each.failed) for each in state.pending] == [("first", "too large")]


def post_from(directory: Path, **changes: object) -> Sender:
    return replace(Sender.of(Receivers(), directory=str(directory)), **changes)  # type: ignore[arg-type] # as a Post's


MESSAGE = Message(id="0123", subject="slower", text="it is\n", data={})


def test_a_receiver_that_never_ends_has_a_timeout(tmp_path: Path) -> None:
    post = post_from(tmp_path, seconds=0.3)
    with dripping_server() as address, pytest.raises(NoticeFailed, match=r"within 0\.3 s"):
        post.send(MESSAGE, f"webhook {address}")
    with pytest.raises(NoticeFailed, match=r"timed out after 0\.3 s"):
        post.send(MESSAGE, "command sleep 60")


def test_a_command_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(NoticeFailed, match=r'exit code 2: "no \\u001b\[31mroom"'):
        post_from(tmp_path).send(MESSAGE, r"""command sh -c 'printf "so\nno \033[31mroom\n" >&2; exit 2'""")
    with pytest.raises(NoticeFailed, match="cannot be started"):
        post_from(tmp_path).send(MESSAGE, "command ./no-such-program")


def test_that_there_is_no_room_for_a_message_is_no_end_of_a_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(NoticeFailed, match="command"):
        post_from(tmp_path).send(MESSAGE, "command true")


def levels_of(**at: float) -> dict[str, tuple[Level, ...]]:
    return {"work.wall@plain": tuple(Level(revision=name, log_ratios=(log, log)) for name, log in at.items())}


def test_of_a_branch_that_was_rewritten_what_it_still_has_is_known() -> None:
    state = WatchState(
        reference="c", last="e", levels=levels_of(a=0.0, b=0.1, c=0.5, d=0.5), reported=("0123",)
    )
    behind = state_on_branch(state, ["a", "b", "c", "d", "new"])
    assert behind == replace(state, last="d")
    before = state_on_branch(
        state, ["a", "b", "new", "newer"]
    )  # the reference is gone: the newest left has its own level
    assert before == replace(
        state, reference="b", last="b", levels=levels_of(a=0.0, b=0.1), offsets={"work.wall@plain": 0.1}
    )
    assert state_on_branch(state, ["other", "history"]) is None


def test_a_removed_receiver_gets_no_message() -> None:
    post = FakeReceivers()
    state = deliver(FULL, post.send, receivers=(), save=lambda _: None)
    assert (post.sent, state.pending) == ([], ())


@pytest.mark.parametrize(
    ("text", "branch", "wanted"),
    [
        (None, None, None),
        (None, "main", "..main"),
        ("v1..v2", None, "v1.."),
        ("v1..v2", "main", "v1..main"),
        ("last 20", None, "last 20"),
    ],
)
def test_the_end_of_the_range_is_moved_to_the_tip(
    text: str | None, branch: str | None, wanted: str | None
) -> None:
    custom_study = a_study(source=Source(kind="git", location="/there", range=text))
    assert watched_range(custom_study, branch) == wanted


def test_a_range_without_an_end_takes_no_branch() -> None:
    with pytest.raises(UsageError, match="cannot replace the end"):
        watched_range(a_study(source=Source(kind="git", location="/there", range="last 20")), "main")


STUDY: dict[str, object] = {
    "measure": MeasurePolicy(invocations=Invocations(least=3, most=30), warmups=0),
    "find": FindPolicy(threshold=0.1),
}


class Branch:
    """A branch of fakes that grows: revision n takes `seconds[n]`."""

    def __init__(self, directory: Path, *seconds: float, broken: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.seconds = list(seconds)
        self.broken = broken
        self.error = "error: expected ';'"
        self.crashes: tuple[int, ...] = ()
        self.state = WatchState()
        self.started = 0
        self.store = MemoryStore()

    def look(self, *, study: Study | None = None, upto: int | None = None) -> Watched:
        _, seen = drain(self.looking(study=study, upto=upto))
        return seen

    def looking(
        self, *, study: Study | None = None, upto: int | None = None
    ) -> Generator[Event, None, Watched]:
        count = len(self.seconds) if upto is None else upto
        source = FakeSource(count)
        starter = FakeStarter(seconds=lambda words: self.seconds[number_of(words)], noise=0.01)
        starter.ended = lambda words: Exited(code=int(number_of(words) in self.crashes))
        session = a_session(
            study or a_study(**STUDY),
            self.directory / str(self.started),
            source=source,
            starter=starter,
            builder=FakeBuilder(source, broken=self.broken, error=self.error),
            store=self.store,
        )
        self.started += 1

        def keep(state: WatchState) -> None:
            self.state = state

        return BranchCheck(
            session, self.state, branch=None, receivers=("command true",), describe=change_words, save=keep
        ).events()


def test_a_change_among_several_new_revisions_is_found_and_its_level_is_kept(tmp_path: Path) -> None:
    branch = Branch(tmp_path, *[1.0] * 4, *[1.3] * 5)
    began = branch.look(upto=1)
    assert (began.fresh, began.began, began.compared) == ((), True, ())
    seen = branch.look(upto=7)
    assert (seen.began, [each.id for each in seen.compared]) == (
        False,
        [f"r{number}" for number in range(1, 7)],
    )
    assert [str(answer.answer.verdict) for answer in seen.answers] == ["found"]
    [reported] = branch.state.pending
    answer = reported.data["answer"]
    assert isinstance(answer, dict)
    assert answer["changes"][0]["revisions"] == ["r4"]  # type: ignore[index, call-overload] # plain data
    assert reported.data["better"] is False
    assert any(f"{size} % more" in reported.subject for size in (28, 29, 30, 31, 32))
    assert branch.state.reference == "r4"
    again = branch.look()
    assert (len(again.fresh), again.answers, len(branch.state.reported)) == (2, (), 1)


def test_stopped_anywhere_it_sends_one_message(tmp_path: Path) -> None:
    seconds = [1.0, 1.0, 1.5, 1.5]
    whole = Branch(tmp_path / "whole", *seconds)
    whole.look(upto=1)
    count = len(list(whole.looking()))
    assert count > 50
    for stop in (1, count // 3, count // 2, count - 1):
        branch = Branch(tmp_path / str(stop), *seconds)
        branch.look(upto=1)
        looking = branch.looking()
        for _ in range(stop):
            next(looking)
        looking.close()
        assert (branch.state.last, branch.state.pending) == ("r0", ())  # all of a batch is noted, or nothing
        branch.look()
        branch.look()
        assert [each.data["revisions"] for each in branch.state.pending] == [["r2"]], stop
        assert branch.state.last == "r3"


def test_delivered_messages_are_those_that_a_receiver_no_longer_waits_for() -> None:
    one = PendingMessage(id="1", subject="slower", text="", data={}, left=("command a", "mail b"))
    before = WatchState(reference="r0", last="r0", pending=(one,))
    now = replace(before, pending=(replace(one, left=("mail b",)),))
    assert delivered(before, now, receivers=("command a", "mail b")) == (("slower", "command a"),)
    assert delivered(before, replace(before, pending=()), receivers=("mail b",)) == (("slower", "mail b"),)


def test_nothing_new_starts_nothing(tmp_path: Path) -> None:
    branch = Branch(tmp_path, 1.0, 1.0)
    branch.look()
    before = branch.state
    seen = branch.look()
    assert (seen.fresh, branch.state) == ((), before)


def test_a_revision_that_does_not_build_is_passed_over(tmp_path: Path) -> None:
    branch = Branch(tmp_path, 1.0, 1.0, 1.5, 1.5, broken=("r2",))
    branch.look(upto=1)
    seen = branch.look()
    assert [str(answer.answer.verdict) for answer in seen.answers] == ["range"]
    assert len(branch.state.reported) == 1


def test_a_revision_is_not_passed_over_for_a_fault_of_the_machine(tmp_path: Path) -> None:
    branch = Branch(tmp_path, 1.0, 1.0, 1.5, 1.5, broken=("r2",))
    branch.look(upto=1)
    branch.error = "ld: final link failed: No space left on device"
    with pytest.raises(NoAnswer, match=r"r2.*No space left on device\. This machine caused the failure"):
        branch.look()
    assert branch.state.last == "r0"
    branch.broken = ()
    assert [str(answer.answer.verdict) for answer in branch.look().answers] == ["found"]


@pytest.mark.parametrize("fails", ["build", "start"])
def test_a_reference_of_no_use_gives_way_to_the_next_revision(tmp_path: Path, fails: str) -> None:
    branch = Branch(tmp_path, 1.0, 1.0, 1.0, 1.5, 1.5, broken=("r0",) if fails == "build" else ())
    branch.crashes = () if fails == "build" else (0,)
    branch.look(upto=1)
    seen = branch.look()
    assert [str(answer.answer.verdict) for answer in seen.answers] == ["found"]
    assert branch.state.reference == "r3"


def test_each_change_of_a_search_has_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TwoRevisions(Find):
        """A search whose answer has one more revision with the same change."""

        def events(self) -> Generator[Event, None, FindAnswer | FindTable]:
            found = yield from super().events()
            assert isinstance(found, FindAnswer)
            [change] = found.answer.changes
            two = (replace(change, positions=(0,)), change)
            return replace(found, answer=replace(found.answer, verdict=Found.SEVERAL, changes=two))

    monkeypatch.setattr("perftrail.verbs.watch.watch.Find", TwoRevisions)
    branch = Branch(tmp_path, 1.0, 1.0, 1.5)
    branch.look(upto=1)
    branch.look()
    assert [each.data["revisions"] for each in branch.state.pending] == [["r1"], ["r2"]]
    assert len(set(branch.state.reported)) == 2


def test_an_unchanged_branch_is_searched_for_nothing(tmp_path: Path) -> None:
    branch = Branch(tmp_path, *[1.0] * 12)
    branch.look(upto=1)
    assert branch.look().answers == ()
    levels = branch.state.levels["work.wall@plain"]
    assert [each.revision for each in levels] == [f"r{number}" for number in range(12)]
