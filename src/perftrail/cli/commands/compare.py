"""`perftrail compare`: compare two revisions; a gate for CI."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.help import Command
from perftrail.cli.options import (
    FRACTION,
    again,
    engine_option,
    json_option,
    study_argument,
    walking_options,
    writing_options,
)
from perftrail.errors import UsageError
from perftrail.present.speech import after

if TYPE_CHECKING:
    from typing import Unpack

    from perftrail.cli.options import Walking, Writing
    from perftrail.model.study import Study
    from perftrail.results.gate import FailOn, Gate
    from perftrail.verbs.compare import CompareRequest

FORMS = ("text", "plain", "github", "gitlab", "junit", "metrics", "json")
IMAGES = ("svg", "png")
CONFIDENCE = 0.99


class CompareOptions(TypedDict):
    """The options of a comparison by name."""

    fail_on: FailOn
    metrics: tuple[str, ...]
    benchmarks: tuple[str, ...]
    threshold: float | None
    confidence: float
    budget: str | None
    max_runs: int | None


@click.command("compare", cls=Command)
@click.argument("base")
@click.argument("head")
@study_argument
@click.option(
    "--fail-on",
    type=click.Choice(["never", "slower", "unclear", "any"]),
    default="never",
    show_default=True,
    help="Verdicts that exit with 3: slower (or more memory), also unclear ones, or any that is not the same.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Compare only this metric: NAME, BENCHMARK.NAME, either with [parameter=value]. May be repeated."
    " [default: the metrics that each benchmark declares, or its wall and CPU time]",
)
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    help="Compare only this benchmark, with * and ?. May be repeated.",
)
@click.option(
    "--threshold", type=FRACTION, help="Smallest change that counts. [default: the study's precision]"
)
@click.option(
    "--confidence",
    type=FRACTION,
    default=CONFIDENCE,
    show_default=True,
    help="Probability that all verdicts together are right.",
)
@click.option("--budget", metavar="DURATION", help="Stop after this time of measuring, for example 10min.")
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of pairs. [default: the study's invocations]",
)
@click.option(
    "--format", "form", type=click.Choice(FORMS), default="text", help="Format of the answer. [default: text]"
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the answer to this file instead of standard output."
)
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Also write it in this format, or its chart as svg or png. May be repeated.",
)
@engine_option
@walking_options
@writing_options
@json_option
def command(
    base: str,
    head: str,
    study: str | None,
    form: str,
    output: str | None,
    also: tuple[str, ...],
    engine: str | None,
    walking: Walking,
    writing: Writing,
    as_json: bool,
    **asked: Unpack[CompareOptions],
) -> None:
    """Compare revision HEAD with BASE in every benchmark, metric and point: faster, slower, same or unclear.

    perftrail builds both and measures them in interleaved pairs, until each verdict is certain. All verdicts share one
    family-wise error rate: more benchmarks do not fail a gate more often by chance. Equal builds are not measured. An
    interrupted comparison resumes; with the same samples it gives the same answer.

    Exits with 3 if a verdict matches --fail-on, and with 1 if HEAD fails where BASE works, or if no verdict is
    possible. --format github also writes the job's summary and annotates the study file.
    """
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.gate_output import Job, check_also, write_gate
    from perftrail.verbs.compare import Compare

    form = "json" if as_json else form
    others = check_also(also, known=(*FORMS, *IMAGES))
    loaded = writing.contained(walking.load(study))
    request = _request(loaded, base, head, **asked)
    with Job.of(form) as job:
        gate = writing.follow(
            loaded,
            lambda session: retry_stale_builds(
                session.subject_builder, lambda: Compare(session, request).events()
            ),
            engine=engine,
        )
    gate = _with_commands(gate, study, asked, walking, writing)
    write_gate(gate, form=form, output=output, also=others, job=job)
    if gate.exit_code:
        raise click.exceptions.Exit(gate.exit_code)


def _request(study: Study, base: str, head: str, **asked: Unpack[CompareOptions]) -> CompareRequest:
    """Return the request from options and study file. Raises `UsageError` for invalid values."""
    from perftrail.model.wording import parse_duration
    from perftrail.results.selection import choose
    from perftrail.verbs.compare import CompareRequest

    threshold, confidence, budget = asked["threshold"], asked["confidence"], asked["budget"]
    if not 0.5 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence}: between 0.5 and 1; 0.99 is wrong once in a hundred")
    try:
        seconds = None if budget is None else parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from error
    return CompareRequest(
        base=base,
        head=head,
        choice=choose(study, benchmarks=asked["benchmarks"], metrics=asked["metrics"]),
        fail_on=asked["fail_on"],
        threshold=threshold,
        confidence=confidence,
        budget_seconds=seconds,
        most=asked["max_runs"],
    )


def _with_commands(
    gate: Gate, named: str | None, asked: CompareOptions, walking: Walking, writing: Writing
) -> Gate:
    """Return a comparison with the command that repeats it, and the one that searches for the culprit."""
    study = again(named, walking, replace(writing, store=None))
    figures = [word for metric in asked["metrics"] for word in ("--metric", metric)]
    words = [*figures, *(word for name in asked["benchmarks"] for word in ("--benchmark", name))]
    for option, value in (
        ("--threshold", asked["threshold"]),
        ("--confidence", None if asked["confidence"] == CONFIDENCE else asked["confidence"]),
        ("--max-runs", asked["max_runs"]),
        ("--budget", asked["budget"]),
    ):
        if value is not None:
            words += [option, str(value)]
    worst = [row.metric for row in gate.rows if str(row.verdict) == "slower"][:1]
    hunted = [word for metric in worst for word in ("--metric", metric.name)]
    if worst and worst[0].variant != "plain":
        hunted += ["--variant", worst[0].variant]
    ends = (gate.base.short, gate.head.short)
    return replace(
        gate,
        repeat=f"perftrail compare{after((*ends, *study, *words))}",
        hunt=f"perftrail find{after((*study, *hunted, '--range', '..'.join(ends)))}",
    )
