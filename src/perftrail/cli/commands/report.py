"""`perftrail report`: a page with the answer, its charts and its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    json_option,
    sandbox_option,
    source_options,
    store_option,
    study_argument,
    with_sandbox,
)

if TYPE_CHECKING:
    from perftrail.cli.options import SourceOptions
    from perftrail.model.study import Study
    from perftrail.ports import Engine
    from perftrail.present.html_page import Drawings, Page, ReportJson


@click.command("report", cls=Command)
@study_argument
@click.option(
    "-o",
    "--output",
    metavar="DIRECTORY",
    help="Directory of the report; it is created if necessary. [default for a page: .perftrail/report]",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="A page with its charts, or Markdown text for an issue. Without -o, Markdown is printed.",
)
@source_options
@sandbox_option
@store_option
@json_option
def command(
    study: str | None,
    output: str | None,
    format_name: str,
    sources: SourceOptions,
    sandbox: bool | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Write a report: the answer, its charts, the evidence, and how to repeat it.

    DIRECTORY/index.html needs no other file and no network; DIRECTORY/charts has each chart as SVG and PNG. The
    Markdown report is DIRECTORY/report.md. perftrail builds and measures nothing.
    """
    from pathlib import Path

    from perftrail.local_engine import second_process
    from perftrail.model.wording import counted
    from perftrail.opening import results_directory
    from perftrail.present.html_page import Drawings, to_markdown, write_markdown, write_page
    from perftrail.results_directory import create

    loaded = with_sandbox(sources.load(study, to_read=True), sandbox)
    if default := output is None and (format_name == "html" or as_json):
        output = str(results_directory(loaded, store) / "report")
    with second_process() as engine:
        drawings = None if output is None else Drawings(engine)
        page = _page(loaded, store, engine=engine, drawings=drawings)
        if output is None or drawings is None:
            click.echo(to_markdown(page), nl=False)
            return
        if default:
            create(Path(output).parent)
        written = (write_page if format_name == "html" else write_markdown)(page, output, drawings)
    if as_json:
        data: ReportJson = {
            "question": page.question,
            "verdict": page.verdict.sentence,
            "answer": page.answer,
            "rankings": [each.as_json() for each in page.rankings],
            "files": [{"file": str(file), "bytes": file.stat().st_size} for file in written],
        }
        print_json("report", data)
    else:
        click.echo(page.verdict.sentence)
        click.echo(
            f"{written[0]}, {written[0].stat().st_size / 1e6:.1f} MB, {counted(len(page.charts), 'chart')}"
        )


def _page(study: Study, store: str | None, *, engine: Engine, drawings: Drawings | None) -> Page:
    """Return the report; modules are imported while the engine's process starts."""
    from perftrail.opening import open_view, results_directory
    from perftrail.present.report.report import make_report
    from perftrail.present.shared_sentences import print_source_age

    with open_view(study, store=store) as view:
        page = make_report(
            view,
            results_directory(study, store),
            engine=engine,
            on_chart=None if drawings is None else drawings.begin,
        )
        print_source_age(view)
    return page
