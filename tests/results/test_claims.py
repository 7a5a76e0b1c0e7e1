"""Which samples decide a claim: noisy times do not, noisy counts do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from perftrail.measure.session import View
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Derived
from perftrail.model.recipe import Variant, VariantRun
from perftrail.model.study import Claim, Invocations, MeasurePolicy
from perftrail.results import claims
from perftrail.results.claims import ClaimVerdict, Ratio, judge, verdict_of
from perftrail.results.measured import MeasuredHere
from perftrail.results.rows import Row, rows
from perftrail.results.selection import Selection
from perftrail.stats.comparison import Rule, compare
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.measure.fake_session import a_session, a_study, drain

CLAIM = Claim(says="twice as long", metric="wall", variant="new", against="old", ratio="1.5..")
FOUND = Ratio(
    comparison=compare([1.0 + 0.001 * each for each in range(12)], [2.0] * 12, Rule(most=12)),
    points=(),
    disturbed=False,
    decides=True,
)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (FOUND, ClaimVerdict.REPRODUCED),
        (replace(FOUND, disturbed=True), ClaimVerdict.REPRODUCED),
        (replace(FOUND, disturbed=True, decides=False), ClaimVerdict.UNCLEAR),
    ],
)
def test_times_of_a_disturbed_machine_decide_nothing(found: Ratio, verdict: ClaimVerdict) -> None:
    assert verdict_of(CLAIM, found) is verdict


def test_a_ratio_outside_the_band_is_not_reproduced_and_one_across_its_end_is_unclear() -> None:
    assert verdict_of(replace(CLAIM, ratio="..1.5"), FOUND) is ClaimVerdict.NOT_REPRODUCED
    assert verdict_of(replace(CLAIM, ratio="1.99..3"), FOUND) is ClaimVerdict.UNCLEAR


def test_what_claims_are_about_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = a_study(
        variants={"old": Variant(), "new": Variant(rebuild=False, run=VariantRun(prefix=("nice",)))},
        measure=MeasurePolicy(invocations=Invocations(least=12, most=12), warmups=0),
        claims={
            "more": CLAIM,
            "less": replace(CLAIM, ratio="..0.9"),
            "cannot": replace(CLAIM, cannot="lost"),
        },
    )
    starter = FakeStarter(seconds=lambda arguments: 2.0 if arguments[0] == "nice" else 1.0)
    session = a_session(study, tmp_path, source=FakeSource(1), starter=starter)
    drain(Run(session, Selection()).events())
    requests = []

    def counted(view: View, *, metrics: Sequence[str], measured: MeasuredHere) -> tuple[Row, ...]:
        requests.append(metrics)
        return rows(view, metrics=metrics, measured=measured)

    monkeypatch.setattr(claims, "rows", counted)
    judged = judge(cast(View, session))
    assert [each.verdict for each in judged] == [
        ClaimVerdict.REPRODUCED,
        ClaimVerdict.NOT_REPRODUCED,
        ClaimVerdict.CANNOT,
    ]
    assert requests == [("wall",)]


def test_what_threads_cost_may_be_claimed_to_grow(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={
            "work": Benchmark(command="{build}/work {threads}", parameters={"threads": (1, 2, 4, 8, 25)})
        },
        measure=MeasurePolicy(invocations=Invocations(least=5, most=5), warmups=0),
        claims={
            "more": Claim(says="more", metric="wall", variant="plain", along="threads", exponent="0.4..0.6"),
            "few": Claim(
                says="few",
                metric="wall",
                variant="plain",
                along="threads",
                exponent="0..",
                at={"threads": (1, 2)},
            ),
        },
    )
    starter = FakeStarter(seconds=lambda arguments: float(arguments[-1]) ** 0.5)
    session = a_session(study, tmp_path, source=FakeSource(1), starter=starter)
    drain(Run(session, Selection()).events())
    more, few = judge(cast(View, session))
    assert more.verdict is ClaimVerdict.REPRODUCED
    assert (
        few.reason
        == "its growth needs samples at 4 values of threads above zero; widen its at or measure more values"
    )


def test_a_claim_may_be_about_a_derived_metric(tmp_path: Path) -> None:
    """The cost of one more item is three times as large in the new one, which starts faster."""

    def seconds(arguments: tuple[str, ...]) -> float:
        size = float(arguments[-1])
        return 0.1 + 3.0 * size if arguments[0] == "nice" else 0.9 + 1.0 * size

    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work {size}", parameters={"size": (1, 2)})},
        derived={"more": Derived(value="wall[size=2] - wall[size=1]", benchmark="work", unit="s")},
        variants={"old": Variant(), "new": Variant(rebuild=False, run=VariantRun(prefix=("nice",)))},
        measure=MeasurePolicy(invocations=Invocations(least=12, most=12), warmups=0),
        claims={"more": replace(CLAIM, metric="more", ratio="2.5..3.5")},
    )
    session = a_session(study, tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=seconds))
    drain(Run(session, Selection()).events())
    [judged] = judge(cast(View, session))
    assert judged.verdict is ClaimVerdict.REPRODUCED
