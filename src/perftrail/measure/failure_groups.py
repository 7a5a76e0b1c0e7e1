"""Group failures with a common cause: a `FailureGroup` is one cause with the range of revisions that it affects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.build import NO_DIRECTORY, NO_OUTPUT, Stage
from perftrail.model.source import MAIN
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.wording import listed
from perftrail.studyfile.reading import mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.build import Failure
    from perftrail.model.recipe import Build, Era, VariantBuild
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.studyfile.key_lines import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRange:
    """Consecutive tried revisions that all failed: `first` to `last`.

    `before` and `after` are the nearest other tried revisions, or `None`. The range really begins after `before` and
    ends before `after`.
    """

    first: Revision
    last: Revision
    before: Revision | None
    after: Revision | None

    @property
    def range(self) -> str:
        """The range as a study file writes it; open at the ends of the history."""
        return f"{self.first.short if self.before else ''}..{self.last.short if self.after else ''}"


class FailureGroupJson(TypedDict):
    """Subjects that fail for one reason."""

    stage: Stage
    line: Annotated[str, "the line of the log that names the reason"]
    message: str
    count: int
    revisions: list[str]
    oldest: Annotated[bool, "whether they are older than every other revision that was tried"]
    range: Annotated[str | None, "the failing part of the history"]
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """A failure that several subjects share: its stage, its message, and the first subject's log.

    `line` is the first line of the log excerpt of the first subject: untrusted text. `failed_range` is present if
    the subjects are neighbours and other tried revisions do not fail in this way.
    """

    failure: Failure
    line: str
    subjects: tuple[Subject, ...]
    failed_range: FailedRange | None = None

    @property
    def oldest(self) -> bool:
        """Whether the failing revisions are older than every other revision that was tried."""
        return self.failed_range is not None and self.failed_range.before is None

    @property
    def more(self) -> tuple[str, ...]:
        """The lines of the log excerpt after the first."""
        return tuple(self.failure.message.strip().splitlines()[1:])

    def as_json(self) -> FailureGroupJson:
        """Return the group as `check --json` prints it."""
        return {
            "stage": self.failure.stage,
            "line": self.line,
            "message": self.failure.message,
            "count": len(self.subjects),
            "revisions": list(dict.fromkeys(subject.revision.id for subject in self.subjects)),
            "oldest": self.oldest,
            "range": self.failed_range.range if self.failed_range else None,
            "log": self.failure.log,
        }


def group_failures(tried: Sequence[Subject], failures: Mapping[Subject, Failure]) -> tuple[FailureGroup, ...]:
    """Group equal failures, the group with the most subjects first."""
    groups: dict[tuple[str, str], list[Subject]] = {}
    for subject in tried:
        if subject in failures:
            failure = failures[subject]
            groups.setdefault((failure.stage, without_details(_first_excerpt_line(failure))), []).append(
                subject
            )
    revisions = tuple(dict.fromkeys(subject.revision for subject in tried))
    return tuple(
        FailureGroup(
            failure=failures[group[0]],
            line=_first_excerpt_line(failures[group[0]]),
            subjects=tuple(group),
            failed_range=_failed_range(revisions, {subject.revision for subject in group}),
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )


SAME_FAILURES = 3
"""After this number of failures for one reason, and without a success, perftrail stops."""


ErasOf = Callable[["Subject"], "Sequence[Era]"]
"""Returns the eras of a subject, in the order of the study file."""


def no_eras(_: Subject) -> Sequence[Era]:
    """Return no eras: the study has none."""
    return ()


def same_reason(
    failures: Mapping[Subject, Failure],
    study: Study,
    benchmark: str | None = None,
    *,
    eras_of: ErasOf = no_eras,
) -> str:
    """Return why all subjects fail, if they are enough and the reason is the same; else an empty text.

    The text names the lines of the study file. The reason must not name a revision: a message that does is about that
    revision. `benchmark` is the one that failed; `None` for builds.
    """
    reasons = {(each.stage, without_details(_first_excerpt_line(each))) for each in failures.values()}
    if len(failures) < SAME_FAILURES or len(reasons) > 1:
        return ""
    for subject, failure in failures.items():
        revision = subject.revision
        names = (revision.short, revision.label)
        if any(len(name) > 2 and name in failure.message for name in names):
            return ""
    subjects = list(failures)
    failure = failures[subjects[0]]
    log = f" (log: {failure.log})" if failure.log else ""
    failed = (
        f"{listed((subject.revision.short for subject in subjects[:SAME_FAILURES]), 'and')} all failed for one reason: "
        f"{failure.stage}: {_first_excerpt_line(failure)}{log}"
    )
    if failure.is_of_machine:
        return f"{failed}. This machine caused it: {MACHINE_REMEDY}"
    lines = (study_line(failures[each], study, benchmark, each, eras_of(each)) for each in subjects)
    return (
        f"{failed}. Correct {listed(dict.fromkeys(lines), 'and')}, then "
        "test it with: perftrail check --try 3; or continue with --keep-going"
    )


MACHINE_REMEDY = (
    "free disk space or memory, or check the network, then repeat the command; stored samples are kept. With "
    "memory_limit, too much memory of a benchmark is a failure of the revision"
)
"""What to do after a failure that this machine caused."""


def study_line(
    failure: Failure, study: Study, benchmark: str | None, subject: Subject, eras: Sequence[Era]
) -> str:
    """Return the line of the study file that a failure is about: ``perftrail.toml:7 (build.steps)``.

    `eras` are those of the subject.
    """
    found = mistake(study.file, _faulty_key(failure, study, benchmark, subject, eras), "")
    return f"{found.file}:{found.line} ({found.key})"


def _faulty_key(
    failure: Failure, study: Study, benchmark: str | None, subject: Subject, eras: Sequence[Era]
) -> KeyPath:
    """Return the key of a failure: in the benchmark, the source, or the last table that sets the subject's recipe."""
    if failure.stage == "checkout":
        return ("source", "location") if study.along == MAIN else ("sources", study.along, "location")
    if benchmark is None or failure.stage == "build":
        return _faulty_recipe_key(failure, study, subject, eras)
    known = study.benchmarks[benchmark]
    own: KeyPath = ("suite", known.suite) if isinstance(known, SuiteBenchmark) else ("benchmark", benchmark)
    is_of_suite = own[0] == "suite"
    if failure.stage == "metric" and not is_of_suite:
        return (*own, "metrics", failure.message.partition(":")[0])
    if failure.stage in _LIMITS or failure.stage == "fixture":
        limit = _LIMITS.get(failure.stage)
        return (*own, limit) if limit else _faulty_fixture_key(failure.message, benchmark)
    prefix = study.variants[subject.variant].run.prefix
    if failure.stage == "start" and prefix and prefix[0] in failure.message:
        return ("variants", subject.variant, "run", "prefix")
    is_link = failure.stage == "link" and study.benchmarks[benchmark].build
    return (*own, "kind" if is_of_suite else "build" if is_link else "command")


def _faulty_fixture_key(message: str, benchmark: str) -> KeyPath:
    """Return the key of a fixture's failure by the start of its message: ``setup:``, ``service db ended:``."""
    words = message.partition(":")[0].split()
    if words[:1] == ["service"] and len(words) > 1:
        key = "setup" if message.startswith(f"service {words[1]}: setup: ") else "command"
        return ("service", words[1], key)
    return ("benchmark", benchmark, words[0]) if len(words) == 1 else ("benchmark", benchmark, "command")


_LIMITS: Mapping[Stage, str] = {"timeout": "timeout", "memory": "memory_limit"}
"""The keys of the limits that a benchmark can exceed."""


def _faulty_recipe_key(failure: Failure, study: Study, subject: Subject, eras: Sequence[Era]) -> KeyPath:
    """Return the key of the last table that sets the failed step: an era overrides `[build]`, a variant both."""
    variant = study.variants[subject.variant]
    tables: list[tuple[KeyPath, Build | Era | VariantBuild]] = [(("build",), study.build)]
    for number, era in enumerate(study.build.when):
        if any(era is each for each in eras):
            tables.append((("build", "when", number), era))
    if variant.rebuild:
        tables.append((("variants", subject.variant, "build"), variant.build))
    key = _recipe_field(failure.message, [table for _, table in tables])
    setting = [(*path, key) for path, table in tables if _sets(table, key, failure.message)]
    return setting[-1] if setting else ("build", key)


def _recipe_field(message: str, tables: Sequence[Build | Era | VariantBuild]) -> str:
    """Return the field of a recipe that a failed build is about, by the start of its message."""
    if any(message.startswith(f"{file}: ") for table in tables for file in table.patch):
        return "patch"
    starts = {NO_OUTPUT: "outputs", NO_DIRECTORY: "directory", "overlay to ": "overlay"}
    return next((field for start, field in starts.items() if message.startswith(start)), "steps")


def _sets(table: Build | Era | VariantBuild, key: str, message: str) -> bool:
    """Whether a table sets a field. Patches and overlays accumulate, so the message must name one of the table's."""
    value = getattr(table, key)
    return any(name in message for name in value) if key in ("overlay", "patch") else value is not None


def without_details(line: str) -> str:
    """Return a line without the parts that differ between equal failures: paths, numbers, ids.

    >>> without_details("/tmp/b/0f3a9c1e77/tree/src/a.c:12:5: error: 'x' undeclared")
    "a.c:#:#: error: 'x' undeclared"
    """
    for pattern, instead in _DETAILS:
        line = pattern.sub(instead, line)
    return line.strip()


_DETAILS = (
    # What the output of a program contains instead of a metric.
    (re.compile(r"; its (?:only|last) line is .*"), ""),
    # Equal failures of several builds differ in paths, in the names of temporary files of compilers, in content
    # names, and in counts.
    (re.compile(r"(?:[\w.@+-]*/)+([\w.@+-]+)"), r"\1"),
    (re.compile(r"\bcc\w{6}\.(?=[os]\b)"), "#."),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b"), "#"),
    (re.compile(r"\d+"), "#"),
    (re.compile(r"\s+"), " "),
)


def _failed_range(tried: Sequence[Revision], failing: set[Revision]) -> FailedRange | None:
    """Return the range that these revisions form, or `None` if they are all revisions or not neighbours."""
    indexes = [index for index, revision in enumerate(tried) if revision in failing]
    first, last = indexes[0], indexes[-1]
    if len(indexes) == len(tried) or len(indexes) != last - first + 1:
        return None
    return FailedRange(
        first=tried[first],
        last=tried[last],
        before=tried[first - 1] if first else None,
        after=tried[last + 1] if last + 1 < len(tried) else None,
    )


def error_text(line: str) -> str:
    """Return the error message in a line of a log, without its position in a file.

    >>> error_text("/usr/bin/ld: /tmp/ccexOEQC.o:(.bss+0x0): multiple definition of `x'; y.o: first defined here")
    "multiple definition of `x'"
    """
    found = _ERROR_TEXT.search(line)
    return (found[1] or found["text"]).strip() if found else line


_ERROR_TEXT = re.compile(
    r"((?:multiple definition of|undefined reference to) [^;]*)|(?:^|: )(?:fatal )?error: (?P<text>.*)"
)


def _first_excerpt_line(failure: Failure) -> str:
    """Return the first line of the log excerpt; the most relevant line comes first."""
    lines: Iterable[str] = failure.message.strip().splitlines()
    return next(iter(lines), f"failed at {failure.stage}")
