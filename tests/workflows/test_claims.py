"""What is judged and what is not: a time taken in noise decides nothing, a count does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perftrail.analysis.compare import Rule, compare
from perftrail.model.claim import Claim
from perftrail.workflows.claims import ClaimVerdict, Ratio, verdict_of

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
