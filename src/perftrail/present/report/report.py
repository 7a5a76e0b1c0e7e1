"""The report of a study: the answer first, then its sections by question, and the origin of every number."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.errors import NOTHING_MEASURED, NoAnswer
from perftrail.model.noisy_samples import NOISE
from perftrail.model.notation import format_duration
from perftrail.model.source import stored_pins
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.target import TargetError, Working, resolve_goal
from perftrail.model.wording import LONGEST_ESCAPED, counted, escaped
from perftrail.present.answer_sentence import revision_name
from perftrail.present.flame_graph import stored_flame_graph
from perftrail.present.html_page import Fact, Listing, Page, Section, Table, log_end, study_text
from perftrail.present.outdated import sample_notes
from perftrail.present.report.answer import claims_section, search_section, verdict
from perftrail.present.report.axes import scaling_and_growth_sections
from perftrail.present.report.comparisons import compare_subjects, compared_sections, comparison_section
from perftrail.present.report.curves import all_benchmarks_section, curve_sections, samples_section
from perftrail.present.report.data import read_report_data
from perftrail.present.report.history import history_sections
from perftrail.present.report.ranking import ranked_quantities, ranking_section
from perftrail.present.shared_sentences import first_named, sentence, shell_words
from perftrail.present.why import explanation_lines
from perftrail.results.measured import gc_disabled
from perftrail.sources.forge import commit_addresses
from perftrail.studyfile.reading import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from perftrail.charts.frame import Chart
    from perftrail.measure.failure_groups import FailureGroup
    from perftrail.measure.session import View
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.ports import Engine
    from perftrail.present.html_page import Verdict
    from perftrail.present.report.comparisons import SubjectComparison
    from perftrail.present.report.data import ReportData
    from perftrail.present.report.ranking import RankedQuantity


MOST_LOGS = 12
"""Maximum number of logs of failed builds."""

ALLOWED_CONTROLS = "\n\t"
"""Control characters that logs and study files contain and that are not escaped."""


MOST_EXPLAINED = 5
"""Maximum number of revisions in the section "Why"."""


NO_CALL_PATHS = (
    "An explanation of an older version has no flame graph, because its call paths were not stored. "
    "Store them with: perftrail explain"
)


def why_sections(data: ReportData) -> tuple[Section, ...]:
    """Return the functions that changed the cost of the explained revisions, the latest explanation first."""
    rows = [
        (revision_name(revision), line)
        for record in data.explanations
        if (revision := data.by_id.get(record.revision)) is not None
        for line in explanation_lines(record)
    ]
    shown = list(dict.fromkeys(name for name, _ in rows))[:MOST_EXPLAINED]
    graphs = [
        stored_flame_graph(record, data.by_id)
        for record in data.explanations
        if (revision := data.by_id.get(record.revision)) is not None and revision_name(revision) in shown
    ]
    files = tuple(graph for graph in graphs if graph is not None)
    if not shown:
        return ()
    table = Table(
        name="why",
        head=("revision", "function"),
        rows=tuple(row for row in rows if row[0] in shown),
        whole=True,
    )
    text = "Functions whose cost differs between a revision and the one before it, by perftrail explain."
    paragraphs = (text, NO_CALL_PATHS) if len(files) < len(graphs) else (text,)
    return (Section(name="why", title="Why", paragraphs=paragraphs, tables=(table,), files=files),)


def about_sections(data: ReportData) -> tuple[Section, ...]:
    """Return where and how the samples were measured, the failures, and how to repeat the report."""
    failures = _failures(data)
    return (_measured(data), *([failures] if failures is not None else []), _repeat(data))


def _measured(data: ReportData) -> Section:
    view = data.view
    if view.study.searched_source.kind == "samples":
        return _imported(data)
    study, policy = view.study, view.study.measure
    machine = view.store.machines().get(view.machine.id, view.machine)
    facts = tuple((escaped(name.replace("_", " ")), escaped(text)) for name, text in machine.facts.items())
    sandbox = "in a sandbox without network" if study.sandbox.always else "without a sandbox"
    least, most = policy.invocations.least, policy.invocations.most
    suites = [each for each in study.benchmarks.values() if isinstance(each, SuiteBenchmark)]
    is_resident = any(each.server for each in suites)
    resident = " or, in a suite, by a resident process," if is_resident else ""
    whose = "These samples are from" if data.measured else "This machine has no sample yet"
    required = f"{least}" if least == most else f"{least} to {most}"
    return Section(
        name="measured",
        title="What was measured, where and how",
        paragraphs=(
            f"{len(data.measured)} of {len(data.revisions)} revisions; builds and runs were {sandbox}. "
            f"Variants: {', '.join(study.variants)}. Benchmarks: {first_named(list(study.benchmarks), MOST_NAMES)}.",
            f"The study requires {required} invocations of each point in {policy.order} order, each in its own "
            f"process{resident} with a timeout of at most {_timeouts(data)}; warm-ups do not count. "
            "A value is the median; its interval contains the median of the samples' distribution "
            "(order statistics, no assumption on its shape).",
            *_flags(data),
            f"perftrail never combines samples of different machines. {whose}:",
        ),
        tables=(
            Table(name="machine", head=("machine", escaped(view.machine.id)), rows=facts),
            *_other_searches(data),
        ),
    )


MOST_NAMES = 8
"""Number of benchmarks that a paragraph names; further ones are counted."""


def _imported(data: ReportData) -> Section:
    """Return that the samples are imported, and their origin as their files state it."""
    view = data.view
    facts = tuple((escaped(name), escaped(text, longest=300)) for name, text in view.machine.facts.items())
    return Section(
        name="measured",
        title="Where the samples are from",
        paragraphs=(
            f"perftrail measured none of this: {len(data.measured)} revisions were imported from other tools. "
            f"Variants: {escaped(', '.join(view.study.variants))}. "
            f"Benchmarks: {escaped(', '.join(view.study.benchmarks), longest=300)}.",
            "Warm-ups, order and other load of the machine are unknown. A value is the "
            "median; its interval assumes that the values are independent. If a file has only a mean or a median, "
            "that value is flagged as a summary, counts as one value, and has no interval.",
            *_flags(data),
            "perftrail never combines samples of different machines, or imported samples with its own:",
        ),
        tables=(Table(name="machine", head=("samples", escaped(view.machine.id)), rows=facts),),
    )


def _timeouts(data: ReportData) -> str:
    longest = max(each.timeout_seconds for each in data.view.study.benchmarks.values())
    return format_duration(longest)


def _flags(data: ReportData) -> Iterator[str]:
    flags = Counter(flag for row in data.rows for flag in row.flags)
    if flags:
        medians = counted(sum(bool(row.values) for row in data.rows), "median")
        text = ", ".join(f"{escaped(flag)} ({count:,} of {medians})" for flag, count in flags.most_common())
        noise = (
            " Noisy samples are those during which other processes used the machine."
            if any(flag in NOISE for flag in flags)
            else ""
        )
        yield f"Flags on samples: {text}.{noise} The tables show which of them were used."


def _other_searches(data: ReportData) -> Iterator[Table]:
    if len(data.searches) > 1:
        yield Table(
            name="searches",
            title="Searches on this machine",
            head=("started", "metric", "from", "to", "answer"),
            rows=tuple(
                (
                    each.started[:16].replace("T", " "),
                    *(escaped(str(each.question[name])) for name in ("metric", "first", "last")),
                    "not ended"
                    if each.answer is None
                    else escaped(str(each.answer.get("verdict", "several metrics"))),
                )
                for each in data.searches
            ),
        )


def _failures(data: ReportData) -> Section | None:
    """Return each cause of failures once, with the end of its log, and the skipped revisions; `None` without any."""
    failure_groups, skipped_revisions = data.missing.failure_groups, data.missing.skipped_revisions
    if not failure_groups and not skipped_revisions:
        return None
    rows = tuple(
        (
            str(len(group.subjects)),
            group.failure.stage,
            escaped(group.line, longest=300),
            escaped(", ".join(str(subject) for subject in group.subjects[:6]), longest=200),
        )
        for group in failure_groups
    )
    skipped = tuple(
        (str(len(each.revisions)), "skipped", escaped(each.reason, longest=300), each.revisions[0].short)
        for each in skipped_revisions
    )
    table = Table(
        name="failures",
        head=("count", "stage", "log excerpt", "revisions"),
        rows=(*rows, *skipped),
        numbers=frozenset({0}),
    )
    logs = tuple(log for group in failure_groups[:MOST_LOGS] for log in _log(data, group))
    return Section(
        name="failures", title="Failed builds and skipped revisions", tables=(table,), listings=logs
    )


def _log(data: ReportData, group: FailureGroup) -> Iterator[Listing]:
    text = log_end(group.failure.log, data.results) or group.failure.message
    if text.strip():
        yield Listing(
            title=f"Log of {revision_name(group.subjects[0].revision)}: {escaped(group.line, longest=LONGEST_ESCAPED)}",
            text=escaped(text, longest=8_000, allowed=ALLOWED_CONTROLS),
            folded=True,
        )


def _id_and_label(revision: Revision) -> str:
    """Return a revision with its full id, and its label if that differs."""
    return escaped(" ".join(dict.fromkeys(each for each in (revision.id, revision.label) if each)))


def _repeat(data: ReportData) -> Section:
    study = data.view.study
    ends = dict.fromkeys(map(_id_and_label, (*data.revisions[:1], *data.revisions[-1:])))
    verb = "goes from" if len(ends) > 1 else "is"
    text = f" The history {verb} {' to '.join(ends)}." if ends else ""
    return Section(
        name="repeat",
        title="How to repeat it",
        paragraphs=(f"perftrail {__version__} wrote this report.{text}",),
        listings=(
            Listing(title="Commands", text="\n".join(_commands(data)), commands=True),
            Listing(
                title=f"Study file {PurePath(study.file).name}",
                text=escaped(study_text(study.file), longest=70_000, allowed=ALLOWED_CONTROLS),
                folded=True,
            ),
        ),
    )


def _commands(data: ReportData) -> Iterator[str]:
    """Yield the commands that measure the same again and write the report, each with its options."""
    study = data.view.study
    file = PurePath(study.file)
    name = PurePath(study.directory).name or "."
    path = name if file.name == FILE_NAME else f"{name}/{os.path.relpath(file, study.directory)}"
    if study.searched_source.kind != "samples":  # imported samples are not measured
        if data.search is not None:
            yield f"perftrail find{shell_words((path, *_search_options(data)))}"
        if data.comparisons and data.comparisons[0].repeat:
            yield data.comparisons[0].repeat
        elif data.search is None:
            yield f"perftrail run{shell_words((path, *_source_options(data.view.pins)))}"
    yield f"perftrail report{shell_words((path, '-o', 'report'))}"


def _search_options(data: ReportData) -> Iterator[str]:
    """Yield the options of the report's search that the study does not set."""
    assert data.search is not None
    question, policy = data.search.question, data.view.study.find
    metrics = [str(each["metric"]) for each in data.answers] or str(question["metric"]).split(", ")
    variant = str(question["variant"])
    if metrics != _metrics_of(data.view.study, variant):
        yield from (word for metric in metrics for word in ("--metric", metric))
    if variant != (policy.variant or next(iter(data.view.study.variants))):
        yield from ("--variant", variant)
    ends = [str(question[end]) for end in ("first", "last")]
    if ends != [each.id for each in (*data.revisions[:1], *data.revisions[-1:])]:
        yield from ("--range", "..".join(ends))
    for option, value, default in (
        ("--threshold", question.get("threshold"), policy.smallest_change),
        ("--confidence", question.get("confidence"), policy.confidence),
    ):
        if isinstance(value, float) and value != default:
            yield from (option, f"{value:g}")
    if question.get("thorough"):
        yield "--thorough"
    if question.get("prior_kinds") == [] and policy.prior:
        yield "--no-prior"
    yield from _source_options(stored_pins(question))


def _metrics_of(study: Study, variant: str) -> list[str]:
    """Return the metrics that `find` searches without `--metric`; none if the study does not resolve."""
    with suppress(TargetError):
        goal = resolve_goal(study, study.find.metric, variant)
        return [goal.text] if isinstance(goal, Working) else [target.text for target in goal]
    return []


def _source_options(pins: Pins) -> Iterator[str]:
    """Yield the options for a study with several sources."""
    if pins.at:
        yield from ("--along", pins.along)
        yield from (word for name, each in pins.at.items() for word in ("--at", f"{name}={each.id}"))


@gc_disabled()
def make_report(
    view: View,
    results: Path,
    *,
    engine: Engine | None = None,
    on_chart: Callable[[Chart], None] | None = None,
) -> Page:
    """Return the report of a study. Builds and measures nothing.

    `results` is the directory of quoted logs. `engine` computes change points; `on_chart` is called with each chart as
    soon as it is known. Raises `NoAnswer` for an empty store.
    """
    return report_of(read_report_data(view, results, engine=engine), on_chart=on_chart)


def report_of(
    data: ReportData,
    *,
    on_chart: Callable[[Chart], None] | None = None,
) -> Page:
    """Return the report of the data, like `make_report`."""
    if not data.rows and not data.searches:
        raise NoAnswer(NOTHING_MEASURED)
    histories = history_sections(data, on_chart=on_chart)
    compared, curves = compare_subjects(data), curve_sections(data)
    possible = [comparison_section(data, compared), all_benchmarks_section(data), samples_section(data)]
    others = [section for section in possible if section is not None]
    results = _by_question(data, histories, curves, others)
    ranked = ranked_quantities(data)
    if ranked:
        results.insert(0, ranking_section(ranked))
    # The first section has the chart of the answer, which is a search's if one has ended.
    start = 1 if data.answers else 0
    results[start:start] = compared_sections(data.comparisons)
    claims = claims_section(data)
    search = search_section(data)
    lead = results[0] if results else None
    return Page(
        question=escaped(data.view.study.title or "Performance results", longest=200),
        verdict=_answer(data, compared, ranked, claims),
        lead=lead,
        sections=(
            *why_sections(data),
            *([claims] if claims is not None else []),
            *([search] if search is not None else []),
            *results[1:],
            *scaling_and_growth_sections(data),
            *about_sections(data),
        ),
        written_by=f"Written by perftrail {__version__}",
        answer=data.search.answer if data.search is not None else None,
        rankings=tuple(each for quantity in ranked for each in quantity.rankings),
        commits=commit_addresses(data.view.study.searched_source, data.revisions),
    )


def _answer(
    data: ReportData,
    compared: Sequence[SubjectComparison],
    ranked: Sequence[RankedQuantity],
    claims: Section | None,
) -> Verdict:
    """Return the answer, with the result of the study's claims if there are any."""
    result = verdict(data, compared, ranked)
    notes = sample_notes(data.view, data.measured_here)
    result = replace(
        result, facts=(*result.facts, *(Fact(label="Samples", text=sentence(note)) for note in notes))
    )
    if claims is None:
        return result
    return replace(result, facts=(*result.facts, Fact(label="Claims", text=claims.paragraphs[0])))


def _by_question(
    data: ReportData, histories: tuple[Section, ...], curves: tuple[Section, ...], others: list[Section]
) -> list[Section]:
    """Order the sections: along the history after a search, else along an axis or as comparisons.

    The study's question comes first.
    """
    if data.search is not None:
        return [*histories, *curves, *others]
    several = len(data.variants) > 1
    if several or (curves and not any(section.answers for section in histories)):
        ordered = [*curves, *others, *histories]
    else:
        ordered = [*histories, *curves, *others]
    lead = next((section for section in ordered if section.answers), None)
    return ordered if lead is None else [lead, *(section for section in ordered if section is not lead)]
