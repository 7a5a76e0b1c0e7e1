"""What a noisy sample counts: the one rule for estimates, pairs and searches.

A flag describes other processes, not the program's value. So to discard a noisy sample does not bias an estimate, and
it is discarded and repeated while that helps. It does not help on a machine that is always noisy, `is_always_noisy`:
then noisy samples count from there on. Of samples that were already taken, the quiet ones count if they suffice, see
`enough_quiet`; else all do. Both decisions depend on flags and numbers only, never on values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOISE = ("busy", "stolen", "throttled", "swapped", "suspended")
"""Flags of noisy samples: something other than the program affected their values."""

LEAST_TO_DECIDE = 6
"""Number of samples or pairs before a machine can count as always noisy: a short disturbance may cover fewer."""

ENOUGH_QUIET = 10
"""This number of quiet samples always suffices: ten give a 95 % interval."""


def weight(flags: Iterable[str]) -> float:
    """Return the weight of a sample with these flags: 0 if one of them means noise, else 1.

    >>> weight(("output-cut",)), weight(("busy",))
    (1.0, 0.0)
    """
    return 0.0 if any(flag in NOISE for flag in flags) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedSample:
    """A value with the flags of its sample."""

    value: float
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSamples:
    """The values of an estimate, and a note on noisy samples; empty without noise."""

    values: tuple[float, ...]
    note: str = ""


def select_samples(samples: Sequence[FlaggedSample], *, least: int) -> SelectedSamples:
    """Choose the samples of an estimate: the quiet ones if they suffice, else all.

    `least` samples suffice, or `ENOUGH_QUIET` if that is fewer. This assumes that noise flags are independent of the
    program's own value: they describe other processes.

    >>> select_samples([FlaggedSample(value=1.0), FlaggedSample(value=9.0, flags=("busy",))], least=1)
    SelectedSamples(values=(1.0,), note='discarded 1 of 2 samples (busy)')
    >>> select_samples([FlaggedSample(value=1.0), FlaggedSample(value=9.0, flags=("busy",))], least=2)
    SelectedSamples(values=(1.0, 9.0), note='used all samples; 1 of 2 noisy (busy)')
    """
    quiet = [sample.value for sample in samples if weight(sample.flags) > 0.0]
    noisy = len(samples) - len(quiet)
    if noisy == 0:
        return SelectedSamples(values=tuple(quiet))
    known = {flag for sample in samples for flag in sample.flags}
    reasons = ", ".join(flag for flag in NOISE if flag in known)
    if enough_quiet(len(quiet), least=least):
        return SelectedSamples(
            values=tuple(quiet), note=f"discarded {noisy} of {len(samples)} samples ({reasons})"
        )
    return SelectedSamples(
        values=tuple(sample.value for sample in samples),
        note=f"used all samples; {noisy} of {len(samples)} noisy ({reasons})",
    )


def enough_quiet(count: int, *, least: int) -> bool:
    """Return whether this number of quiet samples suffices: `least`, or `ENOUGH_QUIET` if that is fewer."""
    return count >= min(least, ENOUGH_QUIET)


def is_always_noisy(noisy: int, number: int) -> bool:
    """Return whether `noisy` of `number` earlier samples or pairs mean that repeats would be noisy, too: most were.

    >>> is_always_noisy(5, 5), is_always_noisy(3, 6), is_always_noisy(4, 6)
    (False, False, True)
    """
    return number >= LEAST_TO_DECIDE and 2 * noisy > number


def counted(quiet: Sequence[bool]) -> list[bool]:
    """Return which pairs count: quiet ones, and noisy ones from where the machine is always noisy.

    >>> counted([True, False, True]), counted([False] * 8)[-3:]
    ([True, False, True], [False, True, True])
    """
    noisy = 0
    found = []
    for number, each in enumerate(quiet):
        found.append(each or is_always_noisy(noisy, number))
        noisy += not each
    return found
