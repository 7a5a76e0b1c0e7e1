"""The answer of a report, and its sections on the search and on the study's claims.

The answer is that of the last search or comparison. Without one, it is the largest change along the history, or the
largest difference between subjects.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from perftrail.charts.posterior import BelievedStep, belief
from perftrail.find.answer import noisy_words
from perftrail.model.program import layout_words, layouts_explain
from perftrail.model.wording import change as relative
from perftrail.model.wording import (
    counted,
    escaped,
    listed,
    number,
    percent,
    probability,
)
from perftrail.present.answer_sentence import (
    also_words,
    certificate_words,
    change_sentence,
    effect_of,
    headline_of,
    levels_of,
    revision_name,
    stored_answers,
    stored_cost,
    verdict_word,
)
from perftrail.present.html_page import Fact, Section, Table, Verdict
from perftrail.present.report.comparisons import compared_verdict
from perftrail.present.report.history import culprits, records
from perftrail.present.report.words import certainty_words, row_metric
from perftrail.present.shared_sentences import (
    capitalised,
    effect_words,
    estimate_words,
    interval_words,
    levels_words,
    sentence,
)
from perftrail.results.claims import ClaimVerdict, Power, Ratio, Reach, judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.store_records import StepRecord
    from perftrail.present.answer_sentence import AnswerFound, ChangeFound
    from perftrail.present.html_page import Tone
    from perftrail.present.report.comparisons import SideBySide
    from perftrail.present.report.gathered import Gathered
    from perftrail.results.changes import HistoryChange
    from perftrail.results.claims import Judgement


def difference(gathered: Gathered, compared: Sequence[SideBySide], *, notes: tuple[str, ...]) -> Verdict:
    """Return how the subjects differ: in the metric of the study's question, else the largest certain difference."""
    about = [each for each in compared if each.in_question] or compared
    sure = [each for each in about if each.differs]
    if not sure:
        return _alike(compared, about, notes)
    lead = gathered.lead
    asked = [each for each in sure if lead and (each.benchmark, each.metric) == (lead.benchmark, lead.metric)]
    result = asked or sure
    best = max(result, key=lambda each: each.size)
    alike = [each for each in result if (each.benchmark, each.metric) == (best.benchmark, best.metric)]
    found = best.comparison
    words = ", ".join(f"{each.name} {relative(each.comparison.effect)} ({each.words})" for each in alike)
    metric = best.qualified_metric if best.in_question else f"{best.benchmark}.{best.metric}"
    return Verdict(
        sentence=f"{metric} against {best.reference}: {words}.",
        tone=_tone({each.words for each in alike}),
        facts=(
            Fact(
                label=f"Effect of {best.name}",
                text=effect_words(found.effect, found.low, found.high, interval="interval"),
            ),
            Fact(
                label="Certainty", text=f"{probability(found.confidence)}, {found.pairs} {_pair_words(best)}"
            ),
            _counted(compared),
            Fact(
                label="Cost",
                text=f"{sum(len(row.values) for row in gathered.rows)} samples",
            ),
        ),
        notes=(*notes, *_of_builds(gathered, best)),
    )


def _of_builds(gathered: Gathered, best: SideBySide) -> tuple[str, ...]:
    """Return a note that a difference of two revisions is one of two builds; empty for variants.

    It is also empty if memory layouts cannot explain the difference.
    """
    found = best.comparison
    if len(gathered.variants) > 1 or not best.interleaved:
        return ()
    if not layouts_explain(found.effect, found.low, found.high):
        return ()
    linked = gathered.is_linked(best.benchmark)
    return (f"{capitalised(layout_words(linked=linked))}.",)


def _alike(compared: Sequence[SideBySide], about: Sequence[SideBySide], notes: tuple[str, ...]) -> Verdict:
    """Return that no difference is certain, and the minimum detectable change."""
    same = all(each.verdict == "same" for each in about)
    minimums = [each.comparison.minimum_detectable for each in about]
    known = [each for each in minimums if each is not None]
    where = " everywhere" if len(about) > 1 else ""
    bound = f"a difference of {percent(max(known, default=0.0))} would have been detected{where}"
    if len(known) < len(minimums):
        few = [each for each in about if each.comparison.minimum_detectable is None]
        needed = max(each.needed for each in few)
        bound = (
            f"{len(few)} of {len(about)} comparisons have too few {few[0].counted} for a verdict, "
            f"which needs {needed}; increase [measure] invocations, then: perftrail run"
        )
    which = "No difference" if same else "No difference detected"
    if any(each.points > 1 for each in about):
        which += " on the whole"
    metric = f" in {about[0].qualified_metric}" if about[0].in_question else ""
    sentence = f"{which} from {about[0].reference}{metric}; {bound}."
    if disturbed := [each for each in about if not each.decides]:
        largest = max(disturbed, key=lambda each: each.size)
        sentence = (
            f"{largest.qualified_metric} against {largest.reference}: "
            f"{largest.name} {relative(largest.comparison.effect)}, "
            "but that is no evidence: other processes used the machine."
        )
    return Verdict(
        sentence=sentence,
        tone="plain" if same else "unclear",
        facts=(_counted(compared),),
        notes=notes,
    )


def _counted(compared: Sequence[SideBySide]) -> Fact:
    sure = sum(each.differs for each in compared)
    return Fact(
        label="Comparisons", text=f"{len(compared)}{f', of which {sure} certainly differ' if sure else ''}"
    )


def _pair_words(best: SideBySide) -> str:
    return "interleaved pairs" if best.interleaved else "values of each or more, not interleaved"


def answer_sure(found: ChangeFound) -> str:
    """Return the probability that the named culprit is right, including the search inside its merge."""
    which = "this revision" if len(found.candidates) == 1 else "one of these revisions"
    return f"{probability(found.confidence)} that {which} is the culprit"


def answer_certainty(answer: Mapping[str, Json]) -> str:
    """Return how certain an answer is."""
    return probability(answer_number(answer.get("confidence", 0.0)))


def answer_smallest(answer: Mapping[str, Json]) -> str:
    """Return the minimum detectable change."""
    least = answer.get("minimum_detectable")
    return percent(least) if isinstance(least, float) else "none: nothing could be measured"


def answer_items(of: Mapping[str, Json], name: str) -> list[Json]:
    """Return a list of an answer; empty if it is missing."""
    found = of.get(name)
    return found if isinstance(found, list) else []


def answer_number(value: Json) -> float:
    """Return a number of an answer; zero if it is missing."""
    return float(value) if isinstance(value, int | float) else 0.0


MOST_NAMED = 4

LONGEST_ANSWER = 600


def verdict(gathered: Gathered, compared: Sequence[SideBySide]) -> Verdict:
    """Return the answer of a report."""
    if gathered.answers:
        return _searched(gathered)
    if gathered.comparisons:
        return compared_verdict(gathered.comparisons[0])
    if gathered.largest_change is not None and len(gathered.variants) == 1:
        return _changed(gathered, gathered.largest_change)
    if compared:
        return difference(gathered, compared, notes=_other_notes(gathered))
    if gathered.largest_change is not None:
        return _changed(gathered, gathered.largest_change)
    return _measured(gathered)


def _searched(gathered: Gathered) -> Verdict:
    assert gathered.search is not None
    assert gathered.search.answer is not None
    known = gathered.by_id
    found = stored_answers(gathered.search.answer, known)
    text = escaped(sentence(headline_of(found)), longest=LONGEST_ANSWER)
    answers = sorted(gathered.answers, key=lambda each: not each.get("changes"))
    changes = [change for each in found for change in each.changes]
    cost = stored_cost(gathered.search.answer)
    if not changes:
        evidence = certificate_words(found[0])
        return Verdict(
            sentence=text,
            tone="unclear" if verdict_word(found) == "unclear" else "plain",
            facts=(
                Fact(label="Certainty", text=answer_certainty(answers[0])),
                Fact(label="Minimum detectable change", text=answer_smallest(answers[0])),
                *(Fact(label="Evidence", text=capitalised(each)) for each in evidence),
                Fact(label="Cost", text=cost),
            ),
            notes=(*_doubts(found), f"Why it ended: {answers[0].get('reason', '')}."),
        )
    change, *others = changes
    evidence, limits = certificate_words(change)[:1], certificate_words(change)[1:]
    also = also_words(change)
    facts = [
        Fact(label="Effect", text=effect_of(change)),
        Fact(label="Levels", text=levels_of(change)),
        Fact(label="Certainty", text=answer_sure(change)),
        *(Fact(label="Evidence", text=capitalised(each)) for each in evidence),
        Fact(label="Cost", text=cost),
    ]
    return Verdict(
        sentence=text,
        tone=_tone({each.tone for each in changes}),
        facts=tuple(fact for fact in facts if fact.text),
        notes=(
            *change.merges,
            *(f"{capitalised(each)}." for each in limits),
            *([f"{capitalised(also)}."] if also else []),
            *(
                f"Also: {escaped(change_sentence(each), longest=LONGEST_ANSWER)}."
                for each in others[: MOST_NAMED - 1]
            ),
            *_doubts(found),
            *_reservations(answers),
        ),
    )


def _doubts(found: Sequence[AnswerFound]) -> Iterator[str]:
    """Yield possible changes that the answers do not count: below the threshold, or only likely."""
    for answer in found:
        about = f"{answer.metric}: " if len(found) > 1 else ""
        yield from (f"{capitalised(f'{about}{doubt}')}." for doubt in answer.doubts)


def _tone(tones: set[str]) -> Tone:
    """Return the common tone of changes; plain if they differ, or if a size is unknown."""
    return "better" if tones == {"better"} else "worse" if tones == {"worse"} else "plain"


def _changed(gathered: Gathered, largest: HistoryChange) -> Verdict:
    point, unit = largest.point, largest.row.unit
    followed = gathered.followed(largest.row)
    better: Tone = "better" if (point.effect < 1.0) == (followed.better == "lower") else "worse"
    where = revision_name(largest.row.subject.revision)
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
                text=levels_words(point.before, point.after, unit, low=point.low, high=point.high),
            ),
            Fact(
                label="Certainty",
                text=certainty_words(point),
            ),
            Fact(label="Measured", text=f"{len(gathered.measured)} of {len(gathered.revisions)} revisions"),
        ),
        notes=((f"{count} changes in all; this is the largest of this metric.",) if count > 1 else ()),
    )


def _measured(gathered: Gathered) -> Verdict:
    lead = gathered.lead
    known = gathered.rows if lead is None else gathered.rows_of(lead)
    found = [row for row in known if row.values]
    if not found:
        return Verdict(sentence="Nothing has been measured yet.", tone="unclear", facts=())
    last = found[-1]
    several = len({row.subject.revision for row in found}) > 1
    prefix = "No change was detected along the history. The newest: " if several else ""
    return Verdict(
        sentence=f"{prefix}{row_metric(last)} is {estimate_words(last.estimate, last.unit)}.",
        tone="plain",
        facts=(
            Fact(label="Measured", text=f"{len(gathered.measured)} of {len(gathered.revisions)} revisions"),
        ),
        notes=_other_notes(gathered),
    )


def _other_notes(gathered: Gathered) -> tuple[str, ...]:
    """Return notes for an answer without a search."""
    notes = []
    if gathered.changes and gathered.largest_change is None:
        count = counted(len(gathered.changes), "change")
        notes.append(f"Other metrics changed along the history: {count} in all.")
    if gathered.search is not None:
        notes.append("A search has not ended; perftrail find resumes it.")
    return tuple(notes)


def _reservations(answers: Sequence[Mapping[str, Json]]) -> Iterable[str]:
    """Yield the limits of an answer."""
    noisy = max((answer_number(each.get("noisy", 0)) for each in answers), default=0.0)
    none = any(each["verdict"] == "none" for each in answers)
    yield from (f"{capitalised(words)}." for words in noisy_words(round(noisy), no_change=none))
    yield from dict.fromkeys(str(text) for each in answers for text in answer_items(each, "other_machines"))


def search_section(gathered: Gathered) -> Section | None:
    """Return the section on a search: its belief after each step, and each step in words."""
    if gathered.search is None or not gathered.steps:
        return None
    believed = [each for step in gathered.steps if (each := _believed(gathered, step)) is not None]
    drawn = any(each.changed for each in believed)
    question = gathered.search.question
    asked = f"What changed {question['metric']} between {question['first']} and {question['last']}?"
    return Section(
        name="search",
        title="How the search went",
        paragraphs=(
            escaped(asked, longest=400),
            *(f"{str(each).capitalize()}." for each in _priors(question)),
        ),
        chart=belief(believed, length=len(gathered.revisions), culprits=culprits(gathered))
        if drawn
        else None,
        tables=(
            Table(
                name="search-steps",
                head=("step", "action, result and belief"),
                rows=tuple((str(step.number), escaped(step.words, longest=400)) for step in gathered.steps),
                numbers=frozenset({0}),
            ),
        ),
    )


def _believed(gathered: Gathered, step: StepRecord) -> BelievedStep | None:
    """Return a step for the chart; `None` inside a merge, whose revisions are not in this history."""
    id_ = str(step.action.get("measure"))
    built = records(step.belief.get("built"))
    if id_ not in gathered.positions or any(
        str(each["revision"]) not in gathered.positions for each in built
    ):
        return None
    no_change = step.belief.get("no_change")
    return BelievedStep(
        number=step.number,
        position=gathered.positions[id_],
        words=escaped(step.words, longest=200),
        changed=tuple(
            (gathered.positions[str(each["revision"])], share)
            for each in built
            if isinstance(share := each["changed"], float)
        ),
        no_change=no_change if isinstance(no_change, float) else 0.0,
    )


def _priors(question: Mapping[str, Json]) -> list[str]:
    confidence, threshold = question.get("confidence"), question.get("threshold")
    parts = []
    if isinstance(confidence, float) and isinstance(threshold, float):
        parts.append(
            f"threshold {percent(threshold)}, required probability of the answer {probability(confidence)}"
        )
    priors = question.get("priors")
    return [
        *parts,
        *(escaped(str(each), longest=300) for each in (priors if isinstance(priors, list) else [])),
    ]


LONGEST_SENTENCE = 400


def claims_section(gathered: Gathered) -> Section | None:
    """Return the section on the study's claims; `None` without claims."""
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
    """Return the claim's own sentence."""
    return escaped(judged.claim.says, longest=LONGEST_SENTENCE)


def found_words(judged: Judgement) -> str:
    """Return the evidence on a claim."""
    claim, found = judged.claim, judged.evidence
    match found:
        case None:
            return escaped(judged.reason, longest=LONGEST_SENTENCE)
        case Ratio(comparison=effect):
            few = "" if effect.pairs >= effect.needed_pairs else f", {effect.needed_pairs} are needed"
            noise = ", some noisy" if found.disturbed else ""
            noise += "" if found.decides else ", so they support no verdict"
            return (
                f"{claim.variant} / {claim.against} = {interval_words(effect.effect, effect.low, effect.high)} "
                f"in {claim.metric} at {_points(found.points)}; "
                f"claimed {claim.ratio}; {probability(effect.confidence)}, {effect.pairs} pairs{few}{noise}"
            )
        case Power(exponent=exponent):
            return (
                f"{claim.variant} grows with the exponent {exponent.value:.2f} [{exponent.low:.2f}, "
                f"{exponent.high:.2f}] in {claim.metric} over {found.values} values of {claim.along}, "
                f"{number(found.first)} to {number(found.last)}; claimed {claim.exponent}"
            )
        case Reach():
            beyond = "nothing larger was tried"
            if found.refused is not None:
                beyond = f"{number(found.refused)} failed: {found.stage}"
            reached = f"{claim.variant} reaches {claim.along} {number(found.largest)}"
            return f"{reached}, {beyond}; claimed {claim.reaches}"
        case _:
            assert_never(found)


def counted_words(judged: Sequence[Judgement]) -> str:
    """Return the number of claims of each verdict."""
    counts = Counter(each.verdict for each in judged)
    return listed((f"{counts[verdict]} {verdict}" for verdict in ClaimVerdict if counts[verdict]), "and")


def _points(points: Sequence[Point]) -> str:
    """Return the values of points, combined for each parameter."""
    values: dict[str, dict[str, None]] = {}
    for point in points:
        for name, value in point.values:
            values.setdefault(name, {})[str(value)] = None
    return escaped(
        "; ".join(f"{name} {listed(each, 'and')}" for name, each in values.items()), longest=LONGEST_SENTENCE
    )
