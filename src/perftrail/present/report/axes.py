"""Sections of a report on thread scaling and growth, for studies with such an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.present.growth import cause_hint, curve_words, variant_words
from perftrail.present.html_page import Section, Table
from perftrail.present.scaling import described_words, scaling_lines, undescribed_words
from perftrail.results.changes import revisions_to_describe
from perftrail.results.growth import growth_along
from perftrail.results.scaling import thread_scalings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.model.subject import Revision
    from perftrail.present.report.data import ReportData


def scaling_and_growth_sections(data: ReportData) -> tuple[Section, ...]:
    """Return sections on thread scaling and growth; empty without such an axis. Builds and measures nothing."""

    def choose(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        return revisions_to_describe(revisions, data.searches)

    scalings = thread_scalings(data.view, measured=data.measured_here, choose=choose)
    scaled = [
        (f"{each.subject} {each.benchmark}", line)
        for each in scalings.found
        for line in scaling_lines(each.scaling, each.contention, axis=each.axis)
    ]
    grown = growth_along(data.view, data.rows, measured=data.measured_here, choose=choose)
    along = [
        (f"{each.subject} {each.largest.benchmark}.{each.metric} along {each.axis}", line)
        for each in grown.curves
        for line in curve_words(each)
    ]
    along += [("comparison", line) for each in grown.variants for line in variant_words(each)]
    return (
        *_section("scaling", "How it scales, and what limits it", scaled, undescribed_words(scalings)),
        *_section(
            "growth",
            "How it grows",
            along,
            described_words("Growth", described=len(grown.described), measured=len(grown.measured)),
            cause_hint(grown.curves),
        ),
    )


def _section(name: str, title: str, lines: list[tuple[str, str]], *sentences: str) -> Iterable[Section]:
    """Yield a section with a table of sentences; the name of a subject is only in its first row."""
    if lines:
        lines = [
            ("" if number and lines[number - 1][0] == subject else subject, line)
            for number, (subject, line) in enumerate(lines)
        ]
        yield Section(
            name=name,
            title=title,
            paragraphs=tuple(f"{each}." for each in sentences if each),
            tables=(Table(name=name, head=("subject", "finding"), rows=tuple(lines)),),
        )
