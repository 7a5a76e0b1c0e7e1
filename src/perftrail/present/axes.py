"""What else is known of subjects along an axis, put as sections of a report: how they scale, how they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.present.growth import cause_hint, curve_words, rival_words
from perftrail.present.page import Section, Table
from perftrail.present.scaling import left_out_words, scaling_lines, told_of_words
from perftrail.results.changes import worth_telling
from perftrail.results.growth import growth_along
from perftrail.results.scaling import thread_scalings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.model.subject import Revision
    from perftrail.present.report.gathered import Gathered


def findings(gathered: Gathered) -> tuple[Section, ...]:
    """Tell of threads and of growth; nothing where no benchmark has such an axis. Makes and measures nothing."""

    def choose(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
        return worth_telling(revisions, gathered.searches)

    scalings = thread_scalings(gathered.view, measured=gathered.measured_here, choose=choose)
    scaled = [
        (f"{each.subject} {each.benchmark}", line)
        for each in scalings.found
        for line in scaling_lines(each.scaling, each.contention, axis=each.axis)
    ]
    grown = growth_along(gathered.view, gathered.rows, measured=gathered.measured_here, choose=choose)
    along = [
        (f"{each.subject} {each.host.benchmark}.{each.metric} along {each.axis}", line)
        for each in grown.curves
        for line in curve_words(each)
    ]
    along += [("beside each other", line) for each in grown.rivals for line in rival_words(each)]
    return (
        *_section("scaling", "How it scales, and what limits it", scaled, left_out_words(scalings)),
        *_section(
            "growth",
            "How it grows",
            along,
            told_of_words("Growth", told=len(grown.told), measured=len(grown.measured)),
            cause_hint(grown.curves),
        ),
    )


def _section(name: str, title: str, told: list[tuple[str, str]], *said: str) -> Iterable[Section]:
    """A table of what is said of each subject; the subject stands in the first of its lines."""
    if told:
        lines = [
            ("" if number and told[number - 1][0] == who else who, line)
            for number, (who, line) in enumerate(told)
        ]
        yield Section(
            name=name,
            title=title,
            paragraphs=tuple(f"{each}." for each in said if each),
            tables=(Table(name=name, head=("subject", "finding"), rows=tuple(lines)),),
        )
