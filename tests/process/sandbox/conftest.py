"""A sandbox for each test, and a home with a secret in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.sandbox.sandboxes import Inside, opened


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    with opened(tmp_path) as it:
        yield it


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a secret in it, for the time of the test."""
    path = tmp_path / "home" / "somebody"
    path.mkdir(parents=True)
    (path / "secret").write_text("the secret")
    monkeypatch.setenv("HOME", str(path))
    return path
