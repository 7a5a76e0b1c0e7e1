"""The campaign of stale inputs finds nothing in perftrail, and finds each defect that is planted again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from campaign import stale
from perftrail.builds import build_runner
from perftrail.builds.builder import LocalBuilder
from perftrail.builds.toolchain import Toolchain
from perftrail.measure import build_inputs, invocation
from perftrail.measure.invocation import Invoker
from perftrail.measure.subjects import Ready
from perftrail.model.reads import BuildReads

LIMITS = Path(__file__).parents[2] / "docs" / "explanation" / "limits.md"


@pytest.mark.long
def test_every_input_is_measured_again() -> None:
    found = stale.run(0.0, 1)
    assert found.losses == ()
    assert found.trials >= 15


@pytest.mark.parametrize("words", stale.NOT_TRACKED)
def test_every_input_that_is_not_tracked_is_documented(words: str) -> None:
    assert words in LIMITS.read_text()


def no_files(*_: object, **__: object) -> tuple[str, ...]:
    return ()


def no_programs(*_: object, **__: object) -> list[str]:
    return []


def shell_environment() -> dict[str, str]:
    return dict(os.environ)


NOT_OPENED = (Invoker, "opened_files", lambda *_: BuildReads())
"""No benchmark is observed: perftrail would see another program of `PATH` in two ways."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "loss"),
    [
        (
            [(build_inputs, "named_files", no_files), (build_runner, "named_files", no_files)],
            " changed, and ",
        ),
        ([(Toolchain, "programs", no_programs), NOT_OPENED], "tool changed, and tool measured ()"),
        (
            [(invocation, "declared_environment", shell_environment)],
            "variables of the shell reach a benchmark",
        ),
        ([(Ready, "check_inputs", lambda _: None)], "an input was edited meanwhile"),
        ([NOT_OPENED], "opened changed, and opened measured ()"),
        ([(LocalBuilder, "_observes", False)], "built changed, and built measured ()"),
    ],
    ids=["files", "programs", "environment", "edited", "opened", "build"],
)
def test_a_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: list[tuple[object, str, object]], loss: str
) -> None:
    for owner, name, replacement in planted:
        monkeypatch.setattr(owner, name, replacement)
    assert any(loss in each for each in stale.run(0.0, 1).losses)
