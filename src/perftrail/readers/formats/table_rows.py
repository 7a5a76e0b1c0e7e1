"""Rows of one value each, as perftrail exports them, gathered to series."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.foreign import Series
from perftrail.model.recipe import PLAIN
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.metrics import Better

REQUIRED = ("benchmark", "metric", "value")
OPTIONAL = (
    "subject",
    "revision",
    "variant",
    "unit",
    "better",
    "invocation",
    "ordinal",
    "started",
    "when",
    "machine",
    "flags",
    "label",
    "time",
)
COLUMNS = (*REQUIRED, *OPTIONAL)
"""Every column that is no parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    subject: str | None
    benchmark: str
    point: tuple[tuple[str, str], ...]
    metric: str
    unit: str | None
    better: Better
    machine: str | None


@dataclass(slots=True)
class _Values:
    """Values by their number in the sample, in the rows' order where rows have no number."""

    numbers: list[tuple[int, float]] = field(default_factory=list)
    when: datetime | None = None


class Rows:
    """Gathers rows; a value belongs to the sample of which everything but value, number, moment and flags is equal."""

    def __init__(self) -> None:
        self._samples: dict[_Sample, _Values] = {}

    def add(self, row: Mapping[str, str], point: tuple[tuple[str, str], ...], line: int) -> None:
        """Take one row, all of its cells as text. Raises `FormatError` with the line."""
        missing = [name for name in REQUIRED if not row.get(name)]
        if missing:
            raise FormatError(
                f"line {line}: has no {listed(missing, 'and')}; {listed(REQUIRED, 'and')} are needed"
            )
        sample = _Sample(
            subject=_subject(row),
            benchmark=row["benchmark"],
            point=point,
            metric=row["metric"],
            unit=row.get("unit") or None,
            better=_better(row.get("better", ""), line),
            machine=row.get("machine") or None,
        )
        values = self._samples.setdefault(sample, _Values())
        values.numbers.append((_ordinal(row, len(values.numbers), line), _number(row["value"], line)))
        values.when = values.when or _moment(row, line)

    def series(self) -> tuple[Series, ...]:
        """Give what was gathered."""
        return tuple(
            Series(
                benchmark=sample.benchmark,
                point=sample.point,
                subject=sample.subject,
                metric=sample.metric,
                unit=sample.unit,
                better=sample.better,
                values=tuple(value for _, value in sorted(values.numbers, key=lambda each: each[0])),
                when=values.when,
                machine=sample.machine,
            )
            for sample, values in self._samples.items()
        )


def _subject(row: Mapping[str, str]) -> str | None:
    """Name the subject: as it is, or by revision and variant as perftrail shows it."""
    variant = row.get("variant", "")
    named = row.get("subject") or row.get("revision") or ""
    return f"{named} ({variant})".strip() if variant not in ("", PLAIN) else named or None


def _better(text: str, line: int) -> Better:
    if text in ("", "lower"):
        return "lower"
    if text == "higher":
        return "higher"
    raise FormatError(f"line {line}: better: {quoted(text)} is neither lower nor higher")


def _ordinal(row: Mapping[str, str], place: int, line: int) -> int:
    text = row.get("invocation") or row.get("ordinal") or ""
    if not text:
        return place
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise FormatError(f"line {line}: {quoted(text)} is no number of an invocation, as 0")
    return int(text)


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"line {line}: value: {quoted(text)} is no finite number")
    return value


def _moment(row: Mapping[str, str], line: int) -> datetime | None:
    text = row.get("time") or row.get("started") or row.get("when") or ""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise FormatError(f"line {line}: {quoted(text)} is no time as 2026-01-31T12:00:00") from None
