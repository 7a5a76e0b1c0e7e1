"""Pairs of adjacent invocations: which samples are pairs, which count, and what a verdict is about.

Each test here is a way in which two equal programs were once reported as different.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.measure.session import Session
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.measurement import Conditions, Measurement
from perftrail.model.noisy_samples import LEAST_TO_DECIDE, counted
from perftrail.model.patch import Patch, Patched
from perftrail.model.plan import cells
from perftrail.model.process import Command, Ran
from perftrail.model.recipe import Build
from perftrail.model.study import Invocations, MeasurePolicy, Study
from perftrail.model.subject import Revision, Subject
from perftrail.model.target import parse_metric
from perftrail.present.gate_formats import FORMATS
from perftrail.results.gate import Gate, Row
from perftrail.results.selection import Choice, Selection
from perftrail.stats.comparison import Verdict
from perftrail.stats.layout_noise import layout_noise
from perftrail.verbs.backport.backport import Backport
from perftrail.verbs.backport.patch import FittedPatch
from perftrail.verbs.compare import Compare, CompareRequest
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter
from tests.fakes.watcher import NOISY, QUIET, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

POLICY = MeasurePolicy(invocations=Invocations(least=3, most=30), warmups=1, precision=0.01)
WALL = Choice(metrics=(parse_metric("wall"),))
RELINKED = Build(steps=("make",), outputs=("work",), relink=("link {layout}",))


def built_of(words: tuple[str, ...]) -> tuple[int, int]:
    """The revision's number and the layout of a started program, from its path in these fakes."""
    revision, _, layout = words[0].split("/")[2].removeprefix("r").partition(".")
    return int(revision), int(layout or 0)


@dataclass
class Machine(FakeStarter):
    """Takes the time of `level` for the revision, its layout and the number of the start, with noise."""

    level: Callable[[int, int, int], float] = lambda revision, layout, at: 1.0

    def run(self, command: Command) -> Ran:
        at = len(self.started)
        self.seconds = lambda words: self.level(*built_of(words), at)
        return super().run(command)


def machine(level: Callable[[int, int, int], float], *, noise: float, seed: int = 7) -> Machine:
    return Machine(seconds=lambda _: 1.0, noise=noise, level=level, chance=random.Random(seed))


def session_of(
    tmp_path: Path,
    started: FakeStarter,
    *,
    revisions: int = 2,
    custom_study: Study | None = None,
    builder: FakeBuilder | None = None,
    store: MemoryStore | None = None,
    watcher: FakeWatcher | None = None,
) -> Session:
    return a_session(
        custom_study or a_study(measure=POLICY),
        tmp_path,
        source=FakeSource(revisions),
        starter=started,
        builder=builder,
        store=store,
        watcher=watcher,
    )


def compared(session: Session, *, threshold: float = 0.01, most: int | None = None) -> Gate:
    request = CompareRequest(
        base="r0", head="r1", choice=WALL, fail_on="slower", threshold=threshold, most=most
    )
    return drain(Compare(session, request).events())[1]


def only(found: Gate) -> Row:
    [row] = found.rows
    return row


def is_sure(found: Gate) -> bool:
    return found.verdict in (Verdict.SLOWER, Verdict.FASTER)


# Which samples are pairs


def search(session: Session, order: list[int], *, samples: int) -> None:
    """Store samples as a search does: one revision after the other, in no block."""
    for number in order:
        subject = Subject(revision=session.source.history()[number], variant="plain")
        [cell] = cells(session.study, subject)
        _, ready = drain(session.subject_builder.ready(cell))
        assert not isinstance(ready, Failure)
        for ordinal in range(samples):
            drain(session.runner.outcome(ready, "sample", ordinal))


def test_samples_of_a_search_are_no_pairs(tmp_path: Path) -> None:
    """The machine was slower by a fifth while the search measured the first revision."""
    session = session_of(tmp_path, machine(lambda _r, _l, at: 1.2 if at < 30 else 1.0, noise=0.01))
    search(session, [0, 1], samples=30)
    before = session.runner.started
    found = compared(session)
    assert not is_sure(found)
    assert only(found).comparison is not None
    assert session.runner.started - before >= 2 * only(found).pairs
    assert found.fresh - before >= found.invocations


def test_pairs_of_an_earlier_comparison_are_used_again(tmp_path: Path) -> None:
    store = MemoryStore()
    first = compared(session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.1 * r, noise=0.01), store=store))
    again = session_of(tmp_path, machine(lambda *_: 1.0, noise=0.01), store=store)
    assert compared(again).as_json()["comparisons"] == first.as_json()["comparisons"]
    assert again.runner.started == 0


def test_the_blocks_of_a_run_are_pairs(tmp_path: Path) -> None:
    session = session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.1 * r, noise=0.01))
    drain(Run(replace(session, study=a_study(measure=replace(POLICY, precision=1e-6))), Selection()).events())
    before = session.runner.started
    found = compared(session)
    assert session.runner.started == before
    assert found.verdict is Verdict.SLOWER


def test_both_of_a_pair_have_one_draw_and_a_block(tmp_path: Path) -> None:
    session = session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.1 * r, noise=0.01))
    compared(session)
    draws = defaultdict(list)
    for _, outcome in session.store.recent(1000):
        if outcome.key.phase == "sample":
            draws[outcome.draw.block].append(outcome.draw)
    assert "" not in draws
    assert {len(each) for each in draws.values()} == {2}
    assert all(len({(draw.seed, draw.layout) for draw in each}) == 1 for each in draws.values())
    assert all({draw.turn for draw in each} == {0, 1} for each in draws.values())
    assert len({each[0].seed for each in draws.values()}) == len(draws)


# Which pairs count


def test_noisy_pairs_are_cancelled_and_others_take_their_place(tmp_path: Path) -> None:
    seen = [NOISY if at % 7 == 0 else QUIET for at in range(1000)]
    session = session_of(
        tmp_path, machine(lambda *_: 1.0, noise=0.2), watcher=FakeWatcher.with_conditions(*seen)
    )
    row = only(compared(session))
    assert (row.pairs, row.noisy) == (30, 0)
    assert row.discarded > 5
    noisy = {
        outcome.draw.block
        for _, outcome in session.store.recent(1000)
        if isinstance(outcome, Measurement) and outcome.flags and outcome.key.phase == "sample"
    }
    assert row.discarded == len(noisy)


def test_on_a_machine_that_is_always_busy_pairs_count_from_when_that_is_known(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        machine(lambda r, _l, _a: 1.0 + 0.1 * r, noise=0.01),
        watcher=FakeWatcher.with_conditions(*[NOISY] * 1000),
    )
    found = compared(session)
    assert found.verdict is Verdict.SLOWER
    assert only(found).discarded == LEAST_TO_DECIDE
    assert only(found).noisy == only(found).pairs
    assert "the machine was always busy" in FORMATS["plain"](found)


@given(st.lists(st.booleans(), max_size=60))
def test_whether_a_pair_counts_is_decided_when_it_is_taken(quiet: list[bool]) -> None:
    every = counted(quiet)
    assert all(counted(quiet[:length]) == every[:length] for length in range(len(quiet)))
    assert all(counts for each, counts in zip(quiet, every, strict=True) if each)


@dataclass
class Alternating(FakeWatcher):
    """A watcher with noise in every third invocation."""

    seen: list[Conditions] = field(default_factory=list)

    def end(self, own_cpu_seconds: float) -> Conditions:
        self.seen.append(NOISY if len(self.seen) % 3 == 0 else QUIET)
        return self.seen[-1]


@pytest.mark.long
def test_equal_programs_whose_noise_is_correlated_are_called_different_in_one_of_a_hundred(
    tmp_path: Path,
) -> None:
    """Each build's own state wanders from pair to pair; one set of samples, and every third start is noisy."""
    called = 0
    for number in range(100):
        rng = random.Random(number)
        state = [rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0)]

        def level(
            revision: int, _layout: int, _at: int, rng: random.Random = rng, state: list[float] = state
        ) -> float:
            state[revision] = 0.3 * state[revision] + rng.gauss(0.0, math.sqrt(1 - 0.3**2))
            return math.exp(0.01 * state[revision])

        session = session_of(tmp_path, machine(level, noise=1e-6, seed=number), watcher=Alternating())
        called += is_sure(compared(session, threshold=1e-6, most=60))
    assert called <= 3  # 100 at 1 in 100 exceed that in 1 of 50 campaigns


# What is printed, and what trips


def test_the_gate_trips_on_the_bound_and_not_on_the_estimate(tmp_path: Path) -> None:
    session = session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.024 * r, noise=0.01))
    found = compared(session, threshold=0.02)
    comparison = only(found).comparison
    assert comparison is not None
    assert comparison.effect > 1.02 > comparison.low
    assert found.verdict is Verdict.SLOWER
    assert found.exit_code == 0
    assert (
        "certainly worse, but perhaps by less than 2 %, which does not fail the gate: work.wall"
        in FORMATS["plain"](found)
    )


def test_a_change_that_is_large_for_sure_trips_it(tmp_path: Path) -> None:
    found = compared(
        session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.06 * r, noise=0.01)), threshold=0.02
    )
    assert only(found).comparison is not None
    assert only(found).least >= math.log(1.02)
    assert found.exit_code == 3


def test_the_confidence_after_stopping_is_the_whole_comparison_s(tmp_path: Path) -> None:
    found = compared(session_of(tmp_path, machine(lambda r, _l, _a: 1.0 + 0.5 * r, noise=0.01)))
    [data] = json.loads(FORMATS["json"](found))["comparisons"]
    assert only(found).pairs < POLICY.invocations.most
    assert data["effect"]["confidence"] == 0.99


# What a verdict is about: builds, or the change


@dataclass
class Layouts:
    """How far each layout of each revision lies from the others, in logarithms."""

    spread: float
    seed: int
    change: float = 0.0
    known: dict[tuple[int, int], float] = field(default_factory=dict)

    def __call__(self, revision: int, layout: int, _at: int) -> float:
        drawn = random.Random(f"{self.seed} {revision} {layout}").gauss(0.0, self.spread)
        return math.exp(self.known.setdefault((revision, layout), drawn) + self.change * bool(revision))


def relinked(**changes: object) -> Study:
    return a_study(**{"measure": POLICY, "build": RELINKED, **changes})


def test_as_linked_two_builds_of_equal_source_differ_and_the_answer_says_that_it_is_of_builds(
    tmp_path: Path,
) -> None:
    sure = []
    for number in range(5):
        session = session_of(tmp_path, machine(Layouts(0.015, number), noise=0.005, seed=number))
        found = compared(session)
        if is_sure(found):
            sure.append(found)
    assert len(sure) >= 2
    for found in sure:
        assert (
            "the memory layouts of these builds may cause the difference; "
            "to rule that out, measure ten layouts with [build] relink"
        ) in FORMATS["plain"](found)
        assert "perftrail/how-to/layout-noise.html" in FORMATS["github"](found)
        [data] = json.loads(FORMATS["json"](found))["comparisons"]
        assert (data["basis"], data["layouts"]) == ("builds", 0)


def test_two_builds_of_an_interpreted_program_differ_without_advice_to_relink(tmp_path: Path) -> None:
    study = a_study(measure=POLICY, benchmarks={"work": Benchmark(command="{build}/work.py")})
    started = machine(Layouts(0.0, 1, change=0.1), noise=0.005)
    found = compared(session_of(tmp_path, started, custom_study=study))
    assert only(found).verdict is Verdict.SLOWER
    assert "relinking does not apply; perftrail varied hash seeds and environment size" in FORMATS["plain"](
        found
    )
    assert "[build] relink" not in FORMATS["github"](found)


@pytest.mark.parametrize(
    "count", [4, pytest.param(40, marks=[pytest.mark.long, pytest.mark.slow("processor")])]
)
def test_over_layouts_builds_of_equal_source_are_not_called_different(tmp_path: Path, count: int) -> None:
    """Pairs of builds, each a standard deviation of 1.5 % off: as linked, most of them are called different."""
    sure = 0
    for number in range(count):
        session = session_of(
            tmp_path, machine(Layouts(0.015, number), noise=0.005, seed=number), custom_study=relinked()
        )
        sure += is_sure(compared(session))
    assert sure == 0


def test_over_layouts_a_change_is_found_and_the_interval_is_over_layouts(tmp_path: Path) -> None:
    started = machine(Layouts(0.015, 3, change=0.1), noise=0.005)
    found = compared(session_of(tmp_path, started, custom_study=relinked()))
    row = only(found)
    assert found.verdict is Verdict.SLOWER
    assert row.comparison is not None
    assert row.layouts == row.comparison.pairs >= 8
    assert row.comparison.low < math.exp(0.1) < row.comparison.high
    assert row.basis == "layouts"
    assert "ten layouts" not in FORMATS["plain"](found)
    layouts = [built_of(words)[1] for words in started.started if built_of(words)[1]]
    assert {layouts.count(layout) for layout in set(layouts)} == {2}  # a pair of each


class Clock:
    """A clock that advances by so many seconds at each call."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def test_where_relinking_is_expensive_a_layout_has_four_pairs_and_is_one_unit(tmp_path: Path) -> None:
    started = machine(Layouts(0.015, 4, change=0.1), noise=0.005)
    session = session_of(tmp_path, started, custom_study=relinked())
    request = CompareRequest(base="r0", head="r1", choice=WALL, fail_on="slower")
    _, found = drain(Compare(session, request, clock=Clock(100.0)).events())
    row = only(found)
    assert found.verdict is Verdict.SLOWER
    assert row.comparison is not None
    assert (row.pairs, row.layouts) == (4 * row.layouts, row.comparison.pairs)
    layouts = [built_of(words)[1] for words in started.started if built_of(words)[1]]
    assert {layouts.count(layout) for layout in set(layouts)} == {8}


def test_layouts_that_cannot_be_linked_are_reported_and_builds_compared_as_linked(tmp_path: Path) -> None:
    source = FakeSource(2)
    builder = FakeBuilder(source, unlinkable=range(1, 100))
    session = session_of(
        tmp_path,
        machine(lambda r, _l, _a: 1.0 + 0.1 * r, noise=0.01),
        custom_study=relinked(),
        builder=builder,
    )
    found = compared(session)
    assert found.verdict is Verdict.SLOWER
    assert only(found).basis == "builds"
    assert any("relinking failed (ld: no such option)" in note for note in found.notes)


OLD, FIXED, PATCHED = (Revision(id=f"r{number}") for number in range(3))
FITTED = FittedPatch(
    patched=Patched(base=OLD, patch=Patch(text=b"a patch", files=()), revision=PATCHED), fix=FIXED
)


@pytest.mark.parametrize(
    "count", [4, pytest.param(20, marks=[pytest.mark.long, pytest.mark.slow("processor")])]
)
def test_the_gain_of_a_back_port_is_over_layouts(tmp_path: Path, count: int) -> None:
    """A gain of 5 % with layouts that scatter by 1 %: as linked, it is off by a quarter of itself."""
    covered = {True: 0, False: 0}
    for relink in (True, False):
        for number in range(count):
            layouts = Layouts(0.01, number, change=-0.05)
            custom_study = relinked() if relink else a_study(measure=POLICY)
            session = session_of(
                tmp_path, machine(layouts, noise=0.003, seed=number), revisions=3, custom_study=custom_study
            )
            _, report = drain(Backport(session, FITTED).events())
            [wall] = [stand for stand in report.metrics if stand.target.text == "wall"]
            assert wall.fixed_against_old is not None
            covered[relink] += wall.fixed_against_old.low < math.exp(-0.05) < wall.fixed_against_old.high
            if relink:
                assert wall.layouts == wall.replicates
                assert wall.basis in ("layouts", "")
    assert covered[True] >= count - 1
    assert covered[False] <= 0.6 * count


def test_neighbouring_revisions_show_how_much_builds_differ(tmp_path: Path) -> None:
    """Twelve revisions that change nothing, and one that does, measured by `run`."""
    started = machine(lambda r, _l, _a: Layouts(0.015, 9)(r, 0, 0) * (1.2 if r > 6 else 1.0), noise=0.002)
    session = session_of(tmp_path, started, revisions=13)
    drain(Run(session, Selection()).events())
    request = CompareRequest(base="r6", head="r7", choice=WALL)
    _, found = drain(Compare(session, request).events())
    assert found.verdict is Verdict.SLOWER
    assert found.layout_noise is not None
    assert found.layout_noise.builds == 12
    assert found.layout_noise.value == pytest.approx(0.015, rel=0.6)
    assert "12 neighbouring builds without a change differ by" in FORMATS["plain"](found)
    assert json.loads(FORMATS["json"](found))["layout_noise"]["builds"] == 12


def test_layout_noise_is_estimated_from_neighbours_and_not_from_the_one_that_changed() -> None:
    rng = random.Random(5)
    levels = [rng.gauss(0.0, 0.015) + (0.2 if at >= 20 else 0.0) for at in range(40)]
    neighbours = [
        [after - before + rng.gauss(0.0, 0.005) for _ in range(5)]
        for before, after in itertools.pairwise(levels)
    ]
    found = layout_noise(neighbours)
    assert found is not None
    assert found.value == pytest.approx(0.015, rel=0.4)
    assert layout_noise(neighbours[:4]) is None
    quiet = layout_noise([[rng.gauss(0.0, 0.005) for _ in range(5)] for _ in range(30)])
    assert quiet is not None
    assert quiet.value < 0.003
