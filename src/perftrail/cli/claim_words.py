"""A study's claims and what became of them, for the terminal and for a page of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.cli.console import output
from perftrail.report.page_markdown import inert
from perftrail.workflows.claims import ClaimVerdict
from perftrail.workflows.reporting.claims import claim_words, counted_words, found_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.workflows.claims import Judgement

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
        verdict = (f"{each.verdict}: ", _STYLES[each.verdict])
        console.print(Text.assemble(verdict, claim_words(each)), soft_wrap=True)
        console.print(Text(f"  {found_words(each)}"), soft_wrap=True)
    console.print(Text(counted_words(judged), style="bold"))


def claims_markdown(judged: Sequence[Judgement]) -> str:
    """Write the claims as a table in Markdown."""
    rows = [("Claim", "Found", "Verdict"), ("---", "---", "---")]
    rows += [(inert(each.claim.says), inert(found_words(each)), str(each.verdict)) for each in judged]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
