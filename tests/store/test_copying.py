"""Copying one store into another: nothing is lost or duplicated, and differences are reported."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail import __version__
from perftrail.errors import NoAnswer, StoreError, StoreLocked, UsageError
from perftrail.model.build import Failure
from perftrail.model.measurement import Draw
from perftrail.store import lock_for_writing, open_store
from perftrail.store import outcomes as kept
from perftrail.store.copying import StoreCopy, copy_store, digests
from perftrail.store.databases import open_snapshot, to_write
from tests.store.examples import (
    BUILD,
    BUILT,
    COMPARISON,
    DRAW,
    EXPLANATION,
    FAILED_BUILD,
    LISTING,
    MACHINE,
    READS,
    RUNNABLE,
    SEARCH,
    acquaint,
    assert_filled,
    fill,
    key,
    measurement,
    step,
)
from tests.store.server import until_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sqlalchemy import Connection

    from perftrail.store.copying import Copied, Digest

    Kinds = tuple[str, str]

KINDS = [
    pytest.param(("sqlite", "postgresql"), marks=pytest.mark.long),
    pytest.param(("postgresql", "sqlite"), marks=pytest.mark.long),
    ("sqlite", "sqlite"),
]


@pytest.fixture
def location(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str, str], str]:
    """Return the location of a store by kind and name; a server's database has one of each."""

    def located(kind: str, name: str) -> str:
        found: str = str(tmp_path / name) if kind == "sqlite" else request.getfixturevalue("postgresql")
        return found

    return located


def contents(location: str) -> Mapping[str, Digest]:
    with open_snapshot(location) as connection:
        return digests(connection)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_a_copy_has_the_content_of_the_original(location: Callable[[str, str], str], kinds: Kinds) -> None:
    one, other = location(kinds[0], "one.db"), location(kinds[1], "other.db")
    with open_store(one, access="write", machine=MACHINE.id) as store:
        fill(store)
    done = copy_store(one, other)
    assert done.added["invocations"] == 5
    assert done.existing.total() == 0
    with open_store(other, access="read") as store:
        assert_filled(store)
    assert contents(one) == contents(other)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_draws_are_copied(location: Callable[[str, str], str], kinds: Kinds) -> None:
    one, other = location(kinds[0], "one.db"), location(kinds[1], "other.db")
    outcomes = (replace(measurement(key(0)), draw=DRAW), replace(measurement(key(1)), draw=Draw(seed=2)))
    with open_store(one, access="write") as store:
        acquaint(store)
        store.add_all(outcomes)
    copy_store(one, other)
    with open_store(other, access="read") as store:
        assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: outcomes}
    assert contents(one) == contents(other)


def test_a_sample_with_another_draw_under_the_same_key_is_reported(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    for where, turn in ((one, 0), (other, 1)):
        with open_store(where, access="write") as store:
            acquaint(store)
            store.add(replace(measurement(key(0)), draw=replace(DRAW, turn=turn)))
    assert len(copy_store(one, other).differs) == 1


def test_a_second_copy_changes_nothing(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    with open_store(one, access="write") as store:
        fill(store)
    copy_store(one, other)
    before = contents(other)
    done = copy_store(one, other)
    assert done.added.total() == 0
    assert done.existing["invocations"] == 5
    assert contents(other) == before


def test_an_interrupted_copy_resumes(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    with open_store(one, access="write") as store:
        acquaint(store)
        store.add_all(measurement(key(ordinal)) for ordinal in range(2500))

    def stop(done: int, total: int) -> None:
        assert (done, total) == (1000, 2500)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        copy_store(one, other, on_progress=stop)
    done = copy_store(one, other)
    assert (done.added["invocations"], done.existing["invocations"]) == (1500, 1000)
    assert contents(one) == contents(other)


def test_stores_of_two_machines_become_one(tmp_path: Path) -> None:
    both = str(tmp_path / "both.db")
    for number in range(2):
        own = str(tmp_path / f"{number}.db")
        with open_store(own, access="write") as store:
            acquaint(store)
            store.add_all(measurement(key(2 * ordinal + number)) for ordinal in range(5))
        copy_store(own, both).refuse_differences(both)
    with open_store(both, access="read") as store:
        kept = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
        assert [each.key.ordinal for each in kept] == list(range(10))
        assert len(store.runnables()) == 2


def test_differing_outcomes_of_one_key_are_reported_and_all_others_copied(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    for location, wall in ((one, 1.0), (other, 2.0)):
        with open_store(location, access="write") as store:
            acquaint(store)
            store.add(measurement(key(0), wall=wall))
            store.open_search(replace(SEARCH, started=f"at {wall}"))
            store.add_step(SEARCH.key, MACHINE.id, step(1, words=f"{wall}"))
    with open_store(one, access="write") as store:
        store.add(measurement(key(1)))
    done = copy_store(one, other)
    assert done.differs == [
        "sample 0 of aaaaaaaaaaaa on machine 0123456789ab",
        f"search {SEARCH.key} on machine {MACHINE.id}",
        f"step 1 of search {SEARCH.key} on machine {MACHINE.id}",
    ]
    with pytest.raises(StoreError, match=r"other\.db: its content differs for sample 0 of a"):
        done.refuse_differences(other)
    with open_store(other, access="read") as store:
        kept = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    assert kept == (measurement(key(0), wall=2.0), measurement(key(1)))


@pytest.mark.parametrize("part", ["values", "methods", "flags", "log", "started", "seconds"])
def test_two_outcomes_that_differ_in_any_part_differ(tmp_path: Path, part: str) -> None:
    others = {
        "values": {"wall": 5.0},
        "methods": {},
        "flags": (),
        "log": "/logs/2",
        "started": "",
        "seconds": 9.0,
    }
    first = measurement(key(0))
    second = replace(first, **{part: others[part]}, **({"methods": {}} if part == "values" else {}))  # type: ignore[arg-type]  # of each part its kind
    locations = [str(tmp_path / f"{number}.db") for number in range(2)]
    for location, outcome in zip(locations, (first, second), strict=True):
        with open_store(location, access="write") as store:
            acquaint(store)
            store.add(outcome)
    assert copy_store(*locations).differs == ["sample 0 of aaaaaaaaaaaa on machine 0123456789ab"]
    assert contents(locations[0])["invocations"] != contents(locations[1])["invocations"]


def test_the_answer_of_a_search_is_copied_and_not_removed(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    with open_store(one, access="write") as store:
        acquaint(store)
        store.open_search(SEARCH)
    copy_store(one, other)
    with open_store(one, access="write") as store:
        store.close_search(SEARCH.key, MACHINE.id, {"verdict": "none"})
    copy_store(one, other).refuse_differences(other)
    with open_store(other, access="write") as store:
        assert store.searches() == [replace(SEARCH, answer={"verdict": "none"})]
    with open_store(str(tmp_path / "third.db"), access="write") as store:
        acquaint(store)
        store.open_search(SEARCH)
    copy_store(str(tmp_path / "third.db"), other).refuse_differences(other)
    with open_store(other, access="read") as store:
        assert store.searches() == [replace(SEARCH, answer={"verdict": "none"})]


def test_the_newer_outcome_of_a_build_counts(tmp_path: Path) -> None:
    old = replace(FAILED_BUILD, finished="2025-01-01T00:00:00+00:00")
    new = replace(BUILD, finished="2025-06-01T00:00:00+00:00")
    for number, (ours, theirs) in enumerate(((old, new), (new, old))):
        one, other = str(tmp_path / f"one{number}.db"), str(tmp_path / f"other{number}.db")
        for location, record in ((one, ours), (other, theirs)):
            with open_store(location, access="write") as store:
                store.add_build(record)
        for _ in range(2):
            copy_store(one, other)
            with open_store(other, access="read") as store:
                assert store.build(BUILT.key) == new


def test_a_build_tried_again_is_copied_with_its_earlier_outcome(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    tried = [
        replace(FAILED_BUILD, outcome=Failure(stage="build", message=f"{number}")) for number in range(3)
    ]
    with open_store(one, access="write") as store:
        store.add_build(tried[0])
    copy_store(one, other)
    with open_store(one, access="write") as store:
        for record in (*tried[1:], BUILD):
            store.add_build(record)
    assert copy_store(one, other).added["builds"] == 3
    assert contents(one) == contents(other)


def test_a_copy_into_a_file_that_another_writes_to_is_refused(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    with open_store(one, access="write") as store:
        fill(store)
    with lock_for_writing(other, wait=False), pytest.raises(StoreLocked):
        copy_store(one, other)


def test_a_copy_of_nothing_or_onto_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="the store is empty"):
        copy_store(str(tmp_path / "one.db"), str(tmp_path / "other.db"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="A and B are the same store"):
        copy_store(str(tmp_path / "one.db"), str(tmp_path / "." / "one.db"))


@pytest.mark.long
def test_a_copy_sees_one_state_while_others_write(postgresql: str, tmp_path: Path) -> None:
    with open_store(postgresql, access="write") as store:
        acquaint(store)
        store.add_all(measurement(key(ordinal)) for ordinal in range(1500))

        def add_more(done: int, _: int) -> None:
            store.add(measurement(key(10_000 + done)))

        target = to_write(str(tmp_path / "other.db"))
        with open_snapshot(postgresql) as connection:
            done = StoreCopy(connection, target, on_progress=add_more).run()
        target.close()
    assert done.added["invocations"] == 1500


@pytest.mark.long
def test_a_copy_continues_where_a_run_stores_the_same_sample_meanwhile(
    postgresql: str, tmp_path: Path
) -> None:
    one = str(tmp_path / "one.db")
    same = [measurement(key(ordinal)) for ordinal in range(3)]
    for location, outcomes in ((one, same), (postgresql, [measurement(key(3))])):
        with open_store(location, access="write") as store:
            acquaint(store)
            store.add_all(outcomes)
    done = beside(
        one,
        postgresql,
        lambda connection: kept.write(connection, same, kept.Interned(), perftrail=__version__),
    )
    assert (done.added["invocations"], done.existing["invocations"]) == (0, 3)
    assert done.differs == []


@pytest.mark.long
def test_two_copies_at_once_duplicate_nothing(postgresql: str, tmp_path: Path) -> None:
    one = str(tmp_path / "one.db")
    for location in (one, postgresql):
        with open_store(location, access="write") as store:
            acquaint(store)
    with open_store(one, access="write") as store:
        store.add_build(FAILED_BUILD)
        store.add_build(BUILD)
    with open_store(postgresql, access="write") as store:
        store.add_build(replace(BUILD, key="0" * 32))
    with open_snapshot(one) as held:
        done = beside(one, postgresql, lambda connection: StoreCopy(held, connection).run())
    assert (done.added["builds"], done.existing["builds"]) == (0, 2)
    assert contents(postgresql)["builds"].rows == 3


def beside(source: str, target: str, work: Callable[[Connection], object]) -> Copied:
    """Copy while another transaction does some work, which ends only when this copy waits for it, or is done."""
    found: list[Copied] = []
    copying = threading.Thread(target=lambda: found.append(copy_store(source, target)))
    other = to_write(target)
    try:
        with other.writing.begin() as connection:
            work(connection)
            copying.start()
            until_waiting(target, copying)
        copying.join(30)
    finally:
        other.close()
    (done,) = found
    return done


def test_a_comparison_is_copied_once(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    with open_store(one, access="write") as store:
        acquaint(store)
        store.add_comparison(COMPARISON)
    assert copy_store(one, other).added["comparisons"] == 1
    assert copy_store(one, other).existing["comparisons"] == 1
    with open_store(other, access="read") as store:
        assert store.comparisons() == [COMPARISON]


def test_explanations_are_copied_once(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    later = replace(EXPLANATION, finished="2025-11-22T05:00:00Z", result={"points": []})
    with open_store(one, access="write") as store:
        for record in (EXPLANATION, later):
            store.add_explanation(record)
    assert copy_store(one, other).added["explanations"] == 2
    assert copy_store(one, other).existing["explanations"] == 2
    with open_store(other, access="read") as store:
        assert store.explanations() == [later]
    assert contents(one) == contents(other)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_listings_are_copied_once_with_their_machine(
    location: Callable[[str, str], str], kinds: Kinds
) -> None:
    one, other = location(kinds[0], "one.db"), location(kinds[1], "other.db")
    later = replace(LISTING, finished="2025-11-22T05:00:00Z", result={"benchmarks": ["\0"]})
    second = replace(LISTING, key="6" * 32)
    with open_store(one, access="write", machine=MACHINE.id) as store:
        acquaint(store)
        for record in (LISTING, second, later):
            store.add_listing(record)
        store.add_build_reads(READS)
    added = copy_store(one, other).added
    assert (added["listings"], added["build_reads"]) == (3, 1)
    again = copy_store(one, other)
    assert (again.added["listings"], again.existing["listings"]) == (0, 3)
    with open_store(other, access="read") as store:
        assert store.listings() == [later, second]
        assert store.build_reads(READS.recipe) == [READS]
    assert contents(one) == contents(other)


@pytest.mark.parametrize("newer_in_target", [False, True])
def test_the_newer_listing_of_a_key_counts(tmp_path: Path, *, newer_in_target: bool) -> None:
    one, other = str(tmp_path / "one.db"), str(tmp_path / "other.db")
    newer = replace(LISTING, finished="2025-11-22T05:00:00Z", result={"benchmarks": []})
    for where, record in zip(
        (other, one) if newer_in_target else (one, other), (newer, LISTING), strict=True
    ):
        with open_store(where, access="write") as store:
            store.add_listing(record)
    assert copy_store(one, other).added["listings"] == (0 if newer_in_target else 1)
    with open_store(other, access="read") as store:
        assert store.listings() == [newer]
