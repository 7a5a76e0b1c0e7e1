"""Answers in plain words: the first line says it all, the rest says how it was got and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.cli.again import after
from perftrail.cli.console import output
from perftrail.cli.failures import left_out_words, more_lines
from perftrail.cli.found_table import print_table
from perftrail.cli.found_words import (
    MOST_NAMED,
    also_words,
    block_words,
    broke,
    certificate_words,
    change_words,
    cost,
    doubt_words,
    failure_words,
    headline,
    inside_words,
    levels,
    noise_words,
    note_words,
    outlier_words,
    pins_words,
    revision_name,
    unusable_words,
)
from perftrail.cli.speech import plain
from perftrail.model.wording import listed
from perftrail.workflows.found import FindTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.workflows.agreement import Disagreement
    from perftrail.workflows.found import FindAnswer
    from perftrail.workflows.run import RunReport

__all__ = ["print_find", "print_run", "revision_name"]


def print_find(answer: FindAnswer | FindTable, *, repeat: Sequence[str]) -> None:
    """Print what a search found: headline, levels, cost, what could not be tried, the next command."""
    if isinstance(answer, FindTable):
        print_table(answer)
    else:
        _print_answer(answer)
    output().print(Text(f"Next: perftrail show{after(repeat)} --search    how the search went", style="dim"))


def print_run(report: RunReport, *, repeat: Sequence[str]) -> None:
    """Print what a run left behind, and the next command."""
    console = output()
    skipped = f", {report.skipped} skipped as too large" if report.skipped else ""
    console.print(
        Text(
            f"{report.measured} of {report.cells} points measured{skipped}, "
            f"{report.invocations} new invocations, {len(report.failures)} failures",
            style="bold",
        )
    )
    for line in pins_words(report.pins):
        console.print(Text(f"  {line}"))
    for each in report.disagreements[:MOST_NAMED]:
        console.print(Text(f"  {_disagreement(each)}", style="bold red"))
    if len(report.disagreements) > MOST_NAMED:
        console.print(Text(f"  and {len(report.disagreements) - MOST_NAMED} more; --json names all"))
    for name, failure in list(report.failures.items())[:MOST_NAMED]:
        console.print(Text(f"  {name}: {failure_words(failure)}"))
        for line in more_lines(failure):
            console.print(Text(f"    {line}"))
    if len(report.failures) > MOST_NAMED:
        console.print(Text(f"  and {len(report.failures) - MOST_NAMED} more; --json names all"))
    for left_out in report.left_out:
        console.print(Text(f"skipped {left_out_words(left_out)}"))
    console.print(Text(f"Next: perftrail show{after(repeat)}    the figures", style="dim"))


def _disagreement(found: Disagreement) -> str:
    """Say which subjects gave which answer, where all should have given the same."""
    given = (
        f"{value:.17g} ({plain(listed(map(str, subjects), 'and'))})"
        for value, subjects in found.given.items()
    )
    at = f" at {plain(str(found.point))}" if found.point.values else ""
    return f"{found.benchmark}.{found.metric}{at} should be the same and is not: {', '.join(given)}"


def _print_answer(answer: FindAnswer) -> None:
    console = output()
    console.print(Text(headline(answer), style="bold"))
    for line in pins_words(answer.pins):
        console.print(Text(f"  {line}"))
    for number in range(len(answer.answer.changes)):
        for line in _details(answer, number):
            console.print(Text(f"  {line}"))
    for line in certificate_words(answer, None):
        console.print(Text(f"  {line}"))
    for line in (*doubt_words(answer), *outlier_words(answer), *broke(answer)):
        console.print(Text(f"  {line}", style="yellow"))
    console.print()
    console.print(Text(cost(answer)))
    for line in (*noise_words(answer), *block_words(answer), *answer.priors):
        console.print(Text(f"{line[:1].upper()}{line[1:]}."))
    if answer.unusable:
        console.print(Text(unusable_words(answer)))
    console.print(Text(f"Why it ended: {answer.answer.reason}."))


def _details(answer: FindAnswer, number: int) -> Iterator[str]:
    """Say of one change what the first line does not: which of several, levels, candidates, its merge."""
    change = answer.answer.changes[number]
    if len(answer.answer.changes) > 1:
        yield f"{number + 1}. {change_words(answer, number)}"
    if known := levels(answer, change):
        yield known
    yield from certificate_words(answer, number)
    if also := also_words(answer, number):
        yield also
    if note := note_words(answer, change):
        yield note
    candidates = answer.candidates(change)
    if len(candidates) > 1:
        yield from (revision_name(revision) for revision in candidates[:MOST_NAMED])
        if len(candidates) > MOST_NAMED:
            yield f"and {len(candidates) - MOST_NAMED} more; --json names all"
    if number in answer.inside:
        yield from inside_words(answer.inside[number])
