"""Noise that no model assumes, with all of `find`: `python -m benchmarks.search noise`.

Each row is a kind of noise and a truth. Histories, builds and the machine are simulated, with a simulated clock;
everything else is the real code: source, builds, store and search as in `perftrail find`. A claim is every answer
except "unclear". It is right if all named revisions contain the changes, or if it is "none" and there is no change.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.search.goals import interval
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.local_engine import LocalEngine
from perftrail.measure.invocation_runner import InvocationRunner
from perftrail.measure.session import Session
from perftrail.measure.subjects import SubjectBuilder
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.measurement import Machine, Measurement
from perftrail.model.recipe import Build, Variant
from perftrail.model.source import Source
from perftrail.model.study import Invocations, MeasurePolicy, Study
from perftrail.model.subject import Revision
from perftrail.model.target import resolve
from perftrail.search import Answer, Budget, Change, Kind
from tests.fakes.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.measure.subjects import PlannedInvocation
    from perftrail.model.build import Recipe
    from perftrail.model.json_data import Json
    from perftrail.model.subject import Merge, Subject

BUILD_SECONDS = 10.0
LEVEL_SECONDS = 1.0

SHARED = -1
"""The key of the layout that all pinned builds share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A truth and its noise; sizes are relative, times are in samples.

    `change` is the effect of each change, alternately up and down, and `changes` their number. With `between`, each
    change has a random size between two multiples of the threshold: a random direction with `both`, else all make the
    program faster. With `plateau`, two of them are at 30 and 70 % of the revisions, and the last build is equal to the
    first. With `artefacts`, the builds before the change are equal, and so are those from it on. A quarter of the
    revisions has a small change of standard deviation `small`, and each revision costs `creep` more. A search may use
    `runs` for each change; 0 is no limit. A build takes `build_seconds`. `sigma` is the scatter of
    samples, `tau` that of layouts. With `pinned`, builds of one layout share it, except for this scatter. `bursts`
    is the share of samples in bursts of 3 to 9 by other processes, and `burst_size` their cost. `jump` moves the
    machine's level once, `ramp` slowly, `walk` at every sample. `tails` is the number of degrees of freedom of t, 0
    for normal. `step` is the resolution of the metric, in units of the level. With `slow_share`, that share of the
    new code's invocations takes `slow_size` longer instead of all of them. `shared_core` is the share of time in
    which another process uses the other thread of the core, which costs `shared_size`. `warm_up` is the additional
    cost of the first samples of a build, which fades. With `interpreted`, an interpreter runs the program.
    """

    name: str
    change: float = 0.1
    changes: int = 1
    between: tuple[float, float] | None = None
    both: bool = False
    plateau: bool = False
    artefacts: bool = False
    small: float = 0.0
    creep: float = 0.0
    runs: int = 0
    build_seconds: float = BUILD_SECONDS
    threshold: float = 0.05
    thorough: bool = False
    revisions: int = 200
    unbuildable: float = 0.0
    sigma: float = 0.03
    tau: float = 0.0
    relinks: bool = False
    pinned: float = 0.0
    bursts: float = 0.0
    burst_size: float = 0.0
    jump: float = 0.0
    ramp: float = 0.0
    walk: float = 0.0
    tails: int = 0
    step: float = 0.0
    slow_share: float = 0.0
    slow_size: float = 0.0
    shared_core: float = 0.0
    shared_size: float = 0.0
    warm_up: float = 0.0
    busy: bool = False
    interpreted: bool = False


SEVERAL: Mapping[str, Any] = {"revisions": 120, "sigma": 0.02, "runs": 200, "build_seconds": 0.1}

ROWS = (
    Row(
        name="1 busy machine, runs of a neighbour up to 60 % slower",
        change=-0.37,
        sigma=0.04,
        busy=True,
        revisions=330,
    ),
    Row(name="1 busy machine, no change", change=0.0, sigma=0.04, busy=True, revisions=330),
    Row(
        name="2 a plateau of +40 %, ends equal, thorough",
        change=0.4,
        plateau=True,
        thorough=True,
        revisions=100,
    ),
    Row(name="3 layouts of 1.5 %, no change, σ 0.3 %", change=0.0, sigma=0.003, tau=0.015, threshold=0.02),
    Row(name="3 the same with relinking", change=0.0, sigma=0.003, tau=0.015, threshold=0.02, relinks=True),
    Row(
        name="4 half of the new invocations 30 % longer",
        change=0.0,
        slow_share=0.5,
        slow_size=0.3,
        sigma=0.01,
    ),
    Row(name="5 bursts of +10 %, as large as the change", sigma=0.03, bursts=0.15, burst_size=0.1),
    Row(name="5 one jump of the machine as large as the change", sigma=0.03, jump=0.1),
    Row(
        name="the core's other thread in use, +25 %, 30 % of the time",
        sigma=0.02,
        shared_core=0.3,
        shared_size=0.25,
    ),
    Row(name="warm-up: a build's first samples 15 % slower", sigma=0.02, warm_up=0.15),
    Row(name="a slow thermal ramp of 8 %", sigma=0.02, ramp=0.08),
    Row(name="heavy tails (t, 2 degrees of freedom)", sigma=0.02, tails=2),
    Row(name="whole seconds of 8", change=0.25, sigma=0.03, step=0.125),
    *(
        Row(name=f"layouts of {ratio:g} σ", tau=0.02 * ratio, sigma=0.02)
        for ratio in (0.0, 0.5, 1.0, 2.0, 3.0)
    ),
    *(
        Row(name=f"layouts of {ratio:g} σ, no change", change=0.0, tau=0.02 * ratio, sigma=0.02)
        for ratio in (0.0, 0.5, 1.0, 2.0, 3.0)
    ),
    *(
        Row(
            name=f"layouts of {ratio:g} σ, {runs} runs{none}",
            change=change,
            tau=0.02 * ratio,
            sigma=0.02,
            runs=runs,
        )
        for ratio in (1.0, 2.0)
        for runs in (120, 240)
        for change, none in ((0.1, ""), (0.0, ", no change"))
    ),
    *(
        Row(name=f"layouts of {ratio:g} σ, relinked", tau=0.02 * ratio, sigma=0.02, relinks=True)
        for ratio in (1.0, 3.0)
    ),
    *(
        Row(
            name=f"layouts of {ratio:g} σ, pinned{none}",
            change=change,
            tau=0.02 * ratio,
            sigma=0.02,
            relinks=True,
            pinned=0.005,
        )
        for ratio in (1.0, 2.0, 3.0)
        for change, none in ((0.1, ""), (0.0, ", no change"))
    ),
    Row(name="changed and reverted", changes=2, revisions=120, sigma=0.02, thorough=True),
    Row(name="one change of the artefact, busy machine", busy=True, artefacts=True, tau=0.02, change=0.17),
    Row(name="a creep of 0.4 % at each of 120 revisions", change=0.0, creep=0.004, revisions=120, sigma=0.01),
    Row(
        name="5 changes among small true steps of 1 %",
        changes=5,
        between=(1.2, 4),
        small=0.01,
        **SEVERAL,
    ),
    *(
        Row(
            name=f"{changes} changes of {low} to {high} thresholds, {'both directions' if both else 'faster'}",
            changes=changes,
            between=(low, high),
            both=both,
            **SEVERAL,
        )
        for changes in (2, 4, 6)
        for low, high in ((1, 2), (2, 6))
        for both in (False, True)
    ),
    *(
        Row(
            name=f"{changes} changes of 2 to 6 thresholds, {'both directions' if both else 'faster'}, interpreted",
            changes=changes,
            between=(2, 6),
            both=both,
            interpreted=True,
            **SEVERAL,
        )
        for changes in (2, 4, 6)
        for both in (False, True)
    ),
    Row(name="plain, d/σ 3.2, 1000 revisions, 15 % unbuildable", revisions=1000, unbuildable=0.15, tau=0.009),
    Row(
        name="plain, no change, 1000 revisions",
        change=0.0,
        revisions=1000,
        unbuildable=0.15,
        tau=0.009,
        sigma=0.015,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The level of each revision as a logarithm, the unbuildable revisions, and the changes of the threshold or more.

    Revisions with the same number in `artefacts` have the same build.
    """

    levels: tuple[float, ...]
    artefacts: tuple[int, ...]
    unbuildable: frozenset[int]
    changes: tuple[int, ...]


def history_of(row: Row, rng: np.random.Generator) -> History:
    """Draw a history."""
    count = row.revisions
    if row.plateau:
        positions = [round(0.3 * count), round(0.7 * count)]
    else:
        positions = sorted(rng.choice(np.arange(1, count), size=row.changes, replace=False).tolist())
    has_any = row.change != 0 or row.slow_share > 0
    levels = (
        np.cumsum(rng.normal(0, row.small, count) * (rng.random(count) < 1 / 4))
        if row.small
        else np.zeros(count)
    )
    levels += math.log1p(row.creep) * np.arange(count)
    for number, position in enumerate(positions if row.change else ()):
        levels[position:] += _size(row, number, rng)
    unbuildable: set[int] = set()
    while len(unbuildable) < row.unbuildable * count:
        start = int(rng.integers(1, count - 1))
        unbuildable |= set(range(start, min(start + int(rng.geometric(1 / 3)), count - 1)))
    artefacts = [int(at >= positions[0]) if row.artefacts else at for at in range(count)]
    if row.plateau:
        artefacts[-1] = artefacts[0]
    return History(
        levels=tuple(levels.tolist()),
        artefacts=tuple(artefacts),
        unbuildable=frozenset(unbuildable),
        changes=tuple(positions) if has_any else (),
    )


def _size(row: Row, number: int, rng: np.random.Generator) -> float:
    """Draw the size of a change, as a logarithm."""
    if row.between is None:
        return math.log1p(row.change) * (1 if number % 2 == 0 else -1)
    size = math.log1p(row.threshold * float(rng.uniform(*row.between)))
    return size if row.both and rng.random() < 0.5 else -size


@dataclass
class SimulatedMachine:
    """Runs builds in simulated time, with the noise of a row; it replaces the invoker."""

    row: Row
    history: History
    rng: np.random.Generator
    study: Study
    clock: float = 0.0
    busy_until: float = 0.0
    busy_cost: float = 0.0
    walked: float = 0.0
    runs: Counter[int] = field(default_factory=Counter)
    layouts: dict[tuple[int, int], float] = field(default_factory=dict)
    jumps_at: float = 0.0

    def __post_init__(self) -> None:
        self.jumps_at = float(self.rng.uniform(10, 90))

    def invoke(self, start: PlannedInvocation) -> Measurement:
        """Return a measurement with a simulated wall time."""
        number = int(start.ready.cell.subject.revision.id[1:])
        seconds = LEVEL_SECONDS * math.exp(
            self.history.levels[number] + self._noise(number, start.ready.layout)
        )
        if self.row.step:
            seconds = max(round(seconds / self.row.step), 1) * self.row.step
        self.clock += seconds
        return Measurement(
            key=start.key,
            started=f"{self.clock:020.6f}",
            seconds=seconds,
            values={"wall": seconds, "foreign_cpu": 0.0},
            draw=replace(start.draw, layout=start.ready.layout),
        )

    def _noise(self, number: int, layout: int) -> float:
        row, rng = self.row, self.rng
        content = self.history.artefacts[number]
        if (content, layout) not in self.layouts:
            self.layouts[content, layout] = row.tau * float(rng.standard_normal())
            if row.pinned:
                shared = self.layouts.setdefault((SHARED, layout), self.layouts[content, layout])
                self.layouts[content, layout] = shared + row.pinned * float(rng.standard_normal())
        total = self.layouts[content, layout]
        total += row.sigma * float(rng.standard_t(row.tails) if row.tails else rng.standard_normal())
        total += row.ramp * -math.expm1(-self.clock / 60)
        total += row.jump * (self.clock > self.jumps_at)
        self.walked += row.walk * float(rng.standard_normal())
        total += self.walked + self._neighbours()
        total += row.warm_up * math.exp(-self.runs[content] / 2)
        self.runs[content] += 1
        is_new = bool(self.history.changes) and number >= self.history.changes[0]
        if row.slow_share and is_new and rng.random() < row.slow_share:
            total += math.log1p(row.slow_size)
        return total

    def _neighbours(self) -> float:
        """Return the present cost of other processes: bursts, the other thread of the core, or a busy machine."""
        row, rng = self.row, self.rng
        share, size, length = row.bursts, row.burst_size, float(rng.uniform(3, 9))
        if row.shared_core:
            share, size, length = row.shared_core, row.shared_size, float(rng.exponential(8))
        if row.busy:
            share, size, length = 0.35, float(rng.uniform(0.05, 0.6)), float(rng.exponential(6))
        if not share:
            return 0.0
        if self.clock < self.busy_until:
            return self.busy_cost
        mean = 8.0 if row.shared_core else 6.0
        if rng.random() < share / ((1 - share) * mean):
            self.busy_until, self.busy_cost = self.clock + length, math.log1p(size)
            return self.busy_cost
        return 0.0


@dataclass(frozen=True)
class SimulatedSource:
    """The revisions r0, r1, ... of a history."""

    count: int

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return all revisions."""
        assert range is None
        return tuple(Revision(id=f"r{number}") for number in np.arange(self.count))

    def within(self, range: str) -> frozenset[str]:
        """Return nothing: these studies have no range."""
        return frozenset()

    def merge(self, revision: Revision) -> Merge | None:
        """Return nothing: there are no merges."""
        return None

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return nothing: no paths are known."""
        return tuple(() for _ in revisions)

    def content(self, revision: Revision) -> str:
        """Return the revision's id."""
        return revision.id

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Do nothing."""


@dataclass
class SimulatedBuilder:
    """Builds in simulated time; relinking takes one second."""

    history: History
    machine: SimulatedMachine
    parallel_builds: int = 1
    built: dict[str, Built | Failure] = field(default_factory=dict)

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Return the key of a build."""
        return content_key(subject.revision.id, list(recipe.steps))

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Build a revision."""
        key, number = self.key(subject, recipe), int(subject.revision.id[1:])
        if key not in self.built:
            seconds = self.machine.row.build_seconds
            self.machine.clock += seconds
            artefact = f"r{self.history.artefacts[number]}"
            self.built[key] = (
                Failure(stage="build", message="error", seconds=seconds)
                if number in self.history.unbuildable
                else Built(key=key, artefact=artefact, directory=f"/builds/{artefact}", seconds=seconds)
            )
        return self.built[key]

    def begin(self, subjects: Iterable[object]) -> None:
        """Do nothing: there are no parallel builds."""

    @property
    def records_links(self) -> bool:
        """Whether links are recorded: no, rows that relink do it by their recipe."""
        return False

    def unpinned(self, prepared: Prepared, recipe: Recipe) -> str:
        """Return why no layout is pinned."""
        return "builds are simulated"

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Return the key of a relinked build."""
        return content_key("layout", built.key, layout)

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link a build in other orders."""
        return {
            layout: Built(
                key=self.layout_key(built, recipe, layout),
                artefact=f"{built.artefact} as {layout}",
                directory=f"{built.directory}.{layout}",
                seconds=1.0,
                layout=layout,
            )
            for layout in layouts
        }

    def benchmark_build_key(self, built: Built, **how: object) -> str:
        """Return the key of a benchmark build."""
        return content_key("link", built.key)

    def prepare(self, built: Built, **how: object) -> Prepared | Failure:
        """Return a benchmark build."""
        return Prepared(built=built, out=f"{built.directory}/out", artefact="")

    def protect(self, subjects: Iterable[object]) -> None:
        """Do nothing: all builds stay."""

    def messages(self) -> tuple[str, ...]:
        """Return no messages."""
        return ()

    def confirm(self, decisive: Iterable[object] = ()) -> None:
        """Do nothing: every build is clean."""

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Return no placeholders: no command runs."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer and the cost of one search; `right` is `None` if the answer claims nothing.

    `named` counts the changes of the threshold or more that it named, and `changes` all of them. `rest` states whether
    the interval of the rest contains the truth; `None` without one.
    """

    verdict: str
    right: bool | None
    complete: bool
    builds: int
    invocations: int
    certificate: int
    seconds: float
    certificate_seconds: float
    changes: int
    named: int
    rest: bool | None


def search(row: Row, seed: int) -> Outcome:
    """Search one history of a row with perftrail, and compare the answer with the truth."""
    rng = np.random.default_rng([seed, *row.name.encode()])
    history = history_of(row, rng)
    study = Study(
        title="simulated",
        file="/study/perftrail.toml",
        directory="/study",
        source=Source(kind="git", location="/repository"),
        benchmarks={"work": Benchmark(command="python3 {build}/work" if row.interpreted else "{build}/work")},
        variants={"plain": Variant()},
        build=Build(relink=("relink {layout}",) if row.relinks else ()),
        measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0),
    )
    machine = SimulatedMachine(row, history, rng, study)
    source, store = SimulatedSource(row.revisions), MemoryStore()
    here = Machine(id="simulated", facts={})
    store.add_machine(here)
    subject_builder = SubjectBuilder(study, source, SimulatedBuilder(history, machine), store)  # type: ignore[arg-type] # simulated
    session = Session(
        study=study,
        machine=here,
        source=source,
        store=store,
        subject_builder=subject_builder,
        runner=InvocationRunner(store=store, engine=LocalEngine(), invoker=machine, machine=here),  # type: ignore[arg-type] # simulated
    )
    request = FindRequest(
        goal=(resolve(study, "wall"),),
        range=None,
        threshold=row.threshold,
        confidence=0.99,
        budget=Budget(invocations=row.runs * row.changes or None),
        thorough=row.thorough,
    )
    finding = Find(session, request).events()
    while True:
        try:
            next(finding)
        except StopIteration as stop:
            answer = stop.value
            break
    assert isinstance(answer, FindAnswer)
    return _judge(row, history, answer, machine, store)


def _judge(
    row: Row, history: History, answer: FindAnswer, machine: SimulatedMachine, store: MemoryStore
) -> Outcome:
    verdict, found = str(answer.answer.verdict), answer.answer.changes
    true = set(history.changes)
    right: bool | None = None
    if verdict == "none":
        right = not true or (not row.thorough and _is_equal(row, history))
    elif verdict != "unclear":
        right = all(_is_true(row, history, change) for change in found)
    singled = {each for change in found for each in {*change.positions} & true if _is_narrow(change, history)}
    [record] = store.searches()
    steps = [step for step in store.steps(record.key, record.machine) if step.action.get("certificate")]
    return Outcome(
        verdict=verdict,
        right=right,
        complete=bool(right) and singled == true,
        builds=answer.builds,
        invocations=answer.invocations,
        certificate=sum(len(_list(step.action["order"])) for step in steps),
        seconds=machine.clock,
        certificate_seconds=sum(_number(step.observation["seconds"]) for step in steps),
        changes=len(true),
        named=len(singled),
        rest=_covers_rest(row, history, answer.answer) if right and found else None,
    )


def _is_equal(row: Row, history: History) -> bool:
    return not row.slow_share and abs(history.levels[-1] - history.levels[0]) < math.log1p(row.threshold)


def _is_true(row: Row, history: History, change: Change) -> bool:
    """Whether a named step contains a change of half the threshold or more; a gradual change must contain none."""
    levels, first, last = history.levels, change.positions[0], change.positions[-1]
    if change.kind is Kind.RAMP:
        whole = abs(levels[last] - levels[first - 1]) >= math.log1p(row.threshold) / 2
        return whole and not {*change.positions} & {*history.changes}
    steps = (abs(levels[at] - levels[at - 1]) for at in change.positions)
    return bool({*change.positions} & {*history.changes}) or max(steps) >= math.log1p(row.threshold) / 2


def _is_narrow(change: Change, history: History) -> bool:
    """Whether a range is as narrow as possible: all its revisions except the last do not build."""
    return {*change.positions} - {max(change.positions)} <= history.unbuildable


def _covers_rest(row: Row, history: History, answer: Answer) -> bool | None:
    """Whether the interval of the rest contains what the named changes do not explain."""
    if answer.rest is None or row.slow_share:
        return None
    levels = history.levels
    named = sum(levels[change.positions[-1]] - levels[change.positions[0] - 1] for change in answer.changes)
    rest = levels[-1] - levels[0] - named
    return math.log(answer.rest.low) <= rest <= math.log(answer.rest.high)


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _number(value: Json) -> float:
    assert isinstance(value, int | float)
    return value


HEAD = (
    "row",
    "histories",
    "correct claims",
    "95 % interval",
    "changes named",
    "complete answers",
    "rest in its interval",
    "unclear",
    "builds",
    "runs (median)",
    "runs of rounds",
)


def main(arguments: Sequence[str]) -> None:
    """Search the histories that are missing in `--into`, then print the table of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search noise", description=__doc__)
    parser.add_argument("--into", type=Path, help="store each outcome in this file of JSON lines; resume")
    parser.add_argument("--histories", type=int, default=300, help="histories of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="rows whose names contain this")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no search after this time")
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if not options.only or any(part in row.name for part in options.only)]
    first = options.seed * 100_000
    outcomes = _stored_outcomes(options.into)
    until = time.monotonic() + options.seconds
    missing = [
        (row, seed)
        for seed in range(first, first + options.histories)
        for row in rows
        if (row.name, seed) not in outcomes
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        for row, seed, outcome in pool.map(_search_until, missing, [until] * len(missing)):
            if outcome is not None:
                outcomes[row.name, seed] = outcome
                _store(options.into, row, seed, outcome)
    of_rows = ([found for (name, _), found in outcomes.items() if name == row.name] for row in rows)
    print(table([HEAD, *(_cells(row, found) for row, found in zip(rows, of_rows, strict=True) if found)]))


def _search_until(row_and_seed: tuple[Row, int], until: float) -> tuple[Row, int, Outcome | None]:
    row, seed = row_and_seed
    return row, seed, search(row, seed) if time.monotonic() < until else None


def _stored_outcomes(file: Path | None) -> dict[tuple[str, int], Outcome]:
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    found = (json.loads(line) for line in lines)
    return {(each["row"], each["seed"]): Outcome(**each["outcome"]) for each in found}


def _store(file: Path | None, row: Row, seed: int, outcome: Outcome) -> None:
    if file is not None:
        with file.open("a") as stream:
            stream.write(json.dumps({"row": row.name, "seed": seed, "outcome": asdict(outcome)}) + "\n")


def _cells(row: Row, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    claims = [each for each in outcomes if each.right is not None]
    right = sum(bool(each.right) for each in claims)
    rests = [each.rest for each in outcomes if each.rest is not None]
    low, high = interval(right, len(claims)) if claims else (0.0, 1.0)
    certificate = sum(each.certificate_seconds for each in outcomes) / sum(each.seconds for each in outcomes)
    return (
        row.name,
        str(len(outcomes)),
        f"{right} of {len(claims)}",
        f"[{low:.3f}, {high:.3f}]",
        f"{sum(each.named for each in outcomes)} of {sum(each.changes for each in outcomes)}",
        f"{sum(each.complete for each in outcomes) / len(outcomes):.0%}",
        f"{sum(rests)} of {len(rests)}",
        f"{1 - len(claims) / len(outcomes):.0%}",
        f"{mean(each.builds for each in outcomes):.1f}",
        f"{median(each.invocations for each in outcomes):.0f}",
        f"{median(each.certificate for each in outcomes):.0f}, {certificate:.0%} of the time",
    )
