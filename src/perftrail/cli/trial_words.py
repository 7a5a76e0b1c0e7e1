"""What a trial found, in words: warm-ups, marks, ends and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.cli.speech import plain
from perftrail.model.quantity import duration, number, percent, quantity
from perftrail.report.markdown import ratio
from perftrail.stats.comparison import Verdict
from perftrail.stats.trial import Why

if TYPE_CHECKING:
    from perftrail.model.trial import Trial
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.trial import Contrast, Figure, Finding, Findings
    from perftrail.workflows.measure import Tried

MOST_SUGGESTED = 10_000


def progress_words(event: Tried, trial: Trial) -> str:
    """Say what is measured now and how much is left: between the next look and the most."""
    outlook = event.outlook
    shell = event.taken.entry == len(trial.entries)
    name = "the shell" if shell else plain(trial.entries[event.taken.entry].name, longest=30)
    least, most = duration(outlook.seconds_least), duration(outlook.seconds_most)
    span = least if least == most else f"{least} to {most}"
    left = f", {span} left" if outlook.starts_most else ""
    return f"measuring {name}: {outlook.done} runs{left}"


def warmup_words(result: Finding) -> str:
    """Say how many warm-ups were left out, and how the first one compares."""
    warmup = result.warmup
    if warmup.count == 0:
        return "" if warmup.level else "too few runs to tell a warm-up"
    count = f"{warmup.count} warm-up{'s' if warmup.count > 1 else ''} left out"
    first = "it" if warmup.count == 1 else "the first"
    said = f"{count}, {first} took {number(warmup.first)} times as long" if warmup.first != 1.0 else count
    return said if warmup.level else f"{said}; the rest is not level either"


def flag_words(result: Finding) -> str:
    """Say how many runs are marked, and how."""
    return ", ".join(f"{count} of them marked {flag}" for flag, count in result.flags.items())


def end_words(result: Finding, found: Findings) -> str:
    """Say why it ended when that limits the answer, and what would lift it."""
    wall, pace = result.figures.get("wall"), found.trial.pace
    if wall is None:
        return ""
    width = wall.estimate.relative_half_width
    alone = not any(group.others for group in found.trial.groups)
    if result.why is Why.BUDGET and result.runs < pace.least:
        return (
            f"no more fitted into {duration(pace.budget_seconds)} for each command:"
            f" --budget {_seconds(pace.budget_seconds * pace.least / max(1, result.runs) * 1.2)}"
            f" for all {pace.least}"
        )
    if result.why is Why.BUDGET:
        return f"stopped after {duration(pace.budget_seconds)} for each command (--budget)"
    if alone and result.why is Why.MOST and pace.least < pace.most and width > pace.precision:
        return (
            f"within ± {percent(width)}, ± {percent(pace.precision)} would take"
            f" about --max-runs {_rounded(result.runs * (width / pace.precision) ** 2)}"
        )
    return ""


def sentence(contrast: Contrast, found: Findings) -> str:
    """Say what a comparison says, in words: verdict, ratio with interval, or what would have been seen."""
    compared = contrast.comparison
    memory = contrast.metric == "peak_memory"
    effect = f"{ratio(compared)} times as {'much' if memory else 'long'}"
    pairs = f"{compared.pairs} pair{'s' if compared.pairs != 1 else ''}"
    match compared.verdict:
        case Verdict.SAME:
            bound = max(compared.high - 1.0, 1.0 - compared.low)
            return f"same: no difference of {percent(bound)} or more ({pairs})"
        case Verdict.UNCLEAR:
            return f"unclear: {effect}; {_unseen(contrast, pairs, found)}"
        case Verdict.SLOWER:
            return f"{'more' if memory else 'slower'}: {effect} ({pairs})"
        case Verdict.FASTER:
            inverse = "" if memory else f", {number(1.0 / compared.effect)} times as fast"
            return f"{'less' if memory else 'faster'}: {effect}{inverse} ({pairs})"


def _unseen(contrast: Contrast, pairs: str, found: Findings) -> str:
    smallest = contrast.comparison.smallest_seen
    if smallest is None:
        return f"{pairs}, too few for any verdict{_enough(contrast, found)}"
    more = _more_pairs(contrast, found)
    return f"a change below {percent(smallest)} would not have been seen in {pairs}{more}"


def _enough(contrast: Contrast, found: Findings) -> str:
    """What gives at least so many pairs that they can tell something."""
    pace, needed = found.trial.pace, contrast.comparison.needed_pairs
    if found.results[contrast.entry].why is not Why.MOST:
        return f": {needed} are needed"
    return f": {'--runs' if pace.least == pace.most else '--max-runs'} {max(needed, 2 * pace.most)}"


def _more_pairs(contrast: Contrast, found: Findings) -> str:
    """What would make an unclear answer clearer, given why this one ended."""
    pace = found.trial.pace
    why = found.results[contrast.entry].why
    if why is Why.BUDGET:
        return f"; more: --budget {_seconds(4.0 * pace.budget_seconds)}"
    if why is Why.SETTLED:
        return f"; more: --min-runs {pace.most}"
    if why is Why.MOST:
        option = "--runs" if pace.least == pace.most else "--max-runs"
        return f"; more: {option} {4 * pace.most}"
    return ""


def cell(compared: Comparison | None, metric: str) -> str:
    """Say what a comparison says in a cell of a table."""
    if compared is None:
        return "no ratio"
    if compared.verdict is Verdict.SAME:
        return "same"
    if compared.verdict is Verdict.UNCLEAR:
        if compared.smallest_seen is None:
            return "too few pairs"
        return f"unclear ({percent(compared.smallest_seen)})"
    word = str(compared.verdict)
    if metric == "peak_memory":
        word = "less" if compared.verdict is Verdict.FASTER else "more"
    return f"× {number(compared.effect)} {word}"


def interval(figure: Figure) -> str:
    """Write a figure with its interval, where it has one."""
    lies = figure.estimate
    if lies.count == 1:
        return quantity(lies.value, figure.unit)
    return quantity(lies.value, figure.unit, low=lies.low, high=lies.high)


def _seconds(seconds: float) -> str:
    """A duration as the command line takes it, not finer than people would write it."""
    minutes = -(-seconds // 60)
    return f"{minutes:.0f}min" if seconds > 60 else f"{-(-seconds // 1):.0f}s"


def _rounded(count: float) -> int:
    """A count upwards to one leading digit, and not beyond what anybody waits for."""
    size = 10 ** (len(str(int(count))) - 1)
    return min(MOST_SUGGESTED, int(-(-count // size) * size))
