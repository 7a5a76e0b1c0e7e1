"""The verdicts of perftrail and its peers on two programs: slower, faster, the same or unclear."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol

import click
import numpy as np
from scipy.stats import ttest_ind

from benchmarks.search.strategies.pinpoint import DIFFERENT, SAME, SAMPLES, smaller_p
from benchmarks.verdicts.tools import WELCH_LEVEL, Hyperfine
from perftrail.model.process import Command, Exited

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from benchmarks.layout.history import History
    from perftrail.process.launcher import Launcher

    Floats = npt.NDArray[np.float64]

WELCH_RUNS = 30
"""Runs of each program for Welch's test on interleaved runs."""

STUDY = """\
[study]
title = "{name}: commits that change only the layout"

[source]
kind = "git"
location = "repository"
range = "{first}..layout"

[build]
steps = {steps}
outputs = ["program"]
{relink}

[benchmark.work]
command = '{{build}}/program {arguments}'
timeout = "60s"

[measure]
invocations = "5..{pairs}"
precision = {threshold}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two commits of a history that are compared: `head` with `base`."""

    history: History
    base: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on the head, with the runs of each program and the number of layouts; 0 without relinking."""

    verdict: str
    runs: int
    layouts: int = 0


class Method(Protocol):
    """A way to compare two programs."""

    @property
    def name(self) -> str:
        """The name of the method in the table."""
        ...

    def prepare(self, pair: Pair) -> None:
        """Do the work that is not timed: building."""
        ...

    def judge(self, pair: Pair) -> Judgement:
        """Compare the head with the base."""
        ...


@dataclass(frozen=True, slots=True)
class Perftrail:
    """`perftrail compare` on a study of the history, with or without relinking.

    Each comparison starts without earlier samples, but with the existing builds.
    """

    pairs: int
    threshold: float
    metric: str
    relink: bool

    @property
    def name(self) -> str:
        """The name of the method in the table."""
        return "perftrail, relinked" if self.relink else "perftrail"

    def prepare(self, pair: Pair) -> None:
        """Write the study and build both commits."""
        directory = self._results_directory(pair.history)
        self._study(pair.history).write_text(self._text(pair.history))
        for commit in (pair.base, pair.head):
            self._run(["build", commit, str(self._study(pair.history)), "--store", str(directory)])
        for file in directory.glob("results.db*"):
            file.unlink()

    def judge(self, pair: Pair) -> Judgement:
        """Return the verdict from its JSON: slower or faster if any metric is."""
        result = json.loads(
            self._run(
                [
                    "compare", pair.base, pair.head, str(self._study(pair.history)), "--json",
                    "--store", str(self._results_directory(pair.history)), "--metric", self.metric,
                ]
            )
        )  # fmt: skip
        verdicts = [each["verdict"] for each in result["comparisons"]]
        order = ("slower", "faster", "unclear", "same")
        verdict = next((each for each in order if each in verdicts), "unclear")
        layouts = max((each.get("layouts", 0) for each in result["comparisons"]), default=0)
        return Judgement(verdict=verdict, runs=result["invocations"] // 2, layouts=layouts)

    def _results_directory(self, history: History) -> Path:
        return history.directory / ("relinked" if self.relink else "linked")

    def _study(self, history: History) -> Path:
        return self._results_directory(history).with_suffix(".toml")

    def _text(self, history: History) -> str:
        project = history.project
        # a TOML array of texts is written like a JSON array
        relink = f"relink = {json.dumps(project.relink)}" if self.relink else ""
        return STUDY.format(
            name=history.directory.name,
            first=history.steps[0].commit,
            steps=json.dumps(project.steps),
            relink=relink,
            arguments=project.arguments.replace("{input}", "{study}/input"),
            pairs=self.pairs,
            threshold=self.threshold,
        )

    @staticmethod
    def _run(arguments: Sequence[str]) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "perftrail", *arguments], check=False, capture_output=True, text=True
        )
        if done.returncode not in (0, 3):
            raise click.ClickException(
                f"perftrail {' '.join(arguments)}: exit {done.returncode}: {done.stderr}"
            )
        return done.stdout


class Runs(Protocol):
    """Runs of two programs."""

    def values(self, base: int, head: int) -> tuple[Floats, Floats]:
        """Return the first `base` and `head` values."""
        ...


class Interleaved:
    """Interleaved runs of two programs (ABBA)."""

    def __init__(self, launcher: Launcher, pair: Pair, *, metric: str) -> None:
        self._launcher = launcher
        self._pair = pair
        self._metric = metric
        self._rounds = count()
        self._values: dict[str, list[float]] = {pair.base: [], pair.head: []}
        for commit in self._values:  # warm-ups
            self._run(commit)

    def values(self, base: int, head: int) -> tuple[Floats, Floats]:
        """Return `base` and `head` values; missing ones are measured first, interleaved."""
        while len(self._values[self._pair.base]) < max(base, head):
            order = list(self._values)
            for commit in order if next(self._rounds) % 2 == 0 else order[::-1]:
                self._values[commit].append(self._run(commit))
        return np.array(self._values[self._pair.base][:base]), np.array(self._values[self._pair.head][:head])

    def _run(self, commit: str) -> float:
        history = self._pair.history
        command = Command(
            arguments=history.command(history.program(commit)),
            environment={},
            directory=str(history.directory),
            tree_memory="off",
        )
        ran = self._launcher.run(command)
        if ran.ended != Exited(code=0):
            raise click.ClickException(f"{command.arguments}: {ran.ended}")
        return ran.wall_seconds if self._metric == "wall" else ran.cpu_seconds


def welch(base: Floats, head: Floats) -> str:
    """Return the verdict of Welch's t-test at p < .05, as in the script that comes with hyperfine."""
    p = float(ttest_ind(base, head, equal_var=False).pvalue)
    if p >= WELCH_LEVEL:
        return "unclear"
    return "slower" if head.mean() > base.mean() else "faster"


def pinpoint(runs: Runs) -> Judgement:
    """Return the verdict of Pinpoint's rule on two neighbours: ten runs each, and more until it decides."""
    base = head = SAMPLES
    while True:
        before, after = runs.values(base, head)
        p = smaller_p(before, after)
        if p <= DIFFERENT:
            verdict = "slower" if np.median(after) > np.median(before) else "faster"
            return Judgement(verdict=verdict, runs=max(base, head))
        if p > SAME.get((base + head) // 2, 0.0):
            return Judgement(verdict="same", runs=max(base, head))
        if base <= head:
            base += SAMPLES
        else:
            head += SAMPLES


@dataclass(frozen=True, slots=True)
class Welch:
    """Welch's t-test on interleaved runs."""

    launcher: Launcher
    metric: str
    name: str = f"Welch p < .05, {WELCH_RUNS} interleaved runs"

    def prepare(self, pair: Pair) -> None:
        """Do nothing: the history stores its programs."""

    def judge(self, pair: Pair) -> Judgement:
        """Run both alternately and test."""
        runs = Interleaved(self.launcher, pair, metric=self.metric)
        return Judgement(verdict=welch(*runs.values(WELCH_RUNS, WELCH_RUNS)), runs=WELCH_RUNS)


@dataclass(frozen=True, slots=True)
class Pinpoint:
    """Pinpoint's rule on interleaved runs."""

    launcher: Launcher
    metric: str
    name: str = "Pinpoint, interleaved runs"

    def prepare(self, pair: Pair) -> None:
        """Do nothing: the history stores its programs."""

    def judge(self, pair: Pair) -> Judgement:
        """Run both alternately until the rule decides."""
        return pinpoint(Interleaved(self.launcher, pair, metric=self.metric))


@dataclass(frozen=True, slots=True)
class HyperfineWelch:
    """hyperfine with its defaults, one program after the other, and the Welch test of its script. Wall time."""

    tool: Hyperfine

    @property
    def name(self) -> str:
        """The name of the method in the table."""
        return self.tool.name

    def prepare(self, pair: Pair) -> None:
        """Do nothing: the history stores its programs."""

    def judge(self, pair: Pair) -> Judgement:
        """Run both with hyperfine."""
        history = pair.history
        base, head = (" ".join(history.command(history.program(each))) for each in (pair.base, pair.head))
        judgement = self.tool.judge(base, head)
        return Judgement(verdict=judgement.verdicts["wall"], runs=judgement.pairs)


def methods(launcher: Launcher, *, pairs: int, threshold: float, metric: str) -> list[Method]:
    """Return every method; hyperfine only if it is installed and measures the metric."""
    found: list[Method] = [
        Perftrail(pairs, threshold, metric, relink=True),
        Perftrail(pairs, threshold, metric, relink=False),
        Welch(launcher, metric),
        Pinpoint(launcher, metric),
    ]
    if metric == "wall" and shutil.which("hyperfine"):
        found.append(HyperfineWelch(Hyperfine()))
    return found
