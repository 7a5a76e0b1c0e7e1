"""Write a gate's result: terminal, image, and the files that a CI job reads."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from perftrail.charts.comparison import ComparisonRow, ratio_chart
from perftrail.charts.frame import Palette
from perftrail.errors import PerftrailError, UsageError
from perftrail.file_tree import write_file
from perftrail.model.wording import counted, escaped
from perftrail.present.console import output, plain_table
from perftrail.present.failures import failure_words
from perftrail.present.gate import (
    bar_limit,
    certainty,
    change_title,
    counts_words,
    effort,
    equal_builds,
    headline,
    interval_bar,
    levels_words,
    limits,
    machine,
    metric_name,
    next_command,
    policy,
    revision_words,
    row_effect,
    unclear_warning,
    verdict_words,
)
from perftrail.present.github_job import annotate, on_github
from perftrail.present.html_page import png, svg
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import capitalised
from perftrail.stats.comparison import Verdict
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table

    from perftrail.present.gate import NextCommand
    from perftrail.results.gate import Gate


MOST_ROWS = 40


def draw(gate: Gate) -> str:
    """Return a chart of the first rows as SVG."""
    rows = [
        ComparisonRow.of(
            row.comparison, row=metric_name(row), subject="head", ratios=row.ratios, verdict=row.word
        )
        for row in gate.certain_first[:MOST_ROWS]
        if row.comparison is not None and row.scale is Scale.RATIO
    ]
    return svg(
        ratio_chart(
            rows,
            name="comparison",
            title=gate.title,
            reference=revision_words(gate.base),
            palette=Palette(("head",)),
        )
    )


def report_to_github(gate: Gate) -> None:
    """Write the summary of the step, and annotate each failure, in a job of GitHub Actions."""
    from perftrail.present.gate_formats import GITHUB_SUMMARY, github_annotations, to_markdown

    if not on_github():
        return
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        _write(Path(summary), to_markdown(gate, longest=GITHUB_SUMMARY) + "\n", append=True)
    annotate(github_annotations(gate, file=_within(gate.file, os.environ.get("GITHUB_WORKSPACE", ""))))


@contextmanager
def annotated_errors(format_name: str) -> Iterator[None]:
    """Annotate a GitHub job with each mistake of the study, or with another error that ends the block."""
    try:
        yield
    except PerftrailError as error:
        if format_name == "github" and on_github():
            from perftrail.present.gate_formats import error_annotations

            workspace = os.environ.get("GITHUB_WORKSPACE", "")
            annotate(
                error_annotations(error, named=lambda file: _within(str(Path(file).absolute()), workspace))
            )
        raise


def parse_also(texts: Sequence[str], *, formats: Sequence[str]) -> Mapping[Path, str]:
    """Parse ``FORMAT=FILE`` of --also: each file with its format. Raises `UsageError`."""
    format_by_file = {}
    for text in texts:
        format_name, equals, file = text.partition("=")
        if not equals or not file or format_name not in formats:
            raise UsageError(f"--also {text}: write FORMAT=FILE; FORMAT is one of {', '.join(formats)}")
        format_by_file[Path(file)] = format_name
    return format_by_file


def write_gate(gate: Gate, *, format_name: str, output: str | None, also: Mapping[Path, str]) -> None:
    """Write a comparison in the requested format and to each file of --also, and report to a GitHub job.

    Raises `UsageError`.
    """
    for file, other_format in also.items():
        _write_one(gate, other_format, file)
    if output is not None:
        _write_one(gate, format_name, Path(output))
    elif format_name == "text":
        print_gate(gate)
    else:
        click.echo(_text(gate, format_name), nl=False)
    if output is not None and format_name != "json":
        from perftrail.present.gate_formats import FORMATS

        click.echo(FORMATS["plain"](gate).splitlines()[0], err=True)
    if format_name == "github":
        report_to_github(gate)
    if output is not None and format_name in COMMENTS and (found := next_command(gate)) is not None:
        click.echo(_next_words(found), err=True)


COMMENTS = ("github", "gitlab")
"""Formats of comments: the log of their job ends with the next command."""


def _next_words(found: NextCommand) -> str:
    command, purpose = (escaped(text, longest=LONGEST) for text in (found.command, found.purpose))
    return next_line(f"{command}    {purpose}")


def _write_one(gate: Gate, format_name: str, file: Path) -> None:
    if format_name not in ("svg", "png"):
        _write(file, _text(gate, format_name))
        return
    image = draw(gate)
    try:
        if format_name == "svg":
            write_file(file, image)
        else:
            write_file(file, png(image))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _text(gate: Gate, format_name: str) -> str:
    from perftrail.present.gate_formats import FORMATS

    return FORMATS["plain" if format_name == "text" else format_name](gate)


def _write(file: Path, text: str, *, append: bool = False) -> None:
    try:
        write_file(file, text, append=append)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _within(file: str, workspace: str) -> str:
    """Return a file's path relative to the job's repository, if the file is inside it."""
    path = Path(file)
    return str(path.relative_to(workspace)) if workspace and path.is_relative_to(workspace) else path.name


STYLES = {Verdict.SLOWER: "red", Verdict.FASTER: "green", Verdict.UNCLEAR: "dim", Verdict.SAME: ""}
LONGEST = 400
MOST_FAILED = 10


def print_gate(gate: Gate) -> None:
    """Print the answer, every metric, the failures, the certainty, and the next command."""
    console = output()
    console.print(Text(escaped(headline(gate), longest=LONGEST), style="bold"))
    console.print(Text(f"base {escaped(revision_words(gate.base))}"))
    console.print(Text(f"head {escaped(revision_words(gate.head))}"))
    if len(gate.rows) > MOST_FAILED:
        console.print(Text(capitalised(f"{counts_words(gate)}.")))
    if any(not row.one_build for row in gate.rows):
        console.print()
        console.print(_table(gate))
        console.print()
    if words := equal_builds(gate):
        console.print(Text(escaped(capitalised(words), longest=LONGEST)))
    for side in gate.failed_sides[:MOST_FAILED]:
        where, line = f"{side.side} {escaped(side.location)}".strip(), escaped(side.study_line)
        why = f"{failure_words(side.failure)}{f'; see {line}' if line else ''}"
        console.print(Text(f"{where}: {why}", style="yellow"))
    if len(gate.failed_sides) > MOST_FAILED:
        console.print(
            Text(f"and {len(gate.failed_sides) - MOST_FAILED} more; --json names all", style="yellow")
        )
    for text in gate.why:
        console.print(Text(f"Why: {escaped(text, longest=LONGEST)}", style="bold"))
    if warning := unclear_warning(gate):
        console.print(Text(capitalised(warning), style="yellow"))
    console.print(Text(policy(gate)))
    console.print(Text(capitalised(certainty(gate))))
    console.print(Text(f"{capitalised(effort(gate))}; {escaped(machine(gate), longest=LONGEST)}"))
    for text in limits(gate):
        console.print(Text(escaped(capitalised(text), longest=LONGEST)))
    if (found := next_command(gate)) is not None:
        console.print(Text(_next_words(found), style="dim"))


MOST_COMPARISONS = 5


def print_comparisons(comparisons: Sequence[Gate]) -> None:
    """Print the answers of the latest stored comparisons, one a line."""
    console = output()
    if comparisons:
        console.print(
            Text(
                "\nComparisons in interleaved pairs, each with one confidence for all its intervals:",
                style="bold",
            )
        )
    for gate in comparisons[:MOST_COMPARISONS]:
        ends = f"{escaped(gate.head.short)} compared with {escaped(gate.base.short)}"
        console.print(Text(f"{ends}: {escaped(headline(gate), longest=LONGEST)}"))
    if len(comparisons) > MOST_COMPARISONS:
        older = counted(len(comparisons) - MOST_COMPARISONS, "older comparison")
        verb = "is" if len(comparisons) == MOST_COMPARISONS + 1 else "are"
        console.print(Text(f"{older} {verb} not shown", style="dim"))


def _table(gate: Gate) -> Table:
    table = plain_table(("metric", "base", "head", change_title(gate), "", "verdict"), right=("base", "head"))
    limit = bar_limit(gate)
    for row in (row for row in gate.certain_first if not row.one_build):
        style = STYLES[row.verdict]
        table.add_row(
            Text(escaped(metric_name(row), longest=LONGEST)),
            *(Text(level) for level in levels_words(row)),
            Text(escaped(row_effect(row)), style=style),
            Text(interval_bar(row, limit) if row.comparison is not None else "", style=style),
            Text(f"{verdict_words(gate, row)}{', fails the gate' if gate.trips(row) else ''}", style=style),
        )
    return table
