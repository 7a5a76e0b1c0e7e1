"""Phrases that several outputs share: effects, levels, intervals, steps, quoted commands."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from perftrail.model.wording import change as relative
from perftrail.model.wording import counted, decimals, duration, escaped, levels, quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.measure.session import View
    from perftrail.model.patch import FileChange
    from perftrail.stats.estimate import Estimate


LONGEST = 72


def first_line(text: str, *, longest: int = LONGEST) -> str:
    """Return the first line of a hostile text, escaped."""
    lines = text.strip().splitlines()
    return escaped(lines[0], longest=longest) if lines else ""


def capitalised(text: str) -> str:
    """Return a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def sentence(text: str) -> str:
    """Return a note with a capital letter, and with a full stop unless it ends with a command.

    >>> sentence("all is well")
    'All is well.'
    """
    return f"{capitalised(text)}{'' if text.endswith(('.', 'perftrail run')) else '.'}"


def change_words(files: Sequence[FileChange]) -> str:
    """Return the size of a change in words.

    >>> from perftrail.model.patch import FileChange
    >>> change_words([FileChange(path="a.c", added=3, removed=1), FileChange(path="b.png", added=None, removed=None)])
    '2 files, 3 lines added, 1 removed'
    """
    added, removed = sum(each.added or 0 for each in files), sum(each.removed or 0 for each in files)
    return f"{counted(len(files), 'file')}, {counted(added, 'line')} added, {removed:,} removed"


def effect_words(
    value: float, low: float, high: float, *, tone: str = "", interval: str = "95 % interval"
) -> str:
    """Return an effect: direction, ratio and interval; also `tone`, ``better`` or ``worse``, if it is not empty.

    >>> effect_words(1.05, 1.03, 1.07, tone="worse")
    '5.0 % more (worse; × 1.050, 95 % interval 1.030 to 1.070)'
    """
    ratio, bounds = ratio_words(value, low, high)
    return f"{relative(value)} ({f'{tone}; ' if tone else ''}{ratio}, {interval} {bounds})"


def ratio_words(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a ratio and its interval, with the digits that the interval supports.

    >>> ratio_words(1.05, 1.03, 1.07)
    ('× 1.050', '1.030 to 1.070')
    """
    digits = decimals(value, low, high)
    return f"× {value:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}"


def interval_words(value: float, low: float, high: float) -> str:
    """Return a number with its interval, with the digits that the interval supports.

    >>> interval_words(1.05, 1.03, 1.07)
    '1.050 [1.030, 1.070]'
    """
    digits = decimals(value, low, high)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def estimate_words(estimate: Estimate | None, unit: str) -> str:
    """Return a median with its interval; one sample has no interval."""
    if estimate is None:
        return "no value"
    if estimate.count == 1:
        return quantity(estimate.value, unit)
    return quantity(estimate.value, unit, low=estimate.low, high=estimate.high)


def levels_words(before: float, after: float, unit: str, *, low: float, high: float) -> str:
    """Return the values on both sides of a change, with the digits that agree with the printed ratio.

    `low` and `high` are the interval of the ratio, as for `effect_words`.

    >>> levels_words(0.0387, 0.05, "s", low=1.25, high=1.33)
    'before 38.7 ms, after 50.0 ms'
    >>> levels_words(0.1552, 0.16, "s", low=1.0308, high=1.0311)
    'before 155.2 ms, after 160.0 ms'
    """

    def shown(ratio: float) -> str:
        return f"{relative(ratio)} {ratio_words(ratio, low, high)[0]}"

    first, second = levels(before, after, unit, shown=shown)
    return f"before {first}, after {second}"


def step_words(words: str, purpose: str) -> str:
    """Return a step of a search: its action and result, and its purpose if it has one."""
    return f"{words} ({purpose})" if purpose else words


MOST_METRICS = 3


def pairs_by_metric(counts: Sequence[tuple[str, int]]) -> str:
    """Return how many pairs of which metrics, the largest count first; empty if all are zero.

    >>> pairs_by_metric([("wall", 2), ("cpu", 0), ("cost", 2)]), pairs_by_metric([("wall", 1), ("cpu", 1)])
    ('2 pairs of wall, cost', '1 pair of each metric')
    """
    named: dict[int, list[str]] = {}
    for metric, count in counts:
        if count:
            named.setdefault(count, []).append(metric)
    parts = []
    for count in sorted(named, reverse=True):
        names = named[count]
        if len(names) == len(counts) > 1:
            return f"{counted(count, 'pair')} of each metric"
        parts.append(f"{counted(count, 'pair')} of {first_named(names, MOST_METRICS)}")
    return ", ".join(parts)


def first_named(names: Sequence[str], most: int) -> str:
    """Return the first names, and the number of the others.

    >>> first_named(["a", "b"], 2), first_named(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shell_words(words: Sequence[str]) -> str:
    """Return words quoted for a shell, each with a space before it, to append them to a command."""
    return "".join(f" {shlex.quote(word)}" for word in words)


def print_source_age(view: View) -> None:
    """Print how old the cached answer of a source is; nothing if it was just read."""
    if updated := view.last_updated():
        seconds = (datetime.now(tz=UTC) - datetime.fromisoformat(updated)).total_seconds()
        click.echo(
            f"perftrail read the revisions of this source {duration(max(0.0, seconds))} ago, at {updated}; "
            "run and find read them again",
            err=True,
        )
