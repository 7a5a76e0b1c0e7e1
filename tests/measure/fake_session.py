"""A session over fakes, and studies for tests."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

from perftrail.local_engine import LocalEngine
from perftrail.measure.events import Event
from perftrail.measure.fixtures import Fixtures
from perftrail.measure.invocation import Invoker
from perftrail.measure.invocation_runner import InvocationRunner
from perftrail.measure.noise_policy import NoiseObserver
from perftrail.measure.session import Session
from perftrail.measure.subjects import SubjectBuilder
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Machine
from perftrail.model.recipe import Variant
from perftrail.model.source import Source
from perftrail.model.study import Invocations, MeasurePolicy, Study
from perftrail.ports import Builder, Starter
from perftrail.process.launcher import Launcher
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.fakes.watcher import FakeWatcher

MACHINE = Machine(id="machine-one", facts={})

Result = TypeVar("Result")


def a_study(**changes: object) -> Study:
    """A study of one benchmark that runs a program of the build."""
    fields: dict[str, object] = {
        "title": "a study",
        "file": "/study/perftrail.toml",
        "directory": "/study",
        "source": Source(kind="git", location="/repository"),
        "benchmarks": {"work": Benchmark(command="{build}/work")},
        "variants": {"plain": Variant()},
        "measure": MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=1),
        **changes,
    }
    return Study(**fields)  # type: ignore[arg-type] # the fields are those of a study, put together loosely


def some_fixtures(study: Study, tmp_path: Path, *, builder: Builder, starter: Starter) -> Fixtures:
    """The fixtures of a study, with a real launcher for each service."""
    return Fixtures(
        study,
        builder=builder,
        starter=starter,
        open_starter=lambda _: Launcher(),
        directory=tmp_path / "fixtures",
        logs=tmp_path / "logs",
        environment={},
    )


def a_session(
    study: Study,
    tmp_path: Path,
    *,
    source: FakeSource,
    starter: Starter,
    builder: FakeBuilder | None = None,
    store: MemoryStore | None = None,
    watcher: FakeWatcher | None = None,
    retry_failed: bool = False,
) -> Session:
    """A session as from `open_session`, with fake ports."""
    builder = builder or FakeBuilder(source)
    store = store or MemoryStore()
    store.add_machine(MACHINE)
    invoker = Invoker(
        study,
        starter=starter,
        builder=builder,
        observer=NoiseObserver(
            watcher or FakeWatcher(),
            study.measure.quiet,
            threshold=study.measure.quiet_threshold,
            sleep=lambda _: None,
        ),
        scratch=tmp_path / "scratch",
        logs=tmp_path / "logs",
        fixtures=some_fixtures(study, tmp_path, builder=builder, starter=starter),
    )
    subject_builder = SubjectBuilder(
        study, source, builder, store, retry_failed=retry_failed, machine=MACHINE.id
    )
    return Session(
        study=study,
        machine=MACHINE,
        source=source,
        store=store,
        subject_builder=subject_builder,
        inputs=subject_builder.build_inputs,
        runner=InvocationRunner(store=store, engine=LocalEngine(), invoker=invoker, machine=MACHINE),
        clock=starter.clock if isinstance(starter, FakeStarter) else time.monotonic,
    )


def drain(workflow: Generator[Event, None, Result]) -> tuple[list[Event], Result]:
    """Run a workflow to its end: its events and its result."""
    events: list[Event] = []
    while True:
        try:
            events.append(next(workflow))
        except StopIteration as stop:
            return events, stop.value
