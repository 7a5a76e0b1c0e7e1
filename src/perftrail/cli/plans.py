"""A study's plan, for people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from perftrail.cli.speech import plain
from perftrail.model.quantity import duration

if TYPE_CHECKING:
    from perftrail.model.study import Benchmark, Study
    from perftrail.workflows.check import Span, Survey

LONGEST_LINE = 1000


def print_survey(study: Study, plan: Survey, *, named: str | None) -> None:
    """Print what a study asks, what is there already and what the rest takes."""
    first, last = plan.revisions[0], plan.revisions[-1]
    to_make = plan.subjects - plan.built - plan.failed
    lines = [
        ("revisions", f"{len(plan.revisions)}, {first.short} to {last.short}"),
        ("variants", ", ".join(study.variants)),
        ("builds", f"{plan.subjects}: {plan.built} made, {plan.failed} failed, {to_make} to make"),
        *(("benchmark", _benchmark(name, benchmark)) for name, benchmark in study.benchmarks.items()),
        ("points", f"{plan.points}"),
        ("invocations", f"{_counts(plan.invocations)}, {plan.stored} stored, {_counts(plan.left)} left"),
        ("time left", _time(plan.seconds)),
    ]
    click.echo(click.style(plain(plan.title), bold=True))
    for name, text in lines:
        click.echo(f"{name:<12} {plain(text, longest=LONGEST_LINE)}")
    where = f" {shlex.quote(named)}" if named else ""
    command = "find" if study.find.metric else "run"
    click.echo(click.style(f"Next: perftrail {command}{where}", dim=True))


def _benchmark(name: str, benchmark: Benchmark) -> str:
    axes = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in benchmark.parameters.items())
    return f"{name}: {axes}" if axes else name


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
