"""A curve in the terminal: figures against a parameter, in braille, or in ASCII where that cannot be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.model.quantity import number, quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = 8
LOGARITHMIC = 8.0
"""From this ratio of the largest x to the smallest on, the axis is logarithmic."""

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A figure at one value of the parameter, with its interval."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What one command gave along the parameter; `mark` is the one letter that stands at its figures."""

    mark: str
    spots: tuple[Spot, ...]


def curve(series: Sequence[Series], *, axis: str, unit: str, width: int, braille: bool) -> list[str]:
    """Draw series in one frame whose lower edge is zero, as lines of text at most `width` long."""
    xs = sorted({spot.x for each in series for spot in each.spots})
    top = max(spot.high for each in series for spot in each.spots) or 1.0
    labels = [quantity(top, unit), *[""] * (ROWS - 2), quantity(0.0, unit)]
    margin = max(len(label) for label in labels)
    frame = _Frame(xs=xs, top=top, columns=min(width - margin - 3, 64), braille=braille)
    for each in series:
        frame.draw(each)
    bar = "│" if braille else "|"
    lines = [
        f"{label:>{margin}} {bar}{row}".rstrip() for label, row in zip(labels, frame.rows(), strict=True)
    ]
    corner, dash = ("└", "─") if braille else ("+", "-")
    lines.append(f"{'':>{margin}} {corner}{dash * frame.columns}")
    scale = f"{axis} (logarithmic)" if frame.logarithmic else axis
    lines.append(f"{'':>{margin}}  {_ticks(frame)}")
    lines.append(f"{'':>{margin}}  {scale:^{frame.columns}}".rstrip())
    return lines


class _Frame:
    """A grid of characters, each of 2 × 4 dots, and what is drawn into it."""

    def __init__(self, *, xs: Sequence[float], top: float, columns: int, braille: bool) -> None:
        self.xs = xs
        self.columns = columns
        self.logarithmic = xs[0] > 0.0 and xs[-1] / xs[0] >= LOGARITHMIC
        self._top = top
        self._braille = braille
        self._dots = [[0] * columns for _ in range(ROWS)]
        self._marks: dict[tuple[int, int], str] = {}

    def column(self, x: float) -> int:
        """The dot column of a value of the parameter; the ends stay a character inside."""
        first, last = self.xs[0], self.xs[-1]
        if first == last:
            share = 0.5
        elif self.logarithmic:
            share = math.log(x / first) / math.log(last / first)
        else:
            share = (x - first) / (last - first)
        return 2 + round(share * (2 * self.columns - 6))

    def draw(self, series: Series) -> None:
        """Draw lines between figures, a bar for each interval, and the mark at each figure."""
        at = [(self.column(spot.x), self._row(spot.value)) for spot in series.spots]
        for (x, y), (next_x, next_y) in pairwise(at):
            steps = max(abs(next_x - x), abs(next_y - y), 1)
            for step in range(steps + 1):
                self._dot(x + round((next_x - x) * step / steps), y + round((next_y - y) * step / steps))
        for spot, (x, y) in zip(series.spots, at, strict=True):
            for row in range(self._row(spot.high), self._row(spot.low) + 1):
                self._dot(x, row)
            self._marks[y // 4, x // 2] = series.mark

    def rows(self) -> list[str]:
        """The grid as text."""
        return ["".join(self._letter(row, column) for column in range(self.columns)) for row in range(ROWS)]

    def _row(self, value: float) -> int:
        height = 4 * ROWS - 1
        return min(height, max(0, round((1.0 - value / self._top) * height)))

    def _dot(self, x: int, y: int) -> None:
        self._dots[y // 4][x // 2] |= _DOTS[x % 2][y % 4]

    def _letter(self, row: int, column: int) -> str:
        dots = self._dots[row][column]
        if mark := self._marks.get((row, column)):
            return mark
        if not dots:
            return " "
        return chr(_BRAILLE + dots) if self._braille else "."


def _ticks(frame: _Frame) -> str:
    """The parameter's values below their columns, those left out that would touch the one before."""
    line = ""
    for x in frame.xs:
        text = str(int(x)) if x == int(x) and abs(x) < 1e7 else number(x)
        start = max(0, frame.column(x) // 2 - len(text) // 2)
        if not line or start > len(line):
            line = f"{line:<{start}}{text}"
    return line
