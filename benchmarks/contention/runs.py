"""Runs of the programs, each a study of its own, kept in a directory: what is there is neither measured nor told again.

A run is measured again where the programs, the study, the launcher or its counter are others; what is told of it is
read again from its samples where the code that tells is another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import perftrail.stats
from benchmarks.contention.programs import NOT_MEASURED, OR, SOURCE
from perftrail.results import scaling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

REPOSITORY = Path(__file__).parents[2]

STUDY = """\
[source]
kind = "directory"
location = "source"

[build]
steps = ["cc -O2 -pthread faults.c -o faults"]
outputs = ["faults"]

[benchmark.work]
command = "{{build}}/faults {{fault}} {{threads}}"
parameters = {{ fault = {faults}, threads = [1, 2] }}
counters = [{counters}]

[measure]
warmups = 0
invocations = {invocations}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The runs below `into` with so many `invocations` of each point, with or without counted locks and waits."""

    into: Path
    invocations: int
    counted: bool

    @property
    def home(self) -> Path:
        """Where its runs are; another directory where what is measured is another."""
        sources = [SOURCE, *sorted((REPOSITORY / "launcher").rglob("*.[ch]"))]
        code = _digest([STUDY.encode(), *(file.read_bytes() for file in sources)])
        kind = "counted" if self.counted else "plain"
        return self.into / f"{kind}-{self.invocations}-{code[:12]}"

    def told(self) -> Iterator[Mapping[str, str]]:
        """Return what was told of each program in each finished run."""
        code = _telling()
        for directory in sorted(self.home.glob("run-*")):
            kept = directory / "told.json"
            if kept.exists():
                found = json.loads(kept.read_text(encoding="utf-8"))
                yield found["told"] if found["code"] == code else _tell(directory, found["told"], code)

    def run(self, programs: Sequence[str]) -> None:
        """Take one more run of some programs, or end one that was broken off."""
        number = len([*self.home.glob("run-*/told.json")])
        directory = self.home / f"run-{number:04}"
        study = STUDY.format(
            faults=json.dumps([*programs]),
            counters='"locks"' if self.counted else "",
            invocations=self.invocations,
        )
        (directory / "source").mkdir(parents=True, exist_ok=True)
        (directory / "source" / SOURCE.name).write_bytes(SOURCE.read_bytes())
        (directory / "perftrail.toml").write_text(study, encoding="utf-8")
        _perftrail("run", str(directory))
        _tell(directory, programs, _telling())


def _tell(directory: Path, programs: Iterable[str], code: str) -> dict[str, str]:
    """Read what is told of some programs in a run and keep it, whole or not at all."""
    told = dict.fromkeys(programs, NOT_MEASURED)
    for row in json.loads(_perftrail("show", str(directory), "--json")):
        if row["scaling"] is not None:
            found = row["scaling"]["contention"]
            open_causes = found["candidates"] if len(found["candidates"]) > 1 else []
            causes = found["candidates"] if found["outcome"] == "likely" else open_causes
            told[row["point"]["fault"]] = OR.join(causes) or found["outcome"]
    draft = directory / "told.draft"
    draft.write_text(json.dumps({"code": code, "told": told}, indent=1), encoding="utf-8")
    draft.replace(directory / "told.json")
    return told


def _telling() -> str:
    """Name the code that tells, so that what older code told is not taken for what today's does."""
    files = [Path(scaling.__file__), *sorted(Path(perftrail.stats.__file__).parent.glob("*.py"))]
    return _digest(file.read_bytes() for file in files)


def _digest(parts: Iterable[bytes]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def _perftrail(*words: str) -> str:
    perftrail = Path(sys.executable).with_name("perftrail")
    done = subprocess.run([perftrail, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode()
