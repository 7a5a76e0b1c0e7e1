"""The answer of a comparison in each format of `compare --format`. Each escapes the text as its format needs.

Formats: Markdown for a comment on a pull or merge request, plain lines for a CI log, workflow commands for GitHub,
JUnit XML, and OpenMetrics text, which GitLab shows as a metrics report. The JUnit XML follows the stricter schema in
use (of Ant's JUnit task), so that readers of the laxer ones accept it.
"""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET  # only written here
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from perftrail.errors import StudyError
from perftrail.model.build import content_key
from perftrail.model.wording import counted, escaped
from perftrail.present.gate import (
    bar_limit,
    certainty,
    change_title,
    counts_words,
    difference_words,
    effort,
    equal_builds,
    failure_line,
    headline,
    interval_bar,
    levels_words,
    limits,
    location,
    machine,
    metric_name,
    next_command,
    policy,
    revision_words,
    row_effect,
    tools_words,
    unclear_warning,
    verdict_words,
)
from perftrail.present.html_page import fenced, inert
from perftrail.present.shared_sentences import capitalised
from perftrail.stats.comparison import Verdict
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.errors import PerftrailError
    from perftrail.model.benchmark import Point
    from perftrail.results.gate import Gate, Row

SIGNS = {Verdict.SLOWER: "🔴", Verdict.FASTER: "🟢", Verdict.UNCLEAR: "⚪", Verdict.SAME: "⚫"}
"""Signs, always printed together with the verdict's word."""

MOST_VISIBLE = 20
"""Maximum number of changed rows that are not folded."""

MOST_FAILED, MOST_LIMITS, MOST_DIFFERENCES = 20, 12, 6
"""Maximum number of failed sides, of limits, and of differences above the tables in a comment."""

LONGEST_COMMAND = 4_000
"""A comment has no longer command."""

GITHUB_COMMENT, GITLAB_COMMENT = 65_000, 990_000
"""Longest comment in UTF-16 units. The servers accept 65,536 and 1,000,000 characters."""

GITHUB_SUMMARY = 300_000
"""Longest summary of a GitHub job in UTF-16 units: at most 900,000 bytes. GitHub discards one of a megabyte."""


def to_markdown(gate: Gate, *, longest: int = GITHUB_COMMENT) -> str:
    """Return the comparison as Markdown of at most `longest` UTF-16 units.

    It has the worst metrics that fit, and the number of the others. Hostile text stays text and mentions no user.
    """
    above, below = list(_above(gate)), list(_below(gate))
    left = longest - sum(map(_size, (*above, *below)))
    return "\n".join((*above, *_rows(gate, left), *below)).rstrip() + "\n"


def _size(line: str) -> int:
    """Return the length of a line with its end, in UTF-16 units."""
    return len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1


def marker(gate: Gate) -> str:
    """Return the line by which a later comparison of the same study finds its comment."""
    return f"<!-- perftrail compare {content_key(gate.title)[:16]} -->"


def _above(gate: Gate) -> Iterator[str]:
    """Yield the lines above the tables: the answer, the counts, and what limits the answer most."""
    yield marker(gate)
    yield f"### {inert(gate.title)}"
    yield ""
    yield f"**{inert(headline(gate))}**"
    yield ""
    if gate.rows:
        yield f"{inert(counts_words(gate))}."
        yield ""
    if warning := unclear_warning(gate):
        yield f"⚠️ **{inert(warning)}**"
        yield ""
    for difference in islice(difference_words(gate), MOST_DIFFERENCES):
        yield f"⚠️ {inert(capitalised(difference))}"
        yield ""
    yield f"Base {inert(revision_words(gate.base))}  "
    yield f"Head {inert(revision_words(gate.head))}"
    if words := equal_builds(gate):
        yield ""
        yield f"{inert(capitalised(words))}."


def _below(gate: Gate) -> Iterator[str]:
    """Yield the lines below the tables: failures, the evidence, and the commands."""
    yield from _failed_sides(gate)
    yield ""
    if gate.why:
        yield "Why:"
        yield ""
        yield from (f"- {inert(text)}" for text in gate.why[:MOST_LIMITS])
        yield ""
    yield f"- Gate: {inert(policy(gate))}"
    yield f"- How sure: {inert(certainty(gate))}"
    yield f"- Measured: {inert(effort(gate))}"
    yield f"- Machine, the same for base and head: {inert(machine(gate))}"
    if tools := tools_words(gate):
        yield f"- Tools, the same for base and head: {inert(tools)}"
    named = set(islice(difference_words(gate), MOST_DIFFERENCES))
    others = [text for text in limits(gate) if text not in named]
    yield from (f"- {inert(capitalised(text))}" for text in others[:MOST_LIMITS])
    if len(others) > MOST_LIMITS:
        yield f"- and {counted(len(others) - MOST_LIMITS, 'more note')}"
    if (found := next_command(gate)) is not None:
        yield from _command(f"Next: {inert(found.purpose)}", found.command)
    yield from _command("To repeat it", gate.repeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A table of a comment: its rows, the worst first, and the title of its fold; without a title, it is not folded."""

    rows: Sequence[Row]
    title: str = ""
    opened: bool = False


def _parts(gate: Gate) -> Iterator[_Part]:
    """Yield the tables: the largest changes, then the other changes and the unchanged metrics, folded."""
    changed = gate.changes
    yield _Part(rows=changed[:MOST_VISIBLE])
    rest = changed[MOST_VISIBLE:]
    yield _Part(rows=rest, title=counted(len(rest), "more changed metric"))
    unclear_counts = gate.fail_on in ("unclear", "any")
    for verdict, word in ((Verdict.UNCLEAR, "unclear"), (Verdict.SAME, "unchanged")):
        rows = [row for row in gate.rows if row.verdict is verdict and not row.one_build]
        opened = unclear_counts and verdict is Verdict.UNCLEAR and len(rows) <= MOST_VISIBLE
        yield _Part(rows=rows, title=counted(len(rows), f"{word} metric"), opened=opened)


AROUND_TABLE = 500
"""Space for everything of a table besides its rows, in UTF-16 units."""


def _rows(gate: Gate, space: int) -> Iterator[str]:
    """Yield the tables within a number of UTF-16 units; earlier tables are completed first."""
    limit = bar_limit(gate)
    parts = [part for part in _parts(gate) if part.rows]
    left = space - AROUND_TABLE * len(parts)
    for part in parts:
        lines: list[str] = []
        for row in part.rows:
            line = _table_row(gate, row, limit)
            left -= _size(line)
            if left < 0:
                break
            lines.append(line)
        omitted = len(part.rows) - len(lines)
        if part.title:
            yield ""
            yield f"<details{' open' if part.opened else ''}><summary>{part.title}</summary>"
        yield from _table(gate, part.rows[: len(lines)], lines, limit)
        if omitted:
            left = 0
            yield ""
            yield f"and {counted(omitted, 'more metric' if lines else 'metric')} for which a comment has no space"
        if part.title:
            yield ""
            yield "</details>"


def _table(gate: Gate, rows: Sequence[Row], lines: Sequence[str], limit: float) -> Iterator[str]:
    if not lines:
        return
    yield ""
    head = ("", "metric", "base", "head", change_title(gate), "chart", "verdict")
    yield f"| {' | '.join(map(inert, head))} |"
    yield "| --- | :--- | ---: | ---: | :--- | :---: | :--- |"
    yield from lines
    yield ""
    if all(row.comparison is None for row in rows):
        return
    low, high = (f"{100.0 * math.expm1(end):+.0f} %".replace("-", "−") for end in (-limit, limit))
    yield f"<sub>Each chart spans {low} to {high}; the bar is the interval.</sub>"


def _table_row(gate: Gate, row: Row, limit: float) -> str:
    verdict = verdict_words(gate, row)
    cells = (
        SIGNS[row.verdict],
        inert(metric_name(row)),
        *(_unbroken(level) for level in levels_words(row)),
        _unbroken(row_effect(row)) if row.comparison is not None else inert(row_effect(row)),
        f"`{interval_bar(row, limit)}`" if row.comparison is not None else "",
        inert(f"{verdict}, fails the gate" if gate.trips(row) else verdict),
    )
    return f"| {' | '.join(cells)} |"


def _unbroken(text: str) -> str:
    """Keep a number and its unit on one line of a narrow column."""
    return inert(text).replace(" ", "\u00a0")


def _failed_sides(gate: Gate) -> Iterator[str]:
    if gate.failed_sides:
        yield ""
        failures = counted(len(gate.failed_sides), "failure")
        yield f"<details{' open' if gate.broken else ''}><summary>{failures}</summary>"
        yield ""
        yield from (f"- {inert(failure_line(each))}" for each in gate.failed_sides[:MOST_FAILED])
        if len(gate.failed_sides) > MOST_FAILED:
            yield f"- and {len(gate.failed_sides) - MOST_FAILED} more"
        yield ""
        yield "</details>"


def _command(title: str, command: str) -> Iterator[str]:
    """Yield a command with its title; nothing without a command, or if it is too long for a comment."""
    if command and len(command) <= LONGEST_COMMAND:
        yield ""
        yield f"{title}:"
        yield ""
        yield from fenced(escaped(command, longest=None))


def to_plain(gate: Gate) -> str:
    """Return the comparison as lines: the answer first; each other line begins with its subject."""
    return "".join(f"{_without_commands(line)}\n" for line in _lines(gate))


def _lines(gate: Gate) -> Iterator[str]:
    yield headline(gate)
    yield f"base {revision_words(gate.base)}"
    yield f"head {revision_words(gate.head)}"
    for row in gate.certain_first:
        meaning = verdict_words(gate, row)
        parts = (
            metric_name(row),
            row_effect(row),
            *levels_words(row),
            counted(row.pairs, "pair"),
            meaning.removeprefix(row.word).lstrip(":, "),
        )
        yield "  ".join([f"{row.word}{'!' if gate.trips(row) else ''}".ljust(8), *filter(None, parts)])
    if gate.rows:
        yield f"counts {counts_words(gate)}"
    yield from (f"failed    {failure_line(each)}" for each in gate.failed_sides)
    yield from (f"why {text}" for text in gate.why)
    if warning := unclear_warning(gate):
        yield f"warning {warning}"
    yield f"gate {policy(gate)}"
    yield f"certainty {certainty(gate)}"
    yield f"measured {effort(gate)}"
    yield f"machine {machine(gate)}"
    if tools := tools_words(gate):
        yield f"tools {tools}"
    yield from (f"note {text}" for text in limits(gate))
    yield f"repeat {gate.repeat}"
    if gate.find_command:
        yield f"find {gate.find_command}"


def _without_commands(line: str) -> str:
    """Return one printable line that no CI runner executes as a command."""
    return escaped(line, longest=None).replace("##[", "## [").replace("##vso", "## vso")


MOST_ANNOTATIONS = 10
"""Maximum number of annotations of one kind that GitHub shows for a step."""


def github_annotations(gate: Gate, *, file: str) -> Iterator[str]:
    """Yield an error for each metric that trips the gate, for each broken side, or for a missing answer.

    Unclear metrics that do not trip it have one warning. `file` is the annotated file.
    """
    for row in gate.tripped[:MOST_ANNOTATIONS]:
        yield _annotation(file, f"{metric_name(row)} is {row.word}", f"{metric_name(row)}: {row_effect(row)}")
    for failed in gate.broken[: max(0, MOST_ANNOTATIONS - len(gate.tripped))]:
        message = f"{failed.failure.stage}: {failed.failure.message}{location(failed)}"
        yield _annotation(file, f"{failed.title} is broken", message)
    if gate.exit_code == 1 and not gate.broken:
        yield _annotation(file, "no answer", headline(gate))
    elif warning := unclear_warning(gate):
        yield _annotation(file, "unclear", warning, kind="warning")


def error_annotations(error: PerftrailError, *, named: Callable[[str], str]) -> Iterator[str]:
    """Yield an annotation for each mistake of a study, else one for the error. `named` returns a file's name."""
    if not isinstance(error, StudyError):
        yield f"::error title=perftrail::{_text(escaped(str(error), longest=None, allowed=_LINE_END))}"
        return
    for each in error.mistakes[:MOST_ANNOTATIONS]:
        message = f"{each.key}: {each.message}" if each.key else each.message
        yield _annotation(
            named(each.file), "not a valid study", escaped(message, longest=None), line=each.line or 1
        )


_LINE_END = "\n"


def _annotation(
    file: str, title: str, message: str, *, kind: Literal["error", "warning"] = "error", line: int = 1
) -> str:
    return f"::{kind} file={_property(file)},line={line},title={_property(title)}::{_text(message)}"


def _text(text: str) -> str:
    r"""Escape a message of a workflow command.

    >>> _text("50 %\n::error::x")
    '50 %25%0A::error::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    """A case without a verdict: its name, the kind of its problem, and a description."""

    case: str
    kind: str
    message: str


def to_junit(gate: Gate) -> str:
    """Return the comparison as JUnit XML; hostile texts stay within their elements."""
    root = ET.Element("testsuites")
    errors = _errors(gate)
    for number, suite in enumerate(dict.fromkeys([*(row.metric.benchmark for row in gate.rows), *errors])):
        rows = [row for row in gate.rows if row.metric.benchmark == suite]
        _suite(root, gate, suite, number=number, rows=rows, errors=errors.get(suite, []))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _errors(gate: Gate) -> dict[str, list[_Error]]:
    """Return problems without a verdict by suite: the broken benchmarks of the head, else the missing answer."""
    errors: dict[str, list[_Error]] = {}
    for each in gate.broken:
        message = f"{each.failure.message}{location(each)}"
        error = _Error(case=each.title, kind=each.failure.stage, message=message)
        errors.setdefault(each.benchmark or "build", []).append(error)
    if gate.exit_code == 1 and not errors:
        why = [failure_line(each) for each in gate.failed_sides]
        errors["gate"] = [_Error(case="answer", kind="no answer", message="\n".join([headline(gate), *why]))]
    return errors


def _suite(
    root: ET.Element,
    gate: Gate,
    benchmark: str,
    *,
    number: int,
    rows: Sequence[Row],
    errors: Sequence[_Error],
) -> None:
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "id": str(number),
            "package": "perftrail",
            "name": xml_text(benchmark),
            "timestamp": gate.finished[:19],
            "hostname": xml_text(gate.machine.id) or "unknown",
            "tests": str(len(rows) + len(errors)),
            "failures": str(sum(gate.trips(row) for row in rows)),
            "errors": str(len(errors)),
            "skipped": str(sum(_skipped(gate, row) for row in rows)),
            "time": f"{_suite_seconds(rows):.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    values = {"base": gate.base.id, "head": gate.head.id, "machine": machine(gate)}
    for key, text in values.items():
        ET.SubElement(properties, "property", {"name": key, "value": xml_text(text)})
    for row in rows:
        _case(suite, gate, row)
    for each in errors:
        case = _named_case(suite, benchmark, each.case)
        message = xml_text(each.message)
        ET.SubElement(case, "error", {"type": each.kind, "message": message}).text = message
    sentences = "\n".join(part for part in (headline(gate), unclear_warning(gate)) if part)
    ET.SubElement(suite, "system-out").text = xml_text(sentences)
    ET.SubElement(suite, "system-err")


def _suite_seconds(rows: Sequence[Row]) -> float:
    """Return the time of a suite: metrics of the same invocations count once."""
    shared: dict[tuple[str, Point], float] = {}
    for row in rows:
        name = (row.metric.variant, row.metric.point)
        shared[name] = max(shared.get(name, 0.0), row.seconds)
    return sum(shared.values())


def _case(suite: ET.Element, gate: Gate, row: Row) -> None:
    case = _named_case(suite, row.metric.benchmark, metric_name(row), seconds=row.seconds)
    message = xml_text(f"{metric_name(row)}: {verdict_words(gate, row)}, {row_effect(row)}")
    if gate.trips(row):
        ET.SubElement(case, "failure", {"type": str(row.verdict), "message": message}).text = message
    elif _skipped(gate, row):
        ET.SubElement(case, "skipped", {"message": message})


def _skipped(gate: Gate, row: Row) -> bool:
    """Whether a row counts as skipped: its verdict is unclear and does not trip the gate, but is no success either."""
    return row.verdict is Verdict.UNCLEAR and not gate.trips(row)


def _named_case(suite: ET.Element, benchmark: str, name: str, *, seconds: float = 0.0) -> ET.Element:
    attributes = {"classname": xml_text(benchmark), "name": xml_text(name), "time": f"{seconds:.3f}"}
    return ET.SubElement(suite, "testcase", attributes)


def xml_text(text: str) -> str:
    r"""Escape text for XML: control characters and halves of surrogate pairs become printable characters.

    >>> print(xml_text("a\x1b[31m" + chr(0xd800)))
    a\x1b[31m\ud800
    """
    return escaped(text, longest=None, allowed="\t\n")


def _comparison(row: Row, scale: Scale) -> float | None:
    """Return the effect of a row on a scale; `None` on another one."""
    return None if row.comparison is None or row.scale is not scale else row.comparison.effect


FAMILIES: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "perftrail_value": (
        "Median at the head, in the metric's unit.",
        lambda row: None if row.head is None else row.head.value,
    ),
    "perftrail_ratio": (
        "Ratio head/base; 1 means equal.",
        lambda row: 1.0 if row.one_build else _comparison(row, Scale.RATIO),
    ),
    "perftrail_difference": (
        "Difference head - base, for metrics without a ratio.",
        lambda row: None if row.scale is Scale.RATIO else _comparison(row, row.scale),
    ),
    "perftrail_worse": (
        "1 where the head is certainly worse, else 0.",
        lambda row: float(row.verdict is Verdict.SLOWER),
    ),
    "perftrail_unclear": (
        "1 where there is no certain verdict, else 0.",
        lambda row: float(row.verdict is Verdict.UNCLEAR),
    ),
    "perftrail_minimum_detectable": (
        "The change that the pairs detect: relative, or a difference.",
        lambda row: None if row.comparison is None else row.comparison.minimum_detectable,
    ),
}
"""Families of metrics: their help text, and their value in a row; `None` without one."""


def to_metrics(gate: Gate) -> str:
    """Return every row of every family; the labels identify the metric."""
    return "\n".join(_metric_lines(gate)) + "\n"


def _metric_lines(gate: Gate) -> Iterator[str]:
    for family, (meaning, value) in FAMILIES.items():
        yield f"# TYPE {family} gauge"
        yield f"# HELP {family} {meaning}"
        for row in gate.rows:
            number = value(row)
            if number is not None:
                yield f"{family}{{{_labels(row)}}} {number!r}"
    yield "# EOF"


def _labels(row: Row) -> str:
    metric = row.metric
    labels = {
        "benchmark": metric.benchmark,
        "metric": metric.text,
        "point": str(metric.point),
        "unit": metric.unit,
        "variant": metric.variant,
    }
    return ",".join(f'{name}="{_label_value(text)}"' for name, text in labels.items() if text)


def _label_value(text: str) -> str:
    r"""Escape a label's value.

    >>> print(_label_value('a"b\\' + chr(10)))
    a\"b\\\\n
    """
    return escaped(text, longest=None).replace("\\", "\\\\").replace('"', '\\"')


FORMATS: Mapping[str, Callable[[Gate], str]] = {
    "plain": to_plain,
    "github": to_markdown,
    "gitlab": partial(to_markdown, longest=GITLAB_COMMENT),
    "junit": to_junit,
    "metrics": to_metrics,
    "json": lambda gate: json.dumps(gate.as_json(), indent=1) + "\n",
}
"""Function that writes each format."""
