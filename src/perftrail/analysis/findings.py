"""What a trial found: an estimate of each metric of each entry, and the comparisons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.course import Why
from perftrail.analysis.estimate import Estimate, estimate
from perftrail.model.trial import UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.analysis.contrasts import Contrast
    from perftrail.analysis.course import Course
    from perftrail.analysis.warmup import Warmup
    from perftrail.model.trial import Entry, Taken, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric of one entry: its values in the order of time, where they lie, and how they were got."""

    unit: str
    values: tuple[float, ...]
    estimate: Estimate
    method: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One entry measured. `figures` is empty when it ended before a single run counted.

    `flags` are what limits the figures' meaning, each with the number of runs that it marks.
    """

    entry: Entry
    runs: int
    figures: Mapping[str, Figure]
    warmup: Warmup
    why: Why
    flags: Mapping[str, int]
    exit_codes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a trial found; `shell` is what the shell takes to do nothing, where one was used."""

    trial: Trial
    results: tuple[Finding, ...]
    contrasts: tuple[Contrast, ...]
    shell: Finding | None
    seconds: float

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it before it had come to an end."""
        return any(result.why is Why.STOPPED for result in self.results)


def findings(course: Course, trial: Trial) -> Findings:
    """Read off what a course has found so far."""
    shell = trial.shell
    return Findings(
        trial=trial,
        results=tuple(_finding(course, number, entry) for number, entry in enumerate(trial.entries)),
        contrasts=course.contrasts(),
        shell=None if shell is None else _finding(course, len(trial.entries), shell),
        seconds=course.spent_seconds,
    )


def _finding(course: Course, number: int, entry: Entry) -> Finding:
    samples = course.samples(number)
    return Finding(
        entry=entry,
        runs=len(samples),
        figures=_figures(samples),
        warmup=course.warmup(number),
        why=course.why(number),
        flags=Counter(flag for taken in samples for flag in taken.flags),
        exit_codes=tuple(taken.exit_code for taken in samples),
    )


def _figures(samples: Sequence[Taken]) -> Mapping[str, Figure]:
    figures = {}
    for metric, unit in UNITS.items():
        values = tuple(taken.values[metric] for taken in samples if metric in taken.values)
        methods = dict.fromkeys(taken.methods[metric] for taken in samples if metric in taken.methods)
        if values:
            figures[metric] = Figure(
                unit=unit, values=values, estimate=estimate(values), method=", ".join(methods)
            )
    return figures
