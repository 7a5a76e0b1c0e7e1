"""What all our searches share: to do what they ask on a machine and tell them, and to report their answer."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np

from benchmarks.search.outcome import Report
from perftrail.search import Batch, Budget, Built, Costs, Kind, Measure, Question, Sample, Unusable, Verdict

if TYPE_CHECKING:
    from benchmarks.search.simulator import Machine
    from perftrail.search import Action, Answer, Observation


class Searching(Protocol):
    """A search that is told and asked."""

    def tell(self, observation: Observation) -> None:
        """Take an observation in."""

    def ask(self) -> Action:
        """Say what to measure next, or that it is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledSearch:
    """The answer of a search, and how long it took each time to say what is next."""

    answer: Answer
    milliseconds: tuple[float, ...]


def question(machine: Machine) -> Question:
    """Return what is asked of a search; a sample costs a second, a build `build_cost` of them."""
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


def settle(searching: Searching, machine: Machine) -> SettledSearch:
    """Ask and tell until the search is settled."""
    built: set[int] = set()
    times: list[float] = []
    while True:
        began = perf_counter()
        action = searching.ask()
        times.append(1000 * (perf_counter() - began))
        if not isinstance(action, Measure):
            return SettledSearch(answer=action.answer, milliseconds=tuple(times))
        for observation in take(action, machine, built):
            searching.tell(observation)


def take(action: Measure, machine: Machine, built: set[int]) -> list[Observation]:
    """Do what a search asks for, and return the results; adds to `built`, the positions built before.

    The samples come in the order asked for, on the machine as it is then. They are not taken where a build fails.
    """
    cost = machine.settings.build_cost
    told: list[Observation] = []
    for position in action.positions:
        if position in built:
            continue
        if not machine.build(position):
            return [*told, Unusable(position=position, seconds=cost)]
        built.add(position)
        told.append(Built(position=position, seconds=cost))
    values = machine.run_each(np.array(action.order), layout=action.layout).tolist()
    samples = tuple(
        Sample(position=position, value=value) for position, value in zip(action.order, values, strict=True)
    )
    batch = Batch(samples=samples, seconds=len(samples), layout=action.layout, certificate=action.certificate)
    return [*told, batch]


def report(settled: SettledSearch, machine: Machine) -> Report:
    """Report an answer, its positions as the history numbers its revisions; what is unclear claims nothing."""
    changes = [
        (change.kind, tuple(machine.ids[list(change.positions)].tolist()))
        for change in settled.answer.changes
    ]
    steps = [revisions for kind, revisions in changes if kind is Kind.STEP]
    return Report(
        verdict=settled.answer.verdict.value,
        candidates=steps[0] if steps else (),
        others=tuple(steps[1:]),
        ramps=tuple(revisions for kind, revisions in changes if kind is Kind.RAMP),
        confidence=None if settled.answer.verdict is Verdict.UNCLEAR else settled.answer.confidence,
        ask_milliseconds=settled.milliseconds,
    )
