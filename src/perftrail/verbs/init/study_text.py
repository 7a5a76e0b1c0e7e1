"""The text of a first study as TOML, from its draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.study import FindPolicy
from perftrail.model.wording import quoted
from perftrail.studyfile.writing import toml
from perftrail.verbs.init.draft import SUITE, BenchmarkDraft, SourceDraft, StudyDraft

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perftrail.verbs.init.draft import BuildDraft, SuiteDraft


NO_RANGE = "without a range, perftrail uses the whole history; to use a part, for example:"

_NEWEST_NAME = {"git": "HEAD", "fossil": "trunk"}
"""The usual name of the newest revision."""

_NOTHING = BenchmarkDraft(
    name="start",
    command="test -e {build}",
    why="a placeholder that runs anywhere: replace it by the command whose speed matters",
    placeholder=True,
)
"""The benchmark if no build system was found."""


def study_text(draft: StudyDraft) -> str:
    """Return the text of a study file; keys that perftrail cannot fill in become comments."""
    benchmark = draft.build.benchmark if draft.build else _NOTHING
    suite = draft.build.suite if draft.build else None
    parts = (
        _head(draft),
        _source(draft.source),
        _build(draft),
        _benchmark(benchmark) if suite is None else _suite(suite),
        _measure(),
        _find(draft),
    )
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _head(draft: StudyDraft) -> Iterable[str]:
    return (
        f"# A first study of {quoted(draft.name)}, written by perftrail init. You may change every line.",
        "# `perftrail check` validates it, and `perftrail check --try 5` tries to build five revisions.",
        "",
        "[study]",
        f"title = {toml(f'Which change made {draft.name} faster or slower?')}",
    )


def _source(source: SourceDraft) -> Iterable[str]:
    yield "[source]"
    yield f"kind = {toml(source.kind)}"
    yield "# relative to this file; perftrail fetches an address like https://… once"
    yield f"location = {toml(source.location)}"
    for trouble in source.troubles:
        yield f"# {trouble}"
    if source.range:
        yield f"# {source.range_why}"
        yield f"range = {toml(source.range)}"
    elif source.kind != "directory":
        yield f"# {source.range_why or NO_RANGE}"
        yield f'# range = "v1.0..{_NEWEST_NAME[source.kind]}"'
    if source.kind != "directory":
        yield '# only commits and merges of the main branch; "all" also includes the commits of merged branches'
        yield 'walk = "first-parent"'


def _build(draft: StudyDraft) -> Iterable[str]:
    yield "[build]"
    build = draft.build
    if build is None:
        yield "# perftrail found no build system: write the build commands here, one per line"
        yield '# steps = ["make -j{cpus}"]'
        return
    yield f"# build system: {build.system}, because of {quoted(build.manifest)}; {{cpus}} is the number of CPUs"
    yield from (f"# {hint}" for hint in build.hints)
    if draft.directory:
        yield "# directory of the steps, from the revision's root"
        yield f"directory = {toml(draft.directory)}"
    if build.steps:
        yield "steps = ["
        for step in build.steps:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    else:
        yield "# nothing to build: the files are used as they are"
        yield "steps = []"
    if build.env:
        yield "# the build's environment contains only these variables and a few defaults"
        yield f"env = {_table(build.env.items())}"
    yield "# perftrail kills a build that takes longer, and records it as failed"
    yield 'timeout = "30min"'
    yield from _outputs(build)
    if build.unaffected_by and draft.source.kind in ("git", "fossil"):
        yield f"# {build.unaffected_why}"
        yield f"unaffected_by = [{', '.join(map(toml, build.unaffected_by))}]"


def _outputs(build: BuildDraft) -> Iterable[str]:
    if build.outputs:
        yield f"# the files that the benchmark uses: {build.outputs_why}"
        yield f"outputs = [{', '.join(toml(path) for path in dict.fromkeys(build.outputs))}]"
    else:
        yield "# the files that the benchmark uses; revisions with equal files are measured once"
        yield '# outputs = ["path/of/a/program"]'


def _benchmark(benchmark: BenchmarkDraft) -> Iterable[str]:
    yield f"[benchmark.{benchmark.name}]"
    if benchmark.build:
        yield "build = ["
        for step in benchmark.build:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    yield f"# {benchmark.why}"
    yield f"command = {toml(benchmark.command)}"
    if benchmark.directory:
        yield "# where the command runs, from the revision's root; without this key, in an empty directory"
        yield f"directory = {toml(benchmark.directory)}"
    if benchmark.needs_shell:
        yield "# a shell runs the command, because it has several parts"
        yield "shell = true"
    if benchmark.env:
        yield "# environment variables with which the command finds the built files"
        yield f"env = {_table(benchmark.env.items())}"
    yield "# perftrail kills an invocation that takes longer, and records it as failed"
    yield 'timeout = "5min"'
    yield "# a parameter: perftrail replaces {size} in the command by each value"
    yield "# parameters = { size = [1000, 10000] }"
    if benchmark.printed:
        metrics = "a metric" if len(benchmark.printed) == 1 else "metrics"
        yield f"# perftrail measures wall, cpu and peak_memory of every benchmark; this benchmark also prints {metrics}"
    else:
        yield "# perftrail measures wall, cpu and peak_memory of every benchmark; to read what one prints:"
        yield '# metrics.rate = { pattern = \'rate=([0-9.]+)\', unit = "1/s", better = "higher" }'
    for name, printed in benchmark.printed.items():
        keys = {
            "pattern": printed.pattern,
            "reads": printed.reads,
            "item": printed.item,
            "unit": printed.unit,
            "pick": printed.pick,
        }
        yield f"metrics.{name} = {_table((key, value) for key, value in keys.items() if value)}"


def _suite(suite: SuiteDraft) -> Iterable[str]:
    yield f"[suite.{SUITE}]"
    yield f"# {suite.why}"
    yield f"kind = {toml(suite.kind)}"
    if suite.program:
        yield f"program = [{', '.join(map(toml, suite.program))}]"
    if suite.path:
        yield f"path = {toml(suite.path)}"
    if suite.env:
        yield "# environment variables with which the suite finds the built files"
        yield f"env = {_table(suite.env.items())}"
    yield "# a regular expression chooses some of its benchmarks, as --bench does on the command line"
    yield '# select = "parse"'


def _measure() -> Iterable[str]:
    return (
        "[measure]",
        "# invocations of each revision: the minimum, and the maximum while its interval is too wide",
        'invocations = "5..30"',
        "# perftrail flags noisy samples; to wait for a quiet machine first, at most a minute:",
        '# quiet = "wait 60s"',
    )


def _find(draft: StudyDraft) -> Iterable[str]:
    usual = FindPolicy()
    return (
        "[find]",
        *_metric(draft),
        "# the smallest change worth finding, 0.02 is 2 %; smaller changes take more invocations",
        f"threshold = {usual.smallest_change}",
        "# the probability that the answer is right",
        f"confidence = {usual.confidence}",
        "# a search stops after this time, with a partial answer; the next search continues",
        '# budget = "1h"',
    )


def _metric(draft: StudyDraft) -> Iterable[str]:
    if not draft.metric:
        return (
            "# the metrics to search; all benchmarks of the suite together without this key",
            '# metric = "NAME.time"',
        )
    return (
        "# the metric to search: wall, cpu, peak_memory, or one that the benchmark prints",
        f"# {draft.metric}: {draft.metric_reason}",
        f"metric = {toml(draft.metric)}",
    )


def _table(items: Iterable[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{name} = {toml(value)}" for name, value in items) + " }"
