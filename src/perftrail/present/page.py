"""What a report says, as plain values: whoever writes it out decides only how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.charts.frame import Along, Figure
    from perftrail.model.search_record import Json

Tone = Literal["better", "worse", "plain", "unclear"]
"""How an answer is marked, beside its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: `numbers` are the columns that hold figures. Every text may be hostile.

    `whole`: every row is part of the answer and is shown at once, however many there are.
    """

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    title: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Text that is shown as it is: a study file, the end of a log, commands. Hostile."""

    title: str
    text: str
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report. `detail` is all that a figure shows thinned, for whoever looks closely.

    `answers`: its figure is of what the study's question is about.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    figure: Figure | None = None
    tables: tuple[Table, ...] = ()
    listings: tuple[Listing, ...] = ()
    detail: tuple[Along, ...] = ()
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing to know of an answer: what it is about, and the figure in words."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer in a sentence, with what supports it: effect, certainty, cost."""

    sentence: str
    tone: Tone
    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report. `question` is the study's title, `lead` the one figure that answers it, if there is one.

    `answer` is the search's own answer in JSON, where there is one.
    """

    question: str
    verdict: Verdict
    lead: Section | None
    sections: tuple[Section, ...]
    made_by: str
    answer: Mapping[str, Json] | None = None

    @property
    def every_section(self) -> tuple[Section, ...]:
        """The lead and what follows it."""
        return (*(() if self.lead is None else (self.lead,)), *self.sections)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in the order of the page."""
        return tuple(section.figure for section in self.every_section if section.figure is not None)
