"""Sentences about stored samples that the present study would measure again, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.measurement import NEW_METRIC, OLDER_RECIPE, OTHER_TOOLCHAIN, UNKNOWN_ORIGIN
from perftrail.model.wording import counted, escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.measure.session import View
    from perftrail.model.measurement import Difference
    from perftrail.results.measured import MeasuredHere

FROM = {
    OLDER_RECIPE: "from an older recipe",
    OTHER_TOOLCHAIN: "from another toolchain",
    UNKNOWN_ORIGIN: "from an older perftrail, which did not store the recipe",
}

LONGEST = 70
"""Characters of a recipe's line or a tool's version."""


def sample_notes(view: View, measured: MeasuredHere) -> tuple[str, ...]:
    """Return what a reader must know about the shown samples, in sentences."""
    differences = measured.differences()
    words = outdated_words(differences, len(measured.cells))
    notes = [*view.notes]
    for found, each in zip(differences, words, strict=True):
        remedy = "Read it from stored outputs" if found.why == NEW_METRIC else "Measure again"
        notes.append(f"{each}. {remedy} with: perftrail run")
    if measured.replaced:
        has = "has" if measured.replaced == 1 else "have"
        notes.append(
            f"{counted(measured.replaced, 'measured point')} also {has} samples of another recipe, toolchain or set of "
            "metrics; they stay in the store and are not shown"
        )
    return tuple(notes)


def added_metric_notes(measured: MeasuredHere) -> tuple[str, ...]:
    """Return sentences about metrics that were added since the measurements; a plan counts all invocations as left."""
    differences = measured.differences()
    words = zip(differences, outdated_words(differences, len(measured.cells)), strict=True)
    return tuple(
        f"{each}; perftrail run first reads new metrics from stored outputs, so that fewer invocations may be left"
        for found, each in words
        if found.why == NEW_METRIC
    )


def outdated_words(differences: Mapping[Difference, int], every: int) -> tuple[str, ...]:
    """Return how many of all measured points the present study would measure again, and why."""
    return tuple(_words(differences, each, every) for each in differences)


def _words(differences: Mapping[Difference, int], found: Difference, every: int) -> str:
    count = differences[found]
    how_many = f"{count} of {counted(every, 'measured point')}" if count < every else _all(every)
    if found.why == NEW_METRIC:
        return f"{how_many} {'has' if count == 1 else 'have'} no {escaped(found.now, longest=LONGEST)} yet"
    return f"{how_many} {'is' if count == 1 else 'are'} {FROM[found.why]}{_change(found)}"


def _all(every: int) -> str:
    return "the only measured point" if every == 1 else f"all {every} measured points"


def _change(found: Difference) -> str:
    if found.then and found.now:
        return f" (then {_quoted(found.then)}, now {_quoted(found.now)})"
    if found.then or found.now:
        return f" ({_quoted(found.then or found.now)} is {'no longer there' if found.then else 'new'})"
    return " (a variable or a file changed)" if found.why == OLDER_RECIPE else ""


def _quoted(text: str) -> str:
    return f"\u201c{escaped(text, longest=LONGEST)}\u201d"
