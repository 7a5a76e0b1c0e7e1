"""`perftrail find`: which revision changed a metric."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option, load_study, store_option, study_argument, writing_options
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.workflows.find import FindRequest


@click.command("find")
@study_argument
@click.option("--metric", help="Metric to follow: NAME, BENCHMARK.NAME, either with [parameter=value].")
@click.option("--range", "part", metavar="A..B", help="Part of the history; A is the known-old end.")
@click.option("--variant", help="Variant to follow.")
@click.option("--smallest", type=float, help="Smallest change worth finding: 0.05 is 5 %.")
@click.option("--confidence", type=float, help="How sure to be before answering: 0.99.")
@click.option("--budget", metavar="TIME", help="Stop after this much building and measuring: 30min.")
@writing_options
@store_option
@json_option
def command(
    study: str | None,
    metric: str | None,
    part: str | None,
    variant: str | None,
    smallest: float | None,
    confidence: float | None,
    budget: str | None,
    retry_failed: bool,
    no_wait: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Find which revision changed a metric, how sure that is, and by how much.

    Both ends of the range are measured first. Resumes by itself: what was measured is not measured again.
    Exits 0 when an answer was reached, also "none"; 1 when it stayed unclear.
    """
    from perftrail.cli.answers import print_find
    from perftrail.cli.console import Watcher
    from perftrail.workflows.find import Find
    from perftrail.workflows.opening import open_session

    loaded = load_study(study)
    request = _request(
        loaded,
        metric=metric,
        part=part,
        variant=variant,
        smallest=smallest,
        confidence=confidence,
        budget=budget,
    )
    with (
        Watcher() as watcher,
        open_session(
            loaded, store=store, wait=not no_wait, on_wait=watcher.waiting, retry_failed=retry_failed
        ) as session,
    ):
        answer = watcher.follow(Find(session, request).events())
    if as_json:
        click.echo(json.dumps(answer.as_json(), indent=1))
    else:
        print_find(answer, named=study)
    if answer.answer.verdict == "unclear":
        raise click.exceptions.Exit(1)


def _request(
    study: Study,
    *,
    metric: str | None,
    part: str | None,
    variant: str | None,
    smallest: float | None,
    confidence: float | None,
    budget: str | None,
) -> FindRequest:
    """Put the command line over the study file. Raises `UsageError` for what makes no sense."""
    from perftrail.model.target import TargetError, resolve
    from perftrail.model.units import parse_duration
    from perftrail.search.question import Budget, Question
    from perftrail.workflows.find import FindRequest

    policy = study.find
    text = metric or policy.metric
    if text is None:
        raise UsageError("find what? give --metric NAME, or `metric` under [find] in the study file")
    try:
        target = resolve(study, text, variant or policy.variant)
    except TargetError as error:
        raise UsageError(f"--metric {text}: {error}") from error
    try:
        seconds = policy.budget_seconds if budget is None else parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from error
    request = FindRequest(
        target=target,
        range=part,
        smallest=policy.smallest if smallest is None else smallest,
        confidence=policy.confidence if confidence is None else confidence,
        budget=Budget(seconds=seconds, invocations=policy.budget_invocations, builds=policy.budget_builds),
    )
    try:
        Question(revisions=2, smallest=request.smallest, confidence=request.confidence)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("question.")) from error
    return request
