"""The answers about many metrics: which revision changed which of them, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.found_words import (
    block_words,
    change_size,
    cost,
    innermost,
    inside_words,
    judgement,
    levels,
    pins_words,
    revision_name,
)
from perftrail.model.quantity import change as relative
from perftrail.model.quantity import probability
from perftrail.model.wording import listed
from perftrail.workflows.found import by_culprit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.workflows.found import FindAnswer, FindTable

COLUMNS = ("revision", "metric", "change", "", "levels", "probability")


def print_table(table: FindTable) -> None:
    """Print who changed what: a row for each change, those of one revision together; then what did not change."""
    console = output()
    gathered = by_culprit(table.answers)
    console.print(Text(table_headline(table), style="bold"))
    for line in pins_words(table.pins):
        console.print(Text(f"  {line}"))
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in COLUMNS:
        rows.add_column(column)
    for changes in gathered.values():
        for place, (answer, number) in enumerate(changes):
            rows.add_row(*map(Text, _row(answer, number, named=place == 0)))
        if (both := two_sided(changes)) is not None:
            rows.add_row("", Text(both, style="yellow"))
    if gathered:
        console.print(rows)
        for line in _merges(gathered.values()):
            console.print(Text(f"  {line}"))
    for line in unchanged(table):
        console.print(Text(line))
    console.print()
    console.print(Text(cost(table)))
    for line in dict.fromkeys(
        line for answer in table.answers for line in (*block_words(answer), *answer.priors)
    ):
        console.print(Text(f"{line[:1].upper()}{line[1:]}."))


def table_headline(table: FindTable) -> str:
    """Say how many revisions changed how many metrics, and name them."""
    gathered = by_culprit(table.answers)
    if not gathered:
        return f"none: no revision is known to have changed any of {len(table.answers)} metrics"
    changed = sum(bool(answer.answer.changes) for answer in table.answers)
    names = [_who(*changes[0]) for changes in gathered.values()]
    what = "1 change of" if len(gathered) == 1 else f"{len(gathered)} changes of"
    return f"found: {what} {changed} of {len(table.answers)} metrics: {listed(names, 'and')}"


def two_sided(changes: Sequence[tuple[FindAnswer, int]]) -> str | None:
    """Say so when one revision made some metrics better and others worse."""
    said: dict[str, list[str]] = {"better": [], "worse": []}
    for answer, number in changes:
        word = judgement(answer, answer.answer.changes[number])
        if word:
            said[word].append(answer.name)
    if not (said["better"] and said["worse"]):
        return None
    return f"better in {listed(said['better'], 'and')}, worse in {listed(said['worse'], 'and')}"


def unchanged(table: FindTable) -> Iterator[str]:
    """Name the metrics that did not change and those about which it is unclear."""
    none = [answer for answer in table.answers if answer.answer.verdict == "none"]
    if none:
        seen = max(answer.answer.minimum_detectable for answer in none)
        yield f"No change of {change_size(seen)} or more: {listed((answer.name for answer in none), 'and')}"
    for answer in table.answers:
        if answer.unclear:
            yield f"Unclear: {answer.name}: {answer.answer.reason}"


def _row(answer: FindAnswer, number: int, *, named: bool) -> tuple[str, ...]:
    change = answer.answer.changes[number]
    by_how_much = "cannot be told" if change.effect is None else relative(change.effect.value)
    return (
        _who(answer, number) if named else "",
        answer.name,
        by_how_much,
        judgement(answer, change),
        levels(answer, change),
        probability(change.confidence),
    )


def _who(answer: FindAnswer, number: int) -> str:
    candidates = answer.candidates(answer.answer.changes[number])
    inside = answer.inside.get(number)
    if len(candidates) > 1:
        return f"one of {len(candidates)}, {candidates[0].short} to {candidates[-1].short}"
    if inside is not None and len(inner := innermost(inside).candidates) == 1 and inner != candidates:
        return f"{revision_name(inner[0])}, which {candidates[0].short} merged"
    return revision_name(candidates[0])


def _merges(gathered: Iterable[Sequence[tuple[FindAnswer, int]]]) -> Iterator[str]:
    """Say where the changes of merges came from, once for each merge."""
    said: set[str] = set()
    for changes in gathered:
        for answer, number in changes:
            for line in inside_words(answer.inside[number]) if number in answer.inside else ():
                if line not in said:
                    said.add(line)
                    yield line
