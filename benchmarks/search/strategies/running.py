"""Common parts of perftrail's searches: performing their actions on a machine, and reporting their answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np

from benchmarks.search.outcome import Report
from perftrail.search import Batch, Budget, Built, Costs, Kind, Measure, Question, Sample, Unusable, Verdict

if TYPE_CHECKING:
    from benchmarks.search.simulator import Machine
    from perftrail.search import Action, Answer, Observation


class RunnableSearch(Protocol):
    """A search that chooses actions and gets observations."""

    def tell(self, observation: Observation) -> None:
        """Add an observation."""

    def ask(self) -> Action:
        """Return the samples to take next, or the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSearch:
    """The answer of a search, and the time of each of its decisions."""

    answer: Answer
    milliseconds: tuple[float, ...]


def question(machine: Machine) -> Question:
    """Return the question of a search. A sample costs a second, a build `build_cost` seconds."""
    settings = machine.settings
    return Question(
        revisions=machine.revisions,
        threshold=settings.threshold,
        confidence=settings.confidence,
        prior=machine.prior,
        relinks=settings.relinks,
        costs=Costs(build=settings.build_cost, sample=1.0),
        budget=Budget(invocations=settings.most_invocations, builds=settings.most_builds),
    )


def run_search(search: RunnableSearch, machine: Machine) -> FinishedSearch:
    """Perform the actions of a search until it has an answer."""
    built: set[int] = set()
    times: list[float] = []
    while True:
        began = perf_counter()
        action = search.ask()
        times.append(1000 * (perf_counter() - began))
        if not isinstance(action, Measure):
            return FinishedSearch(answer=action.answer, milliseconds=tuple(times))
        for observation in perform(action, machine, built):
            search.tell(observation)


def perform(action: Measure, machine: Machine, built: set[int]) -> list[Observation]:
    """Perform an action of a search, and return the observations; adds new builds to the positions in `built`.

    The samples are taken in the requested order. They are not taken if a build fails.
    """
    cost = machine.settings.build_cost
    observations: list[Observation] = []
    for position in action.positions:
        if position in built:
            continue
        if not machine.build(position):
            return [*observations, Unusable(position=position, seconds=cost)]
        built.add(position)
        observations.append(Built(position=position, seconds=cost))
    values = machine.run_each(np.array(action.order), layout=action.layout).tolist()
    samples = tuple(
        Sample(position=position, value=math.exp(value))
        for position, value in zip(action.order, values, strict=True)
    )
    batch = Batch(samples=samples, seconds=len(samples), layout=action.layout, certificate=action.certificate)
    return [*observations, batch]


def report(finished: FinishedSearch, machine: Machine) -> Report:
    """Return the report of an answer, with revision numbers of the history. An unclear answer claims nothing."""
    changes = [
        (change.kind, tuple(machine.ids[list(change.positions)].tolist()))
        for change in finished.answer.changes
    ]
    steps = [revisions for kind, revisions in changes if kind is Kind.STEP]
    return Report(
        verdict=finished.answer.verdict.value,
        candidates=steps[0] if steps else (),
        others=tuple(steps[1:]),
        ramps=tuple(revisions for kind, revisions in changes if kind is Kind.RAMP),
        confidence=None if finished.answer.verdict is Verdict.UNCLEAR else finished.answer.confidence,
        ask_milliseconds=finished.milliseconds,
    )
