"""Describe a search in plain words, for `show --search` and the console."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, assert_never

from perftrail.model.program import layout_words
from perftrail.model.wording import counted, percent
from perftrail.search.answer import Verdict
from perftrail.search.evidence import Batch, BootSession, Built, CannotRelink, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perftrail.search.answer import Answer, Change, Effect, Suspicion
    from perftrail.search.certificate import Summary
    from perftrail.search.evidence import Observation
    from perftrail.search.posterior import Belief, ClaimProgress

    Label = Callable[[int], str]

SPREADS_DIFFER = 2.0
"""A change that multiplies or divides the spread of the samples by this is reported."""

FORECAST_BLOCKS = 3
"""Fewer blocks show no pace from which the number of further blocks could be forecast."""

_TIMES = ("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times")


def step(observation: Observation, belief: Belief | None, label: Label, *, what: str = "") -> str:
    """Return a description of what was measured, and of the belief after it.

    `label` names a position; `what` is the value of the build that was measured, or why there is none.

    >>> step(Unusable(position=5), None, "r{}".format, what="build")
    'r5 is not usable (build)'
    """
    said = _observation_words(observation, label, what)
    if belief is None or isinstance(observation, BootSession | CannotRelink):
        return said
    if isinstance(observation, Batch) and not observation.certificate:
        position, _ = Counter(sample.position for sample in observation.samples).most_common(1)[0]
        side = _side(belief.after_the_change(position))
        said = f"{said}, {side}" if side else said
    return f"{said}; {belief_words(belief)}"


def _observation_words(observation: Observation, label: Label, what: str) -> str:
    match observation:
        case Batch():
            return _batch(observation, label, what)
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


def _batch(batch: Batch, label: Label, what: str) -> str:
    runs = Counter(sample.position for sample in batch.samples)
    if batch.certificate:
        done = f"certificate block: ran {_and(label(position) for position in sorted(runs))} in random order"
    else:
        done = "measured " + _and(f"{label(each)} {_times(count)}" for each, count in runs.most_common())
    if batch.layout:
        done += ", in a new layout"
    failed = sum(sample.value is None for sample in batch.samples)
    noisy = sum(sample.noisy for sample in batch.samples)
    remarks = [f"{counted(failed, 'run')} failed"] * bool(failed)
    remarks += [counted(noisy, "noisy sample")] * bool(noisy)
    done += f" ({', '.join(remarks)})" if remarks else ""
    return f"{done}: {what}" if what else done


def verdict(answer: Answer, label: Label) -> str:
    """Return the answer in one sentence."""
    match answer.verdict:
        case Verdict.FOUND | Verdict.RANGE | Verdict.SEVERAL:
            said = "; ".join(_change(change, label) for change in answer.changes) + f" ({answer.reason})"
        case Verdict.NONE:
            said = f"no change of {_percent(answer.minimum_detectable)} or more, {_sure(answer.confidence)}"
            said += f" ({answer.reason})"
            if answer.certificate is not None:
                said += f", {certified(answer.certificate)}"
        case Verdict.UNCLEAR:
            said = f"unclear: {answer.reason}"
        case _:
            assert_never(answer.verdict)
    if answer.below is not None:
        said += f"; a change below the threshold: {_effect(answer.below)}"
    return "; ".join([said, *(suspicion(each, label) for each in answer.suspected)])


def certified(summary: Summary) -> str:
    """Return the evidence of a certificate in words."""
    blocks = f"{counted(summary.blocks, 'block')} ({counted(summary.invocations, 'run')})"
    over = f" over {summary.layouts} layouts" if summary.layouts > 1 else ""
    return f"certified in {blocks}{over}, error probability at most {_percent(summary.error)}"


LARGEST_LAYOUT_EFFECT = 1.5
"""Memory layouts are not named as the cause of a larger factor: measured layouts differed by at most 13 % (Go)."""


def reservations(summary: Summary, factor: float = 1.0, *, linked: bool = True) -> tuple[str, ...]:
    """Return what a certificate of a change leaves open: layouts, another change, another spread.

    `factor` is the size of the change: after/before. `linked`: whether a linker made the measured program.
    """
    said = []
    if summary.layouts == 1 and 1.0 / LARGEST_LAYOUT_EFFECT < factor < LARGEST_LAYOUT_EFFECT:
        said.append(layout_words(linked=linked))
    if not summary.is_only_change:
        largest = f" up to {_percent(summary.possible)}" if summary.possible < 1 else ""
        said.append(f"another change{largest} is possible")
    spread = summary.spread
    if spread is not None and max(spread, 1 / spread if spread else math.inf) >= SPREADS_DIFFER:
        said.append(f"samples scatter {spread:.2g} times as much after the change")
    return tuple(said)


def suspicion(suspected: Suspicion, label: Label) -> str:
    """Return which change is likely and not certified, and what it needs.

    >>> from perftrail.search.answer import Suspicion
    >>> doubt = Suspicion(
    ...     positions=(7,), confidence=0.9, evidence=14.2, needed=200.0, blocks_left=90, possible=0.06
    ... )
    >>> suspicion(doubt, "r{}".format)
    'likely r7, 90 % sure, not certified: evidence 14 of the 200 needed, about 90 more blocks, change at most 6 %'
    """
    reached = min(suspected.evidence, suspected.needed)
    parts = [f"evidence {reached:.{0 if reached >= 10 else 1}f} of the {suspected.needed:.0f} needed"]
    if suspected.evidence >= suspected.needed:
        parts.append("another change is not excluded yet")
    elif suspected.blocks_left is not None:
        parts.append(f"about {counted(suspected.blocks_left, 'more block')}")
    if suspected.possible < 1:
        parts.append(f"change at most {_percent(suspected.possible)}")
    who, sure = _where(suspected.positions, label), _sure(suspected.confidence)
    return f"likely {who}, {sure}, not certified: {', '.join(parts)}"


def belief_words(belief: Belief) -> str:
    """Describe a belief: that nothing changed, or the number of candidates, which noise can also increase."""
    if belief.no_change > 0.5:
        return f"so far {_sure(belief.no_change)} that nothing changed"
    return counted(belief.candidates, "candidate")


def claim_progress(progress: ClaimProgress) -> str:
    """Return how far a certificate is, and what it is for.

    >>> from perftrail.search.posterior import ClaimProgress
    >>> claim_progress(ClaimProgress(blocks=4, blocks_left=4, equal_ends=True))
    'block 4 of about 8, to certify that the ends are equal'
    >>> claim_progress(ClaimProgress(blocks=1, blocks_left=2, equal_ends=False))
    'block 1, to certify the change'
    """
    known = progress.blocks >= FORECAST_BLOCKS and progress.blocks_left is not None
    total = f" of about {progress.blocks + (progress.blocks_left or 0)}" if known else ""
    claim = "that the ends are equal" if progress.equal_ends else "the change"
    return f"block {progress.blocks}{total}, to certify {claim}"


def _change(change: Change, label: Label) -> str:
    parts = [_where(change.positions, label), _sure(change.confidence)]
    if change.effect is not None:
        parts.append(_effect(change.effect))
    if change.certificate is not None:
        parts.append(certified(change.certificate))
        factor = 1.0 if change.effect is None else change.effect.value
        return "; ".join([", ".join(parts), *reservations(change.certificate, factor)])
    return ", ".join(parts)


def _where(positions: tuple[int, ...], label: Label) -> str:
    first, last = label(positions[0]), label(positions[-1])
    return first if len(positions) == 1 else f"one of {len(positions)}, {first} to {last}"


def _effect(effect: Effect) -> str:
    return f"times {effect.value:.3g} [{effect.low:.3g}, {effect.high:.3g}]"


def _side(probability: float | None) -> str:
    if probability is None or probability == 0:
        return ""
    if probability >= 0.5:
        return f"{_sure(probability)} that it is after the change"
    return f"{_sure(1 - probability)} that it is before the change"


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
