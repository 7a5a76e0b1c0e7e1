"""The content key of a runnable: what samples depend on, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.build import Built, Prepared
from perftrail.model.metrics import Metric
from perftrail.model.plan import Cell
from perftrail.model.recipe import Variant
from perftrail.model.runnable_key import runnable_key
from perftrail.model.service import Readiness, Service
from perftrail.model.source import Source
from perftrail.model.study import Study
from perftrail.model.subject import Revision, Subject

PLAIN = Benchmark(
    command="{build}/work {n}",
    parameters={"n": (1, 2)},
    env={"A": "b"},
    metrics={"t": Metric(pattern="t (.*)", unit="s")},
)
SERVED = replace(PLAIN, services=("db",), setup=("load {port}",))
DB = Service(command="{build}/server {data} {port}", ready=Readiness(line="ready"))

KEY_OF_PLAIN = "5a015824ba5175577463a2e8edfa94f7"
"""Key of `PLAIN` in every release: stored samples have it."""


def key(benchmark: Benchmark, *, service: Service = DB, programs: tuple[str, ...] = ()) -> str:
    """Return the key of one cell of a study with this benchmark."""
    study = Study(
        title="a study",
        file="/study/perftrail.toml",
        directory="/study",
        source=Source(kind="git", location="/repository"),
        benchmarks={"work": benchmark},
        variants={"plain": Variant()},
        services={"db": service},
    )
    cell = Cell(
        subject=Subject(revision=Revision(id="1" * 40), variant="plain"),
        benchmark="work",
        point=Point((("n", 1),)),
    )
    built = Built(key="k", artefact="a", directory="/builds/k/tree", seconds=1.0)
    return runnable_key(study, cell, Prepared(built=built, out="", artefact="o"), programs=programs)


def test_a_benchmark_without_a_fixture_keeps_its_key() -> None:
    assert key(PLAIN) == KEY_OF_PLAIN


def test_samples_of_other_programs_are_not_reused() -> None:
    keys = {key(PLAIN, programs=programs) for programs in ((), ("awk 1",), ("awk 2",))}
    assert len(keys) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"setup": ("load more",)},
        {"prepare": ("sync",)},
        {"conclude": ("sync",)},
        {"cleanup": ("drop",)},
        {"measure": "server"},
        {"drop_caches": True},
        {"cpus": (0,)},
        {"nice": 0},
        {"numa": (0,)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_samples_of_another_fixture_are_not_reused(change: dict[str, object]) -> None:
    assert key(replace(SERVED, **change)) != key(SERVED)  # type: ignore[arg-type] # fields of a benchmark


@pytest.mark.parametrize(
    "change",
    [
        {"command": "{build}/server --fast {data} {port}"},
        {"setup": ("create {data}",)},
        {"ready": Readiness(command="ask")},
        {"env": {"MODE": "fast"}},
        {"restart": "each"},
        {"cpus": (1,)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_samples_of_another_service_are_not_reused(change: dict[str, object]) -> None:
    assert key(SERVED, service=replace(DB, **change)) != key(SERVED)  # type: ignore[arg-type] # as above
    assert key(PLAIN, service=replace(DB, **change)) == KEY_OF_PLAIN  # type: ignore[arg-type] # as above


def test_the_build_of_a_service_is_part_of_the_key() -> None:
    study_command = replace(SERVED, command="ask {port}", setup=())
    assert key(study_command) != key(study_command, service=replace(DB, command="server {data} {port}"))
