"""The implementations under test, for the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perftrail.model.source import Source as SourceTable
from perftrail.ports import Engine, Source
from perftrail.process.launcher import Launcher
from perftrail.sources import open_table
from tests.contracts.engines import ENGINES
from tests.contracts.engines import Case as EngineCase
from tests.contracts.sources import KINDS, PROPERTIES, Case


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """The planted history in one kind of source."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with ExitStack() as stack:
        launcher = stack.enter_context(Launcher())
        planted = KINDS[request.param][0](tmp_path, stack)

        def opened() -> Source:
            if isinstance(planted, SourceTable):
                return open_table(planted, cache=str(tmp_path / "cache"), starter=launcher)
            return planted()

        yield Case(open=opened, **PROPERTIES.get(request.param, {}))  # type: ignore[arg-type] # of each kind


@pytest.fixture(scope="module", params=ENGINES)
def engine_case(request: pytest.FixtureRequest) -> Iterator[EngineCase]:
    """An engine, open for the whole module."""
    with ENGINES[request.param]() as opened:
        yield opened


@pytest.fixture
def engine(engine_case: EngineCase) -> Engine:
    return engine_case.engine
