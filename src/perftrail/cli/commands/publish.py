"""`perftrail publish`: add the report and the history of a study to a static site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option, source_options, store_option, study_argument

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.cli.options import SourceOptions
    from perftrail.model.study import Study
    from perftrail.ports import Engine
    from perftrail.present.html_page import Drawings
    from perftrail.present.site.directory import PublishJson


@click.command("publish", cls=Command)
@study_argument
@click.option(
    "-o",
    "--output",
    metavar="DIRECTORY",
    required=True,
    help="Directory of the site, for example a checked-out branch of GitHub Pages. It is created if necessary.",
)
@source_options
@store_option
@json_option
def command(study: str | None, output: str, sources: SourceOptions, store: str | None, as_json: bool) -> None:
    """Add the report and the measured values of a study to a static site, for GitHub or GitLab Pages.

    DIRECTORY/index.html shows the state of every metric, its history, and all published reports; DIRECTORY/badge.svg is
    the state as a badge. Earlier reports and values stay at their addresses, also those that the store no longer has.
    The pages need no server and no network. perftrail builds and measures nothing.
    """
    from pathlib import Path

    from perftrail.local_engine import second_process
    from perftrail.model.wording import counted
    from perftrail.present.html_page import Drawings

    loaded = sources.load(study, to_read=True)
    with second_process() as engine:
        published = publish(loaded, Path(output), store=store, engine=engine, drawings=Drawings(engine))
    if as_json:
        print_json("publish", published)
        return
    click.echo(published["answer"])
    index = published["files"][0]
    if published["report"] is None:
        click.echo("Everything was already published; no report was added.")
    else:
        added = f"{counted(published['values'], 'value')} added"
        click.echo(f"{published['report']}: report {published['reports']}, {added}")
    click.echo(f"{index['file']}, {index['bytes'] / 1e6:.2f} MB; badge: performance | {published['badge']}")


def publish(
    study: Study, directory: Path, *, store: str | None, engine: Engine, drawings: Drawings
) -> PublishJson:
    """Publish a study into a directory; return what was written."""
    from datetime import UTC, datetime

    from perftrail.opening import open_view, results_directory
    from perftrail.present.report.data import read_report_data
    from perftrail.present.report.report import report_of
    from perftrail.present.shared_sentences import print_source_age
    from perftrail.present.site.badge import badge_of
    from perftrail.present.site.directory import Site
    from perftrail.present.site.history import read_history
    from perftrail.present.site.index_page import verdict_of
    from perftrail.present.site.publication import adds_nothing, publication_of

    site = Site(directory)
    with open_view(study, store=store) as view:
        data = read_report_data(view, results_directory(study, store), engine=engine)
        page = report_of(data, on_chart=drawings.begin)
        print_source_age(view)
        with site.locked():
            reports = site.reports()
            earlier = [each.publication for each in reports]
            new = publication_of(data, page, earlier, now=datetime.now(UTC))
            site.refuse_other_study(new, earlier)
            written: tuple[Path, ...] = ()
            if not (adds_nothing(new, earlier) and site.has_files(page, reports)):
                added = site.add(new, page, drawings.stills(page.charts))
                reports = (*reports, added)
                written = (directory / added.address,)
            history = read_history(
                [each.publication for each in reports],
                data.revisions,
                study=view.study,
                searches=data.searches,
                engine=engine,
            )
            files = (*site.write_state(history, reports), *written)
    return {
        "answer": verdict_of(history).sentence,
        "badge": badge_of(history).message,
        "counts": dict(history.counts),
        "report": str(written[0]) if written else None,
        "values": sum(len(each.values) for metric in new.metrics for each in metric.measured),
        "revisions": len(history.revisions),
        "reports": len(reports),
        "files": [{"file": str(file), "bytes": file.stat().st_size} for file in files],
    }
