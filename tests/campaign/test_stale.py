"""The campaign of stale inputs finds nothing in perftrail, and finds each defect that is planted again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from campaign import stale
from perftrail.builds import build_runner
from perftrail.builds.builder import LocalBuilder
from perftrail.builds.observing import Scope
from perftrail.builds.opened_files import OpenedFiles
from perftrail.builds.toolchain import Toolchain
from perftrail.measure import build_inputs, invocation
from perftrail.measure.invocation import Invoker
from perftrail.measure.opened_inputs import OpenedInputs
from perftrail.measure.subjects import Ready
from perftrail.model.plan import Cell
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


opened_by, contents_of = OpenedInputs._opened, Scope.contents


def opened_by_any_point(opened: OpenedInputs, cell: Cell, _: str) -> OpenedFiles:
    return opened_by(opened, cell, "")


def contents_of_existing(scope: Scope, paths: Iterable[str], **_: object) -> dict[str, str]:
    return contents_of(scope, paths)


@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "tried", "loss"),
    [
        (
            [(build_inputs, "named_files", no_files), (build_runner, "named_files", no_files), NOT_OPENED],
            "glob",
            "glob changed, and glob measured ()",
        ),
        (
            [(Toolchain, "programs", no_programs), NOT_OPENED],
            "tool",
            "tool changed, and tool measured ()",
        ),
        (
            [(invocation, "declared_environment", shell_environment)],
            "_other_shell",
            "variables of the shell reach a benchmark",
        ),
        ([(Ready, "check_inputs", lambda _: None)], "_edited_meanwhile", "an input was edited meanwhile"),
        ([NOT_OPENED], "opened", "opened changed, and opened measured ()"),
        (
            [(OpenedInputs, "_opened", opened_by_any_point)],
            "_file_of_one_point",
            "point changed, and point measured ",
        ),
        ([(Scope, "contents", contents_of_existing)], "_found_first", "a library was found first"),
        ([(LocalBuilder, "_observes", False)], "_header_of_build", "built changed, and built measured ()"),
    ],
    ids=["files", "programs", "environment", "edited", "opened", "point", "absent", "build"],
)
def test_a_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: list[tuple[object, str, object]], tried: str, loss: str
) -> None:
    """Each of them was once in perftrail. The campaign tries only the input that finds it: all take minutes."""
    for owner, name, replacement in planted:
        monkeypatch.setattr(owner, name, replacement)
    inputs = stale._inputs
    wanted = tried if not tried.startswith("_") else "plain"
    monkeypatch.setattr(stale, "_inputs", lambda outside: {wanted: inputs(outside)[wanted]})
    monkeypatch.setattr(stale, "CHECKS", [each for each in stale.CHECKS if each.__name__ == tried])
    assert any(loss in each for each in stale.run(0.0, 1).losses)
