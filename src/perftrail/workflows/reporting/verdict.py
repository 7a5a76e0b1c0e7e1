"""A report's answer in a sentence: what a search found, or what the figures say where none was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.quantity import change as relative
from perftrail.model.quantity import counted, probability, quantity
from perftrail.model.subject import Revision
from perftrail.report.page import Fact, Verdict
from perftrail.workflows.found import marked_words
from perftrail.workflows.reporting.answer import (
    answer_also,
    answer_by,
    answer_certainty,
    answer_certificate,
    answer_cost,
    answer_effect,
    answer_figure,
    answer_items,
    answer_judged,
    answer_levels,
    answer_smallest,
    answer_sure,
    answer_tone,
)
from perftrail.workflows.reporting.difference import difference
from perftrail.workflows.reporting.words import (
    certainty_words,
    effect_words,
    revision_title,
    row_figure,
    row_metric,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.search_record import Json
    from perftrail.report.page import Tone
    from perftrail.workflows.reporting.beside import Beside
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.showing.changes import HistoryChange

MOST_NAMED = 4


def verdict(gathered: Gathered, beside: Sequence[Beside]) -> Verdict:
    """Say the answer: of the search where one has ended, else what the figures say."""
    if gathered.answers:
        return _searched(gathered)
    if gathered.largest_change is not None and len(gathered.variants) == 1:
        return _changed(gathered, gathered.largest_change)
    if beside:
        return difference(gathered, beside, notes=_besides(gathered))
    if gathered.largest_change is not None:
        return _changed(gathered, gathered.largest_change)
    return _measured(gathered)


def _searched(gathered: Gathered) -> Verdict:
    names = _Names(gathered)
    answers = sorted(gathered.answers, key=lambda each: not each.get("changes"))
    told = [
        (answer, change)
        for answer in answers
        for change in answer_items(answer, "changes")
        if isinstance(change, dict)
    ]
    assert gathered.search is not None
    assert gathered.search.answer is not None
    cost = answer_cost(gathered.search.answer)
    if not told:
        return Verdict(
            sentence=_nothing(answers),
            tone="unclear" if all(each["verdict"] == "unclear" for each in answers) else "plain",
            facts=(
                Fact(label="Certainty", text=answer_certainty(answers[0])),
                Fact(label="Smallest change that would have been seen", text=answer_smallest(answers[0])),
                *(Fact(label="Evidence", text=_said(each)) for each in answer_certificate(answers[0])[:1]),
                Fact(label="Cost", text=cost),
            ),
            notes=(f"Why it ended: {answers[0].get('reason', '')}.",),
        )
    answer, change = told[0]
    tones = {answer_tone(change, str(answer["better"])) for answer, change in told}
    sentence = names.sentence(answer, change)
    if len(told) > 1:
        sentence = f"{len(told)} changes. The first: {sentence}"
    facts = [
        Fact(label="Effect", text=answer_effect(change)),
        Fact(label="Levels", text=answer_levels(answer, change)),
        Fact(label="Certainty", text=answer_sure(change)),
        *(Fact(label="Evidence", text=_said(each)) for each in answer_certificate(change)[:1]),
        Fact(label="Cost", text=cost),
    ]
    return Verdict(
        sentence=sentence,
        tone=tones.pop() if len(tones) == 1 else "plain",
        facts=tuple(fact for fact in facts if fact.text),
        notes=(
            *names.inside(change),
            *(f"{_said(each)}." for each in answer_certificate(change)[1:]),
            *filter(None, [answer_also(change)]),
            *(f"Also: {names.sentence(other, each)}" for other, each in told[1:MOST_NAMED]),
            *_reservations(answers),
        ),
    )


class _Names:
    """What revisions are called, also those that only a merge brought."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._known = {revision.id: revision for revision in gathered.revisions}

    def title(self, id_: str) -> str:
        return revision_title(self._known.get(id_, Revision(id=id_)))

    def sentence(self, answer: Mapping[str, Json], change: Mapping[str, Json]) -> str:
        """Say who changed what, and by how much."""
        ids = [str(each) for each in answer_items(change, "revisions")]
        metric = str(answer["metric"])
        variant = "" if answer["variant"] == "plain" else f" ({answer['variant']})"
        effect = change.get("effect")
        inner = self._innermost(change)
        if len(ids) > 1:
            span = f"{Revision(id=ids[0]).short} to {Revision(id=ids[-1]).short}"
            who = f"One of {len(ids)} revisions, {span},"
            if change.get("kind") == "ramp":
                slowly = f"changed little by little over {len(ids)} revisions, {span}{answer_by(effect)}"
                return f"{metric}{variant} {slowly}."
        elif inner and inner != ids[0]:
            who = f"{self._of_merge(ids[0], inner)}, which {Revision(id=ids[0]).short} merged,"
        else:
            who = self.title(ids[0])
        if metric == "works":
            return f"{who} is where it stopped or began to work{variant}."
        return f"{who} changed {metric}{variant}{answer_by(effect)}{answer_judged(change, str(answer['better']))}."

    def inside(self, change: Mapping[str, Json]) -> Iterable[str]:
        """Say where a merge had its change from."""
        inside = change.get("inside")
        if isinstance(inside, dict):
            sure = inside.get("origin_confidence")
            told = f" ({probability(sure)})" if isinstance(sure, float) else ""
            merge = Revision(id=str(answer_items(change, "revisions")[0])).short
            yield f"{merge} is a merge; the change came from the {inside['origin']}: {inside['reason']}{told}."
            yield from self.inside(inside)

    def _innermost(self, change: Mapping[str, Json]) -> str | None:
        inside = change.get("inside")
        if not isinstance(inside, dict):
            return None
        ids = answer_items(inside, "revisions")
        return (self._innermost(inside) or str(ids[0])) if len(ids) == 1 else None

    def _of_merge(self, merge: str, id_: str) -> str:
        """Name a revision of a branch; the source is asked what the merge joined."""
        known = self._known.get(merge)
        joined = None if known is None else self._gathered.view.source.merge(known)
        branches = () if joined is None else joined.branches
        found = {revision.id: revision for branch in branches for revision in branch.revisions}
        return revision_title(found.get(id_, Revision(id=id_)))


def _changed(gathered: Gathered, largest: HistoryChange) -> Verdict:
    point, unit = largest.point, largest.row.unit
    followed = gathered.followed(largest.row)
    better: Tone = "better" if (point.effect < 1.0) == (followed.better == "lower") else "worse"
    where = revision_title(largest.row.subject.revision)
    who = (
        where if len(largest.candidates) == 1 else f"One of {len(largest.candidates)} revisions up to {where}"
    )
    count = len(gathered.changes)
    return Verdict(
        sentence=f"{who} changed {row_metric(largest.row)}: {relative(point.effect)} ({better}).",
        tone=better,
        facts=(
            Fact(label="Effect", text=effect_words(point.effect, point.low, point.high)),
            Fact(
                label="Levels",
                text=f"before {quantity(point.before, unit)}, after {quantity(point.after, unit)}",
            ),
            Fact(
                label="Certainty",
                text=certainty_words(point),
            ),
            Fact(label="Measured", text=f"{len(gathered.measured)} of {len(gathered.revisions)} revisions"),
        ),
        notes=((f"{count} changes in all; the largest of this figure is named here.",) if count > 1 else ()),
    )


def _measured(gathered: Gathered) -> Verdict:
    lead = gathered.lead
    known = gathered.rows if lead is None else gathered.rows_of(lead)
    found = [row for row in known if row.values]
    if not found:
        return Verdict(sentence="Nothing has been measured yet.", tone="unclear", facts=())
    last = found[-1]
    several = len({row.subject.revision for row in found}) > 1
    said = "No change was seen along the history. The newest: " if several else ""
    return Verdict(
        sentence=f"{said}{row_metric(last)} is {row_figure(last)}.",
        tone="plain",
        facts=(
            Fact(label="Measured", text=f"{len(gathered.measured)} of {len(gathered.revisions)} revisions"),
        ),
        notes=_besides(gathered),
    )


def _besides(gathered: Gathered) -> tuple[str, ...]:
    """What must be said beside an answer that no search gave."""
    notes = []
    if gathered.changes and gathered.largest_change is None:
        count = counted(len(gathered.changes), "change")
        notes.append(f"Other figures changed along the history: {count} in all.")
    if gathered.search is not None:
        notes.append("A search was begun and has not ended; perftrail find goes on with it.")
    return tuple(notes)


def _nothing(answers: Sequence[Mapping[str, Json]]) -> str:
    metrics = ", ".join(str(each["metric"]) for each in answers[:MOST_NAMED])
    if all(each["verdict"] == "none" for each in answers):
        return f"No revision changed {metrics} by {answer_smallest(answers[0])} or more."
    return f"Whether {metrics} changed is unclear."


def _said(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _reservations(answers: Sequence[Mapping[str, Json]]) -> Iterable[str]:
    """What limits the answer."""
    marked = max((answer_figure(each.get("marked", 0)) for each in answers), default=0.0)
    none = any(each["verdict"] == "none" for each in answers)
    yield from (f"{words[0].upper()}{words[1:]}." for words in marked_words(round(marked), none=none))
    yield from dict.fromkeys(str(text) for each in answers for text in answer_items(each, "elsewhere"))
