"""`perftrail compare`: compare two revisions, also as a gate for CI."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.command_words import WordsCommand, command_line_options
from perftrail.cli.options import (
    FRACTION,
    THRESHOLD,
    as_linked_option,
    check_threshold,
    engine_option,
    json_option,
    repeated_options,
    revisions_named,
    session_options,
    source_options,
    study_argument,
    timeout_option,
    timeout_words,
    with_links,
    with_timeout,
)
from perftrail.errors import UsageError
from perftrail.model.recipe import PLAIN
from perftrail.model.source import STAGED, WORKING_TREE
from perftrail.model.wording import quoted
from perftrail.present.shared_sentences import shell_words

if TYPE_CHECKING:
    from typing import Unpack

    from perftrail.cli.command_words import LineOptions
    from perftrail.cli.options import Function, SessionOptions, SourceOptions
    from perftrail.model.study import Study
    from perftrail.results.gate import FailOn, Gate
    from perftrail.verbs.compare import CompareRequest

FORMATS = ("text", "plain", "github", "gitlab", "junit", "metrics", "json")
IMAGES = ("svg", "png")
CONFIDENCE = 0.99


class CompareOptions(TypedDict):
    """Options of a comparison, by name."""

    fail_on: FailOn
    metrics: tuple[str, ...]
    benchmarks: tuple[str, ...]
    threshold: float | None
    confidence: float
    budget: str | None
    max_pairs: int | None


def comparison_options(function: Function) -> Function:
    """Add the options of a comparison: what is compared, how exactly, and for how long."""
    options = (
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME",
            help="Compare only this metric: NAME, BENCHMARK.NAME, either with [parameter=value]. May be repeated."
            " [default: the metrics that each benchmark declares, or its wall and CPU time]",
        ),
        click.option(
            "--benchmark",
            "benchmarks",
            multiple=True,
            metavar="NAME",
            help="Compare only this benchmark, with * and ?. May be repeated.",
        ),
        click.option(
            "--threshold",
            type=THRESHOLD,
            help="Smallest change that counts."
            " [default: the study's [find] threshold if it is set, else its precision]",
        ),
        click.option(
            "--confidence",
            type=FRACTION,
            default=CONFIDENCE,
            show_default=True,
            help="Probability that all verdicts together are right.",
        ),
        click.option(
            "--budget",
            metavar="DURATION",
            help="Stop after this time of measuring, for example 10min.",
        ),
        click.option(
            "--max-pairs",
            type=click.IntRange(min=1),
            metavar="N",
            help="Maximum number of pairs of each benchmark. One verdict needs at least 9, several verdicts need more. "
            "Replaced noisy pairs do not count. [default: the study's invocations]",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("compare", cls=WordsCommand)
@click.argument("base")
@click.argument("head", required=False)
@study_argument
@click.option(
    "--staged", is_flag=True, help="Compare BASE with what is staged in git's index; leave HEAD out."
)
@click.option(
    "--fail-on",
    type=click.Choice(["never", "slower", "unclear", "any"]),
    default="never",
    show_default=True,
    help="Verdicts that lead to exit code 3. slower: slower, or more memory; unclear: also unclear verdicts; any: all "
    "verdicts except same.",
)
@comparison_options
@command_line_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the answer.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the answer to this file instead of standard output."
)
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Also write the answer in this format, or its chart as svg or png. May be repeated.",
)
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="If benchmarks are slower, name the responsible functions of the worst three, as perftrail explain does.",
)
@timeout_option
@as_linked_option
@engine_option
@source_options
@session_options
@json_option
def command(
    base: str,
    head: str | None,
    study: str | None,
    staged: bool,
    explained: bool,
    format_name: str,
    output: str | None,
    also: tuple[str, ...],
    timeout: float | None,
    as_linked: bool,
    engine: str | None,
    line: LineOptions,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
    **comparison: Unpack[CompareOptions],
) -> None:
    """Compare revision HEAD with BASE in every benchmark, metric and point: faster, slower, same or unclear.

    The words after -- are the command to measure, without a study file; it runs in the tree of each revision. Words
    before the last && build instead of --build LINE.

    In a git check-out, . as HEAD is the working tree: every file that git does not ignore, as it is now.

    perftrail builds both and measures them in interleaved pairs, until each verdict is certain. All verdicts share one
    family-wise error rate: more benchmarks do not fail a gate more often by chance. Equal builds are not measured. An
    interrupted comparison resumes; the same samples lead to the same answer.

    Exits with 3 if a verdict matches --fail-on, and with 1 if HEAD fails where BASE works, or if no verdict is
    possible. --format github also writes the job's summary and annotates the study file.
    """
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.gate_output import annotated_errors, parse_also, write_gate
    from perftrail.present.html_page import require_renderer
    from perftrail.verbs.compare import Compare

    format_name = "json" if as_json else format_name
    with annotated_errors(format_name):
        if staged:
            if study is not None or head == WORKING_TREE:
                raise UsageError("--staged: leave HEAD out; the staged files are the head")
            study, head = head, STAGED
        if not base:
            raise UsageError(
                "the base revision is empty; if git merge-base printed nothing, the clone lacks the history of both "
                "branches: fetch all of it, with fetch-depth: 0 in GitHub Actions or GIT_DEPTH 0 in GitLab"
            )
        if head is None:
            raise UsageError(f"compare {base} with which revision? Name it, or write . for the working tree")
        others = parse_also(also, formats=(*FORMATS, *IMAGES))
        if {format_name, *others.values()}.intersection(IMAGES):
            require_renderer()
        study = line.study(study)
        loaded = options.with_suites(
            with_links(
                options.apply_to(sources.load(study, searched=not comparison["metrics"])), as_linked=as_linked
            ),
            revisions_named(base, head),
        )
        loaded = with_timeout(loaded, timeout)
        request = comparison_request(loaded, base, head, **comparison)
        gate = options.run(
            loaded,
            lambda session: retry_stale_builds(
                session.subject_builder, lambda: Compare(session, request).events()
            ),
            engine=engine,
        )
        gate = _with_commands(gate, study, comparison, sources, options, timeout=timeout, as_linked=as_linked)
        if explained:
            gate = replace(gate, why=_why_slower(gate, loaded, base, head, options))
        write_gate(gate, format_name=format_name, output=output, also=others)
    if gate.exit_code:
        raise click.exceptions.Exit(gate.exit_code)


def comparison_request(
    study: Study, base: str, head: str, **comparison: Unpack[CompareOptions]
) -> CompareRequest:
    """Return the request from options and study file. Raises `UsageError` for invalid values."""
    from perftrail.model.notation import parse_duration
    from perftrail.model.study import RATE_THRESHOLD
    from perftrail.model.target import WORKS
    from perftrail.results.selection import choose
    from perftrail.verbs.compare import CompareRequest

    threshold, confidence, budget = comparison["threshold"], comparison["confidence"], comparison["budget"]
    if not 0.5 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence}: must be above 0.5 and below 1, for example 0.99")
    try:
        seconds = None if budget is None else parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {quoted(str(budget))}: {error}") from error
    choice = choose(study, benchmarks=comparison["benchmarks"], metrics=comparison["metrics"])
    check_threshold(
        threshold,
        (
            each
            for name in study.benchmarks
            for part in study.variants
            for each in choice.of(study, name, part)
        ),
    )
    only_works = bool(choice.metrics) and all(each.name == WORKS for each in choice.metrics)
    if threshold is None and only_works and study.find.threshold_for(["rate"]) is None:
        threshold = RATE_THRESHOLD
    return CompareRequest(
        base=base,
        head=head,
        choice=choice,
        fail_on=comparison["fail_on"],
        threshold=threshold,
        confidence=confidence,
        budget_seconds=seconds,
        most=comparison["max_pairs"],
    )


MOST_EXPLAINED = 3
"""Number of slower benchmarks that are explained, the worst first."""


def _why_slower(gate: Gate, study: Study, base: str, head: str, options: SessionOptions) -> tuple[str, ...]:
    """Return the responsible functions of the slower benchmarks in words, or why there are none."""
    from glob import escape

    from perftrail.cli.commands.explain import explain
    from perftrail.errors import PerftrailError
    from perftrail.present.why import explanation_lines

    slower = dict.fromkeys(row.metric.benchmark for row in gate.rows if str(row.verdict) == "slower")
    if not slower:
        return ()
    only = tuple(f"benchmark={escape(name)}" for name in list(slower)[:MOST_EXPLAINED])
    try:
        record = explain(study, head, against=base, only=only, options=options).record()
    except PerftrailError as error:
        return (f"not explained: {error}",)
    return tuple(explanation_lines(record)) if record else ("no profiler of functions applies",)


def _with_commands(
    gate: Gate,
    path: str | None,
    comparison: CompareOptions,
    sources: SourceOptions,
    options: SessionOptions,
    *,
    timeout: float | None,
    as_linked: bool,
) -> Gate:
    """Return a comparison with the commands that repeat it, search for its largest change, and explain that change."""
    from glob import escape

    from perftrail.model.target import WORKS

    study = repeated_options(path, sources, replace(options, store=None))
    metric_words = [word for metric in comparison["metrics"] for word in ("--metric", metric)]
    words = [*metric_words, *(word for name in comparison["benchmarks"] for word in ("--benchmark", name))]
    for option, value in (
        ("--fail-on", None if comparison["fail_on"] == "never" else comparison["fail_on"]),
        ("--threshold", comparison["threshold"]),
        ("--confidence", None if comparison["confidence"] == CONFIDENCE else comparison["confidence"]),
        ("--max-pairs", comparison["max_pairs"]),
        ("--budget", comparison["budget"]),
    ):
        if value is not None:
            words += [option, str(value)]
    layout_words = [*timeout_words(timeout), *["--as-linked"] * as_linked]
    words += layout_words
    ends = (gate.base.short, gate.head.short)
    largest = gate.changes[0].metric if gate.changes else None
    changed_words = ["--metric", largest.name] if largest else []
    variant = largest.variant if largest and largest.variant != PLAIN else ""
    find_words = [*changed_words, *(["--variant", variant] if variant else []), "--range", "..".join(ends)]
    find_words += layout_words
    explain_command = ""
    if largest and largest.text != WORKS and gate.head.parents[:1] == (gate.base.id,):
        only_words = ["--only", f"variant={escape(variant)}"] if variant else []
        explain_command = (
            f"perftrail explain{shell_words((gate.head.short, *study, *changed_words, *only_words))}"
        )
    return replace(
        gate,
        repeat=f"perftrail compare{shell_words((*ends, *study, *words))}",
        find_command=f"perftrail find{shell_words((*study, *find_words))}",
        explain_command=explain_command,
    )
