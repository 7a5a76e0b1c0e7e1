"""`perftrail explain`: differences between a revision and its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    json_option,
    only_option,
    revisions_named,
    session_options,
    source_options,
    study_argument,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.study import Study
    from perftrail.verbs.explain.explain import ExplainReport


INVOCATIONS = 5
"""Default number of invocations of each revision without a profiler."""


@click.command("explain", cls=Command)
@click.argument("culprit")
@study_argument
@click.option("--against", metavar="REVISION", help="Revision to compare with. [default: the first parent]")
@click.option(
    "--invocations",
    type=click.IntRange(min=2),
    default=INVOCATIONS,
    show_default=True,
    metavar="N",
    help="Number of invocations of each revision without a profiler.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Use only the points of this metric: NAME, BENCHMARK.NAME, either with [parameter=value]. May be repeated. "
    "[default: the points at which a search found CULPRIT, or all]",
)
@click.option(
    "--flame-graph",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the difference as a flame graph: SVG, or a page if FILE ends with .html.",
)
@click.option(
    "--speedscope",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write both profiles for speedscope.",
)
@click.option(
    "--pprof",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write both profiles and their difference for pprof.",
)
@only_option
@source_options
@session_options
@json_option
def command(
    culprit: str,
    study: str | None,
    against: str | None,
    invocations: int,
    flame_graph: str | None,
    speedscope: str | None,
    pprof: str | None,
    metrics: tuple[str, ...],
    only: tuple[str, ...],
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Show why revision CULPRIT is faster or slower than the one before it: the responsible functions first.

    After a search that found CULPRIT, perftrail uses only the points of the search, unless --metric, --only or --bench
    selects others. It starts both alternately at each point: without a profiler, with counters of pthread locks and of
    heap allocations, under strace for system calls, and with a profiler of functions: Callgrind for compiled programs,
    cProfile for Python, perf for the others. It names the functions whose change explains the difference, with call
    path, and costs that only moved to another function. It reports differences that noise does not explain, and the
    number of changed lines in each file. It names missing tools.

    Exits with 1 if no measurement is possible.
    """
    from perftrail.present.explain import print_explained
    from perftrail.present.profile_files import write_profile_files

    loaded = options.with_suites(options.apply_to(sources.load(study)), revisions_named(culprit, against))
    explained = explain(
        loaded,
        culprit,
        against=against,
        invocations=invocations,
        metrics=metrics,
        only=only,
        options=options,
    )
    if as_json:
        print_json("explain", explained.as_json())
    else:
        print_explained(explained, study_file=study)
    for file in write_profile_files(explained, flame=flame_graph, speedscope=speedscope, pprof=pprof):
        click.echo(f"wrote {file}", err=True)
    if not explained.measured:
        raise click.exceptions.Exit(1)


def explain(
    study: Study,
    culprit: str,
    *,
    options: SessionOptions,
    against: str | None = None,
    invocations: int = INVOCATIONS,
    metrics: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
) -> ExplainReport:
    """Profile a revision and its reference, by default its first parent, and return their differences.

    Without a selection, the points are those of the stored searches that found the revision, or else all.
    """
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.results.changes import searched_targets
    from perftrail.results.selection import metric_targets, select
    from perftrail.verbs.explain.explain import Explain, find_pair
    from perftrail.verbs.explain.profilers import all_profilers, function_profilers

    selection = select(study, only).at(metric_targets(study, metrics))
    selected = bool(metrics or only or study.selected)

    def work(session: Session) -> Generator[Event, None, ExplainReport]:
        pair = find_pair(session, culprit=culprit, against=against, store=options.store)
        profilers = all_profilers(study, session.runner.invoker, invocations=invocations)
        functions = function_profilers(session.runner.invoker, invocations=invocations)
        searched = (
            () if selected else searched_targets(study, session.store.searches(), culprit=pair.culprit.id)
        )
        return retry_stale_builds(
            session.subject_builder,
            lambda: Explain(
                session,
                pair,
                profilers=profilers,
                function_profilers=functions,
                selection=selection.at(searched) if searched else selection,
                searched=tuple(each.name for each in searched),
            ).events(),
        )

    return options.run(study, work)
