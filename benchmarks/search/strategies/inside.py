"""perftrail's search of the main line, and then inside the merge that it names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.search.strategies.asking import Asked, question, report, settle
from perftrail.search import Budget, Inside, Readings, Survey, Unusable

if TYPE_CHECKING:
    from benchmarks.search.outcome import Report
    from benchmarks.search.simulator import Machine
    from perftrail.search import Action, News


class _Listening:
    """A search whose news are kept, to be told to the next one."""

    def __init__(self, searching: Survey) -> None:
        self.heard: list[News] = []
        self._searching = searching

    def tell(self, news: News) -> None:
        self.heard.append(news)
        self._searching.tell(news)

    def ask(self) -> Action:
        return self._searching.ask()


def search(machine: Machine) -> Report:
    """Search the main line; when it names one merge, search inside, telling first what is known of its ends.

    The confidence is that of both together.
    """
    asked = question(machine)
    line = _Listening(Survey(asked))
    outer = settle(line, machine)
    named = [change.positions for change in outer.answer.changes]
    if len(named) != 1 or len(named[0]) != 1 or not machine.is_merge(named[0][0]):
        return report(outer, machine)
    view = machine.inside(named[0][0])
    budget = Budget(
        invocations=max(0, machine.settings.most_invocations - machine.invocations),
        builds=max(0, machine.settings.most_builds - machine.builds),
    )
    # Its own revisions, and the first parent, the merge base and the merge.
    inside = Inside(
        replace(asked, revisions=view.revisions, prior=None, budget=budget), branches=(view.revisions - 3,)
    )
    places = {int(revision): place for place, revision in reversed(list(enumerate(view.ids.tolist())))}
    # What was spent on the main line is not to be spent again inside.
    for news in line.heard:
        if isinstance(news, Readings | Unusable) and int(machine.ids[news.position]) in places:
            place = places[int(machine.ids[news.position])]
            if isinstance(news, Readings):
                inside.tell(replace(news, position=place, seconds=0.0, build_seconds=None))
            else:
                inside.tell(replace(news, position=place, seconds=0.0))
    inner = settle(inside, view)
    said = report(Asked(answer=inner.answer, milliseconds=outer.milliseconds + inner.milliseconds), view)
    both = outer.answer.confidence * inner.answer.confidence
    # To have named the merge stands, whatever is found inside it.
    return replace(said, confidence=both) if said.named else report(outer, machine)
