"""`perftrail report`: one page with the answer, its figures and where they come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import (
    contained,
    json_option,
    sandbox_option,
    store_option,
    study_argument,
    walking_options,
)
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from perftrail.cli.options import Walking
    from perftrail.model.study import Study
    from perftrail.ports import Engine
    from perftrail.present.page import Page
    from perftrail.present.page_images import Drawings


@click.command("report")
@study_argument
@click.option("-o", "--output", metavar="DIR", help="Where to write it; made where it is not there.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="A page with images beside it, or text for an issue; without -o, markdown is printed.",
)
@walking_options
@sandbox_option
@store_option
@json_option
def command(
    study: str | None,
    output: str | None,
    form: str,
    walking: Walking,
    sandbox: bool | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Write a report: the study's question answered, the figures, where they come from, how to repeat it.

    DIR/index.html needs nothing else, no network either; DIR/figures holds each figure as SVG and PNG. As Markdown it
    is DIR/report.md, which shows DIR/figures. Nothing is made or measured.
    """
    from perftrail.local_engine import beside
    from perftrail.present.page_files import write_markdown, write_page
    from perftrail.present.page_images import Drawings
    from perftrail.present.page_markdown import to_markdown

    if output is None and (form == "html" or as_json):
        raise UsageError("report: say where to write it with -o DIR, or print it with --format markdown")
    loaded = contained(walking.load(study), sandbox)
    with beside() as engine:
        drawings = None if output is None else Drawings(engine)
        page = _page(loaded, store, engine=engine, drawings=drawings)
        if output is None or drawings is None:
            click.echo(to_markdown(page), nl=False)
            return
        written = (write_page if form == "html" else write_markdown)(page, output, drawings)
    if as_json:
        told = {
            "question": page.question,
            "verdict": page.verdict.sentence,
            "answer": page.answer,
            "files": [{"file": str(file), "bytes": file.stat().st_size} for file in written],
        }
        click.echo(json.dumps(told, indent=1))
    else:
        click.echo(page.verdict.sentence)
        click.echo(f"{written[0]}, {written[0].stat().st_size / 1e6:.1f} MB, {len(page.figures)} figures")


def _page(study: Study, store: str | None, *, engine: Engine, drawings: Drawings | None) -> Page:
    """Put the report together; what that needs is imported while the engine's own process starts."""
    from perftrail.opening import open_view, results_directory
    from perftrail.present.axes import findings
    from perftrail.present.report.report import make_report
    from perftrail.present.speech import say_how_old

    with open_view(study, store=store) as view:
        page = make_report(
            view,
            results_directory(study, store),
            findings=findings,
            engine=engine,
            known=None if drawings is None else drawings.begin,
        )
        say_how_old(view)
    return page
