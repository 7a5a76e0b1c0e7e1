"""Runs of the programs, each a separate study, stored in a directory, so that finished runs are not repeated.

Runs are measured again after a change of the programs, the study, the launcher or its counter. Their reports are read
again from the samples after a change of the code that finds the causes.
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
parameters = {{ fault = {faults}, threads = {threads} }}
counters = [{counters}]

[measure]
warmups = 0
invocations = {invocations}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The runs below `into` with these numbers of `threads` and of `invocations` of each point.

    With `counted`, locks and waits are counted.
    """

    into: Path
    invocations: int
    counted: bool
    threads: tuple[int, ...] = (1, 2)

    @property
    def home(self) -> Path:
        """The directory of the runs, which depends on all that is measured."""
        sources = [SOURCE, *sorted((REPOSITORY / "launcher").rglob("*.[ch]"))]
        code = _digest([STUDY.encode(), *(file.read_bytes() for file in sources)])
        kind = "counted" if self.counted else "plain"
        threads = "-".join(str(each) for each in self.threads)
        return self.into / f"{kind}-{self.invocations}-threads-{threads}-{code[:12]}"

    def reports(self) -> Iterator[Mapping[str, str]]:
        """Return the report of each program in each finished run."""
        code = _reporting_code()
        for directory in sorted(self.home.glob("run-*")):
            file = directory / "told.json"
            if file.exists():
                found = json.loads(file.read_text(encoding="utf-8"))
                yield (
                    found["told"] if found["code"] == code else _read_reports(directory, found["told"], code)
                )

    def run(self, programs: Sequence[str]) -> None:
        """Run some programs once more, or finish an interrupted run."""
        number = len([*self.home.glob("run-*/told.json")])
        directory = self.home / f"run-{number:04}"
        study = STUDY.format(
            faults=json.dumps([*programs]),
            threads=json.dumps([*self.threads]),
            counters='"locks"' if self.counted else "",
            invocations=self.invocations,
        )
        (directory / "source").mkdir(parents=True, exist_ok=True)
        (directory / "source" / SOURCE.name).write_bytes(SOURCE.read_bytes())
        (directory / "perftrail.toml").write_text(study, encoding="utf-8")
        _perftrail("run", str(directory))
        _read_reports(directory, programs, _reporting_code())


def _read_reports(directory: Path, programs: Iterable[str], code: str) -> dict[str, str]:
    """Read the reports of some programs in a run and store them, all or none."""
    reports = dict.fromkeys(programs, NOT_MEASURED)
    for row in json.loads(_perftrail("show", str(directory), "--json")):
        if row["scaling"] is not None:
            found = row["scaling"]["contention"]
            possible = found["candidates"] if len(found["candidates"]) > 1 else []
            causes = found["candidates"] if found["outcome"] == "likely" else possible
            reports[row["point"]["fault"]] = OR.join(causes) or found["outcome"]
    draft = directory / "told.draft"
    draft.write_text(json.dumps({"code": code, "told": reports}, indent=1), encoding="utf-8")
    draft.replace(directory / "told.json")
    return reports


def _reporting_code() -> str:
    """Return a digest of the code that finds the causes, so reports of older code are not reused."""
    files = [Path(scaling.__file__), *sorted(Path(perftrail.stats.__file__).parent.glob("*.py"))]
    return _digest(file.read_bytes() for file in files)


def _digest(parts: Iterable[bytes]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def _perftrail(*arguments: str) -> str:
    perftrail = Path(sys.executable).with_name("perftrail")
    done = subprocess.run(
        [perftrail, *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return done.stdout.decode()
