"""The simulated histories, and how well each detector finds their changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.changepoints.peers import Detector
from benchmarks.changepoints.scoring import Score, score
from benchmarks.changepoints.series import Settings, draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.changepoints.peers import Peer

MARGIN = 5
CORRELATIONS = (0.0, 0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series of one kind: their number for perftrail, and that for the peers, which are much slower."""

    name: str
    settings: Settings
    series: int
    peer_series: int = 0


CASES = (
    Case(name="100, 2 steps", settings=Settings(length=100, changes=2), series=300, peer_series=100),
    Case(name="100, none", settings=Settings(length=100, changes=0), series=300, peer_series=100),
    Case(name="1,000, 4 steps", settings=Settings(length=1000, changes=4), series=100, peer_series=40),
    Case(name="1,000, none", settings=Settings(length=1000, changes=0), series=300, peer_series=20),
    Case(name="10,000, 40 steps", settings=Settings(length=10_000, changes=40), series=20, peer_series=5),
    Case(name="10,000, none", settings=Settings(length=10_000, changes=0), series=20, peer_series=5),
    Case(name="100,000, 400 steps", settings=Settings(length=100_000, changes=400), series=3),
    Case(name="100,000, none", settings=Settings(length=100_000, changes=0), series=3),
    Case(
        name="1,000, none, outliers on both sides",
        settings=Settings(length=1000, changes=0, two_sided=True),
        series=300,
    ),
    Case(
        name="1,000, none, noise grows 4 times",
        settings=Settings(length=1000, changes=0, growth=4.0),
        series=100,
    ),
    Case(
        name="1,000, none, drift of 0.1 σ a revision",
        settings=Settings(length=1000, changes=0, drift=0.1),
        series=100,
    ),
    *(
        Case(
            name=f"{length:,}, none, correlation {correlation}",
            settings=Settings(length=length, changes=0, correlation=correlation),
            series=300 if length < 1000 else 100,
            peer_series=40 if length == 200 else 0,
        )
        for length in (50, 200, 1000)
        for correlation in CORRELATIONS
    ),
    *(
        Case(
            name=f"1,000, 4 steps, correlation {correlation}",
            settings=Settings(length=1000, changes=4, correlation=correlation),
            series=60,
        )
        for correlation in CORRELATIONS[1:]
    ),
    Case(
        name="1,000, none, 3 bursts that return",
        settings=Settings(length=1000, changes=0, bursts=3),
        series=100,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one detector on one case.

    F1, precision and recall are those of the points of all series; `f1_error` is the standard error of F1,
    computed by leaving out one series at a time. `seconds` is the median of the calls, `slowest` the maximum. `false`
    counts the points without a true point nearby, `alarmed` the series with such points.
    """

    case: str
    length: int
    changes: int
    correlation: float
    detector: str
    series: int
    f1: float
    f1_error: float
    f1_exact: float
    precision: float
    recall: float
    seconds: float
    slowest: float
    false: int
    alarmed: int


def measure(case: Case, peers: Sequence[Peer], directory: Path, *, seed: int, scale: float) -> Iterator[Row]:
    """Run each detector on the same series, one detector after another."""
    for peer in peers:
        series = case.peer_series if peer.package else case.series
        count = math.ceil(series * peer.share * scale)
        if case.settings.length > peer.longest or count == 0:
            continue
        near, exact, seconds = [], Score(), []
        with Detector(peer, directory) as detector:
            for number in range(count):
                rng = np.random.default_rng([seed, CASES.index(case), number])
                drawn = draw(case.settings, rng)
                answer = detector.ask(drawn.values.tolist())
                near.append(score(drawn.changes, answer.points, margin=MARGIN))
                exact += score(drawn.changes, answer.points, margin=0)
                seconds.append(answer.seconds)
        total = sum(near, Score())
        yield Row(
            case=case.name,
            length=case.settings.length,
            changes=case.settings.changes,
            correlation=case.settings.correlation,
            detector=peer.title,
            series=len(near),
            f1=total.f1,
            f1_error=_jackknife(near),
            f1_exact=exact.f1,
            precision=total.precision,
            recall=total.recall,
            seconds=median(seconds),
            slowest=max(seconds),
            false=total.reported - total.matched,
            alarmed=sum(each.reported > each.matched for each in near),
        )


def _jackknife(scores: Sequence[Score]) -> float:
    """Return the standard error of F1 over series."""
    count = len(scores)
    without = [sum((*scores[:number], *scores[number + 1 :]), Score()).f1 for number in range(count)]
    return math.sqrt((count - 1) * float(np.var(without)))
