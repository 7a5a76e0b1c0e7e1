"""Fixtures: a directory whose build lines run under perftrail-recorder."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.builds.links.record import CannotPin, Pinned, RawRecord, programs_in, read_record, store_links
from perftrail.builds.links.replay import Replay
from perftrail.installed_programs import recorder_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_linker(arguments: Sequence[str], environment: Mapping[str, str], directory: str) -> str:
    done = subprocess.run(
        arguments,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(environment),
        cwd=directory,
    )
    if done.returncode:
        raise CannotPin(done.stdout)
    return done.stdout


@dataclass
class Recorded:
    """A directory with sources: build lines that run in it are recorded, and their links are stored."""

    directory: Path

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            path = self.directory / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def build(self, line: str, *outputs: str) -> Pinned:
        raw, tree = RawRecord(self.directory / "recording"), self.directory / "tree"
        raw.begin()
        subprocess.run(
            [str(recorder_path()), str(raw.directory), "/bin/sh", "-eu", "-c", line],
            check=True,
            cwd=tree,
            env={**os.environ, "HOME": str(self.directory), "GOFLAGS": "-mod=mod", "GOTELEMETRY": "off"},
            timeout=200,
        )
        programs = programs_in(((name, tree / name) for name in outputs), since_ns=raw.began_ns)
        store_links(raw, programs, self.directory / "links")
        return self.record

    @property
    def record(self) -> Pinned:
        return read_record(self.directory / "links")

    def replay(self, number: int = 0) -> Replay:
        scratch = self.directory / f"scratch-{len(list(self.directory.glob('scratch-*')))}"
        scratch.mkdir()
        written = scratch / "written"
        written.mkdir()
        return Replay(self.record.links[number], self.directory / "links", scratch, written=written)

    def linked(self, seed: int, number: int = 0) -> Path:
        into = self.directory / f"layout-{seed}-{number}"
        self.replay(number).link(seed, into, run_linker)
        into.chmod(0o755)
        return into


def addresses(program: Path) -> dict[str, int]:
    """Return the addresses of a program's functions."""
    listed = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    return {found[2]: int(found[1], 16) for found in re.finditer(r"^(\w+) [tT] (\S+)$", listed, re.MULTILINE)}


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)
