"""Fixtures of the tests of git: a repository, and a function that opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perftrail.model.source import Source as SourceTable
from perftrail.process.launcher import Launcher
from perftrail.sources.git import GitSource
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def opened(tmp_path: Path, launcher: Launcher, repository: Repository) -> Open:
    def open_it(location: object = None, cache: str = "cache", **keys: Any) -> GitSource:
        where = str(location or repository.path)
        return GitSource(
            SourceTable(kind="git", location=where, **keys), cache=str(tmp_path / cache), starter=launcher
        )

    return open_it
