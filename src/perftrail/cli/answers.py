"""Answers in plain words: the first line says it all, the rest says how it was got and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.speech import first_line, plain
from perftrail.model.quantity import change, decimals, duration, probability, quantity

if TYPE_CHECKING:
    from perftrail.model.build import Failure
    from perftrail.model.subject import Revision
    from perftrail.search.answer import Change
    from perftrail.workflows.found import FindAnswer
    from perftrail.workflows.run import RunReport

MOST_NAMED = 5


def print_find(answer: FindAnswer, *, named: str | None) -> None:
    """Print what a search found: headline, levels, cost, what could not be tried, the next command."""
    console = output()
    console.print(Text(headline(answer), style="bold"))
    for each in answer.answer.changes:
        _print_change(answer, each)
    console.print()
    console.print(Text(cost(answer)))
    if answer.unusable:
        console.print(Text(_unusable(answer)))
    console.print(Text(f"Why it ended: {answer.answer.reason}."))
    where = f" {shlex.quote(named)}" if named else ""
    console.print(Text(f"Next: perftrail show{where} --search    how the search went", style="dim"))


def print_run(report: RunReport, *, named: str | None) -> None:
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
    for name, failure in list(report.failures.items())[:MOST_NAMED]:
        console.print(Text(f"  {name}: {_failure(failure)}"))
    if len(report.failures) > MOST_NAMED:
        console.print(Text(f"  and {len(report.failures) - MOST_NAMED} more; --json names all"))
    where = f" {shlex.quote(named)}" if named else ""
    console.print(Text(f"Next: perftrail show{where}    the figures", style="dim"))


def headline(answer: FindAnswer) -> str:
    """Say the answer in one line: verdict, revision, probability, effect."""
    verdict, metric = str(answer.answer.verdict), _metric(answer)
    smallest = change_size(answer.answer.smallest_seen)
    if verdict == "none":
        return (
            f"none: no revision changed {metric} by {smallest} or more, "
            f"probability {probability(answer.answer.confidence)}"
        )
    if verdict == "unclear" or not answer.answer.changes:
        return f"unclear: whether {metric} changed; a change of {smallest} would have been seen"
    first = answer.answer.changes[0]
    sure = f"probability {probability(first.confidence)}"
    candidates = answer.candidates(first)
    if verdict == "found":
        return f"found: {revision_name(candidates[0])} changed {metric}: {effect(answer, first)}, {sure}"
    span = f"{candidates[0].short} to {candidates[-1].short}"
    which = f"one of {len(candidates)} revisions, {span},"
    return f"{verdict}: {which} changed {metric}: {effect(answer, first)}, {sure}"


def revision_name(revision: Revision) -> str:
    """Name a revision for people: short id, label, and what its message says."""
    label = f" ({plain(revision.label)})" if revision.label and revision.label != revision.id else ""
    told = revision.summary and revision.id not in revision.summary
    summary = f" “{plain(revision.summary)}”" if told else ""
    return f"{revision.short}{label}{summary}"


def effect(answer: FindAnswer, each: Change) -> str:
    """Say what a change did: direction, interval, and whether that is better."""
    if each.effect is None:
        return "by how much cannot be told"
    low, high, value = each.effect.low, each.effect.high, each.effect.value
    digits = decimals(value, low, high)
    better = (value < 1.0) == (answer.target.better == "lower")
    return (
        f"{change(value)} ({'better' if better else 'worse'}; "
        f"× {value:.{digits}f}, 95 % interval {low:.{digits}f} to {high:.{digits}f})"
    )


def cost(answer: FindAnswer) -> str:
    """Say what the search cost."""
    failed = f", {len(answer.unusable)} of them unusable" if answer.unusable else ""
    return (
        f"{answer.builds} of {len(answer.revisions)} revisions built{failed}, "
        f"{answer.invocations} invocations, {duration(answer.seconds)} of building and measuring"
    )


def change_size(size: float) -> str:
    """Write the size of a change without direction.

    >>> change_size(0.021)
    '2.1 %'
    """
    return f"{size * 100:.2g} %"


def _metric(answer: FindAnswer) -> str:
    variant = "" if answer.target.variant == "plain" else f" ({answer.target.variant})"
    return f"{answer.target.text}{variant}"


def _print_change(answer: FindAnswer, each: Change) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    if each.before is not None and each.after is not None:
        unit = answer.target.unit
        table.add_row("", Text(f"before {quantity(each.before, unit)}, after {quantity(each.after, unit)}"))
    candidates = answer.candidates(each)
    if len(candidates) > 1:
        for revision in candidates[:MOST_NAMED]:
            table.add_row("", Text(revision_name(revision)))
        if len(candidates) > MOST_NAMED:
            table.add_row("", Text(f"and {len(candidates) - MOST_NAMED} more; --json names all"))
    output().print(table)


def _failure(failure: Failure) -> str:
    return f"{failure.stage}: {first_line(failure.message)} (log: {failure.log})"


def _unusable(answer: FindAnswer) -> str:
    shown = answer.unusable[:MOST_NAMED]
    lines = [f"  {each.revision.short}: {_failure(each.failure)}" for each in shown]
    if len(answer.unusable) > MOST_NAMED:
        lines.append(f"  and {len(answer.unusable) - MOST_NAMED} more; --json names all")
    return "\n".join(["Could not be used:", *lines])
