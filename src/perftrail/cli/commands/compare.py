"""`perftrail compare`: is the head slower than the base? A gate for CI."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import click

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


class Asked(TypedDict):
    """What the command line asks of a comparison, by the names of the options."""

    fail_on: FailOn
    metrics: tuple[str, ...]
    benchmarks: tuple[str, ...]
    threshold: float | None
    confidence: float
    budget: str | None
    max_runs: int | None


@click.command("compare")
@click.argument("base")
@click.argument("head")
@study_argument
@click.option(
    "--fail-on",
    type=click.Choice(["never", "slower", "unclear", "any"]),
    default="never",
    show_default=True,
    help="What exits 3: a figure that is worse (slower, more memory); also one that stays unclear; any that is "
    "not the same.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Only this metric: NAME, BENCHMARK.NAME, either with [parameter=value]; may be repeated. Without it, what "
    "each benchmark declares, or its wall and CPU time.",
)
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    help="Only this benchmark, with * and ?; may be repeated.",
)
@click.option(
    "--threshold", type=FRACTION, help="Smallest change that counts.  [default: the study's precision]"
)
@click.option(
    "--confidence",
    type=float,
    default=CONFIDENCE,
    show_default=True,
    help="How sure all verdicts together are to be right.",
)
@click.option("--budget", metavar="TIME", help="Stop after this much measuring: 10min.")
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most so many pairs, instead of the study's invocations.",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="How the answer is written.")
@click.option("--output", metavar="FILE", help="Write it there instead of on stdout.")
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write it in this format too, or its figure as svg or png; may be repeated.",
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
    **asked: Unpack[Asked],
) -> None:
    """Compare revision HEAD with BASE in every benchmark, metric and point: slower, faster, the same or unclear.

    Both are built, and measured on one machine in pairs that take turns, until each verdict is settled. All verdicts
    share one error, so that a gate over many benchmarks fails no more often by chance than one over a single one. Equal
    builds are not measured. Resumes by itself; asking again with the same results gives the same answer.

    Exits 0 when there is an answer, 3 when what --fail-on names is there, 1 when HEAD could not be built or run where
    BASE could, or no verdict could be had. With --format github, in a job of GitHub, it also writes the job's summary
    and marks the study file with what failed.
    """
    from perftrail.measure.subjects import afresh
    from perftrail.present.gate_output import Job, check_also, write_gate
    from perftrail.verbs.compare import Compare

    form = "json" if as_json else form
    others = check_also(also, known=(*FORMS, *IMAGES))
    loaded = writing.contained(walking.load(study))
    request = _request(loaded, base, head, **asked)
    with Job.of(form) as job:
        gate = writing.follow(
            loaded,
            lambda session: afresh(session.workshop, lambda: Compare(session, request).events()),
            engine=engine,
        )
    gate = _with_commands(gate, study, asked, walking, writing)
    write_gate(gate, form=form, output=output, also=others, job=job)
    if gate.exit_code:
        raise click.exceptions.Exit(gate.exit_code)


def _request(study: Study, base: str, head: str, **asked: Unpack[Asked]) -> CompareRequest:
    """Put the command line over the study file. Raises `UsageError` for what makes no sense."""
    from perftrail.model.quantity import parse_duration
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


def _with_commands(gate: Gate, named: str | None, asked: Asked, walking: Walking, writing: Writing) -> Gate:
    """Give a comparison with the command that repeats it anywhere, and the one that looks for the culprit."""
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
    worst = [row.target for row in gate.rows if str(row.verdict) == "slower"][:1]
    hunted = [word for target in worst for word in ("--metric", target.name)]
    if worst and worst[0].variant != "plain":
        hunted += ["--variant", worst[0].variant]
    ends = (gate.base.short, gate.head.short)
    return replace(
        gate,
        repeat=f"perftrail compare{after((*ends, *study, *words))}",
        hunt=f"perftrail find{after((*study, *hunted, '--range', '..'.join(ends)))}",
    )
