"""A study's plan, for people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.speech import plain
from perftrail.model.quantity import duration

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.workflows.check import Span, Survey


def print_survey(study: Study, plan: Survey, *, named: str | None) -> None:
    """Print what a study asks, what is there already and what the rest takes."""
    console = output()
    console.print(Text(plain(plan.title), style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    first, last = plan.revisions[0], plan.revisions[-1]
    table.add_row("revisions", Text(f"{len(plan.revisions)}, {first.short} to {last.short}"))
    table.add_row("variants", Text(", ".join(study.variants)))
    to_make = plan.subjects - plan.built - plan.failed
    table.add_row("builds", f"{plan.subjects}: {plan.built} made, {plan.failed} failed, {to_make} to make")
    for name, benchmark in study.benchmarks.items():
        axes = "; ".join(
            f"{axis} {', '.join(map(str, values))}" for axis, values in benchmark.parameters.items()
        )
        table.add_row("benchmark", Text(f"{name}{f': {axes}' if axes else ''}"))
    table.add_row("points", f"{plan.points}")
    table.add_row(
        "invocations", f"{_counts(plan.invocations)}, {plan.stored} stored, {_counts(plan.left)} left"
    )
    table.add_row("time left", _time(plan.seconds))
    console.print(table)
    where = f" {shlex.quote(named)}" if named else ""
    command = "find" if study.find.metric else "run"
    console.print(Text(f"Next: perftrail {command}{where}", style="dim"))


def _counts(span: Span) -> str:
    least, most = int(span.least), int(span.most)
    return f"{least}" if least == most else f"{least} to {most}"


def _time(seconds: Span | None) -> str:
    if seconds is None:
        return "not known before something was made and measured"
    if seconds.most == 0:
        return "none: everything planned has an outcome"
    least, most = duration(seconds.least), duration(seconds.most)
    return least if least == most else f"{least} to {most}, by what was made and measured so far"
