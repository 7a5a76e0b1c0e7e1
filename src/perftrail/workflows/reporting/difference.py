"""A report's answer where subjects stand beside each other: how they differ, or what could have been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.quantity import change as relative
from perftrail.model.quantity import percent, probability
from perftrail.report.page import Fact, Verdict
from perftrail.workflows.reporting.words import effect_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.report.page import Tone
    from perftrail.workflows.reporting.beside import Beside
    from perftrail.workflows.reporting.gathered import Gathered


BUILDS_DIFFER = (
    "These builds differ; ten layouts would show whether the change does: perftrail compare with [build] relink "
    "(docs/how-to/layout-noise.md)."
)


def difference(gathered: Gathered, beside: Sequence[Beside], *, notes: tuple[str, ...]) -> Verdict:
    """Say how the subjects differ: in what the study asks about, else the largest sure difference first."""
    about = [each for each in beside if each.asked] or beside
    sure = [each for each in about if each.differs]
    if not sure:
        return _alike(beside, about, notes)
    lead = gathered.lead
    asked = [each for each in sure if lead and (each.benchmark, each.metric) == (lead.benchmark, lead.metric)]
    told = asked or sure
    best = max(told, key=lambda each: each.size)
    alike = [each for each in told if (each.benchmark, each.metric) == (best.benchmark, best.metric)]
    found = best.comparison
    words = ", ".join(f"{each.name} {relative(each.comparison.effect)} ({each.words})" for each in alike)
    tones: set[Tone] = {"better" if each.words == "better" else "worse" for each in alike}
    figure = best.figure if best.asked else f"{best.benchmark}.{best.metric}"
    return Verdict(
        sentence=f"{figure} against {best.reference}: {words}.",
        tone=tones.pop() if len(tones) == 1 else "plain",
        facts=(
            Fact(
                label=f"Effect of {best.name}",
                text=effect_words(found.effect, found.low, found.high, interval="interval"),
            ),
            Fact(label="Certainty", text=f"{probability(found.confidence)}, {found.pairs} {_taken(best)}"),
            _counted(beside),
            Fact(
                label="Cost",
                text=f"{sum(len(row.values) for row in gathered.rows)} values",
            ),
        ),
        notes=(*notes, *_of_builds(gathered, best)),
    )


def _of_builds(gathered: Gathered, best: Beside) -> tuple[str, ...]:
    """Say of two revisions that differ that two builds do; variants are meant to be other builds."""
    if len(gathered.variants) > 1 or not best.in_turns:
        return ()
    return (BUILDS_DIFFER,)


def _alike(beside: Sequence[Beside], about: Sequence[Beside], notes: tuple[str, ...]) -> Verdict:
    """Say that no difference could be told in what it is about, and what could have been seen."""
    same = all(each.verdict == "same" for each in about)
    seen = [each.comparison.smallest_seen for each in about]
    known = [each for each in seen if each is not None]
    where = " everywhere" if len(about) > 1 else ""
    bound = f"{percent(max(known, default=0.0))} would have been seen{where}"
    if len(known) < len(seen):
        bound = f"of {len(seen)} comparisons {len(seen) - len(known)} have too few {about[0].counted} to say"
    which = "No difference" if same else "No difference could be told"
    if any(each.points > 1 for each in about):
        which += " on the whole"
    figure = f" in {about[0].figure}" if about[0].asked else ""
    sentence = f"{which} from {about[0].reference}{figure}; {bound}."
    if disturbed := [each for each in about if not each.decides]:
        largest = max(disturbed, key=lambda each: each.size)
        sentence = (
            f"{largest.figure} against {largest.reference}: {largest.name} {relative(largest.comparison.effect)}, "
            "but that decides nothing: something else was at work on the machine."
        )
    return Verdict(
        sentence=sentence,
        tone="plain" if same else "unclear",
        facts=(_counted(beside),),
        notes=notes,
    )


def _counted(beside: Sequence[Beside]) -> Fact:
    sure = sum(each.differs for each in beside)
    return Fact(
        label="Comparisons", text=f"{len(beside)}{f', of which {sure} differ for sure' if sure else ''}"
    )


def _taken(best: Beside) -> str:
    return "pairs side by side" if best.in_turns else "values of each or more, not taken in turns"
