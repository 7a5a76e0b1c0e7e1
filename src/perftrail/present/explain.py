"""Print the differences between two revisions in files and metrics, the largest first."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.model.wording import change, counted, escaped, percent, quantity
from perftrail.present.answer_sentence import revision_name
from perftrail.present.console import output
from perftrail.present.failures import failure_words
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import change_words, first_named
from perftrail.present.why import (
    METHODS,
    function_words,
    input_words,
    path_words,
    responsible,
    shift_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.patch import FileChange
    from perftrail.verbs.explain.explain import CellReport, ExplainReport, MetricDifference

MOST_FILES = 8
MOST_DIFFERENCES = 12
MOST_NAMED = 6
MOST_IN_HEADLINE = 3
MOST_FUNCTIONS = 5
MOST_SHIFTS = 3
MORE_INVOCATIONS = 4
"""Factor of invocations that halves the minimum detectable change."""
WIDEST_BAR = 20
LONGEST_NAME = 48
TOO_NOISY = 1.0
"""Minimum detectable change above which a metric has no answer that is worth a number."""
REPEATED = ("launcher", "output")
"""Methods that use plain invocations; `--invocations` sets their number."""
EFFECTS = ("wall", "cpu", "involuntary_switches")
"""Metrics that show an effect but not its cause. So do metrics of method `output`."""


def print_explained(explained: ExplainReport, *, study_file: str | None) -> None:
    """Print the largest difference, the changed files, every point, and the failures."""
    console = output()
    console.print(Text(headline(explained), style="bold"))
    against = revision_name(explained.against)
    changed = "" if explained.changes is None else f": {change_words(explained.changes)}"
    console.print(Text(f"against {against}{changed}"))
    if explained.changes:
        console.print(_files(explained.changes))
    for cell in explained.cells:
        console.print()
        _print_cell(cell)
    console.print()
    if explained.searched:
        console.print(Text(searched_words(explained), style="dim"))
    for name, failure in explained.failures:
        console.print(Text(f"{name}: {failure_words(failure)}"))
    for each in explained.unavailable:
        console.print(Text(f"Not available here: {each.what}: {escaped(each.why, longest=200)}", style="dim"))
    for command in next_commands(explained, study_file=study_file):
        console.print(Text(next_line(command), style="dim"))


def searched_words(explained: ExplainReport) -> str:
    """Return why the report has no other points."""
    names = [escaped(name, longest=LONGEST_NAME) for name in explained.searched]
    return (
        f"Only the points of the searches that found {explained.culprit.short}: {first_named(names, MOST_NAMED)}; "
        "--only 'benchmark=*' selects all points"
    )


def next_commands(explained: ExplainReport, *, study_file: str | None) -> list[str]:
    """Return the next commands with their purposes: those that resolve unclear metrics, and the back-port.

    `study_file` is that of the command line, `None` if the user named none.
    """
    study = f" {shlex.quote(study_file)}" if study_file else ""
    fix, against = explained.culprit.short, explained.against.short
    commands = []
    unclear = [each for cell in explained.cells for each in cell.unclear if each.method in REPEATED]
    if unclear:
        times = MORE_INVOCATIONS * max(each.invocations for each in unclear)
        commands = [
            f"perftrail compare {against} {fix}{study}    measure interleaved pairs, with a verdict on each metric",
            f"perftrail explain {fix}{study} --invocations {times}    detect changes half as large",
        ]
    if any(cell.differing for cell in explained.cells):
        commands.append(f"perftrail backport {fix}{study} --onto OLD    apply it to an old release")
    return commands


def headline(explained: ExplainReport) -> str:
    """Return the largest difference over all points in one line."""
    name = revision_name(explained.culprit)
    if not explained.measured:
        return f"no answer: {name} or its reference could not be measured"
    if all(cell.equal for cell in explained.cells):
        return f"{name} and its reference have equal builds: no metric can differ"
    differing = [(cell, each) for cell in explained.cells for each in cell.differing]
    if not differing and _first_function(explained) is None:
        unclear = [each for cell in explained.cells for each in cell.unclear]
        if not unclear:
            return f"{name} and its reference do not differ in any metric"
        missed: dict[str, float] = {}
        for each in _whole_program_first(unclear):
            least = each.difference.minimum_detectable
            missed[_name(each)] = max(least, missed.get(_name(each), 0.0))
        names = [f"{metric} {_undetectable(least)}" for metric, least in missed.items()]
        more = f" and {len(names) - MOST_IN_HEADLINE} more metrics" if len(names) > MOST_IN_HEADLINE else ""
        return (
            f"{name}: unclear, no metric is certain to differ; "
            f"could miss changes of {', '.join(names[:MOST_IN_HEADLINE])}{more}"
        )
    if (first := _first_function(explained)) is not None:
        return f"{name}: {first}"
    causes = [
        (cell, each) for cell, each in differing if each.name not in EFFECTS and each.method != "output"
    ]
    cell, metric = max(causes or differing, key=lambda pair: pair[1].difference.lower_bound)
    return f"{name} differs most in {_name(metric)}: {_change(metric)}{_at(cell)}"


def _first_function(explained: ExplainReport) -> str | None:
    """Return the function with the largest part over all points, in words."""
    found = [
        (abs(change["contribution"]["value"]), number, change, cell)
        for number, cell in enumerate(explained.cells)
        if cell.functions is not None
        for change in responsible(cell.functions.as_json())[:1]
    ]
    if not found:
        return None
    _, _, change, cell = max(found, key=lambda each: (each[0], -each[1]))
    return f"{function_words(change)}{_at(cell)}"


def _print_cell(cell: CellReport) -> None:
    console = output()
    variant = "" if cell.cell.subject.variant == "plain" else f" ({cell.cell.subject.variant})"
    console.print(
        Text(f"{cell.cell.benchmark}{variant} {escaped(str(cell.cell.point))}".rstrip(), style="bold")
    )
    if cell.equal:
        console.print(Text("  equal builds: nothing differs"))
        return
    for line in function_lines(cell):
        console.print(Text(line))
    if cell.differing:
        console.print(_table(cell.differing[:MOST_DIFFERENCES]))
    if len(cell.differing) > MOST_DIFFERENCES:
        console.print(
            Text(
                f"  and {counted(len(cell.differing) - MOST_DIFFERENCES, 'more difference')}; --json lists all"
            )
        )
    for line in rest_lines(cell):
        console.print(Text(line, style="dim" if cell.differing else ""))
    for each in cell.unavailable:
        console.print(Text(f"  {each.what} not available: {escaped(each.why, longest=200)}", style="dim"))


def function_lines(cell: CellReport) -> Iterator[str]:
    """Yield the functions that changed the cost, the largest part first, with call paths; then the cost shifts."""
    if cell.functions is None:
        return
    functions = cell.functions.as_json()
    found = responsible(functions)
    for each in found[:MOST_FUNCTIONS]:
        yield f"  {function_words(each)}"
        if len(each["path"]) > 1:
            yield f"    path: {path_words(each['path'])}"
    if len(found) > MOST_FUNCTIONS:
        yield f"  and {counted(len(found) - MOST_FUNCTIONS, 'more function')}; --json lists all"
    for shift in functions["shifts"][:MOST_SHIFTS]:
        yield f"  {shift_words(shift)}"
    if sentence := input_words(functions):
        yield f"  {sentence}"
    if not found and not functions["shifts"]:
        yield f"  no function changed the cost ({METHODS[functions['method']]})"


def rest_lines(cell: CellReport) -> Iterator[str]:
    """Yield the unclear metrics with their minimum detectable changes, and the unchanged ones."""
    if cell.unclear:
        minimums = [
            (_name(each), each.difference.minimum_detectable) for each in _whole_program_first(cell.unclear)
        ]
        words = [f"{name} {percent(least)}" for name, least in minimums if least <= TOO_NOISY]
        if words:
            yield f"  unclear, with the minimum detectable change: {first_named(words, MOST_NAMED)}"
        if noisy := [name for name, least in minimums if least > TOO_NOISY]:
            yield f"  too noisy to compare with so few invocations: {first_named(noisy, MOST_NAMED)}"
    if cell.unchanged:
        yield f"  unchanged: {first_named([_name(each) for each in _whole_program_first(cell.unchanged)], MOST_NAMED)}"


def _whole_program_first(metrics: Sequence[MetricDifference]) -> list[MetricDifference]:
    """Return metrics of the whole program before those of single functions and system calls."""
    return sorted(metrics, key=lambda each: " " in each.name)


def _undetectable(least: float) -> str:
    """Return the sizes of changes that would not have been detected."""
    return f"below {percent(least)}" if math.isfinite(least) else "of any size"


def _table(differing: Sequence[MetricDifference]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    for each in differing:
        before, after = (
            _value(value, each.unit) for value in (each.difference.before, each.difference.after)
        )
        table.add_row(
            "",
            Text(_name(each)),
            Text(before),
            Text(f"→ {after}"),
            Text(_change(each)),
            Text(_method(each), style="dim"),
        )
    return table


def _files(files: Sequence[FileChange]) -> Table:
    """Return the files with the most changed lines, each with a bar."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    most = max((each.lines for each in files), default=0) or 1
    for each in sorted(files, key=lambda file: -file.lines)[:MOST_FILES]:
        scale = min(1.0, WIDEST_BAR / most)
        bar = Text("+" * math.ceil((each.added or 0) * scale), style="green")
        bar.append("-" * math.ceil((each.removed or 0) * scale), style="red")
        count = "binary" if each.added is None else f"+{each.added} −{each.removed}"
        table.add_row("", Text(escaped(each.path)), Text(count), bar)
    if len(files) > MOST_FILES:
        table.add_row("", Text(f"and {counted(len(files) - MOST_FILES, 'more file')}"), Text(""), Text(""))
    return table


def _value(value: float, unit: str) -> str:
    """Return a count exactly, any other value with its unit."""
    return f"{value:.0f}" if not unit and value.is_integer() else quantity(value, unit)


def _name(metric: MetricDifference) -> str:
    return escaped(metric.name, longest=LONGEST_NAME)


def _change(metric: MetricDifference) -> str:
    """Return a difference in words; values from or to zero have no ratio."""
    before, after = metric.difference.before, metric.difference.after
    if before <= 0.0:
        return "new"
    if after <= 0.0:
        return "gone"
    return change(after / before)


def _method(metric: MetricDifference) -> str:
    return f"{metric.method}, {counted(metric.invocations, 'invocation')} each"


def _at(cell: CellReport) -> str:
    return f" at {escaped(str(cell.cell.point))}" if cell.cell.point.values else ""
