"""What all our searches share: to do what they ask on a machine and tell them, and to report their answer."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from benchmarks.search.outcome import Report
from perftrail.search import Budget, Costs, Kind, Measure, Question, Readings, Unusable

if TYPE_CHECKING:
    from benchmarks.search.simulator import Machine
    from perftrail.search import Action, Answer, News


class Searching(Protocol):
    """A search that is told and asked."""

    def tell(self, news: News) -> None:
        """Take news in."""

    def ask(self) -> Action:
        """Say what to measure next, or that it is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The answer of a search, and how long it took each time to say what is next."""

    answer: Answer
    milliseconds: tuple[float, ...]


def question(machine: Machine) -> Question:
    """Return what is asked of a search; one reading costs a second, a build `build_cost` of them."""
    settings = machine.settings
    return Question(
        revisions=machine.revisions,
        smallest=settings.smallest,
        confidence=settings.confidence,
        prior=machine.prior,
        redraws=settings.redraws,
        costs=Costs(build=settings.build_cost, reading=1.0),
        budget=Budget(invocations=settings.most_invocations, builds=settings.most_builds),
    )


def settle(searching: Searching, machine: Machine) -> Asked:
    """Ask and tell until the search is settled."""
    built: set[int] = set()
    times: list[float] = []
    while True:
        began = perf_counter()
        action = searching.ask()
        times.append(1000 * (perf_counter() - began))
        if not isinstance(action, Measure):
            return Asked(answer=action.answer, milliseconds=tuple(times))
        searching.tell(news(action, machine, built))


def news(action: Measure, machine: Machine, built: set[int]) -> News:
    """Do what a search asks for, and return what came of it; `built` is what was built before."""
    cost = machine.settings.build_cost
    if not machine.build(action.position):
        return Unusable(position=action.position, seconds=cost)
    is_new = action.position not in built
    built.add(action.position)
    run = machine.run_redrawn if action.redraw else machine.run
    return Readings(
        position=action.position,
        values=tuple(run(action.position, action.readings).tolist()),
        redraw=action.redraw,
        build_seconds=cost if is_new else None,
        seconds=float(action.readings),
    )


def report(asked: Asked, machine: Machine) -> Report:
    """Report an answer, its positions as the history numbers its revisions."""
    changes = [
        (change.kind, tuple(machine.ids[list(change.positions)].tolist())) for change in asked.answer.changes
    ]
    steps = [revisions for kind, revisions in changes if kind is Kind.STEP]
    return Report(
        verdict=asked.answer.verdict.value,
        candidates=steps[0] if steps else (),
        others=tuple(steps[1:]),
        ramps=tuple(revisions for kind, revisions in changes if kind is Kind.RAMP),
        confidence=asked.answer.confidence,
        ask_milliseconds=asked.milliseconds,
    )
