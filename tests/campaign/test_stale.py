"""The campaign of stale inputs finds nothing in perftrail, and finds each defect that is planted again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from campaign import stale
from perftrail.builds import build_runner
from perftrail.builds.toolchain import Toolchain
from perftrail.measure import build_inputs, invocation
from perftrail.measure.subjects import Ready

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


@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "loss"),
    [
        (
            [(build_inputs, "named_files", no_files), (build_runner, "named_files", no_files)],
            " changed, and ",
        ),
        ([(Toolchain, "programs", no_programs)], "tool changed, and tool measured ()"),
        (
            [(invocation, "declared_environment", shell_environment)],
            "variables of the shell reach a benchmark",
        ),
        ([(Ready, "check_inputs", lambda _: None)], "an input was edited meanwhile"),
    ],
    ids=["files", "programs", "environment", "edited"],
)
def test_a_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: list[tuple[object, str, object]], loss: str
) -> None:
    for owner, name, replacement in planted:
        monkeypatch.setattr(owner, name, replacement)
    assert any(loss in each for each in stale.run(0.0, 1).losses)
