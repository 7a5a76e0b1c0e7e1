"""Fixtures of the tests of Fossil: repositories, and a function that opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perftrail.model.source import Source as SourceTable
from perftrail.process.launcher import Launcher
from perftrail.sources.fossil import FossilSource
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, fossil


@pytest.fixture
def repository(tmp_path: Path) -> FossilRepository:
    return FossilRepository(tmp_path / "project.fossil")


@pytest.fixture
def opened(tmp_path: Path, launcher: Launcher, repository: FossilRepository) -> Open:
    def open_it(location: object = None, cache: str = "cache", **keys: Any) -> FossilSource:
        where = str(location or repository.make())
        return FossilSource(
            SourceTable(kind="fossil", location=where, **keys), cache=str(tmp_path / cache), starter=launcher
        )

    return open_it


@pytest.fixture
def lived_in(tmp_path: Path) -> tuple[Path, Path]:
    """A repository and a check-out of it, made as a developer makes them."""
    file, checkout = tmp_path / "lived.fossil", tmp_path / "check out"
    fossil("new", str(file), directory=tmp_path)
    checkout.mkdir()
    fossil("open", str(file), "--workdir", str(checkout), directory=tmp_path)
    fossil("settings", "autosync", "off", directory=checkout)
    for number in range(3):
        (checkout / "a").write_text(f"{'x' * number}\n")
        fossil("addremove", directory=checkout)
        fossil("commit", "-m", f"change {number}", "--tag", f"v{number}", "--no-warnings", directory=checkout)
    return file, checkout
