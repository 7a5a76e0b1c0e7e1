"""The answer of a search in one sentence, the same in every output.

The words come from the answer's JSON: `stored_answers` reads it from the store, `answer_facts` from the result of a
search that just ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from perftrail.find.other_metrics import AlsoChanged
from perftrail.model.benchmark import Point
from perftrail.model.program import layouts_explain
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Revision
from perftrail.model.target import WORKS
from perftrail.model.wording import change as relative
from perftrail.model.wording import counted, duration, escaped, listed, probability, quantity
from perftrail.present.shared_sentences import effect_words, levels_words
from perftrail.search import Effect, Kind, Summary, words
from perftrail.search.answer import Suspicion
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.find.answer import FindAnswer, FindTable
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import Better


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFacts:
    """The facts about a change that its sentences state: metric, culprit, size, and certainty.

    `culprit` is the revision inside a merge, if known. `confidence` is the probability that everything named is
    right. `before` and `after` are the levels in `unit`, for a search for failures the probabilities that the program
    works. `began` describes a program that began to fail or to work; else it is empty. `position` is that of the
    first candidate in the history. `merges` says, merge by merge, where the change came from. `linked`: whether a
    linker made the measured program. `at_least`: runs timed out, so the change is at least as large.
    """

    metric: str
    candidates: tuple[Revision, ...]
    confidence: float
    effect: Effect | None = None
    better: Better = "lower"
    ramp: bool = False
    culprit: Revision | None = None
    unit: str = ""
    before: float | None = None
    after: float | None = None
    began: str = ""
    position: int = 0
    certificate: Summary | None = None
    also: tuple[AlsoChanged, ...] = ()
    merges: tuple[str, ...] = ()
    linked: bool = True
    pinned: bool = False
    at_least: bool = False

    @property
    def tone(self) -> str:
        """``better`` or ``worse``, as the study defines it; empty for a change of unknown size."""
        if self.effect is None:
            return ""
        return "better" if self.effect.improves(self.better) else "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """The facts about one metric that the sentences of a search's answer state.

    `no_change_sentence` replaces the usual sentence of an answer without changes. `mostly_noisy`: other processes used
    the machine during most samples, which can hide a change, for example in how threads scale.

    `ends` is the difference from end to end; `account` states it, and what the changes do not explain of it. `unseen`
    states which revisions were not measured. `smaller` are certain changes below the threshold. `doubts` are changes
    that are not in the answer: below the threshold, or only likely; `suspicion` is the first likely one, with the
    metric. `scale` is how values are compared, and `minimum_detectable` is on it.
    """

    metric: str
    verdict: str
    confidence: float
    minimum_detectable: float
    changes: tuple[ChangeFacts, ...]
    scale: Scale = Scale.RATIO
    unit: str = ""
    ends: Effect | None = None
    account: str = ""
    unseen: str = ""
    smaller: tuple[Effect, ...] = ()
    suspicion: str = ""
    no_change_sentence: str = ""
    mostly_noisy: bool = False
    certificate: Summary | None = None
    doubts: tuple[str, ...] = ()
    pinned: bool = False

    @property
    def account_below_sentence(self) -> str:
        """The account without what this answer's sentence states: with several changes, the difference of the ends."""
        return self.account.partition("; ")[2] if len(self.changes) > 1 else self.account


def headline_of(answers: Sequence[AnswerFacts]) -> str:
    """Return the first line of every output: one word that sums up the answer, and the sentence."""
    return f"{verdict_word(answers)}: {answer_sentence(answers)}"


def answer_sentence(answers: Sequence[AnswerFacts]) -> str:
    """Return what a search found about one or several metrics."""
    if len(answers) > 1:
        return _about_several(answers)
    (answer,) = answers
    if len(answer.changes) > 1:
        names = ", ".join(_short(change) for change in sorted(answer.changes, key=_smallness))
        ends = (
            ""
            if answer.ends is None
            else f", from end to end {words.interval_words(answer.ends, answer.unit)}"
        )
        return f"{len(answer.changes)} changes of {answer.metric}{ends}: {names}"
    if answer.changes:
        return change_sentence(answer.changes[0])
    return answer.no_change_sentence or _no_change(answer)


def _smallness(change: ChangeFacts) -> float:
    """Return a key that sorts the largest change first."""
    return 0.0 if change.effect is None else -abs(change.effect.size)


def verdict_word(answers: Sequence[AnswerFacts]) -> str:
    """Return the first word of an answer; ``unclear`` if a metric may have changed undetected."""
    if len(answers) == 1:
        return answers[0].verdict
    if any(answer.changes for answer in answers):
        return "found"
    return "unclear" if any(answer.verdict == "unclear" for answer in answers) else "none"


def change_sentence(change: ChangeFacts) -> str:
    """Return one change in a sentence: culprit, metric, size, and certainty."""
    certainty = f"probability {probability(change.confidence)}"
    culprit = culprit_words(change)
    if change.began:
        return f"{culprit} {change.began}, {certainty}"
    if change.ramp and len(change.candidates) > 1:
        revisions = f"{len(change.candidates)} revisions, {_span(change.candidates)}"
        return f"{change.metric} changed little by little over {revisions}: {effect_of(change)}, {certainty}"
    return f"{culprit} changed {change.metric}: {effect_of(change)}, {certainty}"


def culprit_words(change: ChangeFacts) -> str:
    """Return the culprit of a change, with the merge that brought it, or the range of candidates."""
    if len(change.candidates) > 1:
        return f"one of {len(change.candidates)} revisions, {_span(change.candidates)},"
    (merge,) = change.candidates
    if change.culprit is None or change.culprit.id == merge.id:
        return revision_name(merge)
    return f"{revision_name(change.culprit)}, which {merge.short} merged,"


def effect_of(change: ChangeFacts) -> str:
    """Return the effect of a change: direction, better or worse, ratio and interval."""
    if change.effect is None:
        return "of unknown size"
    size = effect_and_interval(change.effect, change.unit, tone=change.tone)
    return f"at least {size}, as runs timed out" if change.at_least else size


def effect_and_interval(effect: Effect, unit: str, *, tone: str = "") -> str:
    """Return a change with its 95 % interval; also `tone`, ``better`` or ``worse``, if it is not empty."""
    if effect.scale is Scale.RATIO:
        return effect_words(effect.value, effect.low, effect.high, tone=tone)
    size = words.moved(effect, unit)
    return f"{size} ({f'{tone}; ' if tone else ''}95 % interval {words.bounds_words(effect, unit)})"


def levels_of(change: ChangeFacts) -> str:
    """Return the values on both sides of a change; empty if they are unknown."""
    if change.before is None or change.after is None:
        return ""
    if change.began:
        before, after = probability(change.before), probability(change.after)
        return f"the program works with probability {before} before, {after} after"
    if change.effect is not None and change.effect.scale is Scale.RATE:
        return f"{probability(change.before)} of the runs before, {probability(change.after)} after"
    if change.effect is not None and change.effect.scale is Scale.DIFFERENCE:
        return f"before {quantity(change.before, change.unit)}, after {quantity(change.after, change.unit)}"
    ratio = change.after / change.before if change.before else 0.0
    low, high = (ratio, ratio) if change.effect is None else (change.effect.low, change.effect.high)
    return levels_words(change.before, change.after, change.unit, low=low, high=high)


def certificate_words(facts: ChangeFacts | AnswerFacts) -> tuple[str, ...]:
    """Return the evidence for a change, with its limits, or for the answer that nothing changed."""
    if facts.certificate is None:
        return ()
    if isinstance(facts, AnswerFacts):
        return (words.certified_equal(facts.certificate, pinned=facts.pinned),)
    effect, scale = facts.effect, Scale.RATIO if facts.effect is None else facts.effect.scale
    factor = 1.0
    if effect is not None and scale is Scale.RATIO:
        factor = effect.value if layouts_explain(effect.value, effect.low, effect.high) else math.inf
    elif facts.before is not None and facts.after is not None:
        factor = facts.after / facts.before if facts.before * facts.after > 0.0 else math.inf
    limits = words.reservations(facts.certificate, factor, linked=facts.linked, scale=scale, unit=facts.unit)
    return (words.certified(facts.certificate, pinned=facts.pinned), *limits)


MOST_NAMED = 5


def also_words(change: ChangeFacts) -> str:
    """Return other metrics that a change affected, in one line; empty if its own size explains them.

    A time that changes as much as the metric does is not listed.
    """
    own_effect = change.effect
    effects = [
        f"{each.metric}{f' at {each.point}' if each.point.values else ''} {relative(each.effect.value)} "
        f"({'better' if each.is_better else 'worse'})"
        for each in change.also
        if own_effect is None
        or each.unit != "s"
        or own_effect.scale is not Scale.RATIO
        or not each.effect.low <= own_effect.value <= each.effect.high
    ]
    if not effects:
        return ""
    more = f" and {len(effects) - MOST_NAMED} more; --json names all" if len(effects) > MOST_NAMED else ""
    return f"it also changed {', '.join(effects[:MOST_NAMED])}{more}"


def cost_words(answer: FindAnswer | FindTable) -> str:
    """Return the cost of a search that just ended: of all its work, and of the part that this command performed."""
    new = answer.new
    count = _count(answer.builds, len(answer.revisions), answer.unusable_count, answer.invocations)
    stored = max(answer.seconds - new.seconds, 0.0)
    if new.builds == answer.builds and new.invocations == answer.invocations:
        return f"{count}, {duration(answer.seconds)} of building and measuring"
    if not new.builds and not new.invocations:
        return f"{count}, all of them stored before ({duration(stored)} of building and measuring)"
    added = [counted(new.builds, "build")] * bool(new.builds)
    added += [counted(new.invocations, "invocation")] * bool(new.invocations)
    return (
        f"{count}\nNew: {listed(added, 'and')}, {duration(new.seconds)} of building and measuring. "
        f"The rest was stored before ({duration(stored)})."
    )


def elapsed_words(answer: FindAnswer | FindTable, elapsed: float) -> Iterator[str]:
    """Yield the time that a command took in seconds, and its parts; nothing if it only built and measured.

    0: the time is unknown.
    """
    rest = elapsed - answer.new.seconds
    if not elapsed or abs(rest) < max(1.0, 0.05 * elapsed):
        return
    if rest < 0.0:
        yield f"The command took {duration(elapsed)}; the seconds of parallel builds add up to more."
        return
    yield (
        f"The command took {duration(elapsed)}: {duration(answer.new.seconds)} of building and measuring, and "
        f"{duration(rest)} of the rest: reading the history, profiles, counts and pauses."
    )


def stored_cost(record: Mapping[str, Json]) -> str:
    """Return the cost of a stored search."""
    unusable = sum(each.get("stage") != "skipped" for each in _dicts(record, "failures"))
    unusable = max(unusable, round(_number(record.get("unusable"))))  # of a search for several metrics
    builds, revisions, invocations = (
        round(_number(record.get(name))) for name in ("builds", "revisions", "invocations")
    )
    count = _count(builds, revisions, unusable, invocations)
    return f"{count}, {duration(_number(record.get('seconds')))} of building and measuring"


def _count(builds: int, revisions: int, unusable: int, invocations: int) -> str:
    """Return the numbers of builds and invocations; builds inside merges are of revisions outside the range.

    >>> _count(4, 7, 1, 90)
    '4 of 7 revisions built, 1 of them unusable, 90 invocations'
    >>> _count(10, 6, 0, 175)
    '10 revisions built for a range of 6, because of those inside merges, 175 invocations'
    """
    failed = f", {unusable} of them unusable" if unusable else ""
    built = f"{builds} of {counted(revisions, 'revision')} built"
    if builds > revisions:
        built = f"{builds} revisions built for a range of {revisions}, because of those inside merges"
    return f"{built}{failed}, {counted(invocations, 'invocation')}"


def revision_name(revision: Revision) -> str:
    """Return the name of a revision for people: short id, label, and message.

    >>> revision_name(Revision(id="7db47911ce", label="v1.0", summary="Mix more"))
    '7db47911ce (v1.0) “Mix more”'
    >>> revision_name(Revision(id="7db47911ce", label="staged (1 file changed)", summary="words.c"))
    '7db47911ce, staged (1 file changed) “words.c”'
    """
    label = escaped(revision.label) if revision.label != revision.id else ""
    if label:
        label = f", {label}" if label.endswith(")") else f" ({label})"
    has_message = revision.summary and revision.id not in revision.summary
    message = f" “{escaped(revision.summary)}”" if has_message else ""
    return f"{revision.short}{label}{message}"


def change_facts(answer: FindAnswer, number: int) -> ChangeFacts:
    """Return a change of a search that just ended, for its words."""
    return answer_facts(answer).changes[number]


def answer_facts(answer: FindAnswer) -> AnswerFacts:
    """Return the answer of a search that just ended about one metric, for its words."""
    revisions = {revision.id: revision for revision in answer.revisions}
    return _stored_answer(cast("Mapping[str, Json]", answer.as_json()), revisions)


def stored_answers(record: Mapping[str, Json], known: Mapping[str, Revision]) -> tuple[AnswerFacts, ...]:
    """Return the answers of a stored search; `known` has the revisions of its history by id."""
    several = record.get("metrics")
    answers = several if isinstance(several, list) else [record]
    return tuple(_stored_answer(each, known) for each in answers if isinstance(each, dict))


def _stored_answer(answer: Mapping[str, Json], known: Mapping[str, Revision]) -> AnswerFacts:
    failures = _dicts(answer, "failures")
    least = None if answer.get("suspected") else answer.get("minimum_detectable")
    verdict, confidence = str(answer["verdict"]), _number(answer.get("confidence"))
    searched_for_failures = _searched_for_failures(answer)
    return AnswerFacts(
        metric=_metric(answer),
        verdict=verdict,
        confidence=confidence,
        minimum_detectable=least if isinstance(least, float) else math.inf,
        scale=scale_of(answer),
        unit=str(answer.get("unit", "")),
        changes=tuple(stored_change(answer, change, known) for change in _dicts(answer, "changes")),
        ends=_effect(answer, scale_of(answer), "ends"),
        account=_account(answer),
        unseen=_unseen(answer),
        smaller=tuple(
            effect
            for each in _dicts(answer, "below_threshold")
            if (effect := _effect(each, scale_of(answer))) is not None
        ),
        suspicion=next(_suspicions(answer, _metric(answer)), ""),
        no_change_sentence=_never_began(
            verdict, confidence, round(_number(answer.get("builds"))), len(failures), least
        )
        if searched_for_failures
        else "",
        mostly_noisy=answer.get("mostly_noisy") is True,
        certificate=_certificate(answer),
        doubts=tuple(_doubts(answer)),
        pinned=answer.get("pinned") is True,
    )


def _account(answer: Mapping[str, Json]) -> str:
    """Return the difference of the ends, and the rest without the changes; empty if one of them is gradual."""
    changes = _dicts(answer, "changes")
    if any(each.get("kind") == Kind.RAMP for each in changes):
        return ""
    ends, rest = (_effect(answer, scale_of(answer), name) for name in ("ends", "rest"))
    return words.account_words(ends, rest, len(changes), str(answer.get("unit", "")))


def _doubts(answer: Mapping[str, Json]) -> Iterator[str]:
    """Yield possible changes that are not in the answer: below the threshold, or only likely."""
    for each in _dicts(answer, "below_threshold"):
        effect, candidates = _effect(each, scale_of(answer)), _revisions(each, {})
        size = "" if effect is None else f": {effect_and_interval(effect, str(answer.get('unit', '')))}"
        where = (
            f"one of {len(candidates)}, {_span(candidates)}" if len(candidates) > 1 else candidates[0].short
        )
        yield f"a change below the threshold at {where}{size}"
    yield from _suspicions(answer)


def further_doubts(answer: AnswerFacts) -> tuple[str, ...]:
    """Return the doubts of a single answer, without the likely change that its sentence names."""
    named = bool(answer.suspicion) and answer_sentence([answer]) == answer.suspicion
    likely = next((each for each in answer.doubts if each.startswith("likely ")), "") if named else ""
    return tuple(each for each in answer.doubts if each != likely)


def _suspicions(answer: Mapping[str, Json], metric: str = "") -> Iterator[str]:
    """Yield the changes, of `metric` if it is not empty, that are likely and not certified."""
    for each in _dicts(answer, "suspected"):
        ids, blocks, possible = each.get("revisions"), each.get("blocks_left"), each.get("possible")
        observed = each.get("observed")
        names = [Revision(id=str(id_)).short for id_ in (ids if isinstance(ids, list) else [])]
        suspected = Suspicion(
            positions=tuple(range(len(names))),
            confidence=_number(each.get("confidence")),
            evidence=_number(each.get("evidence")),
            needed=_number(each.get("needed")),
            blocks_left=blocks if isinstance(blocks, int) else None,
            possible=math.inf if possible is None else _number(possible),
            observed=observed if isinstance(observed, float) else None,
            doubted=each.get("doubted") is True,
            scale=scale_of(answer),
        )
        yield words.suspicion(suspected, names.__getitem__, metric, str(answer.get("unit", "")))


def stored_change(
    answer: Mapping[str, Json], change: Mapping[str, Json], known: Mapping[str, Revision]
) -> ChangeFacts:
    """Return a change of a stored answer for its sentence."""
    candidates = _revisions(change, known)
    confidence, culprit = _number(change.get("confidence")), None
    inside = change.get("inside")
    while isinstance(inside, dict) and len(candidates) == 1:
        revisions = _revisions(inside, known)
        if len(revisions) != 1:
            break
        culprit = revisions[0]
        confidence *= _number(inside.get("confidence"))
        inside = inside.get("inside")
    before, after = change.get("before"), change.get("after")
    return ChangeFacts(
        metric=_metric(answer),
        candidates=candidates,
        confidence=confidence,
        effect=_effect(change, scale_of(answer)),
        better="higher" if answer.get("better") == "higher" else "lower",
        ramp=change.get("kind") == Kind.RAMP,
        culprit=culprit,
        unit=str(answer.get("unit", "")),
        before=before if isinstance(before, float) else None,
        after=after if isinstance(after, float) else None,
        began=_began(answer, change, candidates[-1]) if _searched_for_failures(answer) else "",
        position=list(known).index(candidates[0].id) if candidates[0].id in known else len(known),
        certificate=_certificate(change),
        also=tuple(_also(each) for each in _dicts(change, "also_changed")),
        merges=tuple(_merges(change)),
        at_least=change.get("at_least") is True,
        linked=answer.get("linked") is not False,
        pinned=answer.get("pinned") is True,
    )


def _effect(change: Mapping[str, Json], scale: Scale, name: str = "effect") -> Effect | None:
    """Return a stored effect, or the difference from end to end or the rest of it; `None` if there is none."""
    found = change.get(name)
    if not isinstance(found, dict):
        return None
    value = next((found[key] for key in ("value", "ratio", "difference") if key in found), None)
    return Effect(
        value=_number(value), low=_number(found.get("low")), high=_number(found.get("high")), scale=scale
    )


def scale_of(answer: Mapping[str, Json]) -> Scale:
    """Return the scale of a stored answer, the ratio if it has none of ours."""
    found = answer.get("scale")
    return Scale(found) if found in list(Scale) else Scale.RATIO


def _unseen(answer: Mapping[str, Json]) -> str:
    """Return which revisions were not measured, in words; empty without any, or if changes were found."""
    found = answer.get("unseen")
    if not isinstance(found, dict) or answer.get("changes"):
        return ""
    after, before = (Revision(id=str(found[name])).short for name in ("after", "before"))
    return words.unseen_words(round(_number(found["revisions"])), after, before)


def _certificate(record: Mapping[str, Json]) -> Summary | None:
    result = record.get("certificate")
    if not isinstance(result, dict):
        return None
    spread, possible = result.get("spread"), result.get("possible")
    return Summary(
        blocks=round(_number(result["blocks"])),
        invocations=round(_number(result["invocations"])),
        error=_number(result["error"]),
        layouts=round(_number(result["layouts"])),
        is_only_change=bool(result["single_change"]),
        possible=math.inf if possible is None else _number(possible),
        spread=None if spread is None else _number(spread),
    )


def _also(each: Mapping[str, Json]) -> AlsoChanged:
    effect, point = _effect(each, Scale.RATIO), each.get("point")
    assert effect is not None
    values = point.items() if isinstance(point, dict) else ()
    return AlsoChanged(
        metric=str(each["metric"]),
        point=Point(tuple((name, value) for name, value in values if isinstance(value, str | int | float))),
        unit=str(each.get("unit", "")),
        better="higher" if each.get("better") == "higher" else "lower",
        effect=effect,
    )


def _merges(change: Mapping[str, Json]) -> Iterator[str]:
    """Yield the origin of a merge's change, merge by merge."""
    ids, inside = change.get("revisions"), change.get("inside")
    if isinstance(inside, dict) and isinstance(ids, list) and ids:
        merge, confidence = Revision(id=str(ids[0])).short, inside.get("origin_confidence")
        if inside["origin"] == "unclear":
            yield f"{merge} is a merge, and the origin of the change in it is unclear: {inside['reason']}."
        else:
            text = f" ({probability(confidence)})" if isinstance(confidence, float) else ""
            yield f"{merge} is a merge; origin of the change: {inside['origin']}, {inside['reason']}{text}."
        yield from _merges(inside)


def _metric(answer: Mapping[str, Json]) -> str:
    variant = answer.get("variant", PLAIN)
    return f"{answer.get('metric', '')}{'' if variant == PLAIN else f' ({variant})'}"


def _searched_for_failures(answer: Mapping[str, Json]) -> bool:
    """Whether a search was for the beginning of failures; older answers state it only by their metric."""
    return answer.get("goal", answer.get("metric")) == WORKS


def _began(answer: Mapping[str, Json], change: Mapping[str, Json], culprit: Revision) -> str:
    """Return whether a program began to fail, and how, or to work."""
    if _number(change.get("after")) > _number(change.get("before")):
        return "made the program work"
    stage = {each["revision"]: str(each["stage"]) for each in _dicts(answer, "failures")}.get(culprit.id)
    return f"began to fail{f' ({stage})' if stage else ''}"


def _revisions(change: Mapping[str, Json], known: Mapping[str, Revision]) -> tuple[Revision, ...]:
    """Return the candidates of a stored change; it contains the names of those that are missing in the history."""
    named = {str(each["revision"]): each for each in _dicts(change, "named")}
    ids = change.get("revisions")
    return tuple(
        known.get(str(id_))
        or Revision(
            id=str(id_),
            label=str(named.get(str(id_), {}).get("label", "")),
            summary=str(named.get(str(id_), {}).get("summary", "")),
        )
        for id_ in (ids if isinstance(ids, list) else [])
    )


def _dicts(record: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    values = record.get(name)
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _about_several(answers: Sequence[AnswerFacts]) -> str:
    culprits: dict[tuple[str, ...], ChangeFacts] = {}
    for answer in answers:
        for change in answer.changes:
            culprits.setdefault(tuple(each.id for each in change.candidates), change)
    unclear = sum(answer.verdict == "unclear" for answer in answers)
    if culprits:
        changed = sum(bool(answer.changes) for answer in answers)
        share = f"{changed} of {len(answers)}" if changed < len(answers) else f"{changed}"
        in_order = sorted(culprits.values(), key=lambda change: change.position)
        names = listed(map(_culprit_name, in_order), "and")
        rest = f"; {unclear} of {len(answers)} metrics unclear" if unclear else ""
        return f"{counted(len(culprits), 'change')} in {share} metrics: {names}{rest}"
    likely = listed((answer.metric for answer in answers if answer.suspicion), "and")
    likely = f"; likely {likely}" if likely else ""
    if unclear == len(answers):
        return f"whether any of {len(answers)} metrics changed{likely}"
    if unclear:
        return f"whether {unclear} of {len(answers)} metrics changed{likely}; the others did not change"
    return f"no revision is known to have changed any of {len(answers)} metrics"


def _culprit_name(change: ChangeFacts) -> str:
    if len(change.candidates) > 1:
        return f"one of {len(change.candidates)}, {_span(change.candidates)}"
    return culprit_words(change).removesuffix(",")


def _short(change: ChangeFacts) -> str:
    """Return a change for a list: short ids of its candidates, and the size."""
    size = "" if change.effect is None else f" ({words.moved(change.effect, change.unit)})"
    first, last = change.candidates[0], change.candidates[-1]
    return f"{first.short if first == last else _span(change.candidates)}{size}"


def _span(candidates: Sequence[Revision]) -> str:
    return f"{candidates[0].short} to {candidates[-1].short}"


def _no_change(answer: AnswerFacts) -> str:
    least = answer.minimum_detectable
    within = words.amount(least, answer.scale, answer.unit) if math.isfinite(least) else ""
    if answer.verdict == "none" and not math.isfinite(least):
        return f"no revision is known to have changed {answer.metric}{_smaller(answer)}"
    if answer.verdict == "none":
        where = " while other processes used the machine" if answer.mostly_noisy else ""
        most = f"no revision changed {answer.metric} by more than {within}"
        if answer.unseen and answer.certificate is not None:
            most = f"both ends are equal in {answer.metric}{f' within {within}' if least > 0.0 else ''}"
        elif answer.unseen:
            most = f"no measured revision changed {answer.metric} by more than {within}"
        unseen = f"; {answer.unseen}" if answer.unseen else ""
        return f"{most}{where}, probability {probability(answer.confidence)}{_smaller(answer)}{unseen}"
    if answer.suspicion:
        return answer.suspicion
    if 0.0 < least < math.inf:
        between = f"{within} or more between measured builds"
        return f"a change of {answer.metric} by {between} is excluded, one of the threshold is not"
    return f"whether {answer.metric} changed"


def _smaller(answer: AnswerFacts) -> str:
    """Return the sizes of certain changes below the threshold, for the end of a sentence; empty without any."""
    if not answer.smaller:
        return ""
    sizes = listed((words.moved(each, answer.unit) for each in answer.smaller), "and")
    what = "a smaller change is certain" if len(answer.smaller) == 1 else "smaller changes are certain"
    return f"; {what}: {sizes}"


def _never_began(verdict: str, confidence: float, tried: int, unusable: int, least: Json) -> str:
    """Return why no revision is named where a program began to fail."""
    if verdict == "unclear":
        return "where the program began to fail"
    seen = (
        f"; a difference above {words.amount(least, Scale.RATE)} would have been seen"
        if isinstance(least, float)
        else ""
    )
    if not unusable:
        return f"the program did not begin to fail, probability {probability(confidence)}{seen}"
    if unusable == tried:
        revisions = counted(tried, "tried revision")
        return f"the program fails already at the old end of the range, and in each of {revisions}"
    return f"the program fails equally often along the range, probability {probability(confidence)}{seen}"


def change_words(answer: FindAnswer, number: int) -> str:
    """Return one change of an answer in a sentence."""
    return change_sentence(change_facts(answer, number))
