"""What the builder's tests share: a launcher and a place to build in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perftrail.process.launcher import Launcher
from tests.builds.subject_builder import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Launcher() as launcher:
        yield Place(tmp_path, launcher)
