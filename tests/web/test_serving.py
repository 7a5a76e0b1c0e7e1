"""The values on pages: aggregated points keep their extremes, and the remaining work is estimated."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail import studyfile
from perftrail.charts.frame import HistoryPoint
from perftrail.errors import UsageError
from perftrail.model.measurement import InvocationKey, Machine, Measurement
from perftrail.opening import open_results
from perftrail.present.dashboard.live import Live, noise_note, observe
from perftrail.present.dashboard.metric_history import MetricHistory
from perftrail.present.dashboard.snapshot import Remaining, Snapshot, take_snapshot
from perftrail.present.dashboard.subjects import default_variants, named_revision
from perftrail.store import Holder
from perftrail.web.request_arguments import Part
from perftrail.web.studies import ServedStudy, served_studies
from tests.copied import copy_study
from tests.fakes.memory_store import MemoryStore
from tests.store.examples import RUNNABLE, measurement
from tests.store.examples import key as invocation_key
from tests.web.studies import Hostile, start_again


@pytest.fixture(scope="module")
def snapshot(hostile: Hostile) -> Snapshot:
    return take_snapshot(str(hostile.root / "alpha" / "perftrail.toml"), store=None)


def along(positions: list[int], values: list[float]) -> tuple[HistoryPoint, ...]:
    return tuple(
        HistoryPoint(
            position=at,
            subject="plain",
            revision=str(at),
            value=value,
            low=value - 1,
            high=value + 2,
            count=3,
            last=at,
        )
        for at, value in zip(positions, values, strict=True)
    )


@settings(max_examples=60)
@given(
    positions=st.lists(st.integers(0, 5000), min_size=1, max_size=300, unique=True).map(sorted),
    ends=st.tuples(st.integers(0, 5000), st.integers(0, 5000)),
    most=st.integers(1, 50),
    data=st.data(),
)
def test_neighbours_are_together_and_nothing_is_hidden(
    snapshot: Snapshot, positions: list[int], ends: tuple[int, int], most: int, data: st.DataObject
) -> None:
    values = data.draw(
        st.lists(st.floats(1.0, 1e6), min_size=len(positions), max_size=len(positions)), label="values"
    )
    whole = next(iter(snapshot.histories.values()))
    series = MetricHistory(
        report_data=whole.report_data, history_metric=whole.history_metric, points=along(positions, values)
    )
    first, last = min(ends), max(ends)
    inside = [point for point in series.points if first <= point.position <= last]
    found = series.within(first, last, most=most)
    assert len(found) <= max(most, 1)
    assert sum(each.of for each in found) == len(inside)
    assert sum(each.count for each in found) == sum(each.count for each in inside)
    for each in found:
        own = [point for point in inside if each.position <= point.position <= each.last]
        assert len(own) == each.of
        assert (each.low, each.high) == (min(p.low for p in own), max(p.high for p in own))
        assert each.value == pytest.approx(statistics.median(p.value for p in own))


@given(
    st.integers(1, 100_000).flatmap(
        lambda length: st.tuples(st.just(length), st.integers(0, length - 1), st.integers(0, length - 1))
    ),
    st.sampled_from([-0.5, 0.5]),
    st.sampled_from([0.25, 4.0]),
)
def test_a_part_that_is_moved_or_scaled_stays_in_the_history(
    requested: tuple[int, int, int], share: float, factor: float
) -> None:
    length, one, other = requested
    part = Part(first=min(one, other), last=max(one, other), length=length)
    for each in (part.moved(share), part.scaled(factor)):
        assert 0 <= each.first <= each.last < length
    assert part.moved(share).width == part.width


def test_a_study_that_is_measured_wholly_lacks_nothing(hostile: Hostile) -> None:
    left = take_snapshot(str(hostile.root / "beta" / "perftrail.toml"), store=None).remaining
    assert (left.builds, left.least, left.most) == (0, 0, 0)
    assert left.planned == 12 * 8


def test_what_a_study_lacks_is_counted(hostile: Hostile, tmp_path: Path) -> None:
    file = hostile.root / "beta" / "perftrail.toml"
    grown = hostile.root / "beta" / "more.toml"
    grown.write_text(file.read_text().replace("invocations = 8", 'invocations = "10..12"'))
    try:
        left = take_snapshot(str(grown), store=None).remaining
    finally:
        grown.unlink()
    assert left.builds == 0
    assert left.least == 12 * 2
    assert left.most == 12 * 4


def test_a_revision_is_named_by_place_label_or_the_beginning_of_its_id(
    snapshot: Snapshot, hostile: Hostile
) -> None:
    wanted = hostile.revisions[17]
    for text in ("#17", wanted.id, wanted.id[:12], f" {wanted.short} "):
        assert named_revision(snapshot.report_data, text) == wanted
    for text in ("", "ab", "#900", "nothing of the kind", "#x"):
        with pytest.raises(UsageError):
            named_revision(snapshot.report_data, text)


def test_variants_are_compared_of_which_something_alike_was_measured(
    snapshot: Snapshot, hostile: Hostile
) -> None:
    view = snapshot.report_data.view
    [plain] = view.study.variants.values()
    study = replace(view.study, variants=dict.fromkeys(("first", "plain", "fast", "last"), plain))
    data = replace(snapshot.report_data, view=replace(view, study=study))
    revision = hostile.revisions[0]
    [one, other, *_] = snapshot.rows_of[revision.id]
    rows = [
        replace(row, subject=replace(row.subject, variant=variant))
        for variant, row in (("first", other), ("plain", one), ("fast", one))
    ]
    assert default_variants(data, {revision.id: rows}, revision) == ("plain", "fast")
    assert default_variants(data, {}, revision) == ("first", "last")


def seen(snapshot: Snapshot, hostile: Hostile, command: str) -> Live:
    holder = Holder(pid=1, command=("perftrail", command, "alpha"), started="2025-11-21T10:00:00+00:00")
    study = studyfile.load(str(hostile.root / "alpha" / "perftrail.toml"))
    with open_results(study, store=None) as store:
        return observe(store, snapshot, holder)


def test_a_running_search_shows_its_steps_and_its_posterior(snapshot: Snapshot, hostile: Hostile) -> None:
    live = seen(snapshot, hostile, "find")
    assert live.writer == "perftrail find"
    assert live.progress is None, "the end of a search is not known beforehand"
    assert live.searching is not None
    assert live.searching.steps == 4
    assert live.searching.words.startswith("measured 45")
    assert live.searching.belief == ("15 candidates")
    assert live.searching.section is not None
    assert live.searching.section.chart is not None


def test_a_run_estimates_the_remaining_time_from_its_last_invocations(
    snapshot: Snapshot, hostile: Hostile
) -> None:
    lacking = Remaining(builds=1, build_seconds=30.0, least=10, most=20, planned=610)
    live = seen(replace(snapshot, remaining=lacking), hostile, "run")
    assert live.searching is None
    assert live.progress is not None
    left = live.progress
    assert (left.left_least, left.left_most, left.builds) == (10, 20, 1)
    assert left.share == pytest.approx(left.done / (left.done + 10))
    pace = "at the present pace"
    assert replace(left, seconds=(60.0, 90.0)).words == (
        f"left: 10 to 20 invocations and 1 build, 1 min to 1 min 30 s {pace}"
    )
    one = replace(left, left_least=1, left_most=1, builds=0, seconds=(60.0, 60.0))
    assert one.words == f"left: 1 invocation, 1 min {pace}"
    assert replace(one, left_least=0, left_most=0, builds=2).words == f"left: 2 builds, 1 min {pace}"
    assert "not known" in replace(left, seconds=None).words


def test_a_revision_that_shares_what_was_measured_lacks_nothing(snapshot: Snapshot) -> None:
    left = snapshot.remaining
    assert (left.builds, left.least) == (0, 0), "the last commit changes no file"


@pytest.mark.parametrize(("ago", "seen"), [(5.0, "A measurement on machine fffff"), (500.0, "")])
def test_another_measuring_machine_is_recognised_by_its_stored_samples(
    snapshot: Snapshot, hostile: Hostile, ago: float, seen: str
) -> None:
    store = MemoryStore()
    store.add_machine(Machine(id=hostile.other_machine, facts={}))
    store.add_runnable(RUNNABLE)
    started = datetime.fromtimestamp(time.time() - ago - 1.0, tz=UTC).isoformat()
    named = InvocationKey(runnable=RUNNABLE.key, machine=hostile.other_machine, phase="sample", ordinal=0)
    store.add(Measurement(key=named, started=started, seconds=1.0, values={"wall": 1.0}))
    assert observe(store, snapshot, None).writer.startswith(seen)
    assert bool(observe(store, snapshot, None).writer) == bool(seen)


def test_event_streams_and_single_requests_get_the_same_news(hostile: Hostile, tmp_path: Path) -> None:
    copy_study(hostile.root / "beta", tmp_path / "beta")
    file = tmp_path / "beta" / "perftrail.toml"
    study = studyfile.load(str(file))

    async def look_twice(served_study: ServedStudy) -> tuple[int, int]:
        while await served_study.snapshot() is None:
            await asyncio.sleep(0.05)
        async with aclosing(served_study.watch()) as watched:
            first = await anext(watched)
            assert first is not None
            start_again(study)
            one, other = await served_study.live(), await served_study.live()
            assert one is not None
            assert other is not None
            return (
                one.store_progress.invocations - first.store_progress.invocations,
                other.store_progress.invocations - one.store_progress.invocations,
            )

    with served_studies((str(file),), store=None) as found:
        assert asyncio.run(look_twice(found["beta"])) == (1, 0)


def test_live_steps_say_that_the_machine_is_busy() -> None:
    noisy = measurement(invocation_key())
    quiet = replace(noisy, flags=())
    assert noise_note([]) == noise_note([noisy]) == noise_note([quiet] * 30 + [noisy] * 9) == ""
    assert noise_note([quiet] * 30 + [noisy] * 10) == (
        "10 of the last 40 invocations were noisy: other processes use the machine"
    )
