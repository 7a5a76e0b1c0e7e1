"""`perftrail show`: stored samples, and the steps of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    contained,
    json_option,
    sandbox_option,
    store_option,
    study_argument,
    walking_options,
)
from perftrail.errors import NOTHING_MEASURED, NoAnswer, UsageError

if TYPE_CHECKING:
    from perftrail.cli.options import Walking
    from perftrail.measure.session import View
    from perftrail.results.show import SearchStepJson, SearchStepsJson

LATEST = "latest"
"""What ``--search`` means without a number."""


@click.command("show", cls=Command)
@study_argument
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Show only this metric. May be repeated."
)
@click.option(
    "--search",
    is_flag=False,
    flag_value=LATEST,
    metavar="[N]",
    help="Replay a search step by step. [default: the last]",
)
@click.option(
    "--claims",
    is_flag=True,
    help="Judge the study's claims: reproduced, not reproduced, unclear, or cannot be measured.",
)
@click.option("--markdown", is_flag=True, help="With --claims: print a Markdown table.")
@walking_options
@sandbox_option
@store_option
@json_option
def command(
    study: str | None,
    metrics: tuple[str, ...],
    search: str | None,
    claims: bool,
    markdown: bool,
    walking: Walking,
    sandbox: bool | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show each subject's median with its 95 % interval, in the order of the history.

    Then follow the changes along the history, growth along numeric parameters, differences between variants, failed
    builds and skipped revisions. A benchmark with a parameter threads, n_threads, jobs or workers also shows how it
    scales: speed-up, law and limit. Samples of an older recipe or another toolchain are labelled.
    """
    from perftrail.opening import open_view
    from perftrail.present.speech import print_source_age

    if claims and (search is not None or metrics):
        raise UsageError("--claims: judges claims alone; leave --search and --metric out")
    if markdown and not claims:
        raise UsageError("--markdown: is for --claims; perftrail report --format markdown has all the rest")
    wanted, study = _wanted(search, study)
    with open_view(contained(walking.load(study, to_read=True), sandbox), store=store) as view:
        if claims:
            _show_claims(view, markdown=markdown, as_json=as_json)
        elif wanted is not None:
            _show_search(view, wanted, as_json=as_json)
        else:
            _show_measured(view, metrics, as_json=as_json)
        print_source_age(view)


def _show_measured(view: View, metrics: tuple[str, ...], *, as_json: bool) -> None:
    from perftrail.measure.session import missing_builds
    from perftrail.present.failures import print_missing
    from perftrail.present.gate_output import print_comparisons
    from perftrail.present.growth import print_growth
    from perftrail.present.scaling import print_scalings
    from perftrail.present.tables import print_by_benchmark, print_changes, print_notes, print_rows
    from perftrail.present.validity import sample_notes
    from perftrail.results.gate import stored_comparisons
    from perftrail.results.show import show

    shown = show(view, metrics=metrics or None)
    if as_json:
        print_json("show", shown.as_json())
        return
    if shown.rows:
        print_rows(shown.rows, pins=shown.pins)
        print_changes(shown.changes)
        print_growth(shown.growths, shown.described_growths())
        print_by_benchmark(shown.by_benchmark)
        print_scalings(shown.scalings())
    print_missing(missing_builds(view, shown.measured.history))
    if not shown.rows:
        raise NoAnswer(NOTHING_MEASURED)
    print_notes(sample_notes(view, shown.measured))
    print_comparisons(stored_comparisons(view))


def _show_claims(view: View, *, markdown: bool, as_json: bool) -> None:
    from perftrail.present.tables import claims_markdown, print_claims
    from perftrail.results.claims import judge

    if not view.study.claims:
        raise NoAnswer(f"{view.study.file} has no claims; write them as [claims.NAME]")
    judged = judge(view)
    if all(each.evidence is None for each in judged) and any(not each.claim.cannot for each in judged):
        raise NoAnswer("no samples for the claims yet; measure with: perftrail run")
    if as_json:
        print_json("show --claims", [each.as_json() for each in judged])
    elif markdown:
        click.echo(claims_markdown(judged), nl=False)
    else:
        print_claims(judged)


def _wanted(search: str | None, study: str | None) -> tuple[str | None, str | None]:
    """Return the requested search and study: a word after ``--search`` that is not a number is the study."""
    if search is None or search == LATEST or search.isdecimal():
        return search, study
    if study is not None:
        raise UsageError(f"--search {search}: give the number of a search, or nothing for the one begun last")
    return LATEST, search


def _show_search(view: View, wanted: str, *, as_json: bool) -> None:
    from perftrail.present.tables import print_search, print_searches
    from perftrail.results.show import searches, steps

    known = searches(view)
    if not known:
        raise NoAnswer("no search yet; start one with: perftrail find")
    number = len(known) if wanted == LATEST else int(wanted)
    if not 1 <= number <= len(known):
        there = "1 is the only one" if len(known) == 1 else f"they are 1 to {len(known)}"
        raise UsageError(f"--search {wanted}: no such search; {there}")
    record = known[number - 1]
    taken = steps(view, record)
    if as_json:
        plain: list[SearchStepJson] = [
            {"number": s.number, "words": s.words, "action": s.action, "news": s.news, "belief": s.belief}
            for s in taken
        ]
        data: SearchStepsJson = {
            "number": number,
            "searches": [
                {"question": each.question, "started": each.started, "answer": each.answer} for each in known
            ],
            "question": record.question,
            "steps": plain,
            "answer": record.answer,
        }
        print_json("show --search", data)
    else:
        if len(known) > 1:
            print_searches(known, number)
        print_search(record, taken, view.source.history())
