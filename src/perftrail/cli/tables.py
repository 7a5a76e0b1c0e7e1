"""Tables of what was measured and of how a search went."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.found_words import LONGEST_LINE, pins_words, revision_name
from perftrail.cli.row_notes import row_notes
from perftrail.cli.side_by_side import fits, side_by_side
from perftrail.cli.speech import plain
from perftrail.model.quantity import change, decimals, quantity
from perftrail.model.source import ALONE, pins_asked
from perftrail.model.subject import Revision
from perftrail.workflows.reporting.words import correlation_words, size_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.search_record import Json, SearchRecord, StepRecord
    from perftrail.model.source import Pins
    from perftrail.workflows.showing.changes import HistoryChange, HistoryChanges
    from perftrail.workflows.showing.rows import Row


def print_rows(rows: Sequence[Row], *, pins: Pins = ALONE) -> None:
    """Print one line for each metric of each subject at each point; alternatives beside each other.

    `pins` say which of several sources was walked.
    """
    for line in pins_words(pins):
        output().print(Text(line))
    beside = side_by_side(rows)
    if beside is not None and fits(beside, output()):
        output().print(beside)
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    columns = ("revision", "variant", "benchmark", "point", "metric", "median [95 % interval]", "n", "notes")
    shown = [name for name in columns if _needed(name, rows)]
    for name in shown:
        table.add_column(name, justify="right" if name == "n" else "left", no_wrap=True)
    for row in rows:
        texts = _texts(row)
        table.add_row(*(Text(texts[name]) for name in shown))
    output().print(table)


def print_changes(found: HistoryChanges) -> None:
    """Print at which revisions each metric changed, by rank, and which series have correlated neighbours."""
    console, ranked = output(), list(enumerate(found.ranked, start=1))
    for alert, title in (
        (True, "Changes along the history, by size compared with the noise:"),
        (False, "Changes that are small, shown by one build only, or returned soon:"),
    ):
        lines = [(rank, each) for rank, each in ranked if each.point.alert is alert]
        if lines:
            console.print(Text(f"\n{title}", style="bold"))
        for rank, each in lines:
            line = f"  {rank:>2}. {_changed_metric(each.row)}: {_change(each)}; {size_words(each.point)}"
            console.print(Text(line), soft_wrap=True)
    if found.correlated:
        console.print(Text("\nCorrelated noise:", style="bold"))
    for series in found.correlated:
        line = f"  {_changed_metric(series.row)}: {correlation_words(series.correlation)}."
        console.print(Text(line), soft_wrap=True)


def print_searches(records: Sequence[SearchRecord], shown: int) -> None:
    """List the searches that there are, and say which of them follows."""
    console = output()
    console.print(Text(f"{len(records)} searches; {shown} follows, --search N shows another:"))
    for number, record in enumerate(records, start=1):
        first, last = (Revision(id=str(record.question[end])).short for end in ("first", "last"))
        asked = ", ".join(
            (f"{record.question['metric']}, {first} to {last}", *pins_words(pins_asked(record.question)))
        )
        line = f"{number:>3}  {record.started[:16].replace('T', ' ')}  {asked}: {_verdicts(record.answer)}"
        console.print(Text(plain(line, longest=LONGEST_LINE), style="bold" if number == shown else ""))
    console.print()


def print_search(record: SearchRecord, steps: Sequence[StepRecord]) -> None:
    """Replay a search in words."""
    console = output()
    question = record.question
    asked = f"What changed {question['metric']} between {question['first']} and {question['last']}?"
    console.print(Text(asked, style="bold"))
    for line in pins_words(pins_asked(question)):
        console.print(Text(line))
    for step in steps:
        console.print(Text(f"{step.number:>3}  {step.words}"))
    if record.answer is None:
        console.print(Text("not ended; perftrail find goes on from here", style="dim"))
    else:
        for line in _ended(record.answer):
            console.print(Text(f"     {line}"))


def _verdicts(answer: Mapping[str, Json] | None) -> str:
    """Say how a search ended in a word or two, or that it has not."""
    if answer is None:
        return "not ended"
    several = answer.get("metrics")
    if not isinstance(several, list):
        return str(answer["verdict"])
    verdicts = Counter(str(each["verdict"]) for each in several if isinstance(each, dict))
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())


def _ended(answer: Mapping[str, Json]) -> Iterator[str]:
    """Say how a search ended: in one answer, or in one about each metric."""
    several = answer.get("metrics")
    if isinstance(several, list):
        for each in several:
            assert isinstance(each, dict)
            yield f"{each['metric']}: {each['verdict']}: {each['reason']}"
    else:
        yield f"{answer['verdict']}: {answer['reason']}"


def _needed(name: str, rows: Sequence[Row]) -> bool:
    """A column that would say the same in every line, or nothing, is left out."""
    if name in ("variant", "benchmark"):
        return len({_texts(row)[name] for row in rows}) > 1
    if name in ("point", "notes"):
        return any(_texts(row)[name] for row in rows)
    return True


def _texts(row: Row) -> dict[str, str]:
    found = row.estimate
    label = row.subject.revision.label
    return {
        "revision": f"{row.subject.revision.short}{f' {plain(label)}' if label else ''}",
        "variant": row.subject.variant,
        "benchmark": row.benchmark,
        "point": plain(str(row.point)),
        "metric": row.metric,
        "median [95 % interval]": _estimate(row),
        "n": str(found.count if found else 0),
        "notes": ", ".join(row_notes(row)),
    }


def _changed_metric(row: Row) -> str:
    variant = "" if row.subject.variant == "plain" else f" ({row.subject.variant})"
    point = f" at {plain(str(row.point))}" if row.point.values else ""
    return f"{row.benchmark}.{row.metric}{variant}{point}"


def _change(each: HistoryChange) -> str:
    point = each.point
    where = f"at {revision_name(each.row.subject.revision)}"
    if len(each.candidates) > 1:
        where = (
            f"between {each.previous.short} and {revision_name(each.row.subject.revision)}, "
            f"one of {len(each.candidates)} revisions"
        )
    doubt = ""
    if point.earliest < each.point.previous + 1 or point.latest > point.position:
        doubt = f", or from {each.earliest.short} to {each.latest.short} (95 %)"
    digits = decimals(point.effect, point.low, point.high)
    return (
        f"{change(point.effect)} (× {point.effect:.{digits}f}, "
        f"95 % interval {point.low:.{digits}f} to {point.high:.{digits}f}) {where}{doubt}"
    )


def _estimate(row: Row) -> str:
    found = row.estimate
    if found is None:
        return "no value"
    if found.count == 1:
        return quantity(found.value, row.unit)
    return quantity(found.value, row.unit, low=found.low, high=found.high)
