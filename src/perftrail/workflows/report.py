"""`report`: everything a store holds of a study, put together as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail import __version__
from perftrail.errors import NoAnswer
from perftrail.report.page import Page
from perftrail.workflows.reporting.about import about_sections
from perftrail.workflows.reporting.beside import beside_section, compare_subjects
from perftrail.workflows.reporting.curves import curve_sections, heat_section, samples_section
from perftrail.workflows.reporting.gathered import gather
from perftrail.workflows.reporting.history import history_sections
from perftrail.workflows.reporting.search import search_section
from perftrail.workflows.reporting.verdict import verdict
from perftrail.workflows.reporting.words import shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftrail.report.page import Section
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.session import View


def make_report(
    view: View, results: Path, *, findings: Callable[[Gathered], tuple[Section, ...]] = lambda _: ()
) -> Page:
    """Put a report together. Makes and measures nothing.

    `results` is the directory whose logs it quotes, `findings` gives what is told after the figures. Raises `NoAnswer`
    when there is nothing to tell of.
    """
    gathered = gather(view, results)
    if not gathered.rows and not gathered.searches:
        raise NoAnswer("nothing was measured on this machine yet; perftrail run or perftrail find does")
    beside = compare_subjects(gathered)
    histories, curves = history_sections(gathered), curve_sections(gathered)
    others = [beside_section(gathered, beside), heat_section(gathered), samples_section(gathered)]
    drawn = [section for section in others if section is not None]
    first = (
        [*histories, *curves, *drawn]
        if gathered.search is not None
        else _by_question(gathered, histories, curves, drawn)
    )
    search = search_section(gathered)
    lead = first[0] if first else None
    return Page(
        question=shown(view.study.title or "What does it cost?", longest=200),
        verdict=verdict(gathered, beside),
        lead=lead,
        sections=(
            *([search] if search is not None else []),
            *first[1:],
            *findings(gathered),
            *about_sections(gathered),
        ),
        made_by=f"Made by perftrail {__version__}",
        answer=gathered.search.answer if gathered.search is not None else None,
    )


def _by_question(
    gathered: Gathered, histories: tuple[Section, ...], curves: tuple[Section, ...], drawn: list[Section]
) -> list[Section]:
    """Order the figures of a run: along the axis it has, else along the history, else beside each other."""
    several = len(gathered.variants) > 1
    if curves:
        return [*curves, *drawn, *histories]
    return [*drawn, *histories] if several else [*histories, *drawn]
