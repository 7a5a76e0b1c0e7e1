"""perftrail's own search."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.search.outcome import Report
from perftrail.search import Budget, Costs, Measure, Question, Readings, Search, Unusable

if TYPE_CHECKING:
    from benchmarks.search.simulator import Machine


def search(machine: Machine) -> Report:
    """Ask and tell until settled; one reading costs a second, a build `build_cost` of them."""
    settings = machine.settings
    question = Question(
        revisions=settings.revisions,
        smallest=settings.smallest,
        confidence=settings.confidence,
        costs=Costs(build=settings.build_cost, reading=1.0),
        budget=Budget(invocations=settings.most_invocations, builds=settings.most_builds),
    )
    searching = Search(question)
    built: set[int] = set()
    times: list[float] = []
    while True:
        began = perf_counter()
        action = searching.ask()
        times.append(1000 * (perf_counter() - began))
        if not isinstance(action, Measure):
            break
        position = action.position
        build_seconds = None if position in built else settings.build_cost
        built.add(position)
        if not machine.build(position):
            searching.tell(Unusable(position=position, seconds=settings.build_cost))
            continue
        values = tuple(machine.run(position, action.readings).tolist())
        seconds = float(action.readings)
        searching.tell(
            Readings(position=position, values=values, build_seconds=build_seconds, seconds=seconds)
        )
    answer = action.answer
    return Report(
        verdict=answer.verdict.value,
        candidates=answer.changes[0].positions if answer.changes else (),
        confidence=answer.confidence,
        ask_milliseconds=tuple(times),
    )
