"""Sandboxes of a study with files, for the sandbox's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perftrail.measure.sandboxes import Sandboxes, why_no_sandbox
from perftrail.model.process import Command, Ran
from perftrail.model.sandbox import Phase, Sandbox
from perftrail.ports import Starter
from perftrail.process.launcher import Launcher
from tests.needs import missing

WHY_NONE = why_no_sandbox()

needs_sandbox = pytest.mark.skipif(bool(WHY_NONE), reason=missing("bwrap") or WHY_NONE or "there is one")


@dataclass
class Inside:
    """A sandbox of a study: its own directory can be changed, the study's read."""

    starter: Starter
    study: Path
    own: Path
    logs: Path
    memory_cgroup: str | None
    output: str = field(default="")

    def run(self, script: str, **how: object) -> Ran:
        """Run a shell script in the sandbox and keep its output."""
        log = self.logs / "output"
        command = {
            "environment": {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "LC_ALL": "C.UTF-8"},
            "directory": str(self.own),
            "stdout": str(log),
            "stderr": str(log),
            "timeout_seconds": 30.0,
            **how,
        }
        ran = self.starter.run(Command(arguments=("/bin/sh", "-c", script), **command))  # type: ignore[arg-type] # arguments of a test
        self.output = log.read_text(errors="replace") if log.exists() else ""
        return ran


@contextmanager
def opened(root: Path, sandbox: Sandbox | None = None, *, phase: Phase = "build") -> Iterator[Inside]:
    """Open a sandbox for a study below a directory."""
    study, results = root / "study", root / "study" / ".perftrail"
    own, logs = results / "builds" / "own", results / "logs"
    for directory in (own, logs):
        directory.mkdir(parents=True)
    (study / "perftrail.toml").write_text("# the study\n")
    with Launcher() as outside:
        sandboxes = Sandboxes(
            sandbox or Sandbox(), study_directory=str(study), results=results, outside=outside.start()
        )
        sandboxes.prepare()
        memory = outside.start().memory_cgroup
        with sandboxes.sandboxed(phase, [str(own)]) as starter:
            yield Inside(starter=starter, study=study, own=own, logs=logs, memory_cgroup=memory)
