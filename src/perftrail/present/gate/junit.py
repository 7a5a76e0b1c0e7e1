"""A comparison as JUnit's XML: a suite for each benchmark, a case for each figure; none passes without an answer.

It keeps to the stricter of the schemas in use (that of Ant's JUnit task, as Windy Road wrote it down), so that readers
of the laxer ones take it too.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET  # only written here
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.present.gate.words import effect, headline, lost, machine, name
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.results.gate import Gate, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    """A case that has no verdict: its name, what kind of trouble it is, and the trouble in words."""

    case: str
    kind: str
    message: str


def to_junit(gate: Gate) -> str:
    """Write the document; no text of others leaves its element."""
    root = ET.Element("testsuites")
    errors = _errors(gate)
    for number, suite in enumerate(dict.fromkeys([*(row.target.benchmark for row in gate.rows), *errors])):
        rows = [row for row in gate.rows if row.target.benchmark == suite]
        _suite(root, gate, suite, number=number, rows=rows, errors=errors.get(suite, []))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _errors(gate: Gate) -> dict[str, list[_Error]]:
    """Give what is no verdict by the suite it belongs to: what the head broke, or else that there is no answer."""
    found: dict[str, list[_Error]] = {}
    for each in gate.broken:
        told = _Error(case=each.title, kind=each.failure.stage, message=each.failure.message)
        found.setdefault(each.benchmark or "build", []).append(told)
    if gate.exit_code == 1 and not found:
        why = [lost(each) for each in gate.lost]
        found["gate"] = [_Error(case="answer", kind="no answer", message="\n".join([headline(gate), *why]))]
    return found


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
            "name": clean(benchmark),
            "timestamp": gate.taken[:19],
            "hostname": clean(gate.machine.id) or "unknown",
            "tests": str(len(rows) + len(errors)),
            "failures": str(sum(gate.trips(row) for row in rows)),
            "errors": str(len(errors)),
            "skipped": str(sum(_skipped(gate, row) for row in rows)),
            "time": f"{sum(row.seconds for row in rows):.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    about = {"base": gate.base.id, "head": gate.head.id, "machine": machine(gate)}
    for key, text in about.items():
        ET.SubElement(properties, "property", {"name": key, "value": clean(text)})
    for row in rows:
        _case(suite, gate, row)
    for each in errors:
        case = _named_case(suite, benchmark, each.case)
        told = clean(each.message)
        ET.SubElement(case, "error", {"type": each.kind, "message": told}).text = told
    ET.SubElement(suite, "system-out").text = clean(headline(gate))
    ET.SubElement(suite, "system-err")


def _case(suite: ET.Element, gate: Gate, row: Row) -> None:
    case = _named_case(suite, row.target.benchmark, name(row), seconds=row.seconds)
    told = clean(f"{name(row)}: {row.word}, {effect(row)}")
    if gate.trips(row):
        ET.SubElement(case, "failure", {"type": str(row.verdict), "message": told}).text = told
    elif _skipped(gate, row):
        ET.SubElement(case, "skipped")


def _skipped(gate: Gate, row: Row) -> bool:
    """An unclear verdict that trips nothing is no success either."""
    return row.verdict is Verdict.UNCLEAR and not gate.trips(row)


def _named_case(suite: ET.Element, benchmark: str, called: str, *, seconds: float = 0.0) -> ET.Element:
    words = {"classname": clean(benchmark), "name": clean(called), "time": f"{seconds:.3f}"}
    return ET.SubElement(suite, "testcase", words)


def clean(text: str) -> str:
    r"""Write text so that XML may hold it at all: control characters and halves of pairs in letters.

    >>> print(clean("a\x1b[31m" + chr(0xd800)))
    a\x1b[31m\ud800
    """
    return "".join(
        letter if letter in "\t\n" or letter.isprintable() else ascii(letter)[1:-1] for letter in text
    )
