"""`report`: everything that a store has of a study, as one page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.errors import NOTHING_MEASURED, NoAnswer
from perftrail.model.wording import escaped
from perftrail.present.page import Fact, Page
from perftrail.present.report.about import about_sections
from perftrail.present.report.answer import claims_section, search_section, verdict
from perftrail.present.report.compared import compared_sections
from perftrail.present.report.curves import curve_sections, heat_section, samples_section
from perftrail.present.report.gathered import gather
from perftrail.present.report.history import history_sections
from perftrail.present.report.side_by_side import beside_section, compare_subjects
from perftrail.present.speech import sentence
from perftrail.present.validity import sample_notes
from perftrail.results.measured import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from perftrail.charts.frame import Figure
    from perftrail.measure.session import View
    from perftrail.ports import Engine
    from perftrail.present.page import Section, Verdict
    from perftrail.present.report.gathered import Gathered
    from perftrail.present.report.side_by_side import SideBySide


@uncollected()
def make_report(
    view: View,
    results: Path,
    *,
    findings: Callable[[Gathered], tuple[Section, ...]] = lambda _: (),
    engine: Engine | None = None,
    known: Callable[[Figure], None] | None = None,
) -> Page:
    """Return the report of a study. Builds and measures nothing.

    `results` is the directory of quoted logs, `findings` returns sections after the charts. `engine` computes change
    points; `known` is called with each chart as soon as it is known. Raises `NoAnswer` for an empty store.
    """
    return report_of(gather(view, results, engine=engine), findings=findings, known=known)


def report_of(
    gathered: Gathered,
    *,
    findings: Callable[[Gathered], tuple[Section, ...]] = lambda _: (),
    known: Callable[[Figure], None] | None = None,
) -> Page:
    """Return the report of gathered data, like `make_report`."""
    if not gathered.rows and not gathered.searches:
        raise NoAnswer(NOTHING_MEASURED)
    histories = history_sections(gathered, known=known)
    beside, curves = compare_subjects(gathered), curve_sections(gathered)
    others = [beside_section(gathered, beside), heat_section(gathered), samples_section(gathered)]
    drawn = [section for section in others if section is not None]
    first = [*compared_sections(gathered.comparisons), *_by_question(gathered, histories, curves, drawn)]
    claims = claims_section(gathered)
    search = search_section(gathered)
    lead = first[0] if first else None
    return Page(
        question=escaped(gathered.view.study.title or "What does it cost?", longest=200),
        verdict=_answer(gathered, beside, claims),
        lead=lead,
        sections=(
            *([claims] if claims is not None else []),
            *([search] if search is not None else []),
            *first[1:],
            *findings(gathered),
            *about_sections(gathered),
        ),
        made_by=f"Made by perftrail {__version__}",
        answer=gathered.search.answer if gathered.search is not None else None,
    )


def _answer(gathered: Gathered, beside: Sequence[SideBySide], claims: Section | None) -> Verdict:
    """Return the answer, with the result of the study's claims if there are any."""
    result = verdict(gathered, beside)
    notes = sample_notes(gathered.view, gathered.measured_here)
    result = replace(
        result, facts=(*result.facts, *(Fact(label="Samples", text=sentence(note)) for note in notes))
    )
    if claims is None:
        return result
    return replace(result, facts=(*result.facts, Fact(label="Claims", text=claims.paragraphs[0])))


def _by_question(
    gathered: Gathered, histories: tuple[Section, ...], curves: tuple[Section, ...], drawn: list[Section]
) -> list[Section]:
    """Order the sections: along the history after a search, else along an axis or as comparisons.

    The study's question comes first.
    """
    if gathered.search is not None:
        return [*histories, *curves, *drawn]
    several = len(gathered.variants) > 1
    if several or (curves and not any(section.answers for section in histories)):
        ordered = [*curves, *drawn, *histories]
    else:
        ordered = [*histories, *curves, *drawn]
    lead = next((section for section in ordered if section.answers), None)
    return ordered if lead is None else [lead, *(section for section in ordered if section is not lead)]
