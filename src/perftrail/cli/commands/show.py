"""`perftrail show`: stored samples, and the steps of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json, print_json_rows
from perftrail.cli.options import (
    json_option,
    repeated_view_options,
    sandbox_option,
    source_options,
    store_option,
    study_argument,
    with_sandbox,
)
from perftrail.errors import NOTHING_MEASURED, NoAnswer, UsageError
from perftrail.model.wording import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import SourceOptions
    from perftrail.measure.session import View
    from perftrail.results.show import SearchStepJson
    from perftrail.verbs.explained_search import ExplainedSearchJson

LATEST = "latest"
"""The value of ``--search`` without a number."""


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
    help="Show the steps of search number N. [default: the last search]",
)
@click.option(
    "--claims",
    is_flag=True,
    help="Judge the claims of the study: reproduced, not reproduced, unclear, or cannot be measured.",
)
@click.option(
    "--comparisons",
    is_flag=True,
    help="Show the stored comparisons in full, the last one of each pair of revisions.",
)
@click.option("--failures", is_flag=True, help="Show only failed builds and skipped revisions.")
@click.option("--markdown", is_flag=True, help="With --claims: print a Markdown table.")
@source_options
@sandbox_option
@store_option
@json_option
def command(
    study: str | None,
    metrics: tuple[str, ...],
    search: str | None,
    claims: bool,
    comparisons: bool,
    failures: bool,
    markdown: bool,
    sources: SourceOptions,
    sandbox: bool | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show each subject's median with its 95 % interval, in the order of the history.

    perftrail also shows changes along the history, growth along numeric parameters, differences between variants,
    failed builds and skipped revisions. For a benchmark with a parameter threads, n_threads, jobs or workers, it shows
    the scaling: speed-up, law and limit. It labels samples of an older recipe or another toolchain, and revisions with
    the same build as their neighbour. --json prints the medians; --comparisons --json and --failures --json print the
    rest.
    """
    from perftrail.opening import open_view
    from perftrail.present.shared_sentences import print_source_age

    parts = {
        "--claims": claims,
        "--comparisons": comparisons,
        "--failures": failures,
        "--search": search is not None,
        "--metric": bool(metrics),
    }
    chosen = [name for name, is_chosen in parts.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} cannot be combined with {listed(chosen[1:], 'and')}; use one of them")
    if markdown and not claims:
        raise UsageError("--markdown needs --claims; for all results: perftrail report --format markdown")
    number, study = _requested_search(search, study)
    with open_view(with_sandbox(sources.load(study, to_read=True), sandbox), store=store) as view:
        if claims:
            _show_claims(view, markdown=markdown, as_json=as_json)
        elif comparisons:
            _show_comparisons(view, repeated_view_options(study, sources, sandbox, store), as_json=as_json)
        elif failures:
            _show_failures(view, as_json=as_json)
        elif number is not None:
            _show_search(view, number, as_json=as_json)
        else:
            _show_measured(view, metrics, as_json=as_json)
        print_source_age(view)


def _show_measured(view: View, metrics: tuple[str, ...], *, as_json: bool) -> None:
    from perftrail.measure.session import missing_builds
    from perftrail.present.failures import print_missing
    from perftrail.present.gate_output import print_comparisons
    from perftrail.present.growth import print_growth
    from perftrail.present.outdated import sample_notes
    from perftrail.present.scaling import print_scalings
    from perftrail.present.tables import print_by_benchmark, print_changes, print_notes, print_rows
    from perftrail.results.gate import stored_comparisons
    from perftrail.results.show import show
    from perftrail.verbs.export import check_metrics

    check_metrics(metrics, view.study, others=view.study.derived)
    shown = show(view, metrics=metrics or None)
    if as_json:
        print_json_rows("show", shown.json_rows())
        return
    if shown.rows:
        print_rows(shown.rows, pins=shown.pins, changes=shown.changes.points)
        print_changes(shown.changes)
        print_growth(shown.growths, shown.described_growths())
        print_by_benchmark(shown.by_benchmark)
        print_scalings(shown.scalings())
    print_missing(missing_builds(view, shown.measured.history))
    if not shown.rows:
        raise NoAnswer(NOTHING_MEASURED)
    print_notes(sample_notes(view, shown.measured))
    print_comparisons(stored_comparisons(view))


def _show_comparisons(view: View, words: Sequence[str], *, as_json: bool) -> None:
    from perftrail.present.gate_output import print_gate
    from perftrail.present.outdated import comparison_notes
    from perftrail.present.shared_sentences import sentence, shell_words
    from perftrail.results.gate import stored_comparisons

    known = tuple(
        replace(each, repeat=f"perftrail compare{shell_words((each.base.short, each.head.short, *words))}")
        for each in stored_comparisons(view)
    )
    notes = comparison_notes(view)
    if not known and notes and not as_json:
        raise NoAnswer(*notes)
    for note in notes:
        click.echo(sentence(note), err=True)
    if as_json:
        print_json("show --comparisons", [each.as_json() for each in known])
        return
    if not known:
        raise NoAnswer("no comparison yet; compare two revisions with: perftrail compare BASE HEAD")
    for number, each in enumerate(known):
        if number:
            click.echo()
        print_gate(each)


def _show_failures(view: View, *, as_json: bool) -> None:
    from perftrail.measure.session import missing_builds
    from perftrail.present.failures import print_missing
    from perftrail.results.measured import MeasuredHere

    missing = missing_builds(view, MeasuredHere(view).history)
    if as_json:
        print_json("show --failures", missing.as_json())
    elif missing.failure_groups or missing.skipped_revisions:
        print_missing(missing)
    else:
        click.echo("no failed build, and no skipped revision")


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


def _requested_search(search: str | None, study: str | None) -> tuple[str | None, str | None]:
    """Return the requested search and study: a word after ``--search`` that is not a number is the study."""
    if search is None or search == LATEST or search.isdecimal():
        return search, study
    if study is not None:
        raise UsageError(
            f"--search {search} is not a number; write a search's number, or none for the last search"
        )
    return LATEST, search


def _show_search(view: View, requested: str, *, as_json: bool) -> None:
    from perftrail.present.tables import print_search, print_searches
    from perftrail.results.show import searches, steps
    from perftrail.verbs.explained_search import explanations_of

    known = searches(view)
    if not known:
        raise NoAnswer("no search yet; start one with: perftrail find")
    number = len(known) if requested == LATEST else int(requested)
    if not 1 <= number <= len(known):
        numbers = "the only search is 1" if len(known) == 1 else f"the searches are 1 to {len(known)}"
        raise UsageError(f"--search {requested}: no such search; {numbers}")
    record = known[number - 1]
    search_steps = steps(view, record)
    if as_json:
        step_data: list[SearchStepJson] = [
            {
                "number": s.number,
                "words": s.words,
                "action": s.action,
                "observation": s.observation,
                "belief": s.belief,
            }
            for s in search_steps
        ]
        data: ExplainedSearchJson = {
            "number": number,
            "searches": [
                {"question": each.question, "started": each.started, "answer": each.answer} for each in known
            ],
            "question": record.question,
            "steps": step_data,
            "answer": record.answer,
            "explanations": explanations_of(view.store.explanations(), record),
        }
        print_json("show --search", data)
    else:
        if len(known) > 1:
            print_searches(known, number)
        print_search(record, search_steps, view.source.history())
