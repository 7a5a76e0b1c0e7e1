"""The answer of a report, and its sections on the search and on the study's claims.

The answer is that of the last search or comparison. Without one, it is the largest change along the history, or the
largest difference between subjects.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from perftrail.charts.posterior import BelievedStep, belief
from perftrail.find.answer import noisy_words
from perftrail.model.metrics import improves
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
    culprit_words,
    effect_of,
    further_doubts,
    headline_of,
    levels_of,
    revision_name,
    scale_of,
    stored_answers,
    stored_cost,
    verdict_word,
)
from perftrail.present.html_page import Fact, Section, Table, Verdict
from perftrail.present.report.comparisons import compared_verdict
from perftrail.present.report.history import culprits, records
from perftrail.present.report.ranking import ranking_verdict
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
from perftrail.search.words import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.store_records import StepRecord
    from perftrail.present.answer_sentence import AnswerFacts, ChangeFacts
    from perftrail.present.html_page import Tone
    from perftrail.present.report.comparisons import SubjectComparison
    from perftrail.present.report.data import ReportData
    from perftrail.present.report.ranking import RankedQuantity
    from perftrail.results.changes import HistoryChange
    from perftrail.results.claims import Judgement


def difference_verdict(
    data: ReportData, compared: Sequence[SubjectComparison], *, notes: tuple[str, ...]
) -> Verdict:
    """Return how the subjects differ: in the metric of the study's question, else the largest certain difference."""
    about = [each for each in compared if each.in_question] or compared
    certain = [each for each in about if each.differs]
    if not certain:
        return _no_difference(compared, about, notes)
    lead = data.lead
    leading = [
        each for each in certain if lead and (each.benchmark, each.metric) == (lead.benchmark, lead.metric)
    ]
    candidates = leading or certain
    best = max(candidates, key=lambda each: each.size)
    same_metric = [
        each for each in candidates if (each.benchmark, each.metric) == (best.benchmark, best.metric)
    ]
    comparison = best.comparison
    words = ", ".join(
        f"{each.name} {relative(each.comparison.effect)} ({each.words})" for each in same_metric
    )
    metric = best.qualified_metric if best.in_question else f"{best.benchmark}.{best.metric}"
    return Verdict(
        sentence=f"{metric} against {best.reference}: {words}.",
        tone=_tone({each.words for each in same_metric}),
        facts=(
            Fact(
                label=f"Effect of {best.name}",
                text=effect_words(comparison.effect, comparison.low, comparison.high, interval="interval"),
            ),
            Fact(label="Certainty", text=f"{probability(comparison.confidence)}, {_pair_words(best)}"),
            _how_many_differ(compared),
            Fact(
                label="Cost",
                text=counted(sum(len(row.values) for row in data.rows), "sample"),
            ),
        ),
        notes=(*notes, *_layout_note(data, best)),
    )


def _layout_note(data: ReportData, best: SubjectComparison) -> tuple[str, ...]:
    """Return a note that the memory layouts of two revisions' builds may cause their difference.

    It is empty for variants, and if memory layouts cannot explain the difference.
    """
    comparison = best.comparison
    if len(data.variants) > 1 or not best.interleaved:
        return ()
    if not layouts_explain(comparison.effect, comparison.low, comparison.high):
        return ()
    linked = data.is_linked(best.benchmark)
    return (f"{capitalised(layout_words(linked=linked))}.",)


def _no_difference(
    compared: Sequence[SubjectComparison], about: Sequence[SubjectComparison], notes: tuple[str, ...]
) -> Verdict:
    """Return that no difference is certain, and the minimum detectable change."""
    same = all(each.verdict == "same" for each in about)
    minimums = [each.comparison.minimum_detectable for each in about]
    detectable = [each for each in minimums if each is not None]
    where = " everywhere" if len(about) > 1 else ""
    bound = f"a difference of {percent(max(detectable, default=0.0))} would have been detected{where}"
    if len(detectable) < len(minimums):
        few = [each for each in about if each.comparison.minimum_detectable is None]
        noun = few[0].unit_noun
        have = "has" if len(few) == 1 else "have"
        bound = (
            f"{len(few)} of {counted(len(about), 'comparison')} {have} too few {noun} for a verdict, "
            f"which needs {max(each.needed for each in few)} {noun}; increase [measure] invocations, "
            "then: perftrail run"
        )
    difference = "No difference" if same else "No difference detected"
    if any(each.points > 1 for each in about):
        difference += " over all points"
    metric = f" in {about[0].qualified_metric}" if about[0].in_question else ""
    text = f"{difference} from {about[0].reference}{metric}; {bound}."
    if disturbed := [each for each in about if not each.decides]:
        largest = max(disturbed, key=lambda each: each.size)
        text = (
            f"{largest.qualified_metric} against {largest.reference}: "
            f"{largest.name} {relative(largest.comparison.effect)}, "
            "but that is no evidence: other processes used the machine."
        )
    return Verdict(
        sentence=text,
        tone="plain" if same else "unclear",
        facts=(_how_many_differ(compared),),
        notes=notes,
    )


def _how_many_differ(compared: Sequence[SubjectComparison]) -> Fact:
    differing = sum(each.differs for each in compared)
    certain = (
        f", of which {differing} certainly {'differs' if differing == 1 else 'differ'}" if differing else ""
    )
    return Fact(label="Comparisons", text=f"{len(compared)}{certain}")


def _pair_words(best: SubjectComparison) -> str:
    count = best.comparison.pairs
    if best.interleaved:
        return counted(count, "interleaved pair")
    return f"at least {counted(count, 'value')} of each subject, not interleaved"


def culprit_certainty(change: ChangeFacts) -> str:
    """Return the probability that the named culprit is right, including the search inside its merge."""
    which = "this revision" if len(change.candidates) == 1 else "one of these revisions"
    return f"{probability(change.confidence)} that {which} is the culprit"


def answer_certainty(answer: Mapping[str, Json]) -> str:
    """Return how certain an answer is."""
    return probability(answer_number(answer.get("confidence", 0.0)))


def answer_minimum_detectable(answer: Mapping[str, Json]) -> str:
    """Return the minimum detectable change.

    >>> answer_minimum_detectable({"minimum_detectable": 0.09}), answer_minimum_detectable({})
    ('9 %', 'none: nothing could be measured')
    >>> [answer_minimum_detectable({"minimum_detectable": 0.09, "scale": scale}) for scale in ("rate", "<b>")]
    ['9 points', '9 %']
    """
    least = answer.get("minimum_detectable")
    if not isinstance(least, float):
        return "none: nothing could be measured"
    return amount(least, scale_of(answer), str(answer.get("unit", "")))


def _detectable(answer: Mapping[str, Json]) -> Iterator[Fact]:
    """Yield the minimum detectable change; nothing if a likely change is left, which the value leaves out."""
    if not answer.get("suspected"):
        yield Fact(label="Minimum detectable change", text=answer_minimum_detectable(answer))


def answer_items(answer: Mapping[str, Json], name: str) -> list[Json]:
    """Return a list of an answer; empty if it is missing."""
    items = answer.get(name)
    return items if isinstance(items, list) else []


def answer_number(value: Json) -> float:
    """Return a number of an answer; zero if it is missing."""
    return float(value) if isinstance(value, int | float) else 0.0


LONGEST_ANSWER = 600


def verdict(
    data: ReportData, compared: Sequence[SubjectComparison], ranked: Sequence[RankedQuantity] = ()
) -> Verdict:
    """Return the answer of a report; `ranked` are the ranks of a matrix's variants."""
    if data.answers:
        return _search_verdict(data)
    if data.comparisons:
        return compared_verdict(data.comparisons[0])
    if ranked:
        return ranking_verdict(data, ranked, notes=_other_notes(data))
    if data.largest_change is not None and (len(data.variants) == 1 or not compared):
        return _change_verdict(data, data.largest_change)
    if compared:
        return difference_verdict(data, compared, notes=_other_notes(data))
    return _value_verdict(data)


def _search_verdict(data: ReportData) -> Verdict:
    assert data.search is not None
    assert data.search.answer is not None
    revisions = data.by_id
    facts = stored_answers(data.search.answer, revisions)
    text = escaped(sentence(headline_of(facts)), longest=LONGEST_ANSWER)
    answers = sorted(data.answers, key=lambda each: not each.get("changes"))
    changes = [change for each in facts for change in each.changes]
    cost = stored_cost(data.search.answer)
    if not changes:
        evidence = certificate_words(facts[0])
        return Verdict(
            sentence=text,
            tone="unclear" if verdict_word(facts) == "unclear" else "plain",
            facts=(
                Fact(label="Certainty", text=answer_certainty(answers[0])),
                *_detectable(answers[0]),
                *(Fact(label="Evidence", text=capitalised(each)) for each in evidence),
                Fact(label="Cost", text=cost),
            ),
            notes=(*_doubts(facts), f"Why it ended: {answers[0].get('reason', '')}."),
        )
    table = _table_of(changes) if len(changes) > 1 else None
    labelled = _change_facts(changes[0]) if table is None else ()
    account = facts[0].account_below_sentence if len(facts) == 1 else ""
    also = [(each, also_words(each)) for each in changes]
    return Verdict(
        sentence=text,
        tone=_tone({each.tone for each in changes}),
        facts=tuple(
            fact
            for fact in (
                Fact(label="Whole difference", text=capitalised(account)),
                *labelled,
                Fact(label="Cost", text=cost),
            )
            if fact.text
        ),
        table=table,
        notes=(
            *(merge for each in changes for merge in each.merges),
            *_limits(changes),
            *(
                f"{capitalised(words) if table is None else words.replace('it', each.candidates[-1].short, 1)}."
                for each, words in also
                if words
            ),
            *_doubts(facts),
            *_reservations(answers),
        ),
    )


def _change_facts(change: ChangeFacts) -> Iterator[Fact]:
    yield Fact(label="Effect", text=effect_of(change))
    yield Fact(label="Levels", text=levels_of(change))
    yield Fact(label="Certainty", text=culprit_certainty(change))
    for each in certificate_words(change)[:1]:
        yield Fact(label="Evidence", text=capitalised(each))


def _limits(changes: Sequence[ChangeFacts]) -> Iterator[str]:
    """Yield what the evidence leaves open, each sentence once, with its revisions unless it is about all."""
    revisions: dict[str, list[str]] = {}
    for each in changes:
        for limit in certificate_words(each)[1:]:
            revisions.setdefault(limit, []).append(each.candidates[-1].short)
    for limit, about in revisions.items():
        yield f"{capitalised(limit)}." if len(about) == len(changes) else f"{listed(about, 'and')}: {limit}."


def _table_of(changes: Sequence[ChangeFacts]) -> Table:
    """Return a table of several changes."""
    several_metrics = len({each.metric for each in changes}) > 1
    head = (
        "revision",
        *(("metric",) if several_metrics else ()),
        "change",
        "levels",
        "probability",
        "evidence",
    )
    return Table(
        name="changes",
        head=head,
        rows=tuple(
            (
                escaped(culprit_words(each).removesuffix(","), longest=LONGEST_ANSWER),
                *((escaped(each.metric),) if several_metrics else ()),
                each.began or effect_of(each),
                levels_of(each),
                probability(each.confidence),
                *(certificate_words(each)[:1] or ("",)),
            )
            for each in changes
        ),
        whole=True,
    )


def _doubts(answers: Sequence[AnswerFacts]) -> Iterator[str]:
    """Yield possible changes that the answers do not count: below the threshold, or only likely."""
    for answer in answers:
        about = f"{answer.metric}: " if len(answers) > 1 else ""
        doubts = answer.doubts if about else further_doubts(answer)
        yield from (f"{capitalised(f'{about}{doubt}')}." for doubt in doubts)


def _tone(tones: set[str]) -> Tone:
    """Return the common tone of changes; plain if they differ, or if a size is unknown."""
    return "better" if tones == {"better"} else "worse" if tones == {"worse"} else "plain"


def _change_verdict(data: ReportData, largest: HistoryChange) -> Verdict:
    point, unit = largest.point, largest.row.unit
    history_metric = data.history_metric(largest.row)
    better: Tone = "better" if improves(point.effect, history_metric.better) else "worse"
    where = revision_name(largest.row.subject.revision)
    culprit = (
        where if len(largest.candidates) == 1 else f"One of {len(largest.candidates)} revisions up to {where}"
    )
    count = len(data.changes)
    return Verdict(
        sentence=f"{culprit} changed {row_metric(largest.row)}: {relative(point.effect)} ({better}).",
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
            Fact(label="Measured", text=f"{len(data.measured)} of {len(data.revisions)} revisions"),
        ),
        notes=(
            (f"The history has {count} changes; this is the largest of this metric.",) if count > 1 else ()
        ),
    )


def _value_verdict(data: ReportData) -> Verdict:
    lead = data.lead
    rows = data.rows if lead is None else data.rows_of(lead)
    measured = [row for row in rows if row.values]
    if not measured:
        return Verdict(sentence="No samples yet; warm-ups do not count.", tone="unclear", facts=())
    last = measured[-1]
    several = len({row.subject.revision for row in measured}) > 1
    prefix = "No change was detected along the history. The newest: " if several else ""
    return Verdict(
        sentence=f"{prefix}{row_metric(last)} is {estimate_words(last.estimate, last.unit)}.",
        tone="plain",
        facts=(Fact(label="Measured", text=f"{len(data.measured)} of {len(data.revisions)} revisions"),),
        notes=_other_notes(data),
    )


def _other_notes(data: ReportData) -> tuple[str, ...]:
    """Return notes for an answer without a search."""
    notes = []
    if data.changes and data.largest_change is None:
        count = counted(len(data.changes), "change")
        notes.append(f"Other metrics changed along the history: {count}.")
    if data.search is not None:
        notes.append("A search has not ended; perftrail find resumes it.")
    return tuple(notes)


def _reservations(answers: Sequence[Mapping[str, Json]]) -> Iterable[str]:
    """Yield the limits of an answer."""
    noisy = max((answer_number(each.get("noisy", 0)) for each in answers), default=0.0)
    none = any(each["verdict"] == "none" for each in answers)
    mostly = any(each.get("mostly_noisy") is True for each in answers)
    yield from (
        f"{capitalised(words)}." for words in noisy_words(round(noisy), no_change=none, mostly=mostly)
    )
    yield from dict.fromkeys(str(text) for each in answers for text in answer_items(each, "other_machines"))
    yield from (
        f"perftrail searched by instructions and certified by {escaped(str(each['certified_metric']))}."
        for each in answers
        if each.get("searched_metric") == "instructions" and each.get("certified_metric")
    )


def search_section(data: ReportData) -> Section | None:
    """Return the section on a search: its belief after each step, and each step in words."""
    if data.search is None or not data.steps:
        return None
    believed = [each for step in data.steps if (each := _believed_step(data, step)) is not None]
    has_belief = any(each.changed for each in believed)
    question = data.search.question
    title = f"What changed {question['metric']} between {question['first']} and {question['last']}?"
    return Section(
        name="search",
        title="How the search went",
        paragraphs=(
            escaped(title, longest=400),
            *(f"{str(each).capitalize()}." for each in _priors(question)),
        ),
        chart=belief(believed, length=len(data.revisions), culprits=culprits(data)) if has_belief else None,
        tables=(
            Table(
                name="search-steps",
                head=("step", "action, result and belief"),
                rows=tuple((str(step.number), escaped(step.words, longest=400)) for step in data.steps),
                numbers=frozenset({0}),
            ),
        ),
    )


def _believed_step(data: ReportData, step: StepRecord) -> BelievedStep | None:
    """Return a step for the chart; `None` inside a merge, whose revisions are not in this history."""
    id_ = str(step.action.get("measure"))
    built = records(step.belief.get("built"))
    if id_ not in data.positions or any(str(each["revision"]) not in data.positions for each in built):
        return None
    no_change = step.belief.get("no_change")
    return BelievedStep(
        number=step.number,
        position=data.positions[id_],
        words=escaped(step.words, longest=200),
        changed=tuple(
            (data.positions[str(each["revision"])], share)
            for each in built
            if isinstance(share := each["changed"], float)
        ),
        no_change=no_change if isinstance(no_change, float) else 0.0,
    )


def _priors(question: Mapping[str, Json]) -> list[str]:
    """Return the threshold and required probability of a search, and its priors, in words."""
    confidence, threshold = question.get("confidence"), question.get("threshold")
    requirements = []
    if isinstance(confidence, float) and isinstance(threshold, float):
        requirements.append(
            f"threshold {percent(threshold)}, required probability of the answer {probability(confidence)}"
        )
    priors = question.get("priors")
    return [
        *requirements,
        *(escaped(str(each), longest=300) for each in (priors if isinstance(priors, list) else [])),
    ]


LONGEST_SENTENCE = 400


def claims_section(data: ReportData) -> Section | None:
    """Return the section on the study's claims; `None` without claims."""
    if not data.view.study.claims:
        return None
    judged = judge(data.view, measured=data.measured_here)
    rows = tuple((claim_words(each), str(each.verdict), evidence_words(each)) for each in judged)
    return Section(
        name="claims",
        title="Claims",
        paragraphs=(f"{counted_words(judged)}.",),
        tables=(Table(name="claims", head=("claim", "verdict", "found"), rows=rows, whole=True),),
    )


def claim_words(judged: Judgement) -> str:
    """Return the claim's own sentence."""
    return escaped(judged.claim.says, longest=LONGEST_SENTENCE)


def evidence_words(judged: Judgement) -> str:
    """Return the evidence on a claim."""
    claim, evidence = judged.claim, judged.evidence
    match evidence:
        case None:
            return escaped(judged.reason, longest=LONGEST_SENTENCE)
        case Ratio(comparison=effect):
            few = (
                ""
                if effect.pairs >= effect.needed_pairs
                else f" of the {effect.needed_pairs} that a verdict needs"
            )
            noise = ", some noisy" if evidence.disturbed else ""
            noise += "" if evidence.decides else ", so they support no verdict"
            return (
                f"{claim.variant} / {claim.against} = {interval_words(effect.effect, effect.low, effect.high)} "
                f"in {claim.metric} at {_points(evidence.points)}; "
                f"claimed {claim.ratio}; {probability(effect.confidence)}, {counted(effect.pairs, 'pair')}{few}{noise}"
            )
        case Power(exponent=exponent):
            return (
                f"{claim.variant} grows with the exponent {exponent.value:.2f} [{exponent.low:.2f}, "
                f"{exponent.high:.2f}] in {claim.metric} over {evidence.values} values of {claim.along}, "
                f"{number(evidence.first)} to {number(evidence.last)}; claimed {claim.exponent}"
            )
        case Reach():
            beyond = "nothing larger was tried"
            if evidence.refused is not None:
                beyond = f"{number(evidence.refused)} failed: {evidence.stage}"
            reached = f"{claim.variant} reaches {claim.along} {number(evidence.largest)}"
            return f"{reached}, {beyond}; claimed {claim.reaches}"
        case _:
            assert_never(evidence)


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
