"""Everything stored is read back exactly, from a file, a server's database and memory."""

from __future__ import annotations

import itertools
import struct
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared, Stage
from perftrail.model.measurement import FailedInvocation, Measurement
from perftrail.model.store_records import ListingRecord, SearchRecord, StepRecord
from perftrail.store import open_store
from tests.fakes.memory_store import MemoryStore
from tests.store.examples import MACHINE, RUNNABLE, SEARCH, acquaint, key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftrail.model.json_data import Json
    from perftrail.model.measurement import InvocationKey, Outcome
    from perftrail.store.sql import SqlStore

    Stores = tuple[SqlStore, MemoryStore]

ordinals = itertools.count()

clean = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
hostile = st.text(st.characters(exclude_categories=[]), max_size=20)
fsdecoded = st.binary(max_size=20).map(lambda name: name.decode("utf-8", "surrogateescape"))
finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | fsdecoded,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fsdecoded, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(fsdecoded, plain, max_size=4)
keys = st.builds(
    lambda phase: replace(key(next(ordinals)), phase=phase), st.sampled_from(["warmup", "sample"])
)


def failures(text: st.SearchStrategy[str]) -> st.SearchStrategy[Failure]:
    return st.builds(Failure, stage=st.sampled_from(get_args(Stage)), message=text, log=text, seconds=finite)


def outcomes(text: st.SearchStrategy[str]) -> st.SearchStrategy[Outcome]:
    def measure(
        invocation: InvocationKey, values: dict[str, float], seconds: float
    ) -> st.SearchStrategy[Outcome]:
        methods = st.dictionaries(st.sampled_from(sorted(values)), text) if values else st.just({})
        return st.builds(
            Measurement,
            key=st.just(invocation),
            started=text,
            seconds=st.just(seconds),
            values=st.just(values),
            methods=methods,
            flags=st.lists(text, max_size=3).map(tuple),
            log=text,
        )

    measured = st.tuples(keys, st.dictionaries(clean, finite, max_size=6), finite).flatmap(
        lambda drawn: measure(*drawn)
    )
    return measured | st.builds(
        FailedInvocation, key=keys, started=text, seconds=finite, failure=failures(text)
    )


@contextmanager
def beside_memory(location: str) -> Iterator[Stores]:
    """Return the store at a location and one in memory, both with the machines and runnables of the examples."""
    with open_store(location, access="write") as in_database:
        in_memory = MemoryStore()
        for store in (in_database, in_memory):
            acquaint(store)
            store.open_search(SEARCH)
        yield in_database, in_memory


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """The stores of each database in turn, and of the memory."""
    if request.param == "sqlite":
        location = str(tmp_path_factory.mktemp("round-trip") / "results.db")
    else:
        location = request.getfixturevalue("postgresql_server").schema()
    with beside_memory(location) as both:
        yield both


def for_examples(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a function that is given stores and drawn values: few of them, and in a long test many."""

    def test_of(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", [25, pytest.param(100, marks=pytest.mark.long)])
        def test(stores: Stores, examples: int) -> None:
            @settings(max_examples=examples)
            @given(**drawn)
            def each(**values: Any) -> None:
                check(stores, **values)

            each()

        return test

    return test_of


def kept(store: SqlStore | MemoryStore, outcome: Outcome) -> Outcome:
    store.add(outcome)
    (found,) = (
        each for each in store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key] if each.key == outcome.key
    )
    return found


def texts(outcome: Outcome) -> list[str]:
    """Give every free text of an outcome."""
    if isinstance(outcome, Measurement):
        return [outcome.started, outcome.log, *outcome.flags, *outcome.methods.values()]
    return [outcome.started, outcome.failure.message, outcome.failure.log]


def bits(number: float) -> bytes:
    """Give a number's bits; a negative zero counts as zero."""
    return struct.pack("d", number + 0.0)


@for_examples(outcome=outcomes(clean))
def test_an_outcome_comes_back_exactly(stores: Stores, outcome: Outcome) -> None:
    for store in stores:
        found = kept(store, outcome)
        assert found == outcome
        if isinstance(found, Measurement) and isinstance(outcome, Measurement):
            assert {name: bits(value) for name, value in found.values.items()} == {
                name: bits(value) for name, value in outcome.values.items()
            }


@for_examples(outcome=outcomes(hostile | fsdecoded))
def test_hostile_text_comes_back_as_valid_text_and_the_same_from_every_store(
    stores: Stores, outcome: Outcome
) -> None:
    from_database, from_memory = (kept(store, outcome) for store in stores)
    assert from_database == from_memory
    for text in texts(from_database):
        assert "\0" not in text
        assert text.encode("utf-8", "strict").decode() == text


@for_examples(value=finite | st.integers(-(2**53), 2**53).map(float))
def test_a_value_comes_back_bit_for_bit(stores: Stores, value: float) -> None:
    for store in stores:
        found = kept(
            store, Measurement(key=key(next(ordinals)), started="", seconds=value, values={"m": value})
        )
        assert isinstance(found, Measurement)
        assert bits(found.values["m"]) == bits(found.seconds) == bits(value)


@for_examples(number=st.integers(0, 5), action=objects, observation=objects, belief=objects, words=clean)
def test_a_step_comes_back_exactly(
    stores: Stores,
    number: int,
    action: dict[str, Json],
    observation: dict[str, Json],
    belief: dict[str, Json],
    words: str,
) -> None:
    step = StepRecord(number=number, action=action, observation=observation, belief=belief, words=words)
    for store in stores:
        store.add_step(SEARCH.key, MACHINE.id, step)
        assert step in store.steps(SEARCH.key, MACHINE.id)


@for_examples(question=objects, answer=objects, started=clean)
def test_a_search_comes_back_exactly(
    stores: Stores, question: dict[str, Json], answer: dict[str, Json], started: str
) -> None:
    search = SearchRecord(
        key=f"search {next(ordinals)}", machine=MACHINE.id, question=question, started=started
    )
    for store in stores:
        store.open_search(search)
        store.close_search(search.key, MACHINE.id, answer)
        assert store.searches()[-1] == replace(search, answer=answer)


@for_examples(result=objects, text=clean)
def test_a_listing_comes_back_exactly(stores: Stores, result: dict[str, Json], text: str) -> None:
    listing = ListingRecord(
        suite=text, key=f"listing {next(ordinals)}", revision=text, variant=text, finished=text, result=result
    )
    for store in stores:
        store.add_listing(listing)
        assert store.listings()[-1] == listing


builds = st.builds(
    Built, key=clean, artefact=clean, directory=fsdecoded, seconds=finite, log=fsdecoded, reused=st.booleans()
)


@for_examples(
    outcome=builds | st.builds(Prepared, built=builds, out=fsdecoded, artefact=clean) | failures(fsdecoded),
    text=clean,
)
def test_a_build_comes_back_exactly(stores: Stores, outcome: Built | Prepared | Failure, text: str) -> None:
    record = BuildRecord(key="k", revision=text, variant=text, outcome=outcome, benchmark=text, finished=text)
    for store in stores:
        store.add_build(record)
        assert store.build("k") == record


@for_examples(values=st.dictionaries(clean, st.integers() | finite | clean, max_size=4), revision=clean)
def test_a_point_comes_back_exactly(
    stores: Stores, values: dict[str, int | float | str], revision: str
) -> None:
    runnable = replace(RUNNABLE, point=Point(tuple(values.items())), revision=f"{next(ordinals)}{revision}")
    for store in stores:
        store.add_runnable(runnable)
        assert store.runnables()[-1] == runnable
