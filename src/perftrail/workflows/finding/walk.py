"""One walk through the history for many figures: builds are shared, and invocations where one gives several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.search.evidence import Unusable
from perftrail.search.matrix import AllSettled, Matrix
from perftrail.search.question import Budget
from perftrail.workflows import put

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.model.target import Target
    from perftrail.search.answer import Answer
    from perftrail.search.matrix import Visit
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.journal import Journal
    from perftrail.workflows.finding.probe import Probe, Taken
    from perftrail.workflows.finding.request import FindRequest

NOT_MADE = ("checkout", "build", "skipped")
"""Stages at which a revision fails for all figures of its variant at once."""

MOST_SAID = 4

MOST_INVOCATIONS = 300
"""For each figure that is read by itself, where no budget is given: one that is too noisy holds up the others
no longer."""


class Walk:
    """Visits revisions as the searches for all figures need them, each figure with its own belief."""

    def __init__(
        self, request: FindRequest, probes: Sequence[Probe], priors: Sequence[tuple[float, ...] | None]
    ) -> None:
        self._probes = {named(probe.target): probe for probe in probes}
        revisions = len(probes[0].revisions)
        together = _together([probe.target for probe in probes])
        alone = len(probes) - sum(len(group) - 1 for group in together)
        if request.budget == Budget():
            request = replace(request, budget=Budget(invocations=MOST_INVOCATIONS * alone))
        self._matrix = Matrix(
            {
                name: request.question(revisions, points=len(probe.target.points), prior=prior)
                for (name, probe), prior in zip(self._probes.items(), priors, strict=True)
            },
            together=together,
            thorough=request.thorough,
        )

    def events(self, journal: Journal) -> Generator[Event, None, tuple[Answer, ...]]:
        """Walk until all is settled; yields what happens and gives the answers in the order of the probes."""
        while not isinstance(visit := self._next(journal), AllSettled):
            news = yield from self._take(visit)
            for name, told in news.items():
                self._matrix.tell(name, told)
            self._matrix.spend(journal.seconds)
            # What is believed is worked out for what is asked next; asked for the other way round, twice.
            self._matrix.ask()
            yield journal.step(
                action={
                    "measure": self._revision(visit),
                    "position": visit.position,
                    "readings": dict(visit.readings),
                },
                news={name: self._probes[name].plain(told) for name, told in news.items()},
                belief={
                    name: put.belief(self._matrix.belief(name), self._probes[name].revisions) for name in news
                },
                words=self._words(visit, news),
            )
        return tuple(visit.answers[name] for name in self._probes)

    def _next(self, journal: Journal) -> Visit | AllSettled:
        """Say where to go next; every figure is told of a new block before it asks for anything there."""
        while not isinstance(visit := self._matrix.ask(), AllSettled):
            blocks = {name: probe.move(journal.boot) for name, probe in self._probes.items()}
            for name, block in blocks.items():
                if block is not None:
                    self._matrix.tell(name, block)
            moved = any(block is not None for block in blocks.values())
            if not moved and journal.agrees(self._revision(visit), dict(visit.readings)):
                break
        return visit

    def _take(self, visit: Visit) -> Generator[Event, None, dict[str, Taken]]:
        news: dict[str, Taken] = {}
        for name, readings in visit.readings.items():
            if name in news:
                continue
            probe = self._probes[name]
            news[name] = yield from probe.take(visit.position, readings)
            failure = probe.failures.get(visit.position)
            if isinstance(news[name], Unusable) and failure is not None and failure.stage in NOT_MADE:
                for other, its in self._probes.items():
                    if its.target.variant == probe.target.variant and other not in news:
                        news[other] = its.give_up(visit.position, failure, seconds=0.0)
        return news

    def _revision(self, visit: Visit) -> str:
        return next(iter(self._probes.values())).revisions[visit.position].id

    def _words(self, visit: Visit, news: Mapping[str, Taken]) -> str:
        """Say a visit: one figure as in a search of its own, of several how many there are."""
        names = list(news)
        probe = self._probes[names[0]]
        failure = probe.failures.get(visit.position)
        label = probe.revisions[visit.position].short
        if all(isinstance(told, Unusable) for told in news.values()) and failure is not None:
            return f"{label} could not be used ({failure.stage})"
        shown = ", ".join(names[:MOST_SAID]) + (
            f" and {len(names) - MOST_SAID} more" if len(names) > MOST_SAID else ""
        )
        return f"measured {label}: {shown}; {self._left()}"

    def _left(self) -> str:
        beliefs = [self._matrix.belief(name) for name in self._probes]
        open_ones = [
            held.candidates
            for held in beliefs
            if held is not None and held.no_change <= 0.5 and held.candidates > 1
        ]
        if None in beliefs:
            return "nothing to compare it with yet"
        if not open_ones:
            return "no more than 1 candidate left for each"
        least, most = min(open_ones), max(open_ones)
        span = f"{most}" if least == most else f"{least} to {most}"
        return f"{span} candidates left for {len(open_ones)} of {len(beliefs)}"


def named(target: Target) -> str:
    """Name a target among those of several variants."""
    return target.name if target.variant == "plain" else f"{target.name} ({target.variant})"


def _together(targets: Sequence[Target]) -> tuple[frozenset[str], ...]:
    """Give the figures that the same invocations tell."""
    groups: dict[str, set[str]] = {}
    for target in targets:
        key = f"{target.benchmark} {target.variant} {sorted(map(str, target.points))}"
        groups.setdefault(key, set()).add(named(target))
    return tuple(frozenset(group) for group in groups.values() if len(group) > 1)
