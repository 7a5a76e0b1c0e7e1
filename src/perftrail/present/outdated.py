"""Sentences about stored samples that the present study would measure again, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.measurement import NEW_METRIC, OLDER_RECIPE, OTHER_FILES, OTHER_TOOLCHAIN, UNKNOWN_ORIGIN
from perftrail.model.wording import counted, escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.measure.session import View
    from perftrail.model.measurement import Difference
    from perftrail.results.measured import MeasuredHere

ORIGINS = {
    OLDER_RECIPE: "from an older recipe",
    OTHER_TOOLCHAIN: "from another toolchain",
    OTHER_FILES: "from before a change of a file that the benchmark opens",
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
    return (*notes, *comparison_notes(view))


def comparison_notes(view: View) -> tuple[str, ...]:
    """Return a sentence about stored comparisons that this version of perftrail cannot read; empty without them."""
    from perftrail.results.gate import unreadable_comparisons  # here: it imports numpy

    number = unreadable_comparisons(view)
    if not number:
        return ()
    are = (
        "is not shown: another version of perftrail stored it"
        if number == 1
        else ("are not shown: another version of perftrail stored them")
    )
    return (
        f"{counted(number, 'stored comparison')} {are} in another form; use that version, or compare again with: "
        "perftrail compare BASE HEAD",
    )


def added_metric_notes(measured: MeasuredHere) -> tuple[str, ...]:
    """Return sentences about metrics that were added since the measurements; a plan counts all invocations as left."""
    differences = measured.differences()
    words = zip(differences, outdated_words(differences, len(measured.cells)), strict=True)
    return tuple(
        f"{each}; perftrail run first reads new metrics from stored outputs, so that fewer invocations may be left"
        for difference, each in words
        if difference.why == NEW_METRIC
    )


def outdated_words(differences: Mapping[Difference, int], measured: int) -> tuple[str, ...]:
    """Return how many of the `measured` points the present study would measure again, and why."""
    return tuple(_words(each, count, measured) for each, count in differences.items())


def _words(difference: Difference, count: int, measured: int) -> str:
    points = f"{count} of {counted(measured, 'measured point')}" if count < measured else _all(measured)
    if difference.why == NEW_METRIC:
        metric = escaped(difference.now, longest=LONGEST)
        return f"{points} {'has' if count == 1 else 'have'} no {metric} yet"
    return f"{points} {'is' if count == 1 else 'are'} {ORIGINS[difference.why]}{_change(difference)}"


def _all(measured: int) -> str:
    return "the only measured point" if measured == 1 else f"all {measured} measured points"


def _change(difference: Difference) -> str:
    """Return the part that differs: a line of the recipe or the version of a tool, then and now."""
    then, now = difference.then, difference.now
    if difference.why == OTHER_FILES:
        return f" ({_quoted(now)} changed)"
    if then and now:
        return f" (then {_quoted(then)}, now {_quoted(now)})"
    if then or now:
        return f" ({_quoted(then or now)} {'was removed' if then else 'is new'})"
    return " (a variable or a file changed)" if difference.why == OLDER_RECIPE else ""


def _quoted(text: str) -> str:
    return f"\u201c{escaped(text, longest=LONGEST)}\u201d"
