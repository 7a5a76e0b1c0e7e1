"""The verdict of each tool on two commands, as its users get it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from scipy.stats import ttest_ind

WELCH_LEVEL = 0.05
"""The level of significance in hyperfine's script for Welch's test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on the second command against the first, by metric, and the number of pairs."""

    verdicts: dict[str, str]
    pairs: int


class Tool(Protocol):
    """A tool that compares two commands."""

    @property
    def name(self) -> str:
        """The name of the tool in the table."""
        ...

    def judge(self, first: str, second: str) -> Judgement:
        """Compare two commands."""
        ...


@dataclass(frozen=True, slots=True)
class Perftrail:
    """`perftrail measure` with its defaults: wall and CPU time, at most `most` pairs."""

    most: int = 150
    threshold: str | None = None
    name: str = "perftrail measure"

    def judge(self, first: str, second: str) -> Judgement:
        """Return the verdicts from its JSON."""
        command = [
            sys.executable,
            "-m",
            "perftrail",
            "measure",
            "--json",
            "--max-runs",
            str(self.most),
            *(["--threshold", self.threshold] if self.threshold else []),
            first,
            second,
        ]
        result = _json(command)
        verdicts = {each["metric"]: each["verdict"] for each in result["comparison"]}
        return Judgement(verdicts=verdicts, pairs=result["results"][0]["invocations"])


@dataclass(frozen=True, slots=True)
class Hyperfine:
    """hyperfine with the Welch test of its script at p < .05, twelve runs of each."""

    program: str = "hyperfine"
    runs: int = 12
    name: str = "hyperfine, Welch p < .05"

    def judge(self, first: str, second: str) -> Judgement:
        """Run both, one after the other as hyperfine does, and test the times."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "times.json")
            command = [
                self.program,
                "-N",
                "-w",
                "1",
                "-r",
                str(self.runs),
                "--export-json",
                str(file),
                first,
                second,
            ]
            subprocess.run(command, check=True, capture_output=True)
            results = json.loads(file.read_text())["results"]
        before, after = results[0]["times"], results[1]["times"]
        p_value = float(ttest_ind(before, after, equal_var=False).pvalue)
        slower = sum(after) / len(after) > sum(before) / len(before)
        different = "slower" if slower else "faster"
        return Judgement(
            verdicts={"wall": different if p_value < WELCH_LEVEL else "unclear"}, pairs=self.runs
        )


@dataclass(frozen=True, slots=True)
class Pyperf:
    """`pyperf command` of both, then `pyperf compare_to`, with its default test at 95 %.

    One loop for each value: by default, pyperf runs this program 16 times for each value and takes 23 s for a trial.
    """

    processes: int = 5
    values: int = 6
    name: str = "pyperf compare_to, -l 1"

    def judge(self, first: str, second: str) -> Judgement:
        """Measure and compare with pyperf."""
        with tempfile.TemporaryDirectory() as directory:
            files = [str(Path(directory, name)) for name in ("first.json", "second.json")]
            for file, command in zip(files, (first, second), strict=True):
                run = [
                    "command",
                    "-p",
                    str(self.processes),
                    "-n",
                    str(self.values),
                    "-w",
                    "1",
                    "-l",
                    "1",
                    "-o",
                    file,
                    "--",
                    *command.split(),
                ]
                subprocess.run([sys.executable, "-m", "pyperf", *run], check=True, capture_output=True)
            compare = [sys.executable, "-m", "pyperf", "compare_to", *files]
            output = subprocess.run(compare, check=True, capture_output=True, text=True).stdout
        verdict = next((word for word in ("faster", "slower") if word in output), "unclear")
        return Judgement(verdicts={"wall": verdict}, pairs=self.values * self.processes)


def installed(most: int, threshold: str | None) -> list[Tool]:
    """Return every installed tool; pyperf must be in the environment of perftrail."""
    tools: list[Tool] = [Perftrail(most, threshold)]
    if shutil.which("hyperfine"):
        tools.append(Hyperfine())
    return [*tools, Pyperf()] if find_spec("pyperf") else tools


def _json(command: list[str]) -> Any:  # noqa: ANN401 - a peer's JSON
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
