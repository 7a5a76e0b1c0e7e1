"""Shared fixtures of the tests of sources; each kind of repository has its fixtures `repository` and `opened`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perftrail.process.launcher import Launcher
from tests.sources.contents import Committing


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture
def merged(repository: Committing) -> dict[str, str]:
    """Two side branches, one merged into the main line at m and one into the first side branch."""
    commits = {}
    commits["a"] = repository.commit({"f": "a"}, subject="a")
    commits["b"] = repository.commit({"f": "b"}, subject="b")
    commits["x"] = repository.commit({"f": "a", "x": "1"}, subject="x", branch="side", parents=[commits["a"]])
    commits["i"] = repository.commit(
        {"f": "a", "i": "1"}, subject="i", branch="inner", parents=[commits["x"]]
    )
    commits["n"] = repository.commit(
        {"f": "a", "x": "1", "i": "1"}, subject="n", branch="side", parents=[commits["x"], commits["i"]]
    )
    commits["m"] = repository.commit(
        {"f": "b", "x": "1", "i": "1"}, subject="m", parents=[commits["b"], commits["n"]]
    )
    commits["c"] = repository.commit({"f": "c", "x": "1", "i": "1"}, subject="c")
    return commits
