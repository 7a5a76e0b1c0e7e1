"""A study's claims and what became of them, for the terminal and for a page of Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from rich.text import Text

from perftrail.cli.console import output
from perftrail.cli.speech import plain
from perftrail.model.quantity import decimals, number, probability
from perftrail.model.wording import listed
from perftrail.report.page_markdown import inert
from perftrail.workflows.claims import ClaimVerdict, Power, Ratio, Reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.parameters import Point
    from perftrail.workflows.claims import Judgement

LONGEST_SENTENCE = 400

_STYLES = {
    ClaimVerdict.REPRODUCED: "green",
    ClaimVerdict.NOT_REPRODUCED: "red",
    ClaimVerdict.UNCLEAR: "yellow",
    ClaimVerdict.CANNOT: "dim",
}


def print_claims(judged: Sequence[Judgement]) -> None:
    """Print each claim with its verdict and what was found, and how many there are of each."""
    console = output()
    for each in judged:
        sentence = plain(each.claim.says, longest=LONGEST_SENTENCE)
        console.print(Text.assemble((f"{each.verdict}: ", _STYLES[each.verdict]), sentence), soft_wrap=True)
        console.print(Text(f"  {found_words(each)}"), soft_wrap=True)
    console.print(Text(_counted(judged), style="bold"))


def claims_markdown(judged: Sequence[Judgement]) -> str:
    """Write the claims as a table in Markdown."""
    rows = [("Claim", "Found", "Verdict"), ("---", "---", "---")]
    rows += [(inert(each.claim.says), inert(found_words(each)), str(each.verdict)) for each in judged]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def found_words(judged: Judgement) -> str:
    """Say what was found on a claim."""
    claim, found = judged.claim, judged.evidence
    match found:
        case None:
            return plain(judged.reason, longest=LONGEST_SENTENCE)
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


def _points(points: Sequence[Point]) -> str:
    """Name points by their values, those of each parameter together."""
    values: dict[str, dict[str, None]] = {}
    for point in points:
        for name, value in point.values:
            values.setdefault(name, {})[str(value)] = None
    return plain(
        "; ".join(f"{name} {listed(each, 'and')}" for name, each in values.items()), longest=LONGEST_SENTENCE
    )


def _counted(judged: Sequence[Judgement]) -> str:
    counts = Counter(each.verdict for each in judged)
    return listed((f"{counts[verdict]} {verdict}" for verdict in ClaimVerdict if counts[verdict]), "and")
