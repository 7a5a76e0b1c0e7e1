"""One publication of a study's results: the values and comparisons that it added to a site, and its answer.

The values of all publications of a site, joined in their order, are the history that the site shows.
"""

from __future__ import annotations

# cattrs reads the annotations at run time, so these imports must not be in TYPE_CHECKING.
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perftrail.model.benchmark import Value
from perftrail.model.metrics import Better

PublishedTone = Literal["better", "worse", "plain", "unclear"]
VerdictWord = Literal["faster", "slower", "same", "unclear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRevision:
    """A measured revision. Every text is hostile."""

    id: str
    label: str = ""
    time: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedValues:
    """Values of a metric at one revision, which is an index into the publication's revisions.

    `build` is equal for revisions with the same build. `replaces`: these values replace earlier published ones, because
    the study was built in another way or other samples are noisy; else they are added to them.
    """

    revision: int
    values: tuple[float, ...]
    build: str = ""
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMetric:
    """A metric of a benchmark in one variant at one point, with its values at some revisions."""

    benchmark: str
    variant: str
    point: Mapping[str, Value]
    metric: str
    unit: str
    better: Better
    measured: tuple[PublishedValues, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVerdict:
    """The verdict of a comparison on one metric; `effect` is head/base, 0 without a value."""

    benchmark: str
    variant: str
    point: Mapping[str, Value]
    metric: str
    verdict: VerdictWord
    effect: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """A comparison of two revisions by `compare`; `base_name` is the base in words."""

    base: str
    head: str
    base_name: str
    finished: str
    answer: str
    verdicts: tuple[PublishedVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMachine:
    """The machine of all values of a publication, and the versions of the tools that built the newest revision."""

    id: str
    facts: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One publication: its time (ISO 8601, UTC), the study's title, the report's answer, and what was added.

    `evidence` are the facts of the answer: pairs of a label and a text. `revisions` are in the order of the history.
    """

    published: str
    study: str
    perftrail: str
    sentence: str
    tone: PublishedTone
    evidence: tuple[tuple[str, str], ...]
    machine: PublishedMachine
    revisions: tuple[PublishedRevision, ...]
    metrics: tuple[PublishedMetric, ...]
    comparisons: tuple[PublishedComparison, ...] = ()


SIGNIFICANT_DIGITS = 9
"""Digits of a published value: no clock and no counter of a benchmark is more precise."""


def published_value(value: float) -> float:
    """Round a value to its published digits.

    >>> published_value(0.1234567891234)
    0.123456789
    """
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
