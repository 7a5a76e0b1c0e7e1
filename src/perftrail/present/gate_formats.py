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
from typing import TYPE_CHECKING, Literal

from perftrail.model.build import content_key
from perftrail.model.wording import counted, escaped
from perftrail.present.gate import (
    bar_limit,
    certainty,
    change_title,
    effort,
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
    unclear_warning,
    verdict_words,
)
from perftrail.present.html_page import fenced, inert
from perftrail.present.shared_sentences import capitalised
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.results.gate import Gate, Row

SIGNS = {Verdict.SLOWER: "🔴", Verdict.FASTER: "🟢", Verdict.UNCLEAR: "⚪", Verdict.SAME: "⚫"}
"""Signs, always printed together with the verdict's word."""

MOST_ROWS, MOST_FOLDED = 100, 60
"""Maximum number of changed rows, and of folded rows of each verdict. A comment can have 65,536 characters."""

MOST_FAILED = 20
"""Maximum number of failed sides in a comment."""


def to_markdown(gate: Gate) -> str:
    """Return the comparison as Markdown. Hostile text stays text and mentions no user."""
    return "\n".join(_markdown_lines(gate)).rstrip() + "\n"


def marker(gate: Gate) -> str:
    """Return the line by which a later comparison of the same study finds its comment."""
    return f"<!-- perftrail compare {content_key(gate.title)[:16]} -->"


def _markdown_lines(gate: Gate) -> Iterator[str]:
    yield marker(gate)
    yield f"### {inert(gate.title)}"
    yield ""
    yield f"**{inert(headline(gate))}**"
    yield ""
    if warning := unclear_warning(gate):
        yield f"⚠️ **{inert(warning)}**"
        yield ""
    yield f"Base {inert(revision_words(gate.base))}  "
    yield f"Head {inert(revision_words(gate.head))}"
    yield from _rows(gate)
    yield from _failed_sides(gate)
    yield ""
    yield f"- Gate: {inert(policy(gate))}"
    yield f"- How sure: {inert(certainty(gate))}"
    yield f"- Measured: {inert(effort(gate))}"
    yield f"- Machine: {inert(machine(gate))}"
    yield from (f"- {inert(capitalised(text))}" for text in limits(gate))
    if (found := next_command(gate)) is not None:
        yield from _command(f"Next: {found.purpose}", found.command)
    yield from _command("To repeat it", gate.repeat)


def _rows(gate: Gate) -> Iterator[str]:
    changed = [row for row in gate.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    limit = bar_limit(gate)
    if changed:
        yield from _table(gate, changed[:MOST_ROWS], limit, omitted=len(changed) - MOST_ROWS)
    for verdict, word in ((Verdict.UNCLEAR, "unclear"), (Verdict.SAME, "unchanged")):
        rows = [row for row in gate.rows if row.verdict is verdict]
        if rows:
            opened = " open" if gate.fail_on in ("unclear", "any") and verdict is Verdict.UNCLEAR else ""
            yield ""
            yield f"<details{opened}><summary>{counted(len(rows), f'{word} metric')}</summary>"
            yield from _table(gate, rows[:MOST_FOLDED], limit, omitted=len(rows) - MOST_FOLDED)
            yield ""
            yield "</details>"


def _table(gate: Gate, rows: Sequence[Row], limit: float, *, omitted: int) -> Iterator[str]:
    yield ""
    head = ("", "metric", "base", "head", change_title(gate), "chart", "verdict")
    yield f"| {' | '.join(map(inert, head))} |"
    yield "| --- | :--- | ---: | ---: | :--- | :---: | :--- |"
    for row in rows:
        verdict = verdict_words(gate, row)
        cells = (
            SIGNS[row.verdict],
            inert(metric_name(row)),
            *(_unbroken(level) for level in levels_words(row)),
            _unbroken(row_effect(row)) if row.comparison is not None else inert(row_effect(row)),
            f"`{interval_bar(row, limit)}`" if row.comparison is not None else "",
            inert(f"{verdict}, fails the gate" if gate.trips(row) else verdict),
        )
        yield f"| {' | '.join(cells)} |"
    if omitted > 0:
        yield ""
        yield f"and {counted(omitted, 'more metric')}"
    yield ""
    if all(row.comparison is None for row in rows):
        return
    low, high = (f"{100.0 * math.expm1(end):+.0f} %".replace("-", "−") for end in (-limit, limit))
    yield f"<sub>Each chart spans {low} to {high}; the bar is the interval.</sub>"


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
    """Yield a command with its title; nothing without a command."""
    if command:
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
    for row in gate.rows:
        meaning = verdict_words(gate, row)
        parts = (
            metric_name(row),
            row_effect(row),
            *levels_words(row),
            counted(row.pairs, "pair"),
            "" if meaning == row.word else meaning.removeprefix(f"{row.word}: "),
        )
        yield "  ".join([f"{row.word}{'!' if gate.trips(row) else ''}".ljust(8), *filter(None, parts)])
    yield from (f"failed    {failure_line(each)}" for each in gate.failed_sides)
    if warning := unclear_warning(gate):
        yield f"warning {warning}"
    yield f"gate {policy(gate)}"
    yield f"certainty {certainty(gate)}"
    yield f"measured {effort(gate)}"
    yield f"machine {machine(gate)}"
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


def _annotation(file: str, title: str, message: str, *, kind: Literal["error", "warning"] = "error") -> str:
    return f"::{kind} file={_property(file)},line=1,title={_property(title)}::{_text(message)}"


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


FAMILIES: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "perftrail_value": (
        "Median at the head, in the metric's unit.",
        lambda row: None if row.head is None else row.head.value,
    ),
    "perftrail_ratio": (
        "Ratio head/base; 1 means equal.",
        lambda row: 1.0 if row.one_build else None if row.comparison is None else row.comparison.effect,
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
        "The relative change that the pairs detect.",
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
    "gitlab": to_markdown,
    "junit": to_junit,
    "metrics": to_metrics,
    "json": lambda gate: json.dumps(gate.as_json(), indent=1) + "\n",
}
"""Function that writes each format."""
