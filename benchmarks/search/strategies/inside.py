"""perftrail's search of the main line, and then inside the merge that it names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from benchmarks.search.strategies.running import FinishedSearch, question, report, run_search
from perftrail.search import Batch, BootSession, Budget, Built, CannotRelink, MergeSearch, Search, Unusable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine
    from perftrail.search import Action, Observation


class _RecordingSearch:
    """A search that records its observations for the next one."""

    def __init__(self, searching: Search) -> None:
        self.observations: list[Observation] = []
        self._searching = searching

    def tell(self, observation: Observation) -> None:
        self.observations.append(observation)
        self._searching.tell(observation)

    def ask(self) -> Action:
        return self._searching.ask()


def search(machine: Machine) -> Report:
    """Search the main line. If it names one merge, search inside it, starting with the known samples of its ends.

    The confidence is that of both searches together.
    """
    main_question = question(machine)
    line = _RecordingSearch(Search(main_question))
    outer = run_search(line, machine)
    named = [change.positions for change in outer.answer.changes]
    if len(named) != 1 or len(named[0]) != 1 or not machine.is_merge(named[0][0]):
        return report(outer, machine)
    view = machine.inside(named[0][0])
    budget = Budget(
        invocations=max(0, machine.settings.most_invocations - machine.invocations),
        builds=max(0, machine.settings.most_builds - machine.builds),
    )
    # The view has the revisions of the branch, the first parent, the merge base and the merge.
    inside = MergeSearch(
        replace(main_question, revisions=view.revisions, prior=None, budget=budget),
        branches=(view.revisions - 3,),
    )
    positions = {
        int(revision): position for position, revision in reversed(list(enumerate(view.ids.tolist())))
    }
    known = {
        at: positions[int(machine.ids[at])] for at in range(machine.revisions) if machine.ids[at] in positions
    }
    for observation in line.observations:
        moved = _moved(observation, known)
        if moved is not None:
            inside.tell(moved)
    inner = run_search(inside, view)
    inner_report = report(
        FinishedSearch(answer=inner.answer, milliseconds=outer.milliseconds + inner.milliseconds), view
    )
    both = outer.answer.confidence * inner.answer.confidence
    # The named merge remains the answer if the search inside it finds nothing.
    return replace(inner_report, confidence=both) if inner_report.named else report(outer, machine)


def _moved(observation: Observation, positions: Mapping[int, int]) -> Observation | None:
    """Return an observation of the main line for the search inside the merge, without its cost."""
    match observation:
        case Batch():
            samples = tuple(
                replace(sample, position=positions[sample.position])
                for sample in observation.samples
                if sample.position in positions
            )
            return replace(observation, samples=samples, seconds=0.0) if samples else None
        case Built() | Unusable():
            position = positions.get(observation.position)
            return None if position is None else replace(observation, position=position, seconds=0.0)
        case BootSession() | CannotRelink():
            return observation
        case _:
            assert_never(observation)
