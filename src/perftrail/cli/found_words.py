"""What a search found, in words: its verdict, each change, the merge behind it, what broke, what it cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.cli.failures import telling, trouble_lines
from perftrail.cli.speech import plain
from perftrail.model.quantity import change as relative
from perftrail.model.quantity import decimals, duration, probability, quantity
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Subject
from perftrail.model.target import Working
from perftrail.search import Kind, words
from perftrail.workflows.found import marked_words
from perftrail.workflows.troubles import common

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.build import Failure
    from perftrail.model.source import Pins
    from perftrail.model.subject import Revision
    from perftrail.search import Change
    from perftrail.workflows.found import FindAnswer, FindTable, InsideMerge

MOST_NAMED = 5

LONGEST_LINE = 400


def headline(answer: FindAnswer) -> str:
    """Say the answer in one line: verdict, revision, probability, effect."""
    verdict, metric = str(answer.answer.verdict), answer.name
    if isinstance(answer.target, Working) and verdict in ("none", "unclear"):
        return _whether_it_works(answer)
    smallest = change_size(answer.answer.minimum_detectable)
    if verdict == "none":
        return (
            f"none: no revision changed {metric} by {smallest} or more, "
            f"probability {probability(answer.answer.confidence)}"
        )
    if verdict == "unclear" or not answer.answer.changes:
        return f"unclear: whether {metric} changed{_detectable(answer)}"
    if verdict == "several":
        names = ", ".join(_who(answer, number) for number in range(len(answer.answer.changes)))
        return f"several: {len(answer.answer.changes)} changes of {metric}: {names}"
    return f"{verdict}: {change_words(answer, 0)}"


def _detectable(answer: FindAnswer) -> str:
    """Say which change would have been detected, where that is known."""
    smallest = answer.answer.minimum_detectable
    return (
        f"; a change of {change_size(smallest)} would have been detected" if math.isfinite(smallest) else ""
    )


def certificate_words(answer: FindAnswer, number: int | None) -> Iterator[str]:
    """Say what the certificate of a change rests on, or that of the answer that nothing changed."""
    found = answer.answer.certificate if number is None else answer.answer.changes[number].certificate
    if found is None:
        return
    yield f"{words.certified(found)}"
    yield from words.reservations(found) if number is not None else ()


def doubt_words(answer: FindAnswer) -> Iterator[str]:
    """Say what was seen and is no change of the answer: one below the threshold, and those that are likely only."""
    if answer.answer.below is not None:
        below = answer.answer.below
        digits = decimals(below.value, below.low, below.high)
        yield (
            f"a change below the threshold: {relative(below.value)} "
            f"(× {below.value:.{digits}f}, 95 % interval {below.low:.{digits}f} to {below.high:.{digits}f})"
        )
    for each in answer.answer.suspected:
        yield words.suspicion(each, lambda position: answer.revisions[position].short)


def also_words(answer: FindAnswer, number: int) -> str:
    """Say in one line what else a change did; nothing where that is only what its own size explains.

    A time that moves as much as the metric does says nothing new.
    """
    own = answer.answer.changes[number].effect
    told = [
        f"{each.metric}{f' at {each.point}' if each.point.values else ''} {relative(each.effect.value)} "
        f"({'better' if each.is_better else 'worse'})"
        for each in answer.also.get(number, ())
        if own is None or each.unit != "s" or not each.effect.low <= own.value <= each.effect.high
    ]
    if not told:
        return ""
    more = f" and {len(told) - MOST_NAMED} more; --json names all" if len(told) > MOST_NAMED else ""
    return f"it also changed {', '.join(told[:MOST_NAMED])}{more}"


def change_words(answer: FindAnswer, number: int) -> str:
    """Say one change: who made it, to what, by how much, how sure that is."""
    change = answer.answer.changes[number]
    candidates = answer.candidates(change)
    inside = answer.inside.get(number)
    sure = f"probability {probability(change.confidence * _within(inside))}"
    if len(candidates) > 1:
        span = f"{candidates[0].short} to {candidates[-1].short}"
        who = f"one of {len(candidates)} revisions, {span},"
        if change.kind is Kind.RAMP:
            return (
                f"{answer.name} changed little by little over {len(candidates)} revisions, {span}: "
                f"{effect(answer, change)}, {sure}"
            )
    elif inside is not None and len(innermost(inside).candidates) == 1:
        who = through(innermost(inside).candidates[0], candidates[0])
    else:
        who = revision_name(candidates[0])
    if isinstance(answer.target, Working):
        return f"{who} {_began(answer, change)}, {sure}"
    return f"{who} changed {answer.name}: {effect(answer, change)}, {sure}"


def inside_words(inside: InsideMerge) -> Iterator[str]:
    """Say where the change of a merge came from, merge by merge."""
    merge, sure = inside.merge.revision.short, probability(inside.confidence)
    match inside.origin:
        case "branch":
            yield f"{merge} is a merge, and it came with the branch ({sure}):"
            candidates = inside.candidates
            if len(candidates) > 1:
                yield f"  one of {len(candidates)} of its revisions, {candidates[0].short} to {candidates[-1].short}"
            yield from (f"  {revision_name(revision)}" for revision in candidates[:MOST_NAMED])
            if len(candidates) > MOST_NAMED:
                yield f"  and {len(candidates) - MOST_NAMED} more; --json names all"
        case "trunk":
            yield f"{merge} is a merge, but it came from the trunk side: {inside.reason} ({sure})"
        case "combination":
            yield f"{merge} is a merge, and only the combination made it: {inside.reason} ({sure})"
        case _:
            yield f"{merge} is a merge, and where in it the change came from is unclear: {inside.reason}"
    if inside.inside is not None:
        yield from inside_words(inside.inside)


def innermost(inside: InsideMerge) -> InsideMerge:
    """Give the last merge of a chain whose own culprit is known to the revision."""
    deeper = inside.inside
    return innermost(deeper) if deeper is not None and len(deeper.candidates) == 1 else inside


def through(culprit: Revision, merge: Revision) -> str:
    """Name a culprit with the merge that brought it, if another one did."""
    if culprit == merge:
        return revision_name(culprit)
    return f"{revision_name(culprit)}, which {merge.short} merged,"


def revision_name(revision: Revision) -> str:
    """Name a revision for people: short id, label, and what its message says."""
    label = f" ({plain(revision.label)})" if revision.label and revision.label != revision.id else ""
    told = revision.summary and revision.id not in revision.summary
    summary = f" “{plain(revision.summary)}”" if told else ""
    return f"{revision.short}{label}{summary}"


def effect(answer: FindAnswer, change: Change) -> str:
    """Say what a change did: direction, interval, and whether that is better."""
    if change.effect is None:
        return "by how much cannot be told"
    low, high, value = change.effect.low, change.effect.high, change.effect.value
    digits = decimals(value, low, high)
    return (
        f"{relative(value)} ({judgement(answer, change)}; "
        f"× {value:.{digits}f}, 95 % interval {low:.{digits}f} to {high:.{digits}f})"
    )


def judgement(answer: FindAnswer, change: Change) -> str:
    """Say whether a change is an improvement, as the study has it; nothing where its size is unknown."""
    if change.effect is None:
        return ""
    return "better" if (change.effect.value < 1.0) == (answer.target.better == "lower") else "worse"


def levels(answer: FindAnswer, change: Change) -> str:
    """Say the levels on both sides of a change; nothing where they are unknown."""
    if change.before is None or change.after is None:
        return ""
    if isinstance(answer.target, Working):
        return f"it works with probability {probability(change.before)} before, {probability(change.after)} after"
    unit = answer.target.unit
    return f"before {quantity(change.before, unit)}, after {quantity(change.after, unit)}"


def outlier_words(answer: FindAnswer) -> Iterator[str]:
    """Name the builds that no change explains."""
    unit = answer.target.unit
    for outlier in answer.answer.outliers:
        yield (
            f"{answer.revisions[outlier.position].short} is an outlier: {quantity(outlier.level, unit)}, where its "
            f"side has {quantity(outlier.usual, unit)}; what changed there was undone, or its build is of another kind"
        )


def broke(answer: FindAnswer) -> Iterator[str]:
    """Say where the history appears to be broken."""
    for stretch in answer.broke:
        first, last = answer.revisions[stretch.first], answer.revisions[stretch.last]
        where = first.short if first == last else f"{first.short} to {last.short}, {stretch.tried} tried"
        if stretch.before is None:
            came = (
                f"usable from {answer.revisions[stretch.after].short} on" if stretch.after is not None else ""
            )
        elif stretch.after is None:
            came = f"after {answer.revisions[stretch.before].short}, and is not seen to be usable again"
        else:
            before, after = answer.revisions[stretch.before], answer.revisions[stretch.after]
            came = f"after {before.short}, usable again at {after.short}"
        what = (
            "The study skips it here"
            if stretch.stage == "skipped"
            else f"It appears to be broken ({stretch.stage}) here"
        )
        yield f"{what}: {where}{f'; {came}' if came else ''}"


def cost(answer: FindAnswer | FindTable) -> str:
    """Say what a search cost."""
    failed = f", {answer.unusable_count} of them unusable" if answer.unusable_count else ""
    return (
        f"{answer.builds} of {len(answer.revisions)} revisions built{failed}, "
        f"{answer.invocations} invocations, {duration(answer.seconds)} of building and measuring"
    )


def pins_words(pins: Pins) -> Iterator[str]:
    """Say which of several sources was walked and where the others were held; nothing where there is one."""
    if told := str(pins):
        yield plain(told, longest=LONGEST_LINE)


def noise_words(answer: FindAnswer) -> Iterator[str]:
    """Say what became of readings that noise marks."""
    if answer.set_aside:
        yield f"{answer.set_aside} samples were taken while others used the machine, and taken again"
    yield from marked_words(answer.marked, none=answer.answer.verdict == "none")


def block_words(answer: FindAnswer) -> Iterator[str]:
    """Say that the machine was not one all the time, and what that means."""
    if len(answer.boots) > 1:
        yield (
            f"the machine was started again on the way ({len(answer.boots)} boots): their levels are compared only "
            "by revisions that were measured in both"
        )
    yield from (plain(each, longest=LONGEST_LINE) for each in answer.elsewhere)


def note_words(answer: FindAnswer, change: Change) -> str:
    """Say that a culprit's own message speaks of speed, where that made it likelier; else nothing."""
    noted = answer.notes(change)
    if len(change.positions) > 1 or not noted:
        return ""
    ((revision, word),) = noted.items()
    return f"its message speaks of it ({plain(word)}): “{plain(revision.summary)}”"


def failure_words(failure: Failure) -> str:
    """Say a failure: its stage, the most telling line of what it said, its log."""
    log = f" (log: {failure.log})" if failure.log else ""
    return f"{failure.stage}: {telling(failure)}{log}"


def unusable_words(answer: FindAnswer) -> str:
    """Name the revisions that could not be used, by cause."""
    failures = {
        Subject(revision=each.revision, variant=PLAIN): each.failure
        for each in sorted(answer.unusable, key=lambda each: answer.revisions.index(each.revision))
    }
    troubles = common(tuple(failures), failures)
    lines = [f"  {line}" for trouble in troubles[:MOST_NAMED] for line in trouble_lines(trouble)]
    if len(troubles) > MOST_NAMED:
        lines.append(f"  and {len(troubles) - MOST_NAMED} more causes; --json names all")
    heading = "Failed:" if isinstance(answer.target, Working) else "Could not be used:"
    return "\n".join([heading, *lines])


def change_size(size: float) -> str:
    """Write the size of a change without direction.

    >>> change_size(0.021)
    '2.1 %'
    """
    return f"{size * 100:.2g} %"


def _who(answer: FindAnswer, number: int) -> str:
    change = answer.answer.changes[number]
    candidates = answer.candidates(change)
    by_how_much = "" if change.effect is None else f" ({relative(change.effect.value)})"
    if len(candidates) == 1:
        return f"{candidates[0].short}{by_how_much}"
    return f"{candidates[0].short} to {candidates[-1].short}{by_how_much}"


def _within(inside: InsideMerge | None) -> float:
    """Give the probability of the innermost culprit that is named, given that of the merge around all."""
    if inside is None or len(inside.candidates) != 1:
        return 1.0
    own = inside.confidence if inside.change is None else inside.change.confidence
    return own * _within(inside.inside)


def _began(answer: FindAnswer, change: Change) -> str:
    """Say that it began to fail there and how, or that it began to work."""
    if (change.after or 0.0) > (change.before or 0.0):
        return "made it work"
    stages = {each.revision.id: each.failure.stage for each in answer.unusable}
    stage = stages.get(answer.candidates(change)[-1].id)
    return f"began to fail{f' ({stage})' if stage else ''}"


def _whether_it_works(answer: FindAnswer) -> str:
    if answer.answer.verdict == "unclear":
        return "unclear: where it began to fail"
    tried = answer.builds
    if not answer.unusable:
        return f"none: it did not begin to fail, probability {probability(answer.answer.confidence)}"
    if len(answer.unusable) == tried:
        return f"none: it fails all along, from the old end on, in every one of {tried} revisions tried"
    return f"none: it fails as often before as after, probability {probability(answer.answer.confidence)}"
