"""Print the findings of `doctor`: problems first, then what is fine, then the resolution."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.text import Text

from perftrail.model.wording import counted, escaped, listed, number, page_address, quantity
from perftrail.present.console import errors, output
from perftrail.present.output_settings import as_started, next_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from perftrail.process.machine.settings import Change
    from perftrail.verbs.doctor import DoctorFinding, DoctorReport, Grade
    from perftrail.verbs.resolution import Resolution

STYLES: dict[Grade, str] = {"spoils": "bold red", "may spoil": "yellow", "unknown": "dim", "fine": "green"}
LONGEST = 200
"""Maximum length in characters of a value from the machine."""

INDENT = 11
"""Width in characters of the column of grades."""

WIDEST = 110
"""Maximum width in characters of an easily read line."""


@contextmanager
def checking_status(*, quick: bool) -> Iterator[None]:
    """Show a status line on a terminal, because `doctor` takes some seconds."""
    console = errors()
    activity = "observing this machine" + ("" if quick else ", then measuring a program against itself")
    if not console.is_terminal:
        yield
        return
    with console.status(f"{activity} …"):
        yield


def print_report(report: DoctorReport, *, has_study: bool) -> None:
    """Print the findings, the worst first, then what is fine, the resolution, and the next command.

    `has_study`: whether there is a study to run in the directory or above it.
    """
    console = output()
    for change in report.restored:
        console.print(
            Text(
                f"restored a setting that a killed perftrail changed: {_setting_words(change, restored=True)}"
            )
        )
    counts = {grade: sum(finding.grade == grade for finding in report.findings) for grade in STYLES}
    console.print(Text(_headline(counts), style="bold"))
    console.print()
    for finding in report.findings:
        console.print(_lines(finding, width=min(console.width, WIDEST)))
    console.print()
    if report.resolution is not None:
        console.print(Text(_wrapped(resolution_line(report.resolution), console), style="bold"))
    console.print(Text(_wrapped(_next(report, has_study=has_study), console), style="dim"))


def first_run_line(report: DoctorReport) -> str:
    """Return what a first run on a machine prints: the number of findings that matter, and the worst ones by name."""
    counts = {grade: sum(finding.grade == grade for finding in report.findings) for grade in STYLES}
    worst = report.findings[0].grade if report.findings else "fine"
    names = [finding.name for finding in report.findings if finding.grade == worst]
    named = f" ({listed(names, 'and')})" if worst in {"spoils", "may spoil"} else ""
    details = as_started("perftrail doctor")
    return f"First run on this machine: {_headline(counts)}{named}. Details and remedies: {details}"


def resolution_line(resolution: Resolution) -> str:
    """Return the smallest change that this machine can resolve, as measured."""
    duration = quantity(resolution.seconds, "s")
    line = (
        f"On this machine, now, {resolution.pairs} pairs of a {duration} program detect a change of "
        f"{_percent(resolution.wall)} in wall time and of {_percent(resolution.cpu)} in CPU time."
    )
    if resolution.wall > 0.01:
        line += f" A change of 1 % in wall time needs about {resolution.pairs_for_one_percent} pairs."
    return line


def print_setting_changes(changes: Sequence[Change], *, until: str) -> None:
    """Print on stderr which settings change, and for how long."""
    if not changes:
        click.echo(
            "--fix changes nothing here: each setting is right already, or this user may not change it",
            err=True,
        )
    for change in changes:
        click.echo(f"{_setting_words(change)} {until}", err=True)


def print_restored(changes: Sequence[Change]) -> None:
    """Print on stderr that all settings are restored."""
    if changes:
        click.echo(f"restored {counted(len(changes), 'setting')}", err=True)


def _setting_words(change: Change, *, restored: bool = False) -> str:
    before, after = (change.wanted, change.was) if restored else (change.was, change.wanted)
    return f"{escaped(change.file, longest=LONGEST)}: {escaped(before)} → {escaped(after)}"


def _headline(counts: dict[Grade, int]) -> str:
    if counts["spoils"]:
        return f"{_conditions(counts['spoils'], 'spoils', 'spoil')} measurements here"
    if counts["may spoil"]:
        return f"nothing spoils measurements now; {_conditions(counts['may spoil'], 'may', 'may')} spoil them"
    return "this machine is suitable for measurements"


def _conditions(count: int, one_does: str, several_do: str) -> str:
    return f"1 condition {one_does}" if count == 1 else f"{count} conditions {several_do}"


def _lines(finding: DoctorFinding, *, width: int) -> Text:
    """Return the lines of one finding: grade and name, then its cost and remedy."""
    text = Text()
    text.append(f"{finding.grade:<{INDENT}}", style=STYLES[finding.grade])
    text.append(finding.name, style="bold")
    width -= INDENT
    text.append(
        _hanging_indent(f"{finding.name}: {escaped(finding.here, longest=LONGEST)}", width)[
            len(finding.name) :
        ]
    )
    if finding.cost:
        text.append(
            f"\n{' ' * INDENT}{_hanging_indent(f'cost:   {finding.cost} ({finding.source})', width)}",
            style="dim",
        )
    if finding.remedy:
        remedy = f"{finding.remedy}; --fix does this temporarily" if finding.fix else finding.remedy
        text.append(f"\n{' ' * INDENT}{_hanging_indent(f'remedy: {remedy}', width)}")
    return text


def _hanging_indent(text: str, width: int) -> str:
    """Return a text wrapped with a hanging indent; no word is broken, so that commands can be copied."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * INDENT}".join(lines)


def _wrapped(text: str, console: Console) -> str:
    return "\n".join(textwrap.wrap(text, min(console.width, WIDEST), break_on_hyphens=False))


def _percent(share: float) -> str:
    return f"{number(share * 100)} %"


def _next(report: DoctorReport, *, has_study: bool) -> str:
    if not has_study:
        return next_line("perftrail init (writes a first study), or perftrail measure COMMAND (needs none)")
    if any(finding.fix for finding in report.findings):
        return next_line("sudo perftrail doctor --fix -- perftrail run (measures with changed settings)")
    return next_line(
        f"perftrail run (flags noisy samples; see {page_address('how-to/trustworthy-numbers.md')})"
    )
