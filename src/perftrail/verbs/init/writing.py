"""Write a first study as TOML: each choice with one comment on its reason and possible changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.study import FindPolicy
from perftrail.model.wording import quoted
from perftrail.studyfile.writing import toml
from perftrail.verbs.init.draft import Trial
from perftrail.verbs.init.ranges import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.verbs.init.draft import Building, Draft, History, Step

_NEWEST = {"git": "HEAD", "fossil": "trunk"}
"""The usual name of the newest revision."""

_NOTHING = Trial(
    name="start",
    command="test -e {build}",
    why="a placeholder that runs anywhere: replace it by the command whose speed matters",
    placeholder=True,
)
"""The benchmark if no build system was found."""


def write(draft: Draft) -> str:
    """Return the text of a study file; choices without a finding become comments."""
    trial = draft.building.trial if draft.building else _NOTHING
    parts = (
        _head(draft),
        _source(draft.history),
        _build(draft),
        _benchmark(trial),
        _measure(),
        _find(trial),
    )
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _head(draft: Draft) -> Iterable[str]:
    return (
        f"# A first study of {quoted(draft.name)}, as perftrail init found it. You may change every line;",
        "# `perftrail check` shows whether it is valid, `perftrail check --try 5` whether it builds.",
        "",
        "[study]",
        f"title = {toml(f'Which change made {draft.name} faster or slower?')}",
    )


def _source(history: History) -> Iterable[str]:
    yield "[source]"
    yield f"kind = {toml(history.kind)}"
    yield "# relative to this file; an address like https://… is fetched once"
    yield f"location = {toml(history.location)}"
    for trouble in history.troubles:
        yield f"# {trouble}"
    if history.range:
        yield f"# {history.range_why}"
        yield f"range = {toml(history.range)}"
    elif history.kind != "directory":
        yield f"# {history.range_why or WHOLE}"
        yield f'# range = "v1.0..{_NEWEST[history.kind]}"'
    if history.kind != "directory":
        yield '# only merges into the main branch; "all" also includes the commits of branches'
        yield 'walk = "first-parent"'


def _build(draft: Draft) -> Iterable[str]:
    yield "[build]"
    building = draft.building
    if building is None:
        yield "# no build system was found: write the build commands here, one per line"
        yield '# steps = ["make -j{cpus}"]'
        return
    yield f"# build system: {building.system}, found {quoted(building.manifest)}; {{cpus}} is the number of CPUs"
    yield from (f"# {hint}" for hint in building.hints)
    if draft.directory:
        yield "# where the steps run, from the revision's root"
        yield f"directory = {toml(draft.directory)}"
    if building.steps:
        yield "steps = ["
        for step in building.steps:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    else:
        yield "# nothing to build: the files are used as they are"
        yield "steps = []"
    if building.env:
        yield "# the build's environment contains only these variables and a few defaults"
        yield f"env = {_table(building.env.items())}"
    yield "# a build that takes longer is killed, and recorded as failed"
    yield 'timeout = "30min"'
    yield from _outputs(building)


def _outputs(building: Building) -> Iterable[str]:
    if building.outputs:
        yield f"# what the benchmark uses: {building.outputs_why}"
        yield f"outputs = [{', '.join(toml(path) for path in dict.fromkeys(building.outputs))}]"
    else:
        yield "# name the files that the benchmark uses; revisions with equal files are measured once"
        yield '# outputs = ["path/of/a/program"]'
    yield from _relink(building.relink)
    if building.never_linked:
        yield f"# nothing to relink: {building.never_linked}"


def _relink(steps: Sequence[Step]) -> Iterable[str]:
    """Write relink lines as comments: they cost seconds for each layout, and may need a linker."""
    if not steps:
        return
    yield "# moving code in memory can change its speed without a change of its source; uncomment these lines to"
    yield "# link it in another order for each {layout}, and verdicts are about the source (docs/how-to/layout-noise)"
    yield "# relink = ["
    for step in steps:
        yield f"#     # {step.why}"
        yield f"#     {toml(step.line)},"
    yield "# ]"


def _benchmark(trial: Trial) -> Iterable[str]:
    yield f"[benchmark.{trial.name}]"
    if trial.build:
        yield "build = ["
        for step in trial.build:
            yield f"    # {step.why}"
            yield f"    {toml(step.line)},"
        yield "]"
    yield from _relink(trial.relink)
    yield f"# {trial.why}"
    yield f"command = {toml(trial.command)}"
    if trial.env:
        yield "# variables with which it finds the built files"
        yield f"env = {_table(trial.env.items())}"
    yield "# a start that takes longer is killed, and recorded as failed"
    yield 'timeout = "5min"'
    yield "# a parameter; {size} in command is replaced by its value"
    yield "# parameters = { size = [1000, 10000] }"
    if trial.printed:
        yield "# perftrail measures wall and peak_memory of every benchmark; this one also prints a metric"
    else:
        yield "# perftrail measures wall and peak_memory of every benchmark; to read a metric that it prints:"
        yield '# metrics.rate = { pattern = \'rate=([0-9.]+)\', unit = "1/s", better = "higher" }'
    for name, printed in trial.printed.items():
        yield f"metrics.{name} = {{ pattern = {toml(printed.pattern)}, unit = {toml(printed.unit)} }}"


def _measure() -> Iterable[str]:
    return (
        "[measure]",
        "# invocations of each revision: at least, and at most while its interval is too wide",
        'invocations = "5..30"',
        "# noisy samples are flagged; to wait for a quiet machine first, at most a minute:",
        '# quiet = "wait 60s"',
    )


def _find(trial: Trial) -> Iterable[str]:
    metric = next(iter(trial.printed), "wall")
    usual = FindPolicy()
    return (
        "[find]",
        "# the metric to search: wall, cpu, peak_memory, or one that the benchmark prints",
        f"metric = {toml(metric)}",
        "# the smallest change worth finding; smaller ones take more invocations",
        f"threshold = {usual.threshold}",
        "# the probability that the answer is right",
        f"confidence = {usual.confidence}",
        "# a search that takes longer ends with a partial answer",
        '# budget = "1h"',
    )


def _table(items: Iterable[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{name} = {toml(value)}" for name, value in items) + " }"
