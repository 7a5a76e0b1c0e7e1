"""Tables of samples, changes, searches, variants and claims for the terminal."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from perftrail.model.metrics import COUNTED, MEASURED
from perftrail.model.noisy_samples import NOISE
from perftrail.model.source import NO_PINS, stored_pins
from perftrail.model.subject import Revision
from perftrail.model.wording import change, counted, escaped
from perftrail.present.answer_details import LONGEST_LINE, pins_words
from perftrail.present.answer_sentence import headline_of, revision_name, stored_answers
from perftrail.present.console import is_limited, output, plain_table
from perftrail.present.html_page import inert
from perftrail.present.report.answer import claim_words, counted_words, evidence_words
from perftrail.present.report.words import correlation_words, row_value, size_words
from perftrail.present.shared_sentences import effect_words, interval_words, sentence, step_words
from perftrail.results.claims import ClaimVerdict
from perftrail.results.show import equal_builds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.source import Pins
    from perftrail.model.store_records import SearchRecord, StepRecord
    from perftrail.results.changes import HistoryChange, HistoryChanges
    from perftrail.results.claims import Judgement
    from perftrail.results.pairs import Shift
    from perftrail.results.rows import Row
    from perftrail.stats.estimate import Estimate


def row_notes(row: Row) -> list[str]:
    """Return notes on a value: flags, noise, failures, and a missing interval."""
    notes = [flag for flag in row.flags if flag not in NOISE]
    notes += [row.outdated] if row.outdated else []
    notes += [row.noise] if row.noise else []
    notes += [counted(row.failures, "failed invocation")] if row.failures else []
    if row.estimate and row.estimate.count == 1:
        notes.append("one value, no interval")
    if not row.values and not notes:
        # For example after `perftrail check --try`, which starts a revision once, as a warm-up.
        missing = "no samples, or no hardware counter on this machine"
        notes.append(missing if row.metric in COUNTED["hardware"] else "no samples yet")
    return notes


SeriesKey = tuple[str, "Point", str]
"""Benchmark, point and metric, which identify a line of the table."""


def side_by_side(rows: Sequence[Row]) -> Table | None:
    """Return rows as a table with a column for each variant; `None` for several revisions or one variant.

    A value is compared with the first variant's if their intervals do not overlap. Its notes are below it.
    """
    variants = list(dict.fromkeys(row.subject.variant for row in rows))
    if len({row.subject.revision.id for row in rows}) != 1 or len(variants) < 2:
        return None
    lines: dict[SeriesKey, dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.benchmark, row.point, row.metric), {})[row.subject.variant] = row
    several = len({benchmark for benchmark, _, _ in lines}) > 1
    table = plain_table([*(["benchmark"] if several else []), "point", "metric", *variants])
    for (benchmark, point, metric), rows_by_variant in lines.items():
        named = [*([benchmark] if several else []), escaped(str(point)), metric]
        cells = [_cell(variant, rows_by_variant, variants[0]) for variant in variants]
        table.add_row(*map(Text, (*named, *cells)))
    return table


def fits(table: Table, console: Console) -> bool:
    """Whether a table fits without cut lines."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width


def _cell(variant: str, rows_by_variant: Mapping[str, Row], first: str) -> str:
    """Return a variant's value, its change from the first variant's if both differ clearly, and its notes."""
    row = rows_by_variant.get(variant)
    if row is None:
        return "not measured"
    estimate, base = row.estimate, rows_by_variant.get(first)
    text = row_value(row)
    reference = base.estimate if base is not None and variant != first else None
    if estimate and reference and _differ_clearly(estimate, reference):
        text += f", {change(estimate.value / reference.value)}"
    return "\n".join([text, *row_notes(row)])


def _differ_clearly(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates have intervals that do not overlap, so that their ratio is printed."""
    overlap = one.low <= other.high and other.low <= one.high
    return min(one.count, other.count) > 1 and other.value > 0.0 and not overlap


MEMORY_METRICS = frozenset({"peak_memory", "peak_memory_tree"})
"""Metrics of memory; if a table has both, it explains them, because they count different pages."""


MOST_ON_TERMINAL = 120
"""A terminal shows a longer table without the rows between changes; a file or a pipe gets all."""


def rows_at_changes(rows: Sequence[Row], changes: Sequence[HistoryChange]) -> list[Row | int]:
    """Return the first and the last row of each series, and the rows at its changes.

    A number stands for as many omitted rows. A series is one metric of one variant at one point.
    """
    ends: dict[tuple[str, SeriesKey], list[Row]] = {}
    for row in rows:
        ends.setdefault(_series(row), [row, row])[1] = row
    wanted = {(series, row.subject.revision.id) for series, pair in ends.items() for row in pair}
    for each in changes:
        sides = (each.previous.id, each.row.subject.revision.id)
        wanted.update((_series(each.row), revision) for revision in sides)
    shown: list[Row | int] = []
    for row in rows:
        if (_series(row), row.subject.revision.id) in wanted:
            shown.append(row)
        elif shown and isinstance(shown[-1], int):
            shown[-1] += 1
        else:
            shown.append(1)
    return shown


def _series(row: Row) -> tuple[str, SeriesKey]:
    return row.subject.variant, (row.benchmark, row.point, row.metric)


def print_rows(rows: Sequence[Row], *, pins: Pins = NO_PINS, changes: Sequence[HistoryChange] = ()) -> None:
    """Print one line for each metric of each subject at each point, or the variants side by side.

    `pins` name the searched source and the pinned revisions. A long table on a terminal has only the `rows_at_changes`.
    """
    for line in pins_words(pins):
        output().print(Text(line))
    table = side_by_side(rows)
    if table is not None and fits(table, output()):
        output().print(table)
        return
    is_long = sys.stdout.isatty() and len(rows) > MOST_ON_TERMINAL
    _print_history(rows, rows_at_changes(rows, changes) if is_long else rows)
    if is_long:
        hint = f"Rows between changes are omitted. All {len(rows)} rows: perftrail show | less"
        output().print(Text(hint, style="dim"))
    metrics = {row.metric for row in rows}
    for name in sorted(metrics & MEMORY_METRICS) if metrics >= MEMORY_METRICS else ():
        output().print(Text(f"{name}: {MEASURED[name].meaning.replace('`', '')}", style="dim"))


PADDING = 2
"""Characters between two columns of a table."""

MIN_WIDTH = 24
"""Minimum width in characters of the column of notes, and of the column of messages."""


COLUMNS = ("revision", "variant", "benchmark", "point", "metric", "median [95 % interval]", "n", "notes")
"""The columns of a table of rows, before the message of the revision."""


def _print_history(rows: Sequence[Row], chosen: Sequence[Row | int]) -> None:
    """Print the chosen rows: each revision's message in the last column, on a narrow terminal above its rows."""
    console, equal = output(), equal_builds(rows)
    if not is_limited(console):
        _print_lines(rows, equal)
        return
    texts = {id(row): _row_texts(row, equal.get(id(row))) for row in rows}
    shown = [name for name in COLUMNS if _needed(name, texts.values())]
    messages = any(each["message"] for each in texts.values())
    widths = {name: max(map(cell_len, (name, *(each[name] for each in texts.values())))) for name in shown}
    message_width = console.width - sum(width + PADDING for width in widths.values()) - PADDING
    if "notes" in widths and messages and message_width < MIN_WIDTH:
        # Long notes wrap.
        wrapped = max(MIN_WIDTH, widths["notes"] + message_width - MIN_WIDTH)
        message_width += widths["notes"] - wrapped
        widths["notes"] = wrapped
    if messages and message_width < MIN_WIDTH:
        _print_below_messages(chosen, texts, [name for name in shown if name != "revision"])
        return
    table = plain_table([*shown, *(["message"] if messages else [])], right=("n",))
    if "notes" in widths:
        table.columns[shown.index("notes")].no_wrap = False
        table.columns[shown.index("notes")].max_width = widths["notes"]
    previous = ""
    for each in chosen:
        if isinstance(each, int):
            table.add_row(Text(f"… {each} more", style="dim"))
            continue
        cells = [Text(texts[id(each)][name]) for name in shown]
        message = Text(texts[id(each)]["message"] if each.subject.revision.id != previous else "")
        message.truncate(message_width, overflow="ellipsis")
        previous = each.subject.revision.id
        table.add_row(*cells, *([message] if messages else []))
    console.print(table)


LINES_AT_ONCE = 1000
"""Number of lines that are printed at once."""


def _print_lines(rows: Sequence[Row], equal: Mapping[int, Revision]) -> None:
    """Print all rows without a limit of the width, as a table would, but in little memory: they can be many."""
    widths = dict.fromkeys((*COLUMNS, "message"), 0)
    different: dict[str, set[str]] = {name: set() for name in ("variant", "benchmark")}
    for row in rows:
        texts = _row_texts(row, equal.get(id(row)))
        for name, width in widths.items():
            widths[name] = max(width, len(texts[name]) if texts[name].isascii() else cell_len(texts[name]))
        for name, values in different.items():
            values.add(texts[name])
    optional = {"point", "notes", "message"}
    shown = [
        name
        for name, width in widths.items()
        if (width or name not in optional) and len(different.get(name, "two")) > 1
    ]
    widths = {name: max(widths[name], cell_len(name)) for name in shown}
    lines = ["".join(_padded(name, name, widths[name]) for name in shown)]
    output().print(Text(lines.pop(), style="bold"))
    previous = ""
    for row in rows:
        texts = _row_texts(row, equal.get(id(row)))
        if row.subject.revision.id == previous:
            texts["message"] = ""
        previous = row.subject.revision.id
        lines.append("".join(_padded(name, texts[name], widths[name]) for name in shown))
        if len(lines) == LINES_AT_ONCE:
            output().out("\n".join(lines), highlight=False)
            lines.clear()
    if lines:
        output().out("\n".join(lines), highlight=False)


def _padded(name: str, text: str, width: int) -> str:
    blanks = " " * (width - (len(text) if text.isascii() else cell_len(text)))
    return f"{blanks}{text}  " if name == "n" else f"{text}{blanks}  "


def _print_below_messages(
    chosen: Sequence[Row | int], texts: Mapping[int, Mapping[str, str]], shown: Sequence[str]
) -> None:
    """Print the chosen rows below a line with the revision and its message."""
    console = output()
    widths = {name: max(map(cell_len, (name, *(each[name] for each in texts.values())))) for name in shown}
    if "notes" in widths:
        others = sum(width + PADDING for name, width in widths.items() if name != "notes")
        widths["notes"] = min(widths["notes"], max(MIN_WIDTH, console.width - 2 * PADDING - others))

    def table(*, header: bool) -> Table:
        result = plain_table(("", *shown), right=("n",))
        result.show_header = header
        for column in result.columns[1:]:
            column.width = widths[str(column.header)]
            column.no_wrap = column.header != "notes"
        return result

    console.print(table(header=True))
    previous, block = "", table(header=False)
    for each in chosen:
        if isinstance(each, int) or each.subject.revision.id != previous:
            if block.row_count:
                console.print(block)
            block = table(header=False)
            previous = "" if isinstance(each, int) else each.subject.revision.id
            cells = (
                {"revision": f"… {each} more", "message": ""} if isinstance(each, int) else texts[id(each)]
            )
            heading = Text(
                f"{cells['revision']} {cells['message']}".rstrip(),
                style="dim" if isinstance(each, int) else "",
            )
            heading.truncate(console.width, overflow="ellipsis")
            console.print(heading)
        if not isinstance(each, int):
            block.add_row("", *(Text(texts[id(each)][name]) for name in shown))
    if block.row_count:
        console.print(block)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on the samples above, one sentence a line."""
    for note in notes:
        output().print(Text(f"\n{sentence(note)}", style="yellow"))


def print_changes(changes: HistoryChanges) -> None:
    """Print the changes of each metric by rank, and series with correlated neighbours."""
    console, ranked = output(), list(enumerate(changes.ranked, start=1))
    for alert, title in (
        (True, "Changes along the history, by size compared with the noise:"),
        (False, "Changes that are small, shown by one build only, or soon reverted:"),
    ):
        lines = [(rank, each) for rank, each in ranked if each.point.alert is alert]
        if lines:
            console.print(Text(f"\n{title}", style="bold"))
        for rank, each in lines:
            line = f"  {rank:>2}. {_changed_metric(each.row)}: {_change(each)}; {size_words(each.point)}"
            console.print(Text(line), soft_wrap=True)
    if changes.correlated:
        console.print(Text("\nCorrelated noise:", style="bold"))
    for series in changes.correlated:
        line = f"  {_changed_metric(series.row)}: {correlation_words(series.correlation)}."
        console.print(Text(line), soft_wrap=True)


def print_searches(records: Sequence[SearchRecord], shown: int) -> None:
    """Print the list of stored searches, and which one is printed next."""
    console = output()
    console.print(Text(f"{len(records)} searches. Number {shown} follows; --search N shows another:"))
    for number, record in enumerate(records, start=1):
        first, last = (Revision(id=str(record.question[end])).short for end in ("first", "last"))
        question = ", ".join(
            (f"{record.question['metric']}, {first} to {last}", *pins_words(stored_pins(record.question)))
        )
        line = f"{number:>3}  {record.started[:16].replace('T', ' ')}  {question}: {_verdicts(record.answer)}"
        console.print(Text(escaped(line, longest=LONGEST_LINE), style="bold" if number == shown else ""))
    console.print()


def print_search(record: SearchRecord, steps: Sequence[StepRecord], revisions: Sequence[Revision]) -> None:
    """Print each step of a search and its answer; `revisions` are those of the history."""
    console = output()
    question = record.question
    title = f"What changed {question['metric']} between {question['first']} and {question['last']}?"
    console.print(Text(title, style="bold"))
    for line in pins_words(stored_pins(question)):
        console.print(Text(line))
    for _, together in groupby(steps, key=_builds_of_round):
        first, *others = together
        step = others[-1] if others else first
        words = step_words(step.words, str(step.action.get("purpose", "")))
        number = (
            f"{first.number} to {step.number}, {len(others) + 1} rounds, the last" if others else first.number
        )
        console.print(Text(f"{number:>3}  {words}"))
    if record.answer is None:
        console.print(Text("This search has not ended. perftrail find resumes it.", style="dim"))
        return
    answers = stored_answers(record.answer, {revision.id: revision for revision in revisions})
    console.print(Text(escaped(headline_of(answers), longest=LONGEST_LINE * 2), style="bold"))
    if len(answers) == 1 and answers[0].account:
        console.print(Text(f"  {answers[0].account_below_sentence}"))
    for line in _reasons(record.answer):
        console.print(Text(line))


def _builds_of_round(step: StepRecord) -> tuple[object, ...]:
    """Return what is equal for rounds of the same builds, and different for other steps."""
    order = step.action.get("order")
    is_round = step.action.get("certificate") and isinstance(order, list)
    return tuple(sorted(map(str, order))) if is_round and isinstance(order, list) else (step.number,)


def _verdicts(answer: Mapping[str, Json] | None) -> str:
    """Return how a search ended in a word or two."""
    if answer is None:
        return "not ended"
    several = answer.get("metrics")
    if not isinstance(several, list):
        return str(answer["verdict"])
    verdicts = Counter(str(each["verdict"]) for each in several if isinstance(each, dict))
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())


def _reasons(answer: Mapping[str, Json]) -> Iterator[str]:
    """Return why a search ended, for each metric if there are several."""
    several = answer.get("metrics")
    if isinstance(several, list):
        for each in several:
            assert isinstance(each, dict)
            yield f"{each['metric']} {each['verdict']}: {each['reason']}"
    else:
        yield f"Why it ended: {answer['reason']}."


def _needed(name: str, texts: Collection[Mapping[str, str]]) -> bool:
    """Whether a column is needed: it is neither empty nor equal in every line."""
    if name in ("variant", "benchmark"):
        return len({each[name] for each in texts}) > 1
    if name in ("point", "notes"):
        return any(each[name] for each in texts)
    return True


def _row_texts(row: Row, same_build: Revision | None) -> dict[str, str]:
    estimate = row.estimate
    label = row.subject.revision.label
    notes = row_notes(row)
    if same_build is not None:
        # The samples are those of the row above, and so are their notes.
        notes = [f"same build as {same_build.short}", *([row.outdated] if row.outdated else [])]
    return {
        "revision": f"{row.subject.revision.short}{f' {escaped(label)}' if label else ''}",
        "variant": row.subject.variant,
        "benchmark": row.benchmark,
        "point": escaped(str(row.point)),
        "metric": row.metric,
        "median [95 % interval]": row_value(row),
        "n": str(estimate.count if estimate else 0),
        "notes": ", ".join(notes),
        "message": escaped(row.subject.revision.summary),
    }


def _changed_metric(row: Row) -> str:
    variant = "" if row.subject.variant == "plain" else f" ({row.subject.variant})"
    point = f" at {escaped(str(row.point))}" if row.point.values else ""
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
    return f"{effect_words(point.effect, point.low, point.high)} {where}{doubt}"


def print_by_benchmark(shifts: Sequence[Shift]) -> None:
    """Print a line for each benchmark of each variant; nothing without a comparison."""
    if not shifts:
        return
    console = output()
    reference = shifts[0].reference.variant
    title = (
        f"\nChange by benchmark, against {reference}: geometric means over the points, from interleaved pairs"
    )
    console.print(Text(title, style="bold"), soft_wrap=True)
    columns = ("variant", "benchmark", "metric", "points", "ratio", "verdict")
    texts = [_shift_texts(each) for each in shifts]
    shown = [name for name in columns if name not in ("variant", "metric") or _several(texts, name)]
    table = plain_table(shown, right=("points",))
    for each in texts:
        table.add_row(*(Text(each[name]) for name in shown))
    console.print(table)


def _several(texts: Sequence[dict[str, str]], name: str) -> bool:
    return len({each[name] for each in texts}) > 1


def _shift_texts(shift: Shift) -> dict[str, str]:
    comparison = shift.comparison
    return {
        "variant": shift.row.subject.variant,
        "benchmark": shift.row.benchmark,
        "metric": shift.row.metric,
        "points": str(len(shift.points)),
        "ratio": interval_words(comparison.effect, comparison.low, comparison.high),
        "verdict": change(comparison.effect) if shift.differs else shift.words,
    }


_STYLES = {
    ClaimVerdict.REPRODUCED: "green",
    ClaimVerdict.NOT_REPRODUCED: "red",
    ClaimVerdict.UNCLEAR: "yellow",
    ClaimVerdict.CANNOT: "dim",
}


def print_claims(judged: Sequence[Judgement]) -> None:
    """Print each claim with its verdict and its evidence, and the number of each verdict."""
    console = output()
    for each in judged:
        verdict = (f"{each.verdict}: ", _STYLES[each.verdict])
        console.print(Text.assemble(verdict, claim_words(each)), soft_wrap=True)
        console.print(Text(f"  {evidence_words(each)}"), soft_wrap=True)
    console.print(Text(counted_words(judged), style="bold"))


def claims_markdown(judged: Sequence[Judgement]) -> str:
    """Return the claims as a Markdown table."""
    rows = [("Claim", "Found", "Verdict"), ("---", "---", "---")]
    rows += [(inert(each.claim.says), inert(evidence_words(each)), str(each.verdict)) for each in judged]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
