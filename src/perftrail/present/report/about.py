"""Sections of a report on its origin: machine, methods, flags, failures, and how to repeat it."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.model.measurement import NOISE
from perftrail.model.quantity import format_duration
from perftrail.model.wording import LONGEST, escaped
from perftrail.present.page import Listing, Section, Table, log_end, study_text
from perftrail.present.report.words import revision_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.measure.troubles import Trouble
    from perftrail.model.subject import Revision
    from perftrail.present.report.gathered import Gathered

MOST_TROUBLES = 12
LINES = "\n\t"


def about_sections(gathered: Gathered) -> tuple[Section, ...]:
    """Return where and how the samples were measured, the failures, and how to repeat the report."""
    failures = _failures(gathered)
    return (_measured(gathered), *([failures] if failures is not None else []), _repeat(gathered))


def _measured(gathered: Gathered) -> Section:
    view = gathered.view
    if view.study.walked.kind == "samples":
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
            f"Each point was started {least} to {most} times in {policy.order} order, each invocation in its "
            f"own process with at most {_timeouts(gathered)}; warm-ups do not count. A value is the median, its "
            "interval contains the median of the samples' distribution (order statistics, no assumption on its shape).",
            *_flags(gathered),
            "Samples of different machines are never pooled; these are of one:",
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
            "median; its interval assumes that the values are independent. Where a file keeps only a mean or a median "
            "it is flagged as summary, counts as one value and has no interval.",
            *_flags(gathered),
            "Samples of different machines are never pooled, nor with those that perftrail takes:",
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
            " Others used the machine while they were taken." if any(flag in NOISE for flag in marks) else ""
        )
        yield f"Flags on samples: {text}.{what} The tables say what became of them."


def _other_searches(gathered: Gathered) -> Iterator[Table]:
    if len(gathered.searches) > 1:
        yield Table(
            name="searches",
            title="Searches on this machine",
            head=("begun", "metric", "from", "to", "answer"),
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
    troubles, left_out = gathered.lacking.troubles, gathered.lacking.left_out
    if not troubles and not left_out:
        return None
    rows = tuple(
        (
            str(len(trouble.subjects)),
            trouble.failure.stage,
            escaped(trouble.line, longest=300),
            escaped(", ".join(str(subject) for subject in trouble.subjects[:6]), longest=200),
        )
        for trouble in troubles
    )
    skipped = tuple(
        (str(len(each.revisions)), "skipped", escaped(each.reason, longest=300), each.revisions[0].short)
        for each in left_out
    )
    table = Table(
        name="failures",
        head=("subjects", "stage", "log excerpt", "which"),
        rows=(*rows, *skipped),
        numbers=frozenset({0}),
    )
    logs = tuple(log for trouble in troubles[:MOST_TROUBLES] for log in _log(gathered, trouble))
    return Section(name="failures", title="What cannot be checked out", tables=(table,), listings=logs)


def _log(gathered: Gathered, trouble: Trouble) -> Iterator[Listing]:
    text = log_end(trouble.failure.log, gathered.results) or trouble.failure.message
    if text.strip():
        yield Listing(
            title=f"Log of {revision_title(trouble.subjects[0].revision)}: {escaped(trouble.line, longest=LONGEST)}",
            text=escaped(text, longest=8_000, kept=LINES),
            folded=True,
        )


def _named(revision: Revision) -> str:
    """Return a revision with its full id, and its label if that differs."""
    return escaped(" ".join(dict.fromkeys(each for each in (revision.id, revision.label) if each)))


def _repeat(gathered: Gathered) -> Section:
    study = gathered.view.study
    name = shlex.quote(PurePath(study.directory).name or ".")
    ends = dict.fromkeys(map(_named, (*gathered.revisions[:1], *gathered.revisions[-1:])))
    verb = "goes from" if len(ends) > 1 else "is"
    text = f" The history {verb} {' to '.join(ends)}." if ends else ""
    command = f"perftrail {'find' if gathered.search is not None else 'run'} {name}\n"
    if study.walked.kind == "samples":
        command = ""  # nothing runs; the report is made of the files that there are
    return Section(
        name="repeat",
        title="How to repeat it",
        paragraphs=(f"Written by perftrail {__version__}.{text}",),
        listings=(
            Listing(
                title="Commands",
                text=f"{command}perftrail report -o report {name}",
            ),
            Listing(
                title=f"Study file {PurePath(study.file).name}",
                text=escaped(study_text(study.file), longest=70_000, kept=LINES),
                folded=True,
            ),
        ),
    )
