"""Results of `compare` in a report: the answer, and a section for each with its chart and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.charts.comparison import Against, against
from perftrail.charts.frame import Palette
from perftrail.model.wording import escaped
from perftrail.present.gate import (
    effect,
    effort,
    headline,
    limits,
    lost,
    name,
    revision,
    sureness,
    value_words,
)
from perftrail.present.page import Fact, Section, Table, Verdict
from perftrail.present.speech import sentence
from perftrail.stats.comparison import Verdict as Compared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.charts.frame import Figure
    from perftrail.present.page import Tone
    from perftrail.results.gate import Gate

LONGEST = 600
MOST_COMPARISONS = 5
MOST_DRAWN = 20

TONES: dict[Compared, Tone] = {
    Compared.SLOWER: "worse",
    Compared.FASTER: "better",
    Compared.UNCLEAR: "unclear",
}


def compared_verdict(gate: Gate) -> Verdict:
    """Return a comparison as the answer of a report, in the words of `compare`."""
    return Verdict(
        sentence=escaped(sentence(headline(gate)), longest=LONGEST),
        tone=TONES.get(gate.verdict, "plain"),
        facts=(
            Fact(label="Base", text=escaped(revision(gate.base), longest=LONGEST)),
            Fact(label="Head", text=escaped(revision(gate.head), longest=LONGEST)),
            Fact(label="Certainty", text=sentence(sureness(gate))),
            Fact(label="Measured", text=sentence(f"{effort(gate)}, {gate.taken[:10]}")),
        ),
        notes=tuple(escaped(sentence(text), longest=LONGEST) for text in limits(gate)),
    )


def compared_sections(comparisons: Sequence[Gate]) -> Iterator[Section]:
    """Yield a section for each of the latest comparisons."""
    for number, gate in enumerate(comparisons[:MOST_COMPARISONS]):
        left = len(comparisons) - MOST_COMPARISONS
        more = (
            (f"{left} older comparisons are not shown.",)
            if number == MOST_COMPARISONS - 1 and left > 0
            else ()
        )
        yield Section(
            name=f"compared-{number}",
            title=f"{gate.head.short} compared with {gate.base.short}, {gate.taken[:10]}",
            paragraphs=(escaped(sentence(headline(gate)), longest=LONGEST), *more),
            figure=_chart(gate, name=f"compared-{number}"),
            tables=(
                Table(
                    name=f"compared-{number}",
                    head=("metric", "base", "head", "change", "pairs", "verdict"),
                    rows=tuple(
                        (
                            escaped(name(row)),
                            value_words(row.base, row.metric.unit),
                            value_words(row.head, row.metric.unit),
                            escaped(effect(row), longest=LONGEST),
                            str(row.pairs),
                            row.word,
                        )
                        for row in gate.rows
                    ),
                    numbers=frozenset({1, 2, 4}),
                ),
                *_failures(gate, number),
            ),
        )


def _failures(gate: Gate, number: int) -> Iterator[Table]:
    if gate.lost:
        rows = tuple((escaped(lost(each), longest=LONGEST),) for each in gate.lost)
        yield Table(name=f"compared-{number}-failed", head=("failed",), rows=rows)


def _chart(gate: Gate, *, name: str) -> Figure | None:
    """Return the chart of the worst rows with pairs; `None` without any."""
    head = gate.head.short
    rows = [
        Against(
            row=escaped(row.metric.name),
            subject=head,
            ratios=row.ratios,
            effect=row.comparison.effect,
            low=row.comparison.low,
            high=row.comparison.high,
            verdict=row.word,
        )
        for row in gate.rows[:MOST_DRAWN]
        if row.comparison is not None and row.read
    ]
    if not rows:
        return None
    palette = Palette((gate.base.short, head))
    return against(
        rows,
        name=name,
        title=f"{head} compared with {gate.base.short}",
        reference=gate.base.short,
        palette=palette,
    )
