"""What came of making one subject, and where its recipe is laid out, for people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from perftrail.cli.again import after
from perftrail.cli.console import output
from perftrail.cli.failures import telling_lines
from perftrail.cli.found_words import revision_name
from perftrail.cli.speech import plain
from perftrail.model.build import Built
from perftrail.model.quantity import duration
from perftrail.workflows.make import script_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.build import Workplace
    from perftrail.model.subject import Subject
    from perftrail.workflows.make import MakeReport

LONGEST_STEP = 300


def print_made(report: MakeReport, *, repeat: Sequence[str]) -> None:
    """Print what came of it: where it is, or the most telling lines of why it is not."""
    console = output()
    who, outcome = _who(report.subject), report.outcome
    if isinstance(outcome, Built):
        words = "was made before" if report.known or outcome.reused else "is made"
        console.print(Text(f"{who} {words}, in {duration(outcome.seconds)}", style="bold"))
        lines = [("directory", outcome.directory), ("artefact", outcome.artefact)]
        if report.recipe.outputs:
            lines.append(("outputs", ", ".join(report.recipe.outputs)))
    else:
        words = "could not be had" if outcome.stage == "checkout" else "does not build"
        known = ", as known from before; --retry-failed tries again" if report.known else ""
        console.print(Text(f"{who} {words}{known}", style="bold"))
        for line in telling_lines(outcome):
            console.print(Text(f"  {line}"))
        lines = []
    lines.append(("log", outcome.log))
    if report.skipped:
        lines.append(
            ("skipped", f"{plain(report.skipped, longest=LONGEST_STEP)}: other commands leave it out")
        )
    for name, text in lines:
        console.print(Text(f"{name:<12} {plain(text, longest=4096)}"))
    asked = [report.subject.revision.short, *repeat]
    asked += [] if report.subject.variant == "plain" else ["--variant", report.subject.variant]
    end = f"Next: perftrail build{after(asked)} --shell    go through its recipe by hand"
    console.print(Text(plain(end, longest=4096), style="dim"))


def print_laid_out(subject: Subject, place: Workplace) -> None:
    """Say, on stderr, where the shell opens, what failed already and which steps there are."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text(f"{_who(subject)}, in a tree of its own that goes when the shell ends", style="bold"))
    if place.failure is not None:
        console.print(Text("It could not be made ready:", style="yellow"))
        for line in telling_lines(place.failure):
            console.print(Text(f"  {line}", style="yellow"))
    console.print(Text(f"{'log':<12} {place.log}"))
    console.print(Text(f"{'here':<12} {place.directory}"))
    for number, line in enumerate(place.lines, start=1):
        name = "steps" if number == 1 else ""
        console.print(Text(f"{name:<12} {number}  {plain(line, longest=LONGEST_STEP)}"))
    if place.lines:
        console.print(Text(f"{'all of them':<12} sh {shlex.quote(str(script_of(place)))}"))
    click.echo(err=True)


def _who(subject: Subject) -> str:
    variant = "" if subject.variant == "plain" else f" ({subject.variant})"
    return f"{revision_name(subject.revision)}{variant}"
