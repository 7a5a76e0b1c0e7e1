"""The cost of a study, the result of a trial build, and a first study, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.model.fixture import services_of
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.wording import counted, duration, escaped, listed, quantity
from perftrail.present.failures import failure_group_lines, failure_words, remedy_lines, skipped_words
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import shell_words
from perftrail.results.remaining_work import Span
from perftrail.studyfile.writing import toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.build import Stage
    from perftrail.model.recipe import Variant
    from perftrail.model.study import Study
    from perftrail.verbs.attempt import AttemptReport, FirstRun, StartedPoints, UnreadFiles
    from perftrail.verbs.check import StudyPlan
    from perftrail.verbs.init.draft import BuildDraft, StudyDraft
    from perftrail.verbs.init.start import FirstStudy

LONGEST_LINE = 1000

LONG_RUN_SECONDS = 3600.0
"""`check` does not propose a `run` that takes longer."""

MOST_LINES = 3
"""Maximum number of lines of the study file that a cause of failures names."""
PROPOSED_TRIES = 5
"""Number of revisions worth trying before the first build."""

_REMEDIES: Mapping[Stage, str] = {
    "checkout": "correct {line}, or the repository, then ",
    "build": "correct {line}, set variables that the build needs in [build] env, or install what it lacks, then ",
    "timeout": "raise the limit, {line}, then ",
    "memory": "raise the limit, {line}, then ",
}
"""First remedy if nothing could be started, by the most frequent stage of failure."""

_CORRECT = "correct {line}, then "


def print_plan(
    study: Study, plan: StudyPlan, *, shared_options: Sequence[str], planned_command: Sequence[str] = ()
) -> None:
    """Print the extent of a study, its stored builds and samples, and the cost of the rest.

    `shared_options` are the study and the options that the next command repeats. `planned_command` is the command whose
    plan this is; without one, the study decides which command is next.
    """
    first, last = plan.revisions[0], plan.revisions[-1]
    builds_left = plan.subjects - plan.built - plan.failed
    lines = [
        ("revisions", f"{len(plan.revisions)}, {first.short} to {last.short}"),
        *([("sources", str(plan.pins))] if study.sources else []),
        ("variants", ", ".join(_variant(name, each) for name, each in study.variants.items())),
        ("builds", f"{plan.subjects}: {plan.built} done, {plan.failed} failed, {builds_left} left"),
        *(("skipped", skipped_words(each)) for each in plan.skipped_revisions),
        *_suites(study),
        *(
            ("benchmark", _benchmark(name, benchmark))
            for name, benchmark in study.benchmarks.items()
            if not isinstance(benchmark, SuiteBenchmark)
        ),
        *(("fixture", text) for name in study.benchmarks if (text := _fixture(study, name))),
        ("points", f"{plan.cells}: each benchmark at each parameter value, of each revision and variant"),
        ("invocations", f"{_counts(plan.invocations)}, {_stored(plan)}, {_counts(plan.left)} left"),
        ("time left", _time_left(plan)),
    ]
    click.echo(click.style(escaped(plan.title), bold=True))
    for name, text in lines:
        click.echo(f"{name:<12} {escaped(text, longest=LONGEST_LINE)}")
    for warning in plan.warnings:
        click.echo(click.style(f"{'warning':<12} {escaped(warning, longest=LONGEST_LINE)}", fg="yellow"))
    for group in plan.failure_groups:
        for line in failure_group_lines(group):
            click.echo(line)
    attempted = plan.built + plan.failed
    if attempted and planned_command:
        verb, *options = planned_command
        _print_next(f"{verb}{shell_words(options)}", shared_options)
    elif attempted:
        _next(study, plan, shared_options)
    else:
        _row("not checked", "outputs, programs and patterns, which need a build")
        _print_next(f"check --try {PROPOSED_TRIES}", shared_options)


def _stored(plan: StudyPlan) -> str:
    """Return the number of stored invocations; warm-ups among them have no sample in other commands."""
    if not plan.stored_warmups:
        return f"{plan.stored} stored"
    which = "all" if plan.stored_warmups == plan.stored else str(plan.stored_warmups)
    return f"{plan.stored} stored ({which} of them warm-ups)"


def print_attempt(study: Study, report: AttemptReport, *, shared_options: Sequence[str]) -> None:
    """Print the share of usable revisions, the common causes of the failures, and the time."""
    click.echo(click.style(_tried_builds(report), bold=True))
    for advised in report.failure_groups:
        for line in failure_group_lines(advised.group):
            click.echo(line)
        if report.useful and advised.benchmarks:
            click.echo(f"    see {escaped(_some(advised.study_lines), longest=LONGEST_LINE)}")
        if advised.group.failed_range is not None:
            for line in remedy_lines(advised.group.failed_range, advised.remedies):
                click.echo(line)
    if report.outputs:
        _row("outputs", ", ".join(report.outputs))
    first_runs = (("first run", _first_run(run)) for run in report.first_runs)
    for name, text in (*first_runs, *_points(report.points)):
        _row(name, text)
    if report.unread is not None:
        for line in _unread_lines(study, report.unread, len(report.plan.revisions)):
            click.echo(line)
    if not report.useful:
        top = report.failure_groups[0]
        remedy = _REMEDIES.get(top.group.failure.stage, _CORRECT)
        _print_next("check --try 1", shared_options, first_step=remedy.format(line=top.study_line))
        return
    revisions = counted(len(report.plan.revisions), "revision")
    _row(
        "time left",
        f"{_time_left(report.plan)}; {revisions}{' with perftrail run' * bool(report.find_seconds)}",
    )
    if report.find_seconds is not None:
        _row("", f"{_span(report.find_seconds)} for most searches with perftrail find")
    if report.compare_seconds is not None:
        fewest, most = report.compare_pairs
        times = _span(report.compare_seconds)
        _row(
            "",
            f"{times} for two revisions with perftrail compare ({fewest} to {most} pairs), and their builds",
        )
    _next(study, report.plan, shared_options)


def _span(seconds: Span) -> str:
    least, most = duration(seconds.least), duration(seconds.most)
    return least if least == most else f"{least} to {most}"


def _points(points: StartedPoints | None) -> Iterator[tuple[str, str]]:
    """Yield how long the points took, and which failed or are too short, as rows; nothing for a single good point."""
    if points is None:
        return
    times = sorted(points.seconds.values())
    if len(times) > 1 or points.others:
        span = _span(Span(least=times[0], most=times[-1])) if times else "none worked"
        others = (
            f"; {counted(points.others, 'further point')} not started in the time" if points.others else ""
        )
        yield "points", f"{counted(len(times) + len(points.failed), 'point')} started once: {span}{others}"
    for cell, failure in list(points.failed.items())[:MOST_LINES]:
        yield "fails", f"{cell}: {failure_words(failure)}"
    if len(points.failed) > MOST_LINES:
        yield "", f"and {counted(len(points.failed) - MOST_LINES, 'further point')}"
    if short := points.short:
        named = [
            f"{cell.benchmark} {cell.point}".rstrip() + f" ({duration(seconds)})"
            for cell, seconds in short.items()
        ]
        further = len(named) - MOST_LINES
        rest = f" and {further} more" if further > 0 else ""
        yield (
            "too short",
            f"{', '.join(named[:MOST_LINES])}{rest}: below 20 ms, starting the process disturbs the time",
        )
        yield "", 'use longer inputs, or count instructions: counters = ["instructions"]'


def _unread_lines(study: Study, unread: UnreadFiles, revisions: int) -> Iterator[str]:
    """Yield the proposal for `build.unaffected_by`, or why there is none."""
    if unread.incomplete:
        yield f"{'unread':<12} not observed: {escaped(unread.incomplete, longest=LONGEST_LINE)}"
    elif unread.patterns:
        only = f"{unread.revisions} of {counted(revisions, 'revision')} change only such files"
        yield f"{'unread':<12} no observed build reads these files; {only}. To build such revisions once:"
        patterns = (*study.build.unaffected_by, *unread.patterns)
        yield "    [build]"
        yield f"    unaffected_by = [{', '.join(escaped(toml(each), longest=None) for each in patterns)}]"


def _tried_builds(report: AttemptReport) -> str:
    """Return the numbers of subjects that were built, ran, and were relinked."""
    tried, usable = len(report.tried), report.usable
    if not report.built:
        return f"nothing was built: {'the build' if tried == 1 else f'all {tried} builds'} failed"
    share = f"{report.built} of {counted(tried, 'build')} succeeded ({report.built / tried * 100:.0f} %)"
    text = f"{share}, {usable or 'none'} of them {'work' if usable > 1 else 'works'}"
    if report.partly:
        text += (
            f", {'all' if report.partly == usable > 1 else report.partly} of these only in some benchmarks"
        )
    if report.relinked is None:
        return text
    return (
        f"{text}, {report.relinked or 'none'} of these {'was' if report.relinked == 1 else 'were'} relinked"
    )


def _some(lines: Sequence[str]) -> str:
    """Return the first few lines of a study file, and the number of further ones."""
    further = len(lines) - MOST_LINES
    if further <= 0:
        return listed(lines, "and")
    return f"{', '.join(lines[:MOST_LINES])} and {further} more; --json names all benchmarks"


def _first_run(run: FirstRun) -> str:
    values = ", ".join(f"{name} {quantity(value, run.units[name])}" for name, value in run.values.items())
    return f"{run.cell}: {values}"


def _row(name: str, text: str) -> None:
    click.echo(f"{name:<12} {escaped(text, longest=LONGEST_LINE)}")


def print_first_study(created: FirstStudy) -> None:
    """Print the written study, what was detected of the program, and the next command."""
    draft = created.draft
    history, build_system = draft.source, draft.build
    span = f" {history.range}" if history.range else ""
    count = f", {history.revisions} revisions" if history.revisions else ""
    lines = [("wrote", str(created.file)), ("history", f"{history.kind}{span}{count}")]
    if build_system is None:
        lines.append(("build", "no build system was found"))
        lines.append(("benchmark", "a placeholder: it only shows that the tree exists"))
    else:
        directory = f" in {draft.directory}" if draft.directory else ""
        lines.append(("build", f"{build_system.system}, because of {build_system.manifest}{directory}"))
        others = dict.fromkeys(other.system for other in draft.others if other.system != build_system.system)
        if others:
            lines.append(("", f"also found: {', '.join(others)}; choose with --build NAME"))
        lines += _drafted_benchmark(draft, build_system)
    lines += [("note", note) for note in created.notes]
    for name, text in lines:
        click.echo(f"{name:<12} {escaped(text, longest=LONGEST_LINE)}")
    first_step = f"{created.to_do}, then " if created.to_do else ""
    study = () if str(created.file.parent) == "." else (str(created.file),)
    _print_next("check", study, first_step=first_step)


def _next(study: Study, plan: StudyPlan, shared_options: Sequence[str]) -> None:
    if study.find.metric:
        _print_next("find", shared_options)
    elif plan.seconds is not None and plan.seconds.least > LONG_RUN_SECONDS and len(plan.revisions) > 1:
        ends = shell_words([each.short for each in (plan.revisions[0], plan.revisions[-1])])
        why = f"compare only both ends; to measure all with perftrail run takes {duration(plan.seconds.least)} or more"
        command = escaped(f"perftrail compare{ends}{shell_words(shared_options)}", longest=LONGEST_LINE)
        click.echo(click.style(next_line(f"{command}    {why}"), dim=True))
    else:
        _print_next("run", shared_options)


def _print_next(command: str, shared_options: Sequence[str], *, first_step: str = "") -> None:
    verb, *options = command.split(" ", 1)
    step, words = (escaped(text, longest=LONGEST_LINE) for text in (first_step, shell_words(shared_options)))
    click.echo(click.style(next_line(f"{step}perftrail {' '.join([verb + words, *options])}"), dim=True))


def _variant(name: str, variant: Variant) -> str:
    return f"{name} ({variant.directory}/)" if variant.directory else name


def _drafted_benchmark(draft: StudyDraft, build: BuildDraft) -> list[tuple[str, str]]:
    """Return what a first study measures, and why."""
    if build.suite is not None:
        return [("suite", f"{build.suite.kind}: {build.suite.why}")]
    return [
        ("benchmark", build.benchmark.command),
        ("", build.benchmark.why),
        ("metric", f"{draft.metric}: {draft.metric_reason}"),
    ]


def _suites(study: Study) -> list[tuple[str, str]]:
    """Return each suite with the number of its listed benchmarks."""
    lines = []
    for name, suite in study.suites.items():
        own = [each for each in study.benchmarks.values() if isinstance(each, SuiteBenchmark)]
        count = sum(each.suite == name for each in own)
        known = counted(count, "benchmark") if count else "its benchmarks are listed when it is built first"
        lines.append(("suite", f"{name}, {suite.kind}: {known}"))
    return lines


def _benchmark(name: str, benchmark: Benchmark) -> str:
    axes = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in benchmark.parameters.items())
    return f"{name}: {axes}" if axes else name


def _fixture(study: Study, name: str) -> str:
    """Return what surrounds the invocations of a benchmark; empty for nothing."""
    benchmark = study.benchmarks[name]
    services = [
        f"{service} ({'started for each invocation' if each.restart == 'each' else 'one start for each build'})"
        for service, each in services_of(study, benchmark).items()
    ]
    lines = {
        "setup": benchmark.setup,
        "prepare": benchmark.prepare,
        "conclude": benchmark.conclude,
        "cleanup": benchmark.cleanup,
    }
    placement = benchmark.placement
    parts = [
        *([f"services {listed(services, 'and')}"] if services else []),
        *(["CPU time and memory of the services"] if benchmark.measure == "server" else []),
        *(f"{key}: {counted(len(each), 'line')}" for key, each in lines.items() if each),
        *(["caches dropped"] if benchmark.drop_caches else []),
        *([f"CPUs {', '.join(map(str, placement.cpus))}"] if placement.cpus else []),
        *([f"niceness {placement.nice}"] if placement.nice is not None else []),
        *([f"NUMA nodes {', '.join(map(str, placement.numa))}"] if placement.numa else []),
    ]
    return f"{name}: {'; '.join(parts)}" if parts else ""


def _counts(span: Span) -> str:
    least, most = int(span.least), int(span.most)
    return f"{least}" if least == most else f"{least} to {most}"


def _time_left(plan: StudyPlan) -> str:
    if plan.seconds is None or not (plan.cells or plan.failed):
        return "unknown until something is built and measured"
    if plan.seconds.most == 0:
        return "none: every planned point is measured or has failed"
    least, most = duration(plan.seconds.least), duration(plan.seconds.most)
    span = least if least == most else f"{least} to {most}"
    if plan.unseen:
        points = "1 point has" if plan.unseen == 1 else f"{plan.unseen} points have"
        return f"{span} or more: {points} no samples"
    return span if least == most else f"{span}, estimated from earlier builds and samples"
