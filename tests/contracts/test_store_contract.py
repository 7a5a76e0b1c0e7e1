"""Contract of stores: in a file, in a server's database, or in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import StoreError
from perftrail.model.benchmark import Point
from perftrail.model.measurement import UNDRAWN, Draw, Machine, Measurement, Origin
from perftrail.model.reads import BuildReads
from perftrail.model.store_records import STATUSES, RegressionNote
from perftrail.model.subject import Revision
from perftrail.store import identifiers, open_store
from perftrail.store.rows import storable
from tests.fakes.memory_store import MemoryStore
from tests.store.examples import (
    BUILD,
    BUILT,
    COMPARISON,
    DRAW,
    EXPLANATION,
    FAILED_BUILD,
    LINK,
    LISTING,
    MACHINE,
    OTHER_MACHINE,
    OTHER_RUNNABLE,
    READS,
    RUNNABLE,
    SEARCH,
    acquaint,
    failed,
    key,
    measurement,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perftrail.model.build import BuildRecord
    from perftrail.model.measurement import Outcome
    from perftrail.ports import Store
    from perftrail.store.sql import SqlStore


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long), "memory"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore | MemoryStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    file = str(tmp_path / "results.db")
    location: str = file if request.param == "sqlite" else request.getfixturevalue("postgresql")
    with open_store(location, access="write") as store:
        yield store


@pytest.fixture
def store(empty: SqlStore | MemoryStore) -> SqlStore | MemoryStore:
    acquaint(empty)
    return empty


# Machines


def contents(store: Store) -> list[object]:
    """Return everything that a store contains."""
    return [
        *(dict(store.machines()), dict(store.builds()), dict(store.subject_builds()), store.build("no")),
        *(list(store.runnables()), list(store.history()), list(store.searches()), list(store.recent(9))),
        *(list(store.steps("no", "where")), list(store.comparisons()), list(store.notes())),
        *(dict(store.outcomes(["no"], "where")), dict(store.samples(["no"], "where", ["wall"]))),
        *(dict(store.first_finished()), list(store.listings()), list(store.explanations())),
        *(list(store.build_reads("no")), store.revisions(), store.sampled_machines()),
        *(store.ran(["no"], "where"), store.progress()),
    ]


def test_a_new_store_is_empty_like_a_missing_one(empty: SqlStore | MemoryStore, tmp_path: Path) -> None:
    assert empty.machines() == {}
    assert empty.build("no") is None
    assert empty.outcomes(["no"], "where") == {"no": ()}
    assert empty.samples(["no"], "where", ["wall"]) == {}
    with open_store(str(tmp_path / "missing.db"), access="read") as missing:
        assert contents(missing) == contents(empty)


def test_a_machine_is_stored_once_with_its_first_facts(empty: SqlStore | MemoryStore) -> None:
    empty.add_machine(MACHINE)
    empty.add_machine(Machine(id=MACHINE.id, facts={"cpu": "another"}))
    empty.add_machine(OTHER_MACHINE)
    assert dict(empty.machines()) == {MACHINE.id: MACHINE, OTHER_MACHINE.id: OTHER_MACHINE}
    assert list(empty.machines()) == [MACHINE.id, OTHER_MACHINE.id]


# Builds


@pytest.mark.parametrize(
    "record", [BUILD, LINK, FAILED_BUILD], ids=["build", "benchmark build", "failed build"]
)
def test_the_outcome_of_a_build_is_returned_as_stored(
    store: SqlStore | MemoryStore, record: BuildRecord
) -> None:
    store.add_build(record)
    assert store.build(record.key) == record


def test_the_last_record_of_a_build_counts(store: SqlStore | MemoryStore) -> None:
    store.add_build(FAILED_BUILD)
    store.add_build(BUILD)
    store.add_build(LINK)
    assert store.build(BUILD.key) == BUILD
    store.add_build(FAILED_BUILD)
    assert store.build(BUILD.key) == FAILED_BUILD
    assert store.builds() == {BUILD.key: FAILED_BUILD, LINK.key: LINK}


def test_a_build_without_a_finite_time_is_refused(store: SqlStore | MemoryStore) -> None:
    with pytest.raises(StoreError, match="its time is nan"):
        store.add_build(replace(BUILD, outcome=replace(BUILT, seconds=math.nan)))
    assert store.build(BUILD.key) is None


# Runnables


def test_runnables_are_returned_in_the_order_of_storing(store: SqlStore | MemoryStore) -> None:
    assert store.runnables() == [RUNNABLE, OTHER_RUNNABLE]
    assert store.runnables("st") == [OTHER_RUNNABLE]
    assert store.runnables("none such") == []


def test_storing_a_runnable_again_has_no_effect(store: SqlStore | MemoryStore) -> None:
    store.add_runnable(OTHER_RUNNABLE)
    store.add_runnable(RUNNABLE)
    assert store.runnables() == [RUNNABLE, OTHER_RUNNABLE]


def test_a_runnable_has_its_last_origin(store: SqlStore | MemoryStore) -> None:
    first, last = Origin(recipe="1", tools=("cc: 12",)), Origin(recipe="1", tools=("cc: 13",))
    for origin in (None, first, last, None):
        store.add_runnable(replace(RUNNABLE, origin=origin))
    assert store.runnables("mt") == [replace(RUNNABLE, origin=last)]
    assert store.runnables("st") == [OTHER_RUNNABLE]
    store.add_runnable(RUNNABLE, last=True)
    assert store.runnables() == [OTHER_RUNNABLE, replace(RUNNABLE, origin=last)]


def test_revisions_are_returned_in_the_order_of_the_history(empty: SqlStore | MemoryStore) -> None:
    old, new = (
        Revision(id="o", summary="Old"),
        Revision(id="n", label="v2", parents=("o",), time="2026-01-01"),
    )
    empty.add_revisions([(7, new)])
    empty.add_revisions([(3, replace(old, label="first"))])
    empty.add_revisions([(2, old), (9, new)])
    assert list(empty.history()) == [old, new]


def test_every_subject_has_its_last_build(empty: SqlStore | MemoryStore) -> None:
    other = replace(BUILD, revision="2" * 40)
    for record in (BUILD, LINK, FAILED_BUILD, other):
        empty.add_build(record)
    name = (BUILD.revision, BUILD.variant)
    assert empty.subject_builds() == {name: FAILED_BUILD, ("2" * 40, BUILD.variant): other}


def test_a_build_that_is_stored_again_keeps_the_time_of_its_first_record(
    empty: SqlStore | MemoryStore,
) -> None:
    again = replace(BUILD, finished="2030-01-01T00:00:00.000+00:00")
    shared = replace(again, revision="2" * 40)
    for record in (BUILD, LINK, again, shared):
        empty.add_build(record)
    name = (BUILD.variant, BUILD.key)
    assert empty.first_finished() == {
        (BUILD.revision, *name): BUILD.finished,
        ("2" * 40, *name): again.finished,
    }


def test_runnables_of_a_machine_are_only_those_that_ran_there(store: SqlStore | MemoryStore) -> None:
    store.add(measurement(key()))
    both = (RUNNABLE.key, OTHER_RUNNABLE.key)
    assert store.ran(both, MACHINE.id) == {RUNNABLE.key}
    assert store.ran([OTHER_RUNNABLE.key], MACHINE.id) == frozenset()
    assert store.ran(both, OTHER_MACHINE.id) == frozenset()
    assert store.ran(both, "unknown") == frozenset()
    assert store.sampled_machines() == {MACHINE.id}


def test_revisions_with_equal_content_share_a_runnable_and_are_both_known(
    store: SqlStore | MemoryStore,
) -> None:
    twin = replace(RUNNABLE, revision="3" * 40)
    store.add_runnable(twin)
    store.add(measurement(key()))
    assert store.runnables("mt") == [RUNNABLE, twin]
    assert len(store.outcomes([twin.key], MACHINE.id)[twin.key]) == 1


def test_a_point_has_its_order_and_types_after_storing(empty: SqlStore | MemoryStore) -> None:
    point = Point((("z", 1), ("a", 1.0), ("m", "1"), ("big", 2**70), ("tiny", 5e-324), ("odd", "\x00ü")))
    empty.add_runnable(replace(RUNNABLE, point=point))
    (stored,) = empty.runnables()
    assert stored.point == point
    assert [type(value) for _, value in stored.point.values] == [int, float, str, int, float, str]


# Outcomes


def test_outcomes_are_returned_as_stored(store: SqlStore | MemoryStore) -> None:
    bare = replace(measurement(key(2)), flags=(), log="", methods={})
    outcomes = (measurement(key(0)), failed(key(1)), bare)
    for outcome in outcomes:
        store.add(outcome)
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: outcomes}


def test_outcomes_are_ordered_by_phase_with_warmups_first_and_then_by_ordinal(
    store: SqlStore | MemoryStore,
) -> None:
    for phase, ordinal in (("sample", 11), ("sample", 2), ("warmup", 1), ("sample", 0), ("warmup", 0)):
        store.add(measurement(key(ordinal, phase=phase)))  # type: ignore[arg-type]  # a literal, from a tuple
    stored = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    assert [(outcome.key.phase, outcome.key.ordinal) for outcome in stored] == [
        ("warmup", 0),
        ("warmup", 1),
        ("sample", 0),
        ("sample", 2),
        ("sample", 11),
    ]


def test_outcomes_of_other_machines_and_runnables_are_separate(store: SqlStore | MemoryStore) -> None:
    first, second = measurement(key(), wall=1.0), measurement(key(machine=OTHER_MACHINE), wall=2.0)
    third = measurement(key(runnable=OTHER_RUNNABLE), wall=3.0)
    for outcome in (first, second, third):
        store.add(outcome)
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: (first,)}
    assert store.outcomes([RUNNABLE.key], OTHER_MACHINE.id) == {RUNNABLE.key: (second,)}
    assert store.outcomes([OTHER_RUNNABLE.key, "unknown"], MACHINE.id) == {
        OTHER_RUNNABLE.key: (third,),
        "unknown": (),
    }


def test_an_outcome_with_an_existing_key_is_refused_and_changes_nothing(
    store: SqlStore | MemoryStore,
) -> None:
    first = measurement(key(), wall=1.0)
    store.add(first)
    for again in (measurement(key(), wall=2.0), failed(key())):
        with pytest.raises(StoreError, match=r"sample 0 of a{12} on machine 0123456789ab exists already"):
            store.add(again)
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: (first,)}
    store.add(measurement(key(1)))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_a_value_that_is_not_finite_is_refused_and_changes_nothing(
    store: SqlStore | MemoryStore, value: float
) -> None:
    outcome = replace(measurement(key()), values={"wall": 1.0, "odd": value})
    with pytest.raises(StoreError, match=r"metric odd is -?(nan|inf)"):
        store.add(replace(outcome, methods={}))
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: ()}


def test_a_method_without_a_value_is_refused(store: SqlStore | MemoryStore) -> None:
    with pytest.raises(StoreError, match="a method but no value for cpu, user"):
        store.add(replace(measurement(key()), methods={"user": "rusage", "cpu": "rusage"}))


def test_an_outcome_of_an_unknown_machine_or_runnable_is_refused(empty: SqlStore | MemoryStore) -> None:
    empty.add_runnable(RUNNABLE)
    with pytest.raises(StoreError, match="does not know this machine; store it with add_machine"):
        empty.add(measurement(key()))
    empty.add_machine(MACHINE)
    with pytest.raises(StoreError, match="does not know this runnable; store it with add_runnable"):
        empty.add(measurement(key(runnable=OTHER_RUNNABLE)))
    empty.add(measurement(key()))


def test_a_batch_is_stored_completely(store: SqlStore | MemoryStore) -> None:
    batch = tuple(measurement(key(ordinal)) for ordinal in range(1203))
    store.add_all(batch)
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: batch}


def test_a_batch_with_a_refused_outcome_is_not_stored(store: SqlStore | MemoryStore) -> None:
    store.add(measurement(key(2)))
    new_metric = Measurement(key=key(9), started="", seconds=0.0, values={"unheard-of": 1.0})
    for batch in (
        [new_metric, measurement(key(2))],
        [new_metric, measurement(key(4)), measurement(key(4))],
        [new_metric, measurement(key(5), wall=math.nan)],
    ):
        with pytest.raises(StoreError):
            store.add_all(batch)
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: (measurement(key(2)),)}
    store.add(new_metric)
    assert store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key][1] == new_metric


@pytest.fixture(params=[50, pytest.param(identifiers.CHUNK, marks=pytest.mark.long)])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of rows that one statement reads or writes."""
    rows: int = request.param
    monkeypatch.setattr(identifiers, "CHUNK", rows)
    return rows


def test_more_runnables_than_one_statement_names_are_read_at_once(
    store: SqlStore | MemoryStore, chunk: int
) -> None:
    runnables = [replace(RUNNABLE, key=f"{number:032x}") for number in range(chunk + 10)]
    for runnable in runnables:
        store.add_runnable(runnable)
    store.add_all(
        [measurement(key(runnable=runnable), wall=index) for index, runnable in enumerate(runnables)]
    )
    stored = store.outcomes([runnable.key for runnable in runnables], MACHINE.id)
    walls = [outcome.values["wall"] for (outcome,) in stored.values() if isinstance(outcome, Measurement)]
    assert walls == list(range(chunk + 10))


def test_random_draws_are_returned_as_stored(store: SqlStore | MemoryStore) -> None:
    outcomes = (
        replace(measurement(key(0)), draw=DRAW),
        replace(failed(key(1)), draw=replace(DRAW, turn=0)),
        replace(measurement(key(2)), draw=Draw(layout=1)),
        replace(measurement(key(3)), draw=Draw(seed=5)),
        measurement(key(4)),
    )
    for outcome in outcomes:
        store.add(outcome)
    stored = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    assert stored == outcomes
    assert stored[4].draw == UNDRAWN
    assert [outcome.draw for _, outcome in store.recent(2)] == [UNDRAWN, Draw(seed=5)]


@pytest.mark.parametrize("draw", [Draw(turn=2**15), Draw(seed=2**63), Draw(layout=-1)], ids=str)
def test_a_draw_that_fits_no_column_is_refused(store: SqlStore | MemoryStore, draw: Draw) -> None:
    with pytest.raises(
        StoreError, match=r"its (turn|seed|layout) is -?\d+; a store accepts numbers from 0 to"
    ):
        store.add(replace(measurement(key()), draw=draw))
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: ()}


# Samples


@pytest.mark.parametrize("others", [0, 30], ids=["all", "few"])
def test_samples_have_their_blocks(store: SqlStore | MemoryStore, others: int) -> None:
    for number in range(others):  # a store uses another query to read few of many runnables
        store.add_runnable(replace(RUNNABLE, key=f"{number:032x}"))
    store.add(replace(measurement(key(0)), draw=DRAW))
    store.add(replace(measurement(key(1)), draw=Draw(block=DRAW.block, seed=1)))
    store.add(replace(measurement(key(2)), draw=Draw(seed=1)))
    store.add(replace(measurement(key(0, phase="warmup")), draw=Draw(block="warm", turn=1)))
    store.add(replace(measurement(key(1, machine=OTHER_MACHINE)), draw=Draw(block="there")))
    samples = store.samples([RUNNABLE.key], MACHINE.id, ["wall"])[RUNNABLE.key]
    assert samples.blocks == {0: DRAW.block, 1: DRAW.block}


def test_samples_are_ordered_by_metric_and_ordinal_without_warmups(store: SqlStore | MemoryStore) -> None:
    store.add(measurement(key(0, phase="warmup"), wall=9.0))
    store.add(replace(measurement(key(2), wall=2.0), flags=()))
    store.add(measurement(key(0), wall=1.0))
    store.add(failed(key(1)))
    store.add(measurement(key(0, machine=OTHER_MACHINE), wall=7.0))
    by_runnable = store.samples(
        [RUNNABLE.key, OTHER_RUNNABLE.key, "unknown"], MACHINE.id, ["wall", "unheard-of"]
    )
    assert list(by_runnable) == [RUNNABLE.key]
    samples = by_runnable[RUNNABLE.key]
    assert samples.values == {"wall": {0: 1.0, 2: 2.0}}
    assert list(samples.values["wall"]) == [0, 2]
    assert samples.flags == {0: ("busy", "output-cut")}
    assert samples.failures == (failed(key(1)).failure.stage,)


def test_failed_invocations_have_no_samples_but_are_stored(store: SqlStore | MemoryStore) -> None:
    store.add(failed(key(0, phase="warmup")))
    samples = store.samples([RUNNABLE.key], MACHINE.id, ["wall"])[RUNNABLE.key]
    assert (samples.values, samples.flags) == ({}, {})
    assert len(samples.failures) == 1


def test_samples_of_more_runnables_than_one_statement_names_are_read_with_their_runnables(
    store: SqlStore | MemoryStore, chunk: int
) -> None:
    count = chunk + 10
    runnables = [replace(RUNNABLE, key=f"{number:032x}", revision=f"{number % 7}") for number in range(count)]
    for runnable in runnables:
        store.add_runnable(runnable)
    store.add_all(
        measurement(key(ordinal, runnable=runnable), wall=number + ordinal / 10)
        for ordinal in (1, 0)
        for number, runnable in enumerate(runnables)
    )
    by_runnable = store.samples([runnable.key for runnable in runnables], MACHINE.id, ["wall", "page_faults"])
    assert [by_runnable[each.key].values["wall"] for each in runnables] == [
        {0: float(number), 1: number + 0.1} for number in range(count)
    ]
    assert all(samples.values["page_faults"] == {0: 112.0, 1: 112.0} for samples in by_runnable.values())
    few = [runnable.key for runnable in runnables[5:count:9]]
    assert store.samples(few, MACHINE.id, ["wall", "page_faults"]) == {
        each: by_runnable[each] for each in few
    }
    assert store.revisions() >= {str(number) for number in range(7)}


# Hostile text


def test_text_that_no_database_accepts_is_stored_escaped(store: SqlStore | MemoryStore) -> None:
    hostile = "caf\udce9 \x00 'quote\" \u202e ✓"
    outcome = failed(key())
    store.add(replace(outcome, failure=replace(outcome.failure, message=hostile, log=hostile)))
    store.add(replace(measurement(key(1)), log=hostile, flags=(hostile,)))
    store.add_build(replace(FAILED_BUILD, outcome=replace(outcome.failure, message=hostile)))
    stored = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    escaped = "caf\\udce9 \\x00 'quote\" \u202e ✓"
    assert stored[0].failure.message == stored[0].failure.log == escaped  # type: ignore[union-attr]  # it failed
    assert stored[1].log == escaped  # type: ignore[union-attr]  # it is a measurement
    assert stored[1].flags == (escaped,)  # type: ignore[union-attr]  # it is a measurement
    build = store.build(FAILED_BUILD.key)
    assert build is not None
    assert build.outcome.message == hostile  # type: ignore[union-attr]  # it failed; JSON keeps all


@pytest.mark.parametrize("name", ["\udc80", "a\x00b"])
def test_names_used_as_keys_must_be_printable(store: SqlStore | MemoryStore, name: str) -> None:
    with pytest.raises(StoreError, match="no store can represent"):
        store.add_runnable(replace(RUNNABLE, key=name))
    with pytest.raises(StoreError, match="no store can represent"):
        store.add_machine(Machine(id=name, facts={}))
    with pytest.raises(StoreError, match="no store can represent"):
        store.add(replace(measurement(key()), values={name: 1.0}, methods={}))


# Searches


def test_a_search_is_opened_once_and_its_last_answer_counts(store: SqlStore | MemoryStore) -> None:
    store.open_search(SEARCH)
    store.open_search(replace(SEARCH, question={"other": True}, started="later"))
    assert store.searches() == [SEARCH]
    store.close_search(SEARCH.key, MACHINE.id, {"verdict": "range"})
    store.close_search(SEARCH.key, MACHINE.id, {"verdict": "found", "changes": [{"confidence": 0.997}]})
    store.open_search(SEARCH)
    assert store.searches() == [
        replace(SEARCH, answer={"verdict": "found", "changes": [{"confidence": 0.997}]})
    ]


def test_one_question_on_two_machines_is_two_searches(store: SqlStore | MemoryStore) -> None:
    on_other_machine = replace(SEARCH, machine=OTHER_MACHINE.id)
    store.open_search(on_other_machine)
    store.open_search(SEARCH)
    store.add_step(SEARCH.key, MACHINE.id, step(1))
    assert store.searches() == [on_other_machine, SEARCH]
    assert store.steps(SEARCH.key, OTHER_MACHINE.id) == []


def test_steps_are_ordered_and_an_equal_number_replaces_the_step(store: SqlStore | MemoryStore) -> None:
    store.open_search(SEARCH)
    for number in (2, 10, 1):
        store.add_step(SEARCH.key, MACHINE.id, step(number))
    store.add_step(SEARCH.key, MACHINE.id, step(2, words="measured again"))
    assert store.steps(SEARCH.key, MACHINE.id) == [step(1), step(2, words="measured again"), step(10)]


def test_comparisons_are_returned_in_the_order_in_which_they_finished(store: SqlStore | MemoryStore) -> None:
    later = replace(
        COMPARISON, machine=OTHER_MACHINE.id, finished="later \x00", result={"rows": [1, None, "é"]}
    )
    store.add_comparison(COMPARISON)
    store.add_comparison(later)
    assert store.comparisons() == [COMPARISON, replace(later, finished="later \\x00")]


def test_a_comparison_needs_a_known_machine_and_plain_data(store: SqlStore | MemoryStore) -> None:
    with pytest.raises(StoreError, match="machine 'unknown' is unknown; store it with add_machine first"):
        store.add_comparison(replace(COMPARISON, machine="unknown"))
    with pytest.raises(StoreError, match=r"comparison: .*only JSON data can be stored"):
        store.add_comparison(replace(COMPARISON, result={"rows": object()}))  # type: ignore[dict-item] # not plain
    assert store.comparisons() == []


def test_the_last_explanation_of_each_key_counts_in_the_order_of_the_first(
    store: SqlStore | MemoryStore,
) -> None:
    assert store.explanations() == []
    other = replace(EXPLANATION, key="6" * 32, against="a\x00", result={})
    again = replace(EXPLANATION, finished="2025-11-22T05:00:00Z", result={"points": [1, None, "é"]})
    for record in (EXPLANATION, other, again):
        store.add_explanation(record)
    assert store.explanations() == [again, replace(other, against="a\\x00")]
    with pytest.raises(StoreError, match=r"explanation .*: contains characters that no store can represent"):
        store.add_explanation(replace(EXPLANATION, key="k\x00"))
    with pytest.raises(StoreError, match=r"explanation 7{12}: .*only JSON data can be stored"):
        store.add_explanation(replace(EXPLANATION, result={"points": object()}))  # type: ignore[dict-item] # not plain


def test_the_last_listing_of_each_key_counts_in_the_order_of_the_first(store: SqlStore | MemoryStore) -> None:
    assert store.listings() == []
    other = replace(LISTING, key="6" * 32, variant="pooled", result={})
    again = replace(LISTING, finished="2025-11-22T05:00:00Z", result={"benchmarks": [1, None, "é"]})
    for record in (LISTING, other, again):
        store.add_listing(record)
    assert store.listings() == [again, other]


def test_the_last_observation_of_each_build_counts(store: SqlStore | MemoryStore) -> None:
    assert store.build_reads(READS.recipe) == []
    outside = {"/opt/include/number.h": "7" * 64, "near/é.txt": "3 bytes of 1"}
    other = replace(READS, key="6" * 32, reads=BuildReads(outside=outside, incomplete="why"))
    another_recipe = replace(READS, key="5" * 32, recipe="4" * 32)
    hostile = BuildReads(opened=frozenset({"a\x00b", "é", "\x1b[31m", "\udce9"}))
    again = replace(READS, reads=hostile)
    before = store.progress()
    for record in (READS, other, another_recipe, again):
        store.add_build_reads(record)
    assert store.progress() != before
    first, second = store.build_reads(READS.recipe)
    assert second == other
    assert first.reads.opened == {storable(path) for path in hostile.opened}
    assert store.build_reads("4" * 32) == [another_recipe]
    with pytest.raises(StoreError, match=r"observation .*: contains characters that no store can represent"):
        store.add_build_reads(replace(READS, key="k\x00"))


def test_hostile_text_of_a_listing_is_escaped_and_its_result_comes_back_exactly(
    store: SqlStore | MemoryStore,
) -> None:
    hostile = "a\x00\udce9\ud800"
    record = replace(
        LISTING, revision=hostile, variant=hostile, finished=hostile, result={hostile: [hostile]}
    )
    store.add_listing(record)
    escaped = "a\\x00\\udce9\\ud800"
    assert store.listings() == [replace(record, revision=escaped, variant=escaped, finished=escaped)]


def test_a_listing_needs_keys_of_valid_text_and_plain_data(store: SqlStore | MemoryStore) -> None:
    with pytest.raises(StoreError, match=r"listing .*: contains characters that no store can represent"):
        store.add_listing(replace(LISTING, key="k\x00"))
    with pytest.raises(StoreError, match=r"suite .*: contains characters that no store can represent"):
        store.add_listing(replace(LISTING, suite="s\udce9"))
    with pytest.raises(StoreError, match=r"listing 5{12}: .*only JSON data can be stored"):
        store.add_listing(replace(LISTING, result={"benchmarks": object()}))  # type: ignore[dict-item] # not plain
    assert store.listings() == []


def test_an_unknown_search_has_no_steps_and_no_answer(store: SqlStore | MemoryStore) -> None:
    with pytest.raises(StoreError, match="is unknown; open it with open_search first"):
        store.add_step(SEARCH.key, MACHINE.id, step(1))
    with pytest.raises(StoreError, match="is unknown; open it"):
        store.close_search(SEARCH.key, "unknown", {})
    with pytest.raises(StoreError, match="machine 'unknown' is unknown; store it with add_machine first"):
        store.open_search(replace(SEARCH, machine="unknown"))


def test_values_that_are_not_json_are_refused(store: SqlStore | MemoryStore) -> None:
    store.open_search(SEARCH)
    odd = replace(step(1), observation={"odd": object()})  # type: ignore[dict-item]  # wrong on purpose
    with pytest.raises(StoreError, match=r"step 1: .* only JSON data can be stored"):
        store.add_step(SEARCH.key, MACHINE.id, odd)
    assert store.steps(SEARCH.key, MACHINE.id) == []


def test_later_changes_of_the_callers_data_have_no_effect(store: SqlStore | MemoryStore) -> None:
    store.open_search(SEARCH)
    belief: list[float] = [0.5]
    store.add_step(SEARCH.key, MACHINE.id, replace(step(1), belief={"candidates": belief}))  # type: ignore[dict-item]  # lists are invariant
    belief.append(0.7)
    assert store.steps(SEARCH.key, MACHINE.id)[0].belief == {"candidates": [0.5]}


# Notes, progress and recent outcomes


def test_notes_are_returned_oldest_first(store: SqlStore | MemoryStore) -> None:
    notes = [
        RegressionNote(
            regression="r", status=status, text=f"<b>{status}</b>\nthe table", author="Ann", written="now"
        )
        for status in STATUSES
    ]
    for note in notes:
        store.add_note(note)
    assert list(store.notes()) == notes


def test_a_note_is_stored_escaped_and_an_unknown_status_is_refused(
    store: SqlStore | MemoryStore,
) -> None:
    note = RegressionNote(regression="r", status="new", text="b\udce9b\x00", author="", written="")
    store.add_note(note)
    assert store.notes()[0].text == "b\\udce9b\\x00"
    with pytest.raises(StoreError, match="is not valid; choose new"):
        store.add_note(replace(note, status="gone"))  # type: ignore[arg-type] # what a form may send


def test_the_progress_mark_differs_after_every_addition(store: SqlStore | MemoryStore) -> None:
    marks = [store.progress()]
    store.add_build(BUILD)
    marks.append(store.progress())
    store.add(measurement(key(0)))
    marks.append(store.progress())
    store.open_search(SEARCH)
    marks.append(store.progress())
    store.add_step(SEARCH.key, MACHINE.id, step(1))
    marks.append(store.progress())
    store.close_search(SEARCH.key, MACHINE.id, {"verdict": "none"})
    marks.append(store.progress())
    store.add_comparison(COMPARISON)
    marks.append(store.progress())
    store.add_explanation(EXPLANATION)
    marks.append(store.progress())
    store.add_listing(LISTING)
    marks.append(store.progress())
    store.add_listing(LISTING)
    marks.append(store.progress())
    store.add_note(RegressionNote(regression="r", status="new", text="", author="", written=""))
    marks.append(store.progress())
    assert len(set(marks)) == len(marks)
    assert store.progress() == marks[-1]


def test_recent_outcomes_come_newest_first_with_their_runnables(store: SqlStore | MemoryStore) -> None:
    assert list(store.recent(5)) == []
    outcomes: list[Outcome] = [
        measurement(key(0)),
        failed(key(1)),
        measurement(key(machine=OTHER_MACHINE, runnable=OTHER_RUNNABLE)),
    ]
    for outcome in outcomes:
        store.add(outcome)
    runnables = [RUNNABLE, RUNNABLE, OTHER_RUNNABLE]
    assert list(store.recent(5)) == list(zip(reversed(runnables), reversed(outcomes), strict=True))
    assert list(store.recent(1)) == [(OTHER_RUNNABLE, outcomes[-1])]
