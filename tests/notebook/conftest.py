"""The study of the docs, measured once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.printing import perftrail
from tests.notebook.example import write_study


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the study, with its results."""
    directory = tmp_path_factory.mktemp("measured")
    write_study(directory)
    perftrail("run", directory)
    return directory
