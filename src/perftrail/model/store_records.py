"""Records of the store: searches, comparisons, listings, observed builds, explanations, notes; and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.json_data import Json
    from perftrail.model.reads import BuildReads


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """One search: `key` is the content key of its question; `answer` is None until the search ends."""

    key: str
    machine: str
    question: Mapping[str, Json]
    started: str = ""
    answer: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of a search: the action, its result, the belief after it, and a description."""

    number: int
    action: Mapping[str, Json]
    observation: Mapping[str, Json]
    belief: Mapping[str, Json]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRecord:
    """One comparison of two revisions: its machine, when it ended (ISO 8601), and its result."""

    machine: str
    finished: str
    result: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRecord:
    """Why a revision is faster or slower than another one.

    `key` is a content key of both revisions and what was profiled. `finished` is when the profiles ended (ISO 8601);
    `result` is the JSON of `explain`.
    """

    key: str
    revision: str
    against: str
    finished: str
    result: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRecord:
    """The benchmarks that a project's own suite listed in one build.

    `suite` is the content key of the suite's definition in the study, and `key` that of the suite in one build: of
    the definition and the artefact. `finished` is when the listing ended (ISO 8601); `result` are the benchmarks.
    """

    suite: str
    key: str
    revision: str
    variant: str
    finished: str
    result: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadsRecord:
    """The paths that an observed build uses, or the files that an observed benchmark opens.

    `recipe` is the content key of everything that the observation depends on except the tree, and `key` that of the
    recipe and the tree; of a benchmark, both are the key of the state of its files. `revision` is the observed
    revision, `finished` when the observation ended (ISO 8601). A `runnable` opens these files, and those of the record
    with the key `shared`; both are empty for other observations.
    """

    key: str
    recipe: str
    revision: str
    finished: str
    reads: BuildReads
    runnable: str = ""
    shared: str = ""


Status = Literal["new", "acknowledged", "fixed"]

STATUSES: tuple[Status, ...] = get_args(Status)
"""Statuses of a regression, in their usual order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionNote:
    """A person's note on a regression: its new `status`, a text and the author. Hostile texts."""

    regression: str
    status: Status
    text: str
    author: str
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreProgress:
    """Progress of a store: counters, at least one of which grows with every addition."""

    invocations: int
    builds: int
    searches: int
    answers: int
    steps: int
    documents: int
