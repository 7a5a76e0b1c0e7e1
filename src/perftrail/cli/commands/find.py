"""`perftrail find`: find the revision that changed a metric."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.command_words import WordsCommand, command_line_options, command_words
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    FRACTION,
    THRESHOLD,
    as_linked_option,
    check_threshold,
    ends,
    engine_option,
    jobs_option,
    json_option,
    keep_going_option,
    repeated_options,
    session_options,
    source_options,
    timeout_option,
    timeout_words,
    with_links,
    with_timeout,
)
from perftrail.errors import SourceError, UsageError
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from perftrail.cli.command_words import LineOptions
    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.find.answer import FindAnswer, FindRequest, FindTable
    from perftrail.model.source import Source
    from perftrail.model.study import Study
    from perftrail.model.target import Target


class FindOptions(TypedDict):
    """Options that override the study's `[find]`, by name."""

    part: str | None
    variant: str | None
    threshold: float | None
    confidence: float | None
    budget: str | None
    thorough: bool
    no_prior: bool


@click.command("find", cls=WordsCommand)
@click.argument("names", nargs=-1, metavar="[GOOD BAD] [STUDY|BENCHMARKS]")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to search: NAME, BENCHMARK.NAME, either with [parameter=value]. With --metric works, find the "
    "revision that broke the program. May be repeated. [default: the study's, or all]",
)
@click.option("--all", "everything", is_flag=True, help="Search every metric of every benchmark at once.")
@click.option(
    "--range",
    "part",
    metavar="A..B",
    help="Part of the history to search; A is the older end. ..B goes back from B until a range has a change. "
    "[default: the study's]",
)
@click.option("--variant", metavar="NAME", help="Variant to search. [default: the first]")
@click.option("--threshold", type=THRESHOLD, help="Smallest change worth finding. [default: the study's]")
@click.option(
    "--confidence", type=FRACTION, help="Required probability of the answer. [default: the study's]"
)
@click.option(
    "--budget",
    metavar="DURATION",
    help="Stop after this time, for example 30min. The next command continues from what is stored. "
    "[default: the study's; else 1 h, or the time of 24 builds if that is longer]",
)
@click.option("--thorough", is_flag=True, help="Also search for changes that a later revision reverted.")
@timeout_option
@as_linked_option
@click.option("--no-prior", is_flag=True, help="Use a uniform prior: every revision is equally likely.")
@command_line_options
@click.option(
    "--note",
    is_flag=True,
    help="Add the result to the culprit as a git note, in your repository: git log --notes=perftrail.",
)
@click.option(
    "--trailer",
    is_flag=True,
    help="Print only the trailer for the commit message of a fix, for git commit --trailer.",
)
@click.option(
    "--then",
    metavar="COMMANDS",
    help="After an answer, run these commands on each culprit: explain, revert, or explain,revert.",
)
@keep_going_option
@jobs_option
@engine_option
@source_options
@session_options
@json_option
def command(
    names: tuple[str, ...],
    metrics: tuple[str, ...],
    everything: bool,
    timeout: float | None,
    as_linked: bool,
    note: bool,
    trailer: bool,
    then: str | None,
    keep_going: bool,
    jobs: int,
    engine: str | None,
    line: LineOptions,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
    **overrides: Unpack[FindOptions],
) -> None:
    """Find the revision that changed a metric, with the effect and the probability.

    \b
    perftrail find                                      as the study says
    perftrail find v1.2 HEAD                            between two revisions
    perftrail find v1.2 HEAD --build make -- ./bench a  one command, without a study file
    perftrail find 'parse/.*' --range v1.2..            benchmarks of the project's suite, by a regular expression

    GOOD is a revision before the change, BAD one after it. The words after -- are the command to measure; it runs in
    the tree of each revision. Words before the last && build instead of --build LINE.

    perftrail measures both ends of the range first. Several metrics share one search. If the culprit is a merge, the
    search continues in its branch. An interrupted search resumes and repeats no measurement. Exits with 0 for an
    answer, also for "none", and with 1 if the answer is unclear.
    """  # noqa: D301 - click wants the control character itself
    from perftrail.cli.after_find import AfterFind
    from perftrail.find.find import Find
    from perftrail.find.old_end import FindFromNewEnd, has_open_old_end
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.answer_details import print_find
    from perftrail.present.next_find import FindCommand

    began = time.monotonic()
    if metrics and everything:
        raise UsageError("--all and --metric exclude each other; use one of them")
    study, overrides["part"] = _named(names, overrides["part"])
    study, sources = _benchmarks_named(study, sources)
    study = line.study(study, range=overrides["part"] or "")
    loaded = with_links(options.apply_to(sources.load(study)), as_linked=as_linked)
    wanted = _wanted(then, trailer=trailer)
    if trailer and as_json:
        raise UsageError("--trailer and --json exclude each other; the JSON has the facts of the trailer")
    if note:
        _check_notes(loaded.searched_source)
    loaded = options.with_suites(
        loaded,
        lambda session: ends(session.source.history(overrides["part"])),
        jobs=jobs,
    )
    loaded = with_timeout(loaded, timeout)
    request = _request(loaded, () if everything else metrics or loaded.find.metric, **overrides)
    search = FindFromNewEnd if has_open_old_end(request.range) else Find
    try:
        answer = options.run(
            loaded,
            lambda session: retry_stale_builds(
                session.subject_builder,
                lambda: search(replace(session, keep_going=keep_going), request).events(),
            ),
            jobs=jobs,
            engine=engine,
        )
    except SourceError as error:
        if not error.range:
            raise
        raise _about_range_option(error, loaded) from error
    if note:
        _add_notes(loaded, answer, store=options.store)
    if as_json:
        after = AfterFind(loaded, wanted, options=options, engine=engine, study_file=study, printed=False)
        print_json("find", {**answer.as_json(), **({"then": after.run(answer)} if wanted else {})})
    elif trailer:
        _print_trailers(answer)
    else:
        run_options = (
            ["--as-linked"] * as_linked + ["--keep-going"] * keep_going + ["--jobs", str(jobs)] * (jobs > 1)
        )
        run_options += [] if engine is None else ["--engine", engine]
        run_options += timeout_words(timeout)
        print_find(
            answer,
            FindCommand(
                study=repeated_options(study, sources, options),
                options=(*_question_options(metrics, overrides, everything=everything), *run_options),
                threshold=request.threshold,
                confidence=request.confidence,
                budget=request.budget,
                benchmarks=loaded.benchmarks,
            ),
            elapsed=time.monotonic() - began,
        )
        AfterFind(loaded, wanted, options=options, engine=engine, study_file=study, printed=True).run(answer)
    if answer.unclear:
        raise click.exceptions.Exit(1)


THEN = ("explain", "revert")
"""Commands that `--then` can run."""


def _wanted(then: str | None, *, trailer: bool) -> tuple[str, ...]:
    """Return the commands of --then in their order. Raises `UsageError` for other commands."""
    if then is None:
        return ()
    if trailer:
        raise UsageError("--then and --trailer exclude each other; use one of them")
    names = [name.strip() for name in then.split(",")]
    if wrong := next((name for name in names if name not in THEN), None):
        raise UsageError(f"--then {quoted(then)}: {quoted(wrong)} is not one of explain, revert")
    return tuple(name for name in THEN if name in names)


def _check_notes(source: Source) -> None:
    """Raise `UsageError` if the history is not in a git repository on this machine."""
    if source.kind != "git" or not source.location.startswith("/"):
        raise UsageError(
            f"--note: writes to a git repository on this machine, but the source is {quoted(source.location)} "
            f"({source.kind}); name your clone in source.location, or print the note's line with --trailer"
        )


def _add_notes(study: Study, answer: FindAnswer | FindTable, *, store: str | None) -> None:
    """Add a note to each culprit, and print on stderr to which."""
    from perftrail.opening import SOURCES, results_directory
    from perftrail.present.commit_words import culprits
    from perftrail.process.launcher import Launcher
    from perftrail.sources.git.notes import REF, add_note

    found = culprits(answer)
    if not found:
        click.echo("--note: no single revision was found, so there is no note", err=True)
        return
    with Launcher() as starter:
        for each in found:
            added = add_note(
                study.searched_source.location,
                each.revision.id,
                each.note,
                starter=starter,
                cache=results_directory(study, store) / SOURCES,
            )
            what = "added a note to" if added else "its note is in place:"
            click.echo(f"{what} {each.revision.short}; show it with: git log --notes={REF}", err=True)


def _print_trailers(answer: FindAnswer | FindTable) -> None:
    from perftrail.present.commit_words import culprits

    found = culprits(answer)
    for each in found:
        click.echo(each.trailer)
    if not found:
        click.echo("--trailer: no single revision was found, so there is no trailer", err=True)


def _named(names: tuple[str, ...], part: str | None) -> tuple[str | None, str | None]:
    """Return the study and the range that the arguments name, with --range. Raises `UsageError` for two ranges.

    One name is the study, or GOOD if a command follows; without a name, such a command is searched up to HEAD. A text
    with ``..`` that is not a path is a range.
    """
    measured = command_words() is not None
    is_range = len(names) in (1, 2) and ".." in names[0] and not Path(names[0]).exists()
    if is_range:
        found, rest = names[0], names[1:]
    elif len(names) > 1:
        found, rest = f"{names[0]}..{names[1]}", names[2:]
    elif measured and part is None:
        found, rest = f"{names[0]}.." if names else "..HEAD", ()
    else:
        found, rest = None, names
    if len(rest) > 1:
        raise UsageError(f"{quoted(rest[1])}: too many arguments; write GOOD BAD, and perhaps a study")
    if found is not None and part is not None:
        raise UsageError(f"--range {quoted(part)} and {quoted(found)} are two ranges; name one")
    return (rest[0] if rest else None), part if found is None else found


def _benchmarks_named(study: str | None, sources: SourceOptions) -> tuple[str | None, SourceOptions]:
    """Return the study and the options of sources; a name that is no path is a regular expression of benchmarks."""
    if study is None or Path(study).exists() or study.endswith(".toml") or command_words() is not None:
        return study, sources
    if sources.bench is not None:
        raise UsageError(f"{quoted(study)}: is no study, and --bench names the benchmarks; name them once")
    return None, replace(sources, bench=study)


def _about_range_option(error: SourceError, study: Study) -> UsageError:
    """Return an error about the range as one about the option --range."""
    why = str(error).removeprefix(f"{study.searched_source.location}: ")
    why = why.removeprefix(f"range {quoted(error.range)}").removeprefix(":").lstrip()
    return UsageError(f"--range {shlex.quote(error.range)}: {why}")


def _question_options(metrics: Sequence[str], overrides: FindOptions, *, everything: bool) -> list[str]:
    """Return the options of a command that name its question, for a command that continues its search."""
    words = [word for name in metrics for word in ("--metric", name)]
    words += ["--all"] * everything
    for option, value in (
        ("--range", overrides["part"]),
        ("--variant", overrides["variant"]),
        ("--threshold", overrides["threshold"]),
        ("--confidence", overrides["confidence"]),
    ):
        words += [] if value is None else [option, str(value)]
    return words + ["--thorough"] * overrides["thorough"] + ["--no-prior"] * overrides["no_prior"]


def _request(study: Study, metrics: Sequence[str], **overrides: Unpack[FindOptions]) -> FindRequest:
    """Return the request from options and study file. Raises `UsageError` for invalid values."""
    from perftrail.find.answer import FindRequest
    from perftrail.model.notation import parse_duration
    from perftrail.model.study import RATE_THRESHOLD, THRESHOLD
    from perftrail.model.target import TargetError, Working, resolve_goal
    from perftrail.model.wording import suggestion
    from perftrail.search.budget import Budget

    policy = study.find
    if (variant := overrides["variant"]) is not None and variant not in study.variants:
        raise UsageError(
            f"--variant {quoted(variant)}: the study has no such variant{suggestion(variant, study.variants)}"
        )
    try:
        goal = resolve_goal(study, metrics, variant or policy.variant)
    except TargetError as error:
        named = " ".join(f"--metric {text}" for text in metrics)
        raise UsageError(f"{named}: {error}" if named else str(error)) from error
    goals: tuple[Target | Working, ...] = (goal,) if isinstance(goal, Working) else goal
    check_threshold(overrides["threshold"], goals)
    usual = policy.threshold_for(each.scale for each in goals)
    usual = usual or (RATE_THRESHOLD if isinstance(goal, Working) else THRESHOLD)
    threshold, confidence, budget = overrides["threshold"], overrides["confidence"], overrides["budget"]
    try:
        seconds = policy.budget_seconds if budget is None else parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {quoted(str(budget))}: {error}") from error
    request = FindRequest(
        goal=goal,
        range=overrides["part"],
        threshold=usual if threshold is None else threshold,
        confidence=policy.confidence if confidence is None else confidence,
        budget=Budget(invocations=policy.budget_invocations, builds=policy.budget_builds).with_time(seconds),
        thorough=overrides["thorough"],
        priors=() if overrides["no_prior"] else policy.prior,
        suspect=policy.suspect,
    )
    try:
        request.question(2)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("question.")) from error
    return request
