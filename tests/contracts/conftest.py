"""The implementations under test, for the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from perftrail.model.source import Source as SourceTable
from perftrail.ports import Engine, Source
from perftrail.process.launcher import Launcher
from perftrail.sources import open_table
from tests.contracts.engines import ENGINES
from tests.contracts.engines import Case as EngineCase
from tests.contracts.sources import CACHE, KINDS, PROPERTIES, Case


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """The planted history in one kind of source, for all tests of a module: some kinds take seconds to open."""
    directory = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("PIP_CONFIG_FILE", "/dev/null")
        launcher = stack.enter_context(Launcher())
        planted = KINDS[request.param][0](directory, stack)

        def opened() -> Source:
            if isinstance(planted, SourceTable):
                return open_table(planted, cache=str(directory / CACHE), starter=launcher)
            return planted()

        yield Case(open=opened, directory=directory, **PROPERTIES.get(request.param, {}))  # type: ignore[arg-type] # of each kind


@pytest.fixture(scope="module", params=ENGINES)
def engine_case(request: pytest.FixtureRequest) -> Iterator[EngineCase]:
    """An engine, open for the whole module."""
    with ENGINES[request.param]() as opened:
        yield opened


@pytest.fixture
def engine(engine_case: EngineCase) -> Engine:
    return engine_case.engine
