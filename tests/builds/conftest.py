"""Fixtures of the builder's tests: a launcher and a project to build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perftrail.process.launcher import Launcher
from tests.builds.subject_builder import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with Launcher() as launcher:
        yield Project(tmp_path, launcher)
