"""One benchmark in one variant, base against head: started in turns until each verdict is settled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.report.gates.result import Lost, Row
from perftrail.stats.comparison import Verdict
from perftrail.stats.estimate import estimate
from perftrail.workflows.gating.choice import TIMES
from perftrail.workflows.sides.compared import Comparisons
from perftrail.workflows.sides.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.target import Target
    from perftrail.report.gates.result import SideName
    from perftrail.stats.comparison import Rule
    from perftrail.workflows.session import Session
    from perftrail.workflows.sides.compared import Read
    from perftrail.workflows.sides.turns import Clock
    from perftrail.workflows.workshop import Ready


class Duel:
    """Base and head of one benchmark, and the figures that are compared; only the points that these need."""

    def __init__(
        self,
        session: Session,
        readies: Mapping[SideName, Sequence[Ready]],
        targets: Sequence[Target],
        *,
        clock: Clock,
    ) -> None:
        needed = {point for target in targets for point in target.points}
        self.turns = Turns(
            session,
            {side: [ready for ready in each if ready.cell.point in needed] for side, each in readies.items()},
            clock=clock,
        )
        self._units = self.turns.units
        self._comparisons: Comparisons[SideName] = Comparisons(self._units)
        there = set(self._units.points)
        self.targets = tuple(target for target in targets if there.issuperset(target.points))

    @property
    def one_build(self) -> bool:
        """Whether both are one build, of which there is nothing to compare."""
        return bool(self.turns.equal)

    def open(self, rule: Rule) -> bool:
        """Whether more units can settle something.

        Where one of its times differs for sure, by what is worth telling, the other is told from as many.
        """
        rule = self.turns.own(rule)
        if not self._units.alive or self._units.full(rule):
            return False
        times = [target for target in self._alive() if target.text in TIMES]
        differ = {target.points for target in times if _differs(self._read(target, rule), rule)}
        return any(
            not self._comparisons.settled(target, rule, one="base", other="head")
            and not (target in times and target.points in differ)
            for target in self._alive()
        )

    def rows(self, rule: Rule) -> tuple[Row, ...]:
        """Say how every figure compares that can be measured on both sides; `lost` tells of the others."""
        return tuple(self._row(target, self.turns.own(rule)) for target in self._alive())

    def lost(self) -> tuple[Lost, ...]:
        """Say who could not be measured at which point."""
        return tuple(
            Lost(
                side=each.side,
                variant=self.turns.variant,
                benchmark=self.turns.benchmark,
                point=str(each.ready.cell.point),
                failure=each.failure,
            )
            for each in self.turns.broken()
        )

    def forget(self) -> None:
        """Forget what was read by a rule that no longer holds."""
        self._comparisons.forget()

    def _alive(self) -> list[Target]:
        return [target for target in self.targets if not self._units.dropped.keys() & set(target.points)]

    def _read(self, target: Target, rule: Rule) -> Read[SideName] | None:
        return self._comparisons.read(target, rule, one="base", other="head")

    def _row(self, target: Target, rule: Rule) -> Row:
        if self.one_build:
            return Row(target=target, one_build=True)
        found = self._read(target, rule)
        if found is None:
            return Row(target=target, note=self._units.why_nothing(target))
        base, head = ([unit.logs[side] for unit in found.units] for side in self._units.sides)
        return Row(
            target=target,
            base=estimate([math.exp(value) for value in base]),
            head=estimate([math.exp(value) for value in head]),
            comparison=found.comparison,
            marked=sum(unit.noisy for unit in found.units),
            discarded=self._units.discarded(target),
            pairs=sum(unit.pairs for unit in found.units),
            layouts=len(found.units) if self._units.relinked else 0,
            seconds=self._units.seconds(target),
            ratios=tuple(math.exp(after - before) for before, after in zip(base, head, strict=True)),
        )


def _differs(found: Read[SideName] | None, rule: Rule) -> bool:
    """Whether a figure differs for sure by as much as is worth telling."""
    if found is None or found.comparison.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return False
    return max(math.log(found.comparison.low), -math.log(found.comparison.high)) >= rule.worth
