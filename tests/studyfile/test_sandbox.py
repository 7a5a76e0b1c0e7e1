"""Keys of the sandbox in a study file, and each mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.model.sandbox import Sandbox
from tests.studyfile.studies import SMALL, complaints, read

OPENED = """
[sandbox]
always = true
network = "build"
readable = ["~/.cargo"]
why = "cargo fetches the crates"
memory = "4GiB"
processes = 100
disk = "2GiB"
"""


def test_a_study_has_a_sandbox_that_is_closed_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert read(tmp_path, SMALL).sandbox == Sandbox()
    assert not any(Sandbox().has_network(phase) for phase in ("build", "run"))


def test_a_sandbox_is_opened_with_a_reason(tmp_path: Path) -> None:
    assert read(tmp_path, SMALL + OPENED).sandbox == Sandbox(
        always=True,
        network="build",
        readable=("~/.cargo",),
        why="cargo fetches the crates",
        memory_bytes=4 << 30,
        processes=100,
        disk_bytes=2 << 30,
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ('network = "run"', "9: sandbox.network: opens the sandbox; write the reason in sandbox.why"),
        ('readable = ["/opt/x"]', "9: sandbox.readable: opens the sandbox; write the reason in sandbox.why"),
        (
            'why = " "\nnetwork = "run"',
            "10: sandbox.network: opens the sandbox; write the reason in sandbox.why",
        ),
        ('readable = [".cargo"]\nwhy = "x"', '9: sandbox.readable: ".cargo": write ~/PATH or /PATH'),
        (
            'readable = ["~/"]\nwhy = "x"',
            '9: sandbox.readable: "~/" would show everything; name what is needed in it',
        ),
        ('readable = ["~/a/../.."]\nwhy = "x"', '9: sandbox.readable: "~/a/../..": write it without ".."'),
        ("disk = 1000", "9: sandbox.disk: "),
        ("processes = 1", "9: sandbox.processes: "),
        ('network = "yes"', "9: sandbox.network: "),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, keys: str, expected: str) -> None:
    [complaint] = complaints(tmp_path, f"{SMALL}\n[sandbox]\n{keys}\n")
    assert complaint.startswith(f"perftrail.toml:{expected}")
