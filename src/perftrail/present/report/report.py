"""The report of a study: the answer first, then its sections by question, and the origin of every number."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.errors import NOTHING_MEASURED, NoAnswer
from perftrail.model.measurement import NOISE
from perftrail.model.source import stored_pins
from perftrail.model.target import TargetError, Working, resolve_goal
from perftrail.model.wording import LONGEST_ESCAPED, escaped, format_duration
from perftrail.present.answer_sentence import revision_name
from perftrail.present.html_page import Fact, Listing, Page, Section, Table, log_end, study_text
from perftrail.present.report.answer import claims_section, search_section, verdict
from perftrail.present.report.comparisons import compare_subjects, compared_sections, comparison_section
from perftrail.present.report.curves import all_benchmarks_section, curve_sections, samples_section
from perftrail.present.report.gathered import gather
from perftrail.present.report.history import history_sections
from perftrail.present.shared_sentences import after, sentence
from perftrail.present.validity import sample_notes
from perftrail.results.measured import gc_disabled
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
    from perftrail.present.report.comparisons import SideBySide
    from perftrail.present.report.gathered import Gathered


MOST_TROUBLES = 12
LINES = "\n\t"


def about_sections(gathered: Gathered) -> tuple[Section, ...]:
    """Return where and how the samples were measured, the failures, and how to repeat the report."""
    failures = _failures(gathered)
    return (_measured(gathered), *([failures] if failures is not None else []), _repeat(gathered))


def _measured(gathered: Gathered) -> Section:
    view = gathered.view
    if view.study.searched_source.kind == "samples":
        return _imported(gathered)
    study, policy = view.study, view.study.measure
    known = view.store.machines().get(view.machine.id, view.machine)
    facts = tuple((escaped(name.replace("_", " ")), escaped(text)) for name, text in known.facts.items())
    sandbox = "in a sandbox without network" if study.sandbox.always else "without a sandbox"
    least, most = policy.invocations.least, policy.invocations.most
    return Section(
        name="measured",
        title="What was measured, where and how",
        paragraphs=(
            f"{len(gathered.measured)} of {len(gathered.revisions)} revisions; builds and runs were {sandbox}. "
            f"Variants: {', '.join(study.variants)}. Benchmarks: {', '.join(study.benchmarks)}.",
            f"The study asks for {least} to {most} invocations of each point in {policy.order} order, each in its own "
            f"process with a timeout of at most {_timeouts(gathered)}; warm-ups do not count. A value is the median; "
            "its interval contains the median of the samples' distribution "
            "(order statistics, no assumption on its shape).",
            *_flags(gathered),
            "perftrail never combines samples of different machines. These samples are from:",
        ),
        tables=(
            Table(name="machine", head=("machine", escaped(view.machine.id)), rows=facts),
            *_other_searches(gathered),
        ),
    )


def _imported(gathered: Gathered) -> Section:
    """Return that the samples are imported, and their origin as their files state it."""
    view = gathered.view
    facts = tuple((escaped(name), escaped(text, longest=300)) for name, text in view.machine.facts.items())
    return Section(
        name="measured",
        title="Where the samples are from",
        paragraphs=(
            f"perftrail measured none of this: {len(gathered.measured)} revisions were imported from other tools. "
            f"Variants: {escaped(', '.join(view.study.variants))}. "
            f"Benchmarks: {escaped(', '.join(view.study.benchmarks), longest=300)}.",
            "Warm-ups, order and other load of the machine are unknown. A value is the "
            "median; its interval assumes that the values are independent. If a file has only a mean or a median, "
            "that value is flagged as a summary, counts as one value, and has no interval.",
            *_flags(gathered),
            "perftrail never combines samples of different machines, or imported samples with its own:",
        ),
        tables=(Table(name="machine", head=("samples", escaped(view.machine.id)), rows=facts),),
    )


def _timeouts(gathered: Gathered) -> str:
    longest = max(each.timeout_seconds for each in gathered.view.study.benchmarks.values())
    return format_duration(longest)


def _flags(gathered: Gathered) -> Iterator[str]:
    marks = Counter(flag for row in gathered.rows for flag in row.flags)
    if marks:
        text = ", ".join(f"{escaped(flag)} ({count} values)" for flag, count in marks.most_common())
        what = (
            " Other processes used the machine during these samples."
            if any(flag in NOISE for flag in marks)
            else ""
        )
        yield f"Flags on samples: {text}.{what} The tables show whether they were used."


def _other_searches(gathered: Gathered) -> Iterator[Table]:
    if len(gathered.searches) > 1:
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
                for each in gathered.searches
            ),
        )


def _failures(gathered: Gathered) -> Section | None:
    """Return each cause of failures once, with the end of its log, and the skipped revisions; `None` without any."""
    failure_groups, skipped_revisions = gathered.missing.failure_groups, gathered.missing.skipped_revisions
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
    logs = tuple(log for group in failure_groups[:MOST_TROUBLES] for log in _log(gathered, group))
    return Section(
        name="failures", title="Failed builds and skipped revisions", tables=(table,), listings=logs
    )


def _log(gathered: Gathered, group: FailureGroup) -> Iterator[Listing]:
    text = log_end(group.failure.log, gathered.results) or group.failure.message
    if text.strip():
        yield Listing(
            title=f"Log of {revision_name(group.subjects[0].revision)}: {escaped(group.line, longest=LONGEST_ESCAPED)}",
            text=escaped(text, longest=8_000, allowed=LINES),
            folded=True,
        )


def _named(revision: Revision) -> str:
    """Return a revision with its full id, and its label if that differs."""
    return escaped(" ".join(dict.fromkeys(each for each in (revision.id, revision.label) if each)))


def _repeat(gathered: Gathered) -> Section:
    study = gathered.view.study
    ends = dict.fromkeys(map(_named, (*gathered.revisions[:1], *gathered.revisions[-1:])))
    verb = "goes from" if len(ends) > 1 else "is"
    text = f" The history {verb} {' to '.join(ends)}." if ends else ""
    return Section(
        name="repeat",
        title="How to repeat it",
        paragraphs=(f"Written by perftrail {__version__}.{text}",),
        listings=(
            Listing(title="Commands", text="\n".join(_commands(gathered)), commands=True),
            Listing(
                title=f"Study file {PurePath(study.file).name}",
                text=escaped(study_text(study.file), longest=70_000, allowed=LINES),
                folded=True,
            ),
        ),
    )


def _commands(gathered: Gathered) -> Iterator[str]:
    """Yield the commands that measure the same again and write the report, each with its options."""
    study = gathered.view.study
    file = PurePath(study.file)
    name = PurePath(study.directory).name or "."
    path = name if file.name == FILE_NAME else f"{name}/{file.name}"
    if study.searched_source.kind != "samples":  # imported samples are not measured
        if gathered.search is not None:
            yield f"perftrail find{after((path, *_search_options(gathered)))}"
        if gathered.comparisons and gathered.comparisons[0].repeat:
            yield gathered.comparisons[0].repeat
        elif gathered.search is None:
            yield f"perftrail run{after((path, *_source_options(gathered.view.pins)))}"
    yield f"perftrail report{after((path, '-o', 'report'))}"


def _search_options(gathered: Gathered) -> Iterator[str]:
    """Yield the options of the report's search that the study does not set."""
    assert gathered.search is not None
    question, policy = gathered.search.question, gathered.view.study.find
    texts = [str(each["metric"]) for each in gathered.answers] or str(question["metric"]).split(", ")
    variant = str(question["variant"])
    if texts != _metrics_of(gathered.view.study, variant):
        yield from (word for text in texts for word in ("--metric", text))
    if variant != (policy.variant or next(iter(gathered.view.study.variants))):
        yield from ("--variant", variant)
    ends = [str(question[end]) for end in ("first", "last")]
    if ends != [each.id for each in (*gathered.revisions[:1], *gathered.revisions[-1:])]:
        yield from ("--range", "..".join(ends))
    for option, value, usual in (
        ("--threshold", question.get("threshold"), policy.smallest_change),
        ("--confidence", question.get("confidence"), policy.confidence),
    ):
        if isinstance(value, float) and value != usual:
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
    findings: Callable[[Gathered], tuple[Section, ...]] = lambda _: (),
    engine: Engine | None = None,
    on_chart: Callable[[Chart], None] | None = None,
) -> Page:
    """Return the report of a study. Builds and measures nothing.

    `results` is the directory of quoted logs, `findings` returns sections after the charts. `engine` computes change
    points; `on_chart` is called with each chart as soon as it is known. Raises `NoAnswer` for an empty store.
    """
    return report_of(gather(view, results, engine=engine), findings=findings, on_chart=on_chart)


def report_of(
    gathered: Gathered,
    *,
    findings: Callable[[Gathered], tuple[Section, ...]] = lambda _: (),
    on_chart: Callable[[Chart], None] | None = None,
) -> Page:
    """Return the report of gathered data, like `make_report`."""
    if not gathered.rows and not gathered.searches:
        raise NoAnswer(NOTHING_MEASURED)
    histories = history_sections(gathered, on_chart=on_chart)
    compared, curves = compare_subjects(gathered), curve_sections(gathered)
    others = [
        comparison_section(gathered, compared),
        all_benchmarks_section(gathered),
        samples_section(gathered),
    ]
    drawn = [section for section in others if section is not None]
    first = [*compared_sections(gathered.comparisons), *_by_question(gathered, histories, curves, drawn)]
    claims = claims_section(gathered)
    search = search_section(gathered)
    lead = first[0] if first else None
    return Page(
        question=escaped(gathered.view.study.title or "Performance results", longest=200),
        verdict=_answer(gathered, compared, claims),
        lead=lead,
        sections=(
            *([claims] if claims is not None else []),
            *([search] if search is not None else []),
            *first[1:],
            *findings(gathered),
            *about_sections(gathered),
        ),
        made_by=f"Made by perftrail {__version__}",
        answer=gathered.search.answer if gathered.search is not None else None,
    )


def _answer(gathered: Gathered, compared: Sequence[SideBySide], claims: Section | None) -> Verdict:
    """Return the answer, with the result of the study's claims if there are any."""
    result = verdict(gathered, compared)
    notes = sample_notes(gathered.view, gathered.measured_here)
    result = replace(
        result, facts=(*result.facts, *(Fact(label="Samples", text=sentence(note)) for note in notes))
    )
    if claims is None:
        return result
    return replace(result, facts=(*result.facts, Fact(label="Claims", text=claims.paragraphs[0])))


def _by_question(
    gathered: Gathered, histories: tuple[Section, ...], curves: tuple[Section, ...], drawn: list[Section]
) -> list[Section]:
    """Order the sections: along the history after a search, else along an axis or as comparisons.

    The study's question comes first.
    """
    if gathered.search is not None:
        return [*histories, *curves, *drawn]
    several = len(gathered.variants) > 1
    if several or (curves and not any(section.answers for section in histories)):
        ordered = [*curves, *drawn, *histories]
    else:
        ordered = [*histories, *curves, *drawn]
    lead = next((section for section in ordered if section.answers), None)
    return ordered if lead is None else [lead, *(section for section in ordered if section is not lead)]
