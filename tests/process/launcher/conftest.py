"""Builds the launcher, plain and with sanitizers, and its test programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.process.launcher import Launcher
from tests.process.launcher.traces import Trial
from tests.shared_directory import shared_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[3]
LAUNCHER = REPOSITORY / "launcher"
TARGETS = Path(__file__).parent / "targets"


COVERAGE = os.environ.get("PERFTRAIL_COVERAGE") == "1"
"""Whether `make coverage` runs the tests: the C code then counts its executed lines and branches."""
COUNTED = ["-DPERFTRAIL_COVERAGE=ON"] if COVERAGE else []
"""Options of a build whose executed lines and branches `make coverage` counts."""


def build_launcher(directory: Path, *options: str) -> Path:
    for command in (
        ["cmake", "-S", str(REPOSITORY), "-B", str(directory), *options],
        ["cmake", "--build", str(directory)],
    ):
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "CC": "cc"},  # as scikit-build-core has it: musl is preferred all the same
        )
        assert done.returncode == 0, done.stdout
    return directory / "perftrail-launcher"


@pytest.fixture(scope="session")
def plain_launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(directory: Path) -> None:
        build_launcher(directory, *COUNTED)

    return shared_directory(tmp_path_factory, "plain", fill=fill) / "perftrail-launcher"


@pytest.fixture(scope="session")
def sanitized_launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(directory: Path) -> None:
        build_launcher(directory, "-DPERFTRAIL_SANITIZE=ON")

    return shared_directory(tmp_path_factory, "sanitized", fill=fill) / "perftrail-launcher"


@pytest.fixture(params=["plain", pytest.param("sanitized", marks=pytest.mark.long)])
def launcher_file(request: pytest.FixtureRequest) -> Path:
    path = request.getfixturevalue(f"{request.param}_launcher")
    assert isinstance(path, Path)
    return path


@pytest.fixture
def launcher(launcher_file: Path) -> Iterator[Launcher]:
    with Launcher(launcher_file) as started:
        yield started


@pytest.fixture(scope="session")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_directory(tmp_path_factory, "targets", fill=_build_targets)


def _build_targets(directory: Path) -> None:
    compiler = shutil.which("cc") or "gcc"
    for source in sorted(TARGETS.glob("*.c")):
        bare = ["-nostdlib", "-static"] if source.stem == "exit_at_once" else []
        subprocess.run(
            [compiler, "-O1", *bare, "-pthread", "-o", directory / source.stem, source], check=True
        )


@pytest.fixture
def trial(targets: Path, tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(targets=targets, directory=tmp_path)
    yield trial
    trial.clean()
