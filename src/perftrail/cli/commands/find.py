"""`perftrail find`: which revision changed a metric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    FRACTION,
    again,
    engine_option,
    jobs_option,
    json_option,
    keep_going_option,
    study_argument,
    walking_options,
    writing_options,
)
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from perftrail.cli.options import Walking, Writing
    from perftrail.find.answer import FindRequest
    from perftrail.model.study import Study


class FindOptions(TypedDict):
    """The options that override the study's `[find]`, by name."""

    part: str | None
    variant: str | None
    threshold: float | None
    confidence: float | None
    budget: str | None
    thorough: bool
    no_prior: bool


@click.command("find", cls=Command)
@study_argument
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to search: NAME, BENCHMARK.NAME, either with [parameter=value]. May be repeated. works: "
    "find where the program began to fail.",
)
@click.option("--all", "everything", is_flag=True, help="Search every metric of every benchmark at once.")
@click.option(
    "--range",
    "part",
    metavar="A..B",
    help="Part of the history; A is the known-old end. [default: the study's]",
)
@click.option("--variant", metavar="NAME", help="Variant to search. [default: the first]")
@click.option("--threshold", type=FRACTION, help="Smallest change worth finding. [default: the study's]")
@click.option(
    "--confidence", type=FRACTION, help="Required probability of the answer. [default: the study's]"
)
@click.option(
    "--budget", metavar="DURATION", help="Stop after this time of building and measuring, for example 30min."
)
@click.option("--thorough", is_flag=True, help="Also search for changes that a later revision reverted.")
@click.option("--no-prior", is_flag=True, help="Use a uniform prior.")
@keep_going_option
@jobs_option
@engine_option
@walking_options
@writing_options
@json_option
def command(
    study: str | None,
    metrics: tuple[str, ...],
    everything: bool,
    keep_going: bool,
    jobs: int,
    engine: str | None,
    walking: Walking,
    writing: Writing,
    as_json: bool,
    **asked: Unpack[FindOptions],
) -> None:
    """Find which revision changed a metric, by how much, and with what probability.

    perftrail measures both ends of the range first. Several metrics share one search; without any, all are searched.
    If the culprit is a merge, the search continues in its branch. An interrupted search resumes and repeats no
    measurement. Exits with 0 for an answer, also for "none", and with 1 if it is unclear.
    """
    from perftrail.find.find import Find
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.finding import print_find

    if metrics and everything:
        raise UsageError("--all and --metric: give one of them")
    loaded = writing.contained(walking.load(study))
    request = _request(loaded, () if everything else metrics or loaded.find.metric, **asked)
    answer = writing.follow(
        loaded,
        lambda session: retry_stale_builds(
            session.subject_builder, lambda: Find(replace(session, keep_going=keep_going), request).events()
        ),
        jobs=jobs,
        engine=engine,
    )
    if as_json:
        print_json("find", answer.as_json())
    else:
        print_find(answer, repeat=again(study, walking, writing))
    if answer.unclear:
        raise click.exceptions.Exit(1)


def _request(study: Study, metrics: Sequence[str], **asked: Unpack[FindOptions]) -> FindRequest:
    """Return the request from options and study file. Raises `UsageError` for invalid values."""
    from perftrail.find.answer import FindRequest
    from perftrail.model.target import TargetError, resolve_goal
    from perftrail.model.wording import parse_duration
    from perftrail.search.question import Budget

    policy = study.find
    try:
        goal = resolve_goal(study, metrics, asked["variant"] or policy.variant)
    except TargetError as error:
        named = " ".join(f"--metric {text}" for text in metrics) or f"--variant {asked['variant']}"
        raise UsageError(f"{named}: {error}") from error
    threshold, confidence, budget = asked["threshold"], asked["confidence"], asked["budget"]
    try:
        seconds = policy.budget_seconds if budget is None else parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from error
    request = FindRequest(
        goal=goal,
        range=asked["part"],
        threshold=policy.threshold if threshold is None else threshold,
        confidence=policy.confidence if confidence is None else confidence,
        budget=Budget(seconds=seconds, invocations=policy.budget_invocations, builds=policy.budget_builds),
        thorough=asked["thorough"],
        priors=() if asked["no_prior"] else policy.prior,
        suspect=policy.suspect,
    )
    try:
        request.question(2)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("question.")) from error
    return request
