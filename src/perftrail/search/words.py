"""Describe a search in plain words, for `show --search` and the console."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, assert_never

from perftrail.model.program import LARGEST_LAYOUT_EFFECT, layout_words, layouts_words
from perftrail.model.wording import change, counted, decimals, duration, percent, quantity
from perftrail.model.wording import scale as scaled
from perftrail.search.answer import Effect, Verdict
from perftrail.search.observation import Batch, BootSession, Built, CannotRelink, Unusable
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perftrail.search.answer import Answer, Change, Summary, Suspicion
    from perftrail.search.observation import Observation
    from perftrail.search.posterior import Belief, ClaimProgress

    Label = Callable[[int], str]

SPREADS_DIFFER = 2.0
"""A change that multiplies or divides the spread of the samples by this is reported."""

VERY_LIKELY = 0.95

LEAST_ERROR = 1e-4
"""Smaller error probabilities are not distinguished."""

MOST_NAMED = 6
"""Builds of a round that are named."""

_TIMES = ("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times")


def step(
    observation: Observation,
    belief: Belief | None,
    label: Label,
    *,
    what: str = "",
    before: Belief | None = None,
    noise: str | None = None,
) -> str:
    """Return a description of what was measured, and of the belief after it.

    `label` names a position; `what` is the value of the build that was measured, or why there is none. `before` is the
    belief before the step, so that a larger number of candidates has its reason. `noise` describes the noisy samples;
    `None`: their number.

    >>> step(Unusable(position=5), None, "r{}".format, what="build")
    'r5 is not usable (build)'
    """
    text = _observation_words(observation, label, what, noise)
    if belief is None or isinstance(observation, BootSession | CannotRelink):
        return text
    # A side depends on a change: it would contradict the belief that nothing changed.
    if isinstance(observation, Batch) and not observation.certificate and belief.no_change <= 0.5:
        side = _side(belief.after_the_change(_most_run(observation)))
        text = f"{text}, {side}" if side else text
    return (
        f"{text}; {belief_words(belief, label, before=before, because=_because(observation, before, label))}"
    )


def _most_run(batch: Batch) -> int:
    position, _ = Counter(sample.position for sample in batch.samples).most_common(1)[0]
    return position


def _because(observation: Observation, before: Belief | None, label: Label) -> str:
    """Return why more revisions are candidates after an observation."""
    if not isinstance(observation, Batch):
        return ""
    if observation.certificate:
        return "because the samples of this round fit them, too"
    about = _most_run(observation)
    again = before is not None and before.after_the_change(about) is not None
    return (
        f"after new samples of {label(about)}"
        if again
        else f"because {label(about)} is unlike the builds before"
    )


def _observation_words(observation: Observation, label: Label, what: str, noise: str | None) -> str:
    match observation:
        case Batch():
            return _batch(observation, label, what, noise)
        case Built():
            same = (
                "" if observation.same_as is None else f": the same artefact as {label(observation.same_as)}"
            )
            return f"built {label(observation.position)}{same}"
        case Unusable():
            return f"{label(observation.position)} is not usable{f' ({what})' if what else ''}"
        case BootSession():
            return "a new boot session begins: levels are compared within it"
        case CannotRelink():
            return f"no relink: {observation.reason}"
        case _:
            assert_never(observation)


def _batch(batch: Batch, label: Label, what: str, noise: str | None) -> str:
    runs = Counter(sample.position for sample in batch.samples)
    if batch.certificate:
        named = [label(position) for position in sorted(runs)]
        names = (
            _and(named) if len(named) <= MOST_NAMED else f"{len(named)} builds from {named[0]} to {named[-1]}"
        )
        done = f"round: ran {names} in random order"
    else:
        done = "measured " + _and(f"{label(each)} {_times(count)}" for each, count in runs.most_common())
    if batch.layout:
        done += ", in a new layout"
    failed = sum(sample.value is None for sample in batch.samples)
    noisy = sum(sample.noisy for sample in batch.samples)
    remarks = [f"{counted(failed, 'run')} failed"] * bool(failed)
    note = counted(noisy, "noisy sample") if noise is None else noise
    remarks += [note] * bool(noisy and note)
    done += f" ({', '.join(remarks)})" if remarks else ""
    return f"{done}: {what}" if what else done


def verdict(answer: Answer, label: Label) -> str:
    """Return the answer in one sentence."""
    match answer.verdict:
        case Verdict.FOUND | Verdict.RANGE | Verdict.SEVERAL:
            text = "; ".join(_change(change, label) for change in answer.changes) + f" ({answer.reason})"
        case Verdict.NONE:
            text = f"{answer.reason}, {_sure(answer.confidence)}"
            if answer.certificate is not None:
                text += f", {certified(answer.certificate)}"
        case Verdict.UNCLEAR:
            text = f"unclear: {answer.reason}"
        case _:
            assert_never(answer.verdict)
    for smaller in answer.below_threshold:
        text += f"; a change below the threshold: {_change(smaller, label)}"
    if account := account_words(answer.ends, answer.rest, len(answer.changes)):
        text += f"; {account}"
    return "; ".join([text, *(suspicion(each, label) for each in answer.suspected)])


def account_words(ends: Effect | None, rest: Effect | None, changes: int, unit: str = "") -> str:
    """Return the difference of the ends, and what the changes do not explain of it; empty without rounds.

    >>> from perftrail.search.answer import Effect
    >>> account_words(Effect(value=0.55, low=0.54, high=0.56), Effect(value=0.97, low=0.95, high=0.99), 5)
    'from end to end 45 % less (95 % interval × 0.540 to 0.560); the rest, without these changes, is 3.0 % less \
(95 % interval × 0.950 to 0.990)'
    """
    if ends is None or rest is None:
        return ""
    whole = f"from end to end {interval_words(ends, unit)}"
    if not changes:
        return whole if ends.is_certain else ""
    which = "this change" if changes == 1 else "these changes"
    return f"{whole}; the rest, without {which}, is {interval_words(rest, unit)}"


def amount(size: float, scale: Scale, unit: str = "") -> str:
    """Return the size of a change without its direction.

    >>> amount(0.05, Scale.RATIO), amount(0.05, Scale.RATE), amount(-5.0, Scale.DIFFERENCE, "B")
    ('5 %', '5 points', '5.00 B')
    >>> amount(1.0, Scale.RATE)
    '100 points'
    """
    if scale is Scale.RATIO:
        return percent(size)
    points = 100 * abs(size)
    if scale is Scale.RATE:
        return f"{points:.2g} points" if points < 10.0 else f"{points:.0f} points"
    return quantity(abs(size), unit)


def moved(effect: Effect, unit: str = "") -> str:
    """Return a change with its direction, without its interval.

    >>> from perftrail.search.answer import Effect
    >>> moved(Effect(value=-0.3, low=-0.4, high=-0.2, scale=Scale.RATE))
    '30 points less'
    """
    if effect.scale is Scale.RATIO:
        return change(effect.value)
    return f"{amount(effect.value, effect.scale, unit)} {'more' if effect.value >= 0.0 else 'less'}"


COMPARED = {
    Scale.DIFFERENCE: "values are compared by their difference",
    Scale.RATE: "the rates of the values 1 and 0 are compared",
}
"""How values are compared, on another scale than the ratio."""


def bounds_words(effect: Effect, unit: str = "") -> str:
    """Return the interval of a difference."""
    factor = 100.0 if effect.scale is Scale.RATE else 1.0
    low, high = factor * effect.low, factor * effect.high
    divisor, name = (1.0, "points") if effect.scale is Scale.RATE else scaled(max(abs(low), abs(high)), unit)
    digits = decimals(factor * effect.value / divisor, low / divisor, high / divisor)
    return f"{low / divisor:+.{digits}f} to {high / divisor:+.{digits}f} {name}".rstrip()


def interval_words(effect: Effect, unit: str = "") -> str:
    """Return a change with its 95 % interval.

    >>> from perftrail.search.answer import Effect
    >>> interval_words(Effect(value=1.02, low=0.99, high=1.05))
    '2.0 % more (95 % interval × 0.990 to 1.050)'
    >>> interval_words(Effect(value=-0.3, low=-0.41, high=-0.19, scale=Scale.RATE))
    '30 points less (95 % interval -41 to -19 points)'
    """
    if effect.scale is not Scale.RATIO:
        return f"{moved(effect, unit)} (95 % interval {bounds_words(effect, unit)})"
    digits = decimals(effect.value, effect.low, effect.high)
    return f"{change(effect.value)} (95 % interval × {effect.low:.{digits}f} to {effect.high:.{digits}f})"


def unseen_words(revisions: int, after: str, before: str) -> str:
    """Return which revisions were not measured, and what follows from it.

    >>> unseen_words(38, "a1", "b2")
    '38 revisions between a1 and b2 are unmeasured: a change there that a later revision reverted would not have \
been seen'
    """
    return (
        f"{counted(revisions, 'revision')} between {after} and {before} {'is' if revisions == 1 else 'are'} "
        "unmeasured: a change there that a later revision reverted would not have been seen"
    )


def certified(summary: Summary, *, pinned: bool = False) -> str:
    """Return the evidence of rounds in words. `pinned`: layouts place unchanged code alike in all builds."""
    rounds = f"{counted(summary.blocks, 'round')} ({counted(summary.invocations, 'run')})"
    over = layouts_words(summary.layouts, pinned=pinned) if summary.layouts > 1 else ""
    error = f"at most {_percent(summary.error)}" if summary.error >= LEAST_ERROR else "below 0.01 %"
    return f"certified in {rounds}{over}, error probability {error}"


def certified_equal(summary: Summary, *, pinned: bool = False) -> str:
    """Return the evidence that the ends of the history are equal within the threshold.

    Equal medians do not show that a share of the runs became slower.
    """
    scatter = ""
    if scatters_differently(summary):
        times = f"{summary.spread:.2g} times as much"
        scatter = f"; but samples of the newest build scatter {times}, which medians do not show"
    return f"both ends have equal values within the threshold: {certified(summary, pinned=pinned)}{scatter}"


def reservations(
    summary: Summary,
    factor: float = 1.0,
    *,
    linked: bool = True,
    scale: Scale = Scale.RATIO,
    unit: str = "",
) -> tuple[str, ...]:
    """Return what a certificate of a change leaves open: layouts, another change, another spread.

    `factor` is the size of the change: after/before. `linked`: whether a linker produced the measured program.
    """
    remarks = []
    if summary.layouts == 1 and 1.0 / LARGEST_LAYOUT_EFFECT < factor < LARGEST_LAYOUT_EFFECT:
        remarks.append(layout_words(linked=linked))
    if not summary.is_only_change:
        known = summary.possible < (math.inf if scale is Scale.DIFFERENCE else 1.0)
        largest = f" up to {amount(summary.possible, scale, unit)}" if known else ""
        remarks.append(f"another change{largest} between the measured builds is not excluded")
    if scatters_differently(summary):
        remarks.append(f"samples scatter {summary.spread:.2g} times as much after the change")
    return tuple(remarks)


def scatters_differently(summary: Summary) -> bool:
    """Whether the samples of the later build certainly scatter much more, or less, than those of the earlier one."""
    spread = summary.spread
    return spread is not None and max(spread, 1 / spread if spread else math.inf) >= SPREADS_DIFFER


def suspicion(suspected: Suspicion, label: Label, metric: str = "", unit: str = "") -> str:
    """Return which change, of `metric` if it is not empty, is likely and not certified, and what it needs.

    >>> from dataclasses import replace
    >>> from perftrail.search.answer import Suspicion
    >>> likely = Suspicion(
    ...     positions=(7,), confidence=0.9, evidence=14.2, needed=200.0, blocks_left=90, possible=0.06, observed=1.05
    ... )
    >>> suspicion(likely, "r{}".format)
    'likely r7 (5.0 % more), not certified: evidence 14 of the 200 needed, about 90 more rounds'
    >>> suspicion(replace(likely, evidence=400.0, doubted=True), "r{}".format)
    'likely r7 (5.0 % more), but memory layouts may explain the difference'
    >>> suspicion(replace(likely, evidence=400.0, positions=(6, 7)), "r{}".format, "wall")
    'likely one of 2, r6 to r7, changed wall (5.0 % more), but no single revision is certain'
    """
    where = _where(suspected.positions, label)
    if metric:
        where += f"{',' if len(suspected.positions) > 1 else ''} changed {metric}"
    likely = f"likely {where}"
    if suspected.observed is not None:
        size = suspected.observed
        likely += f" ({moved(Effect(value=size, low=size, high=size, scale=suspected.scale), unit)})"
    if suspected.doubted:
        return f"{likely}, but memory layouts may explain the difference"
    if suspected.evidence >= suspected.needed:
        return f"{likely}, but no single revision is certain"
    digits = 0 if suspected.evidence >= 10 else 1
    parts = [f"evidence {suspected.evidence:.{digits}f} of the {suspected.needed:.0f} needed"]
    if suspected.blocks_left is not None:
        parts.append(f"about {counted(suspected.blocks_left, 'more round')}")
    return f"{likely}, not certified: {', '.join(parts)}"


def belief_words(
    belief: Belief, label: Label = str, *, before: Belief | None = None, because: str = ""
) -> str:
    """Describe a belief: that nothing changed, or the candidates of the change with the least certain position.

    If their number grew since the belief `before`, the words contain the reason `because`. If several changes are
    likely, they contain the ends of the range, because the next step may be about another change. The words have no
    probability: until a certificate decides, it depends on the noise being as the model assumes.
    """
    if belief.no_change > 0.5:
        return no_change_words(belief.no_change)
    count = counted(belief.candidates, "candidate")
    fewer = before is not None and before.no_change <= 0.5 and before.changes > belief.changes
    if belief.changes > 1 and belief.candidates == 1:
        text = f"{belief.changes} changes likely, 1 candidate each"
    elif belief.changes > 1 and belief.span is not None:
        low, high = map(label, belief.span)
        text = f"{belief.changes} changes likely; {count} for the one between {low} and {high}"
    elif fewer:
        text = f"1 change likely now; {count}"
    else:
        text = count
    if before is not None and because and _is_about_the_same(belief, before):
        more = belief.candidates - before.candidates
        text += f" instead of {before.candidates}, {because}" if more > 0 else ""
    return text


def no_change_words(probability: float) -> str:
    """Return how likely it is until now that nothing changed."""
    return f"so far {'very ' if probability > VERY_LIKELY else ''}likely that nothing changed"


def _is_about_the_same(belief: Belief, before: Belief) -> bool:
    """Whether two beliefs count the candidates of one change."""
    if before.no_change > 0.5 or before.changes != belief.changes:
        return False
    if belief.span is None or before.span is None:
        return True
    return belief.span[0] < before.span[1] and before.span[0] < belief.span[1]


def claim_progress(
    progress: ClaimProgress, label: Label = str, *, seconds: tuple[float, float] | None = None
) -> str:
    """Return how far the rounds of a claim are, its purpose, and a forecast.

    `seconds` are the lowest and the highest cost of a round.

    >>> from perftrail.search.posterior import ClaimProgress
    >>> claim_progress(ClaimProgress(blocks=4, blocks_left=(4, 12)), seconds=(0.5, 1.0))
    'round 4 of 8 to 16, 2.0 s to 12 s left, to certify that the ends are equal'
    >>> claim_progress(ClaimProgress(blocks=1, blocks_left=None, around=(6, 7)), "r{}".format)
    'round 1, to certify the change at r7'
    >>> claim_progress(ClaimProgress(blocks=1, blocks_left=None, around=(4, 7)), "r{}".format)
    'round 1, to certify the change between r4 and r7'
    """
    total = time = ""
    if progress.blocks_left is not None:
        least, most = progress.blocks_left
        total = f" of {progress.blocks + least} to {progress.blocks + most}"
        if seconds is not None:
            time = f", {duration(least * seconds[0])} to {duration(most * seconds[1])} left"
    if progress.around is None:
        claim = "that the ends are equal"
    else:
        low, high = progress.around
        claim = "the change " + (
            f"at {label(high)}" if high == low + 1 else f"between {label(low)} and {label(high)}"
        )
    return f"round {progress.blocks}{total}{time}, to certify {claim}"


def _change(change: Change, label: Label) -> str:
    parts = [_where(change.positions, label), _sure(change.confidence)]
    if change.effect is not None:
        parts.append(_effect(change.effect))
    if change.certificate is not None:
        parts.append(certified(change.certificate))
        effect = change.effect
        is_ratio = effect is not None and effect.scale is Scale.RATIO
        factor = effect.value if effect is not None and is_ratio else 1.0
        scale = Scale.RATIO if effect is None else effect.scale
        return "; ".join([", ".join(parts), *reservations(change.certificate, factor, scale=scale)])
    return ", ".join(parts)


def _where(positions: tuple[int, ...], label: Label) -> str:
    first, last = label(positions[0]), label(positions[-1])
    return first if len(positions) == 1 else f"one of {len(positions)}, {first} to {last}"


def _effect(effect: Effect) -> str:
    if effect.scale is not Scale.RATIO:
        return f"{moved(effect)} [{effect.low:.3g}, {effect.high:.3g}]"
    return f"times {effect.value:.3g} [{effect.low:.3g}, {effect.high:.3g}]"


def _side(probability: float | None) -> str:
    if probability is None or probability == 0:
        return ""
    very = "very " if max(probability, 1 - probability) > VERY_LIKELY else ""
    return f"{very}likely {'after' if probability >= 0.5 else 'before'} the change"


def _and(items: Iterable[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _times(count: int) -> str:
    return _TIMES[count] if count < len(_TIMES) else f"{count} times"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 1 else percent(share)


def _sure(probability: float) -> str:
    """Format a probability with as many nines as it has, and never as 100 %."""
    percent = 100 * min(probability, 0.9999)
    digits = 0 if percent < 99 else 1 if percent < 99.9 else 2
    return f"{percent:.{digits}f} % sure"
