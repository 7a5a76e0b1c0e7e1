"""Detectors on real series with annotated changes: ``python -m benchmarks.changepoints --annotated DIR``.

The directory is in the format of the Turing Change Point Dataset, in which data sets of performance tests are also
published: ``annotations.json`` has, for each series and annotator, the indices at which a new level begins; and each
``NAME.json`` somewhere below it has ``{"series": [{"raw": [...]}]}``. This project neither contains nor fetches
such data.

Scored as that data set's authors do (van den Burg and Williams, arXiv:2003.06222): F1 with a margin of 5; index 0
counts as a point of every annotator; precision is against what any annotator marked, recall the mean over annotators.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.changepoints.peers import Detector, Peer
from benchmarks.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MARGIN = 5
NOTHING = Peer(name="nothing", title="no points", package="", longest=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotated:
    """A real series and the points that each annotator marked."""

    name: str
    values: tuple[float, ...]
    marked: tuple[frozenset[int], ...]

    @property
    def held_out(self) -> bool:
        """Whether it is in the half on which no setting may be tuned. That depends on its name, so it never changes."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 1


def read(directory: Path) -> list[Annotated]:
    """Read every series of one dimension with at least one annotator.

    A missing value becomes the value before it. Raises `FileNotFoundError` without ``annotations.json``.
    """
    annotations = json.loads((directory / "annotations.json").read_text(encoding="utf-8"))
    found = []
    for file in sorted(directory.rglob("*.json")):
        marked = annotations.get(file.stem)
        if not marked:
            continue
        series = json.loads(file.read_text(encoding="utf-8"))["series"]
        if len(series) == 1:
            found.append(
                Annotated(
                    name=file.stem,
                    values=_filled(series[0]["raw"]),
                    marked=tuple(frozenset(points) for points in marked.values()),
                )
            )
    return found


def f1(marked: Iterable[frozenset[int]], reported: Iterable[int]) -> float:
    """Score reported points against the annotators'.

    >>> f1([frozenset({50}), frozenset()], [52])
    1.0
    >>> f1([frozenset()], [52])
    0.6666666666666666
    """
    truths = [each | {0} for each in marked]
    points = {*reported, 0}
    precision = _matched(frozenset().union(*truths), points) / len(points)
    recall = fmean(_matched(each, points) / len(each) for each in truths)
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


def annotated_table(series: Sequence[Annotated], peers: Sequence[Peer], directory: Path) -> str:
    """Return a Markdown table of every detector on both halves of the series."""
    rows = [("detector", "half", "series", "F1", "shows points where no annotator does")]
    for half in (False, True):
        chosen = [each for each in series if each.held_out is half]
        name = "held out" if half else "other"
        for peer in (*peers, NOTHING):
            answers = _answers(peer, directory, chosen)
            scores = [f1(each.marked, points) for each, points in answers]
            calm = [points for each, points in answers if not any(each.marked)]
            false = f"{sum(bool(points) for points in calm)} of {len(calm)}"
            rows.append((peer.title, name, str(len(answers)), _mean(scores), false))
        several = [each for each in chosen if len(each.marked) > 1]
        human = [
            f1([*each.marked[:at], *each.marked[at + 1 :]], own)
            for each in several
            for at, own in enumerate(each.marked)
        ]
        rows.append(("one annotator against the rest", name, str(len(several)), _mean(human), "–"))
    return table(rows)


def _answers(
    peer: Peer, directory: Path, series: Sequence[Annotated]
) -> list[tuple[Annotated, tuple[int, ...]]]:
    with Detector(peer, directory) as detector:
        return [
            (each, detector.ask(list(each.values)).points)
            for each in series
            if len(each.values) <= peer.longest
        ]


def _mean(scores: Sequence[float]) -> str:
    if len(scores) < 2:
        return "–"
    mean = fmean(scores)
    error = math.sqrt(sum((each - mean) ** 2 for each in scores) / (len(scores) - 1) / len(scores))
    return f"{mean:.3f} ± {error:.3f}"


def _matched(truth: frozenset[int], reported: set[int]) -> int:
    """Count the true points with a reported point nearby; each reported point counts once."""
    left, count = set(reported), 0
    for point in sorted(truth):
        near = min(left, key=lambda each: (abs(each - point), each), default=None)
        if near is not None and abs(near - point) <= MARGIN:
            left.remove(near)
            count += 1
    return count


def _filled(raw: Sequence[float | None]) -> tuple[float, ...]:
    values: list[float] = []
    for value in raw:
        values.append(float(value) if value is not None else values[-1] if values else math.nan)
    return tuple(values)
