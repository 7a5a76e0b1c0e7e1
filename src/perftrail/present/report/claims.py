"""A study's claims in words: what was found on each, and what becomes of it; a report's section on them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from perftrail.model.quantity import decimals, number, probability
from perftrail.model.wording import listed
from perftrail.present.page import Section, Table
from perftrail.present.report.words import shown
from perftrail.results.claims import ClaimVerdict, Power, Ratio, Reach, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.benchmark import Point
    from perftrail.present.report.gathered import Gathered
    from perftrail.results.claims import Judgement

LONGEST_SENTENCE = 400


def claims_section(gathered: Gathered) -> Section | None:
    """Tell what becomes of each of the study's claims; nothing where it has none."""
    if not gathered.view.study.claims:
        return None
    judged = judge(gathered.view, measured=gathered.measured_here)
    rows = tuple((claim_words(each), str(each.verdict), found_words(each)) for each in judged)
    return Section(
        name="claims",
        title="Claims",
        paragraphs=(f"{counted_words(judged)}.",),
        tables=(Table(name="claims", head=("claim", "verdict", "found"), rows=rows, whole=True),),
    )


def claim_words(judged: Judgement) -> str:
    """The claim's own sentence."""
    return shown(judged.claim.says, longest=LONGEST_SENTENCE)


def found_words(judged: Judgement) -> str:
    """Say what was found on a claim."""
    claim, found = judged.claim, judged.evidence
    match found:
        case None:
            return shown(judged.reason, longest=LONGEST_SENTENCE)
        case Ratio(comparison=effect):
            digits = decimals(effect.effect, effect.low, effect.high)
            few = "" if effect.pairs >= effect.needed_pairs else f", {effect.needed_pairs} are needed"
            noise = ", some disturbed" if found.disturbed else ""
            noise += "" if found.decides else ", so they decide nothing"
            return (
                f"{claim.variant} / {claim.against} = {effect.effect:.{digits}f} "
                f"[{effect.low:.{digits}f}, {effect.high:.{digits}f}] in {claim.metric} at {_points(found.points)}; "
                f"asked {claim.ratio}; {probability(effect.confidence)}, {effect.pairs} pairs{few}{noise}"
            )
        case Power(exponent=exponent):
            return (
                f"{claim.variant} grows with the power {exponent.value:.2f} [{exponent.low:.2f}, "
                f"{exponent.high:.2f}] in {claim.metric} over {found.values} values of {claim.along}, "
                f"{number(found.first)} to {number(found.last)}; asked {claim.exponent}"
            )
        case Reach():
            beyond = "nothing larger was tried"
            if found.refused is not None:
                beyond = f"{number(found.refused)} was refused: {found.stage}"
            return f"{claim.variant} reaches {claim.along} {number(found.largest)}, {beyond}; asked {claim.reaches}"
        case _:
            assert_never(found)


def counted_words(judged: Sequence[Judgement]) -> str:
    """Say how many claims there are of each verdict."""
    counts = Counter(each.verdict for each in judged)
    return listed((f"{counts[verdict]} {verdict}" for verdict in ClaimVerdict if counts[verdict]), "and")


def _points(points: Sequence[Point]) -> str:
    """Name points by their values, those of each parameter together."""
    values: dict[str, dict[str, None]] = {}
    for point in points:
        for name, value in point.values:
            values.setdefault(name, {})[str(value)] = None
    return shown(
        "; ".join(f"{name} {listed(each, 'and')}" for name, each in values.items()), longest=LONGEST_SENTENCE
    )
