"""Failed builds and skipped revisions for people: each cause once with its log excerpt and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.model.wording import counted, escaped
from perftrail.present.shared_sentences import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.measure.failure_groups import FailedRange, FailureGroup
    from perftrail.measure.remedies import Remedy
    from perftrail.measure.session import Missing
    from perftrail.measure.sources import SkippedRevisions
    from perftrail.model.build import Failure
    from perftrail.model.subject import Subject

LONGEST_LINE = 300
LONGEST_PATH = 4200
MOST_NAMED = 6
MOST_MORE = 2
"""Number of excerpt lines after the first."""


def failure_group_lines(group: FailureGroup, *, logs: Mapping[Subject, str] | None = None) -> Iterator[str]:
    """Yield one cause of several failures: their number, the log excerpt, the subjects, and the first log.

    With the `logs` of all subjects, each of the first subjects has a line with its log.
    """
    count = len(group.subjects)
    if group.failure.stage == "skipped":
        heading = counted(count, "skipped revision")
    else:
        heading = f"{counted(count, 'failure')} at {group.failure.stage}"
    yield _line(f"{heading}: {group.line}")
    for line in further_lines(group.failure):
        yield f"    {line}"
    if logs is not None:
        for subject in group.subjects[:MOST_NAMED]:
            log = f"  log: {logs[subject]}" if logs[subject] else ""
            yield f"    {_line(str(subject))}{escaped(log, longest=LONGEST_PATH)}"
        if count > MOST_NAMED:
            yield f"    and {count - MOST_NAMED} more; --json names all"
        return
    names = ", ".join(str(subject) for subject in group.subjects[:MOST_NAMED])
    more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    log = f"; log: {group.failure.log}" if group.failure.log else ""
    yield f"    {_line(names)}{more}{escaped(log, longest=LONGEST_PATH)}"


def remedy_lines(failed_range: FailedRange, remedies: Sequence[Remedy]) -> Iterator[str]:
    """Yield the remedies for a failed range of the history, as text for the study file."""
    yield f"    only {_which(failed_range)} like this: {_ends(failed_range)}. One of these may help in the study file:"
    for remedy in remedies:
        yield ""
        first, *others = remedy.lines
        yield _line(f"    {first:<28} # {remedy.does}")
        yield from (_line(f"    {line}") for line in others)
    yield ""


def excerpt_lines(failure: Failure) -> list[str]:
    """Return the log excerpt of a failure, escaped."""
    return [excerpt_line(failure), *further_lines(failure, most=None)]


def excerpt_line(failure: Failure) -> str:
    """Return the most relevant line of a failure, escaped."""
    return first_line(failure.message, longest=LONGEST_LINE)


def failure_words(failure: Failure) -> str:
    """Return a failure in a line: its stage, its most relevant line, and its log."""
    log = f" (log: {failure.log})" if failure.log else ""
    return f"{failure.stage}: {excerpt_line(failure)}{log}"


def further_lines(failure: Failure, *, most: int | None = MOST_MORE) -> list[str]:
    """Return the other lines of the log excerpt, escaped; at most a number of them."""
    lines = [line.strip() for line in failure.message.strip().splitlines()[1:] if line.strip()]
    return [_line(line) for line in lines[:most]]


def print_missing(missing: Missing) -> None:
    """Print failed builds, each cause once, and skipped revisions; nothing without any."""
    lines = [line for group in missing.failure_groups for line in failure_group_lines(group)]
    lines += [f"skipped {skipped_words(each)}" for each in missing.skipped_revisions]
    if lines:
        click.echo("\n" + click.style("Missing:", bold=True))
    for line in lines:
        click.echo(f"  {line}")


def skipped_words(skipped: SkippedRevisions) -> str:
    """Return how many revisions the study skips, and why."""
    first, last = skipped.revisions[0], skipped.revisions[-1]
    count = len(skipped.revisions)
    which = first.short if count == 1 else f"{count} revisions, {first.short} to {last.short}"
    return f"{which}: {_line(skipped.reason)}"


def _which(failed_range: FailedRange) -> str:
    if failed_range.first == failed_range.last:
        return "this revision fails"
    if failed_range.before is None:
        return "the oldest revisions fail"
    return "the newest revisions fail" if failed_range.after is None else "neighbouring revisions fail"


def _ends(failed_range: FailedRange) -> str:
    """Return in words where the failures begin and end among the tried revisions."""
    ends = []
    if failed_range.before is not None:
        ends.append(f"begin after {failed_range.before.short}")
    if failed_range.after is not None:
        ends.append(f"end before {failed_range.after.short}")
    return f"the failures {' and '.join(ends)}"


def _line(text: str) -> str:
    return escaped(text, longest=LONGEST_LINE)
