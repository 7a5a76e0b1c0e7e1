"""Values to keep in a store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point
from perftrail.model.build import BuildRecord, Built, Failure, Prepared
from perftrail.model.measurement import (
    Draw,
    FailedInvocation,
    InvocationKey,
    Machine,
    Measurement,
    Runnable,
)
from perftrail.model.reads import BuildReads
from perftrail.model.store_records import (
    ComparisonRecord,
    ExplanationRecord,
    ListingRecord,
    ReadsRecord,
    SearchRecord,
    StepRecord,
)

if TYPE_CHECKING:
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Phase
    from perftrail.ports import Store

MACHINE = Machine(id="0123456789abcdef", facts={"cpu": "Example 3000", "logical_cpus": "8"})
OTHER_MACHINE = Machine(id="fedcba9876543210", facts={"cpu": "Example 1000", "logical_cpus": "2"})

RUNNABLE = Runnable(
    key="a" * 32,
    revision="1" * 40,
    variant="plain",
    benchmark="mt",
    point=Point((("threads", 2), ("size", 0.5), ("mode", "fast"))),
    artefact="c" * 32,
)
OTHER_RUNNABLE = Runnable(
    key="b" * 32,
    revision="2" * 40,
    variant="pooled",
    benchmark="st",
    point=Point(),
    artefact="d" * 32,
)

DRAW = Draw(block="5f0c", turn=3, seed=2**63 - 1, layout=7)

BUILT = Built(
    key="e" * 32, artefact="c" * 32, directory="/builds/e", seconds=12.5, log="/logs/e", reused=True
)
BUILD = BuildRecord(
    key=BUILT.key, revision="1" * 40, variant="plain", outcome=BUILT, finished="2025-11-21T02:00:00+00:00"
)
LINK = BuildRecord(
    key="f" * 32,
    revision="1" * 40,
    variant="plain",
    outcome=Prepared(built=BUILT, out="/builds/f", artefact="9" * 32),
    benchmark="mt",
)
FAILED_BUILD = BuildRecord(
    key=BUILT.key,
    revision="1" * 40,
    variant="plain",
    outcome=Failure(stage="build", message="error: no such file", log="/logs/e2", seconds=1.25),
)

COMPARISON = ComparisonRecord(
    machine=MACHINE.id, finished="2025-11-21T04:00:00Z", result={"base": "1" * 40, "rows": [{"low": 1.5}]}
)

EXPLANATION = ExplanationRecord(
    key="7" * 32,
    revision="2" * 40,
    against="1" * 40,
    finished="2025-11-21T06:00:00Z",
    result={"culprit": "2" * 40, "points": []},
)

LISTING = ListingRecord(
    suite="4" * 32,
    key="5" * 32,
    revision="1" * 40,
    variant="plain",
    finished="2025-11-21T05:00:00Z",
    result={"benchmarks": [{"name": "test_sort[1000]", "file": "bench.py"}]},
)

READS = ReadsRecord(
    key="8" * 32,
    recipe="9" * 32,
    revision="1" * 40,
    finished="2025-11-21T06:00:00Z",
    reads=BuildReads(
        opened=frozenset({"main.c", "lib/a b.h"}),
        looked_up=frozenset({"NEWS"}),
        listed=frozenset({"", "lib"}),
    ),
)

SEARCH = SearchRecord(
    key="7" * 32,
    machine=MACHINE.id,
    question={"metric": "wall", "threshold": 0.05},
    started="2025-11-21T03:00:00Z",
)


def key(
    ordinal: int = 0,
    *,
    phase: Phase = "sample",
    runnable: Runnable = RUNNABLE,
    machine: Machine = MACHINE,
) -> InvocationKey:
    return InvocationKey(runnable=runnable.key, machine=machine.id, phase=phase, ordinal=ordinal)


def measurement(invocation: InvocationKey, wall: float = 0.1) -> Measurement:
    return Measurement(
        key=invocation,
        started="2025-11-21T02:37:00.123456+00:00",
        seconds=wall + 0.01,
        values={"wall": wall, "peak_memory": 1048576.0, "page_faults": 112.0},
        methods={"peak_memory": "rusage"},
        flags=("busy", "output-cut"),
        log="/logs/1",
    )


def failed(invocation: InvocationKey) -> FailedInvocation:
    return FailedInvocation(
        key=invocation,
        started="2025-11-21T02:38:00+00:00",
        seconds=60.0,
        failure=Failure(stage="timeout", message="still running after 60 s", log="/logs/2", seconds=60.0),
    )


def step(number: int, words: str = "measured r5 four times") -> StepRecord:
    return StepRecord(
        number=number,
        action={"measure": "5" * 40, "times": 4},
        observation={"values": [1.5, 2, None, True], "nested": {"a": "b"}},
        belief={"candidates": [0.25, 0.75]},
        words=words,
    )


def acquaint(store: Store) -> None:
    """Add the machines and runnables of the examples to a store."""
    for machine in (MACHINE, OTHER_MACHINE):
        store.add_machine(machine)
    for runnable in (RUNNABLE, OTHER_RUNNABLE):
        store.add_runnable(runnable)


OUTCOMES = (
    measurement(key(0, phase="warmup")),
    measurement(key(0)),
    failed(key(1)),
    replace(measurement(key(2)), values={"wall": 0.1, "ratio": 5e-324}, methods={}, flags=(), log=""),
)
ANSWER: dict[str, Json] = {"verdict": "found", "changes": [{"confidence": 0.997}]}


def fill(store: Store) -> None:
    """Fill a store with every kind of row except documents."""
    acquaint(store)
    store.add_runnable(replace(RUNNABLE, revision="3" * 40))
    for record in (FAILED_BUILD, BUILD, LINK):
        store.add_build(record)
    for outcome in OUTCOMES:
        store.add(outcome)
    store.add(measurement(key(machine=OTHER_MACHINE, runnable=OTHER_RUNNABLE)))
    store.open_search(SEARCH)
    store.add_step(SEARCH.key, MACHINE.id, step(1))
    store.close_search(SEARCH.key, MACHINE.id, ANSWER)


def assert_filled(store: Store) -> None:
    assert dict(store.machines()) == {MACHINE.id: MACHINE, OTHER_MACHINE.id: OTHER_MACHINE}
    stored = [replace(each, origin=None) for each in store.runnables()]
    assert stored == [RUNNABLE, OTHER_RUNNABLE, replace(RUNNABLE, revision="3" * 40)]
    assert store.build(BUILD.key) == BUILD
    assert store.build(LINK.key) == LINK
    assert store.outcomes([RUNNABLE.key], MACHINE.id) == {RUNNABLE.key: OUTCOMES}
    assert len(store.outcomes([OTHER_RUNNABLE.key], OTHER_MACHINE.id)[OTHER_RUNNABLE.key]) == 1
    assert store.searches() == [replace(SEARCH, answer=ANSWER)]
    assert store.steps(SEARCH.key, MACHINE.id) == [step(1)]
