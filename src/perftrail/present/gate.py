"""A comparison in words, for every output. Nothing here is escaped."""

from __future__ import annotations

import math
import shlex
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.metrics import COUNTED, COUNTED_ALONE
from perftrail.model.program import layout_words, layouts_explain, layouts_words
from perftrail.model.recipe import PLAIN
from perftrail.model.wording import change, counted, decimals, duration, levels, listed, percent, quantity
from perftrail.present.shared_sentences import first_named, interval_words, pairs_by_metric
from perftrail.search import Effect
from perftrail.search.words import amount, bounds_words, moved
from perftrail.stats.comparison import Verdict
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.subject import Revision
    from perftrail.results.gate import FailedSide, Gate, Row
    from perftrail.stats.comparison import Comparison


EXACT = 1e-9
"""A narrower interval means that all samples are equal."""

BAR_WIDTH = 21
"""Width of a row's bar in characters; odd, so that the middle character means no change."""

MACHINE = {
    "cpu": "{}",
    "logical_cpus": "{} CPUs",
    "memory_gib": "{} GiB",
    "kernel": "kernel {}",
    "virtualisation": "virtualisation {}",
}
"""Facts of a machine to print after its id, with their format; unknown facts are skipped."""

MOST_NAMED = 3
"""Maximum number of changed metrics in the headline."""

TWO_BUILDS = math.sqrt(2.0)
"""Both builds vary, so their difference varies by this factor more than one build."""


def headline(gate: Gate) -> str:
    """Return the answer in a line: the worse metrics with their changes, or the minimum detectable change."""
    return f"{_outcome(gate)}{_compared(gate)}{_broken(gate)}"


def _outcome(gate: Gate) -> str:
    if gate.exit_code == 1:
        return "no answer: "
    if gate.fail_on == "never":
        return ""
    if gate.tripped:
        return "gate failed: "
    return "gate passed, but unclear: " if gate.undecided else "gate passed: "


def _broken(gate: Gate) -> str:
    return f"; {counted(len(gate.broken), 'new failure')} at the head" if gate.broken else ""


def _compared(gate: Gate) -> str:
    metrics = counted(len(gate.rows), "metric")
    worse = [row for row in gate.changes if row.verdict is Verdict.SLOWER]
    better = [row for row in gate.changes if row.verdict is Verdict.FASTER]
    unclear = sum(row.verdict is Verdict.UNCLEAR for row in gate.rows)
    if not gate.rows:
        return "nothing could be compared"
    if worse or better:
        parts = [f"{metric_name(row)} {row_effect(row)}" for row in _named_first(worse, better, gate.changes)]
        count = f"{len(worse)} of {metrics} worse" if worse else f"{len(better)} of {metrics} better"
        both = f", {len(better)} better" if worse and better else ""
        rest = f"; {unclear} of {len(gate.rows)} unclear" if unclear else ""
        return f"{count}{both}: {first_named(parts, MOST_NAMED)}{rest}"
    if unclear:
        small = any(map(_certain_but_small, gate.rows))
        certain = (
            f"no change of {threshold_words(gate)} or more is certain" if small else "no change is certain"
        )
        return f"{certain}, {unclear} of {metrics} unclear; {'; '.join(_sensitivity_and_need(gate))}"
    if all(row.one_build for row in gate.rows):
        return "the same: the builds are equal"
    smaller = [f"{metric_name(row)} {row_effect(row)}" for row in gate.rows if _certain_but_small(row)]
    certain = f"; smaller differences are certain: {first_named(smaller, MOST_NAMED)}" if smaller else ""
    return f"the same to within {threshold_words(gate)}, {len(gate.rows)} of {metrics}{certain}"


def threshold_words(gate: Gate, row: Row | None = None) -> str:
    """Return the threshold on the scale of a row, or of all rows; in percent if these have several scales."""
    rows = gate.rows if row is None else (row,)
    scales = {(each.scale, each.metric.unit if each.scale is Scale.DIFFERENCE else "") for each in rows}
    scale, unit = scales.pop() if len(scales) == 1 else (Scale.RATIO, "")
    return amount(gate.threshold, scale, unit)


def _named_first(worse: Sequence[Row], better: Sequence[Row], changes: Sequence[Row]) -> list[Row]:
    """Return the changes in the order in which a headline names them: the largest of each direction comes first."""
    largest = {id(row) for row in (*worse[:1], *better[:1])}
    return [
        *(row for row in changes if id(row) in largest),
        *(row for row in changes if id(row) not in largest),
    ]


def _certain_but_small(row: Row) -> bool:
    """Whether a row certainly differs, by less than the threshold."""
    return row.verdict is Verdict.SAME and row.least > EXACT


def counts_words(gate: Gate) -> str:
    """Return how many metrics were compared, and how many have each verdict."""
    words = {
        Verdict.SLOWER: "worse",
        Verdict.FASTER: "better",
        Verdict.SAME: "same",
        Verdict.UNCLEAR: "unclear",
    }
    counts = (f"{sum(row.verdict is each for row in gate.rows):,} {word}" for each, word in words.items())
    benchmarks = len({row.metric.benchmark for row in gate.rows})
    compared = f"{counted(len(gate.rows), 'metric')} of {counted(benchmarks, 'benchmark')} compared"
    return f"{compared}: {', '.join(counts)}"


def difference_words(gate: Gate) -> Iterator[str]:
    """Yield what differs between base and head besides the text of their program."""
    for each in gate.differences:
        if each.name == "recipe":
            lines = f": base `{each.base}`, head `{each.head}`" if each.base or each.head else ""
            where = "" if lines else " in a variable, a file or another source"
            yield f"not only the program differs: its recipe does{where}{lines}"
        elif each.base or each.head:
            yield f"not only the program differs: base was built with {each.base}, head with {each.head}"
    files = [each.name for each in gate.differences if each.name != "recipe" and not (each.base or each.head)]
    if files:
        named = files if len(files) <= MOST_NAMED else [*files[:MOST_NAMED], "other files"]
        verb = "differs" if len(files) == 1 else "differ"
        yield f"the head may use other dependencies: {listed(named, 'and')} {verb}"


def tools_words(gate: Gate) -> str:
    """Return the versions of the tools that built both revisions; empty if they are unknown."""
    return ", ".join(tool.partition(": ")[2] or tool for tool in gate.tools)


def verdict_words(gate: Gate, row: Row) -> str:
    """Return a row's verdict with what it means: what is equal, or which change could be missed."""
    found = row.comparison
    if found is None or row.one_build:
        return row.word
    if row.verdict is Verdict.UNCLEAR:
        least = found.minimum_detectable
        known = "too few pairs"
        if least is not None:
            known = f"could miss a change below {amount(least, row.scale, row.metric.unit)}"
        return f"{row.word}: {known}"
    if row.verdict in (Verdict.SLOWER, Verdict.FASTER):
        limit = threshold_words(gate, row)
        is_large = gate.reaches_threshold(row)
        return f"{row.word} by {limit} or more" if is_large else f"{row.word}, perhaps by less than {limit}"
    if _certain_but_small(row):
        return f"differs by less than {threshold_words(gate, row)}"
    if abs(row.size) > EXACT or found.high - found.low > EXACT:
        return f"same within {threshold_words(gate, row)}"
    return row.word


def unclear_warning(gate: Gate) -> str:
    """Return that unclear metrics do not fail the gate, what they could miss, and the policy that makes them fail.

    The text is empty without such metrics.
    """
    rows = gate.undecided
    if not rows or gate.exit_code == 1:
        return ""
    are = "is" if len(rows) == 1 else "are"
    count = f"{len(rows)} of {counted(len(gate.rows), 'metric')} {are} unclear"
    return f"{count}: {sensitivity(rows)}; --fail-on unclear makes an unclear gate fail"


def metric_name(row: Row) -> str:
    """Return the full name of a row's metric, with its variant unless it is the plain one."""
    variant = "" if row.metric.variant == PLAIN else f" ({row.metric.variant})"
    return f"{row.metric.name}{variant}"


def row_effect(row: Row) -> str:
    """Return a row's change with its interval: ``+5.2 % [+4.1, +6.3]``."""
    comparison = row.comparison
    if row.one_build:
        return "equal builds"
    if comparison is None:
        return row.note or "not measured"
    if comparison.high - comparison.low < EXACT:
        effect = comparison.effect
        size = _size(comparison, effect) if row.scale is Scale.RATIO else moved(_effect(row), row.metric.unit)
        size = "equal" if abs(comparison.size) < EXACT else size
        return f"{size} in {'the only' if comparison.pairs == 1 else 'every'} pair"
    if row.scale is not Scale.RATIO:
        unit = row.metric.unit
        return f"{moved(_effect(row), unit)} [{bounds_words(_effect(row), unit)}]"
    change = ratio_change(comparison.effect, comparison.low, comparison.high)
    return f"at least {change}, as runs timed out" if row.at_least else change


def _effect(row: Row) -> Effect:
    found = row.comparison
    assert found is not None
    return Effect(value=found.effect, low=found.low, high=found.high, scale=found.scale)


def ratio_change(value: float, low: float, high: float) -> str:
    """Return a ratio after/before with its interval: as percentages, or as a factor if it is large.

    A bound that is not zero is not rounded to zero, because an interval without zero means a certain change.

    >>> ratio_change(1.052, 1.041, 1.063), ratio_change(2.3, 2.2, 2.4)
    ('+5.2 % [+4.1, +6.3]', '× 2.30 [2.20, 2.40]')
    >>> ratio_change(1.11, 1.003, 1.26)
    '+11 % [+0.3, +26]'
    """
    if value >= 2.0 or value <= 0.5:
        return f"× {interval_words(value, low, high)}"
    low, value, high = ((each - 1.0) * 100.0 for each in (low, value, high))
    digits = min(2, decimals(value, low, high))
    return f"{_signed(value, digits)} % [{_bound(low, digits)}, {_bound(high, digits)}]"


MOST_BOUND_DIGITS = 4
"""Largest number of decimals of a bound in percent."""


def _bound(value: float, digits: int) -> str:
    """Return a bound in percent with as many decimals as its sign needs."""
    while digits < MOST_BOUND_DIGITS and not float(f"{value:.{digits}f}"):
        digits += 1
    text = _signed(value, digits)
    return text if float(text) else "0"


def _signed(value: float, digits: int) -> str:
    """Return a number with its sign; zero has none.

    >>> _signed(-0.3, 0), _signed(1.25, 1), _signed(-1.0, 0)
    ('0', '+1.2', '-1')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def _size(comparison: Comparison, ratio: float) -> str:
    """Return a ratio with the digits of a comparison's effect."""
    if comparison.high - comparison.low < EXACT:
        return change(round(ratio, 9))
    if comparison.effect >= 2.0 or comparison.effect <= 0.5:
        return f"{ratio:.{decimals(comparison.effect, comparison.low, comparison.high)}f}"
    low, value, high = ((each - 1.0) * 100.0 for each in (comparison.low, comparison.effect, comparison.high))
    return _signed((ratio - 1.0) * 100.0, min(2, decimals(value, low, high)))


def change_title(gate: Gate) -> str:
    """Return the title of a column of changes, with the confidence of all its intervals together."""
    return f"change [{percent(gate.confidence)} interval]"


def levels_words(row: Row) -> tuple[str, str]:
    """Return the levels of base and head with their unit, with the digits that agree with the printed change."""
    unit, comparison = row.metric.unit, row.comparison
    if row.base is None or row.head is None or comparison is None:
        base, head = ("" if each is None else quantity(each.value, unit) for each in (row.base, row.head))
        return base, head
    if row.scale is Scale.RATE:
        return f"{100 * row.base.value:.3g} %", f"{100 * row.head.value:.3g} %"
    if row.scale is Scale.DIFFERENCE:
        return quantity(row.base.value, unit), quantity(row.head.value, unit)
    return levels(row.base.value, row.head.value, unit, shown=lambda ratio: _size(comparison, ratio))


def interval_bar(row: Row, limit: float) -> str:
    """Return a row's change and its interval as a bar of characters; `limit` is the logarithm of the ratio at its ends.

    The bar of a difference ends at the bounds of its interval.

    The middle means no change. An arrow at an end stands for values beyond it.
    """
    letters = ["·"] * BAR_WIDTH
    middle = BAR_WIDTH // 2
    letters[middle] = "│"
    comparison = row.comparison
    if comparison is not None:
        interval = comparison.bounds
        if comparison.scale is not Scale.RATIO:
            limit = max(abs(interval.low), abs(interval.high), EXACT)
        columns = [
            round(middle + each / limit * middle) for each in (interval.low, comparison.size, interval.high)
        ]
        low, value, high = (max(0, min(BAR_WIDTH - 1, column)) for column in columns)
        for column in range(low, high + 1):
            letters[column] = "┿" if column == middle else "━"
        letters[value] = "●"
        if columns[0] < 0:
            letters[0] = "◂"
        if columns[2] >= BAR_WIDTH:
            letters[-1] = "▸"
    return "".join(letters)


def bar_limit(gate: Gate) -> float:
    """Return the logarithm of the ratio at the ends of each bar: twice a typical change, or four thresholds.

    Larger changes are drawn as arrows.
    """
    sizes = [
        abs(row.size)
        for row in gate.rows
        if row.verdict in (Verdict.SLOWER, Verdict.FASTER) and row.scale is Scale.RATIO
    ]
    typical = statistics.median_low(sizes) if sizes else 0.0
    return min(math.log(4.0), max(4.0 * math.log1p(gate.threshold), 2.0 * typical))


def sensitivity(rows: Sequence[Row]) -> str:
    """Return which changes of these rows could be missed: the one statement of sensitivity in every output."""
    found = [row.comparison for row in rows if row.comparison is not None]
    known = [each.minimum_detectable for each in found if each.minimum_detectable is not None]
    scales = {(row.scale, row.metric.unit if row.scale is Scale.DIFFERENCE else "") for row in rows}
    if known and scales != {(Scale.RATIO, "")}:
        texts = [
            amount(smallest, row.scale, row.metric.unit)
            for row in rows
            if row.comparison is not None and (smallest := row.comparison.minimum_detectable) is not None
        ]
        return f"changes below {first_named(list(dict.fromkeys(texts)), MOST_NAMED)} could be missed"
    if not found:
        return "no metric was compared"
    if not known:
        return f"no verdict yet: a verdict needs {max(each.needed_pairs for each in found)} pairs"
    least, most = percent(min(known)), percent(max(known))
    if max(known) < EXACT:
        return "no change could be missed: all samples are equal"
    if least == most:
        return f"a change below {most} could be missed"
    return f"changes below {least} to {most} could be missed, depending on the metric"


MOST_PAIRS = 1000
"""perftrail does not propose more pairs than this: the metric is too noisy on this machine."""

MOST_SECONDS = 3600.0
"""perftrail proposes a longer measurement than this only if no shorter one leads to a verdict."""


def _sensitivity_and_need(gate: Gate) -> Iterator[str]:
    """Yield which changes of the unclear rows could be missed, and how many more pairs the threshold needs."""
    yield sensitivity([row for row in gate.rows if row.verdict is Verdict.UNCLEAR])
    needs = sorted(
        ((gate.more_pairs(row), metric_name(row)) for row in gate.rows if gate.could_miss(row)),
        key=lambda need: need[0],
    )
    if needs:
        (least, first), (most, last) = needs[0], needs[-1]
        one = _about(least) == _about(most)
        pairs = f"{_about(least)} more pairs"
        if not one:
            pairs = f"{pairs} for {first}, {_about(most)} for {last}"
        yield f"to detect {threshold_words(gate)}: {pairs}"


def _about(pairs: int) -> str:
    return f"about {_rounded(pairs)}" if pairs <= MOST_PAIRS else f"more than {MOST_PAIRS:,}"


def _rounded(pairs: int) -> str:
    """Return an estimated count with two digits."""
    size = 10 ** max(0, len(str(pairs)) - 2)
    return f"{math.ceil(pairs / size) * size:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCommand:
    """The next useful command: hostile text, quoted for a shell; and its purpose in a verb phrase."""

    command: str
    purpose: str


def next_command(gate: Gate) -> NextCommand | None:
    """Return the command that settles or explains the answer; `None` if there is nothing left to do.

    It finds the culprit of the largest change, or explains it if base and head are neighbours. For unclear metrics it
    measures more pairs, if their number is useful.
    """
    if gate.changes:
        purpose = ""
        if len(gate.changes) > 1:
            purpose = f" of the largest change, {metric_name(gate.changes[0])}"
        if gate.explain_command:
            return NextCommand(
                command=gate.explain_command,
                purpose=f"show the cause{purpose}; the base is the parent of the head",
            )
        return (
            NextCommand(command=gate.find_command, purpose=f"find the culprit{purpose}")
            if gate.find_command
            else None
        )
    small = (row for row in gate.rows if _certain_but_small(row) and row.scale is Scale.RATIO)
    smallest = min((row.least for row in small), default=0.0)
    if gate.verdict is Verdict.SAME and gate.repeat and smallest:
        threshold = f"{50.0 * math.expm1(smallest):.1g}%"
        command = _with_option(gate.repeat, "--threshold", threshold)
        return NextCommand(command=command, purpose="judge the smaller difference, too")
    return _more_pairs(gate) if gate.verdict is Verdict.UNCLEAR and gate.repeat else None


def _more_pairs(gate: Gate) -> NextCommand | None:
    """Return the command that leads to a verdict on as many unclear metrics as possible within `MOST_SECONDS`.

    It is `None` if no metric would get a verdict with `MOST_PAIRS` pairs.
    """
    totals = sorted(
        pairs for row in gate.rows if row.verdict is Verdict.UNCLEAR if (pairs := gate.useful_pairs(row))
    )
    possible = [pairs for pairs in totals if pairs <= MOST_PAIRS]
    if not possible:
        return None
    most = max((pairs for pairs in possible if gate.seconds_to(pairs) <= MOST_SECONDS), default=possible[0])
    enough, unclear = sum(pairs <= most for pairs in totals), len(totals)
    share = "" if enough == unclear else f", enough for {enough} of {counted(unclear, 'unclear metric')}"
    seconds = gate.seconds_to(most)
    duration_words = f", about {duration(seconds)} more" if seconds else ""
    return NextCommand(
        command=_with_option(_without_option(gate.repeat, "--budget"), "--max-pairs", str(most)),
        purpose=f"measure up to {counted(most, 'pair')}{duration_words}{share}",
    )


NOISY = 4
"""A row that needs this many times its pairs is too noisy."""

SHORT = 0.5
"""Seconds of an invocation below which noise matters more."""


def advice(gate: Gate) -> str:
    """Return how a benchmark becomes less noisy, if more pairs would take long or are too many; else an empty text."""
    rows = [
        row
        for row in gate.rows
        if row.verdict is Verdict.UNCLEAR and row.metric.unit == "s" and gate.could_miss(row)
        if (pairs := gate.useful_pairs(row)) > min(MOST_PAIRS, NOISY * row.pairs)
        or gate.seconds_to(pairs) > MOST_SECONDS
    ]
    if not rows:
        return ""
    named = first_named(list(dict.fromkeys(row.metric.benchmark for row in rows)), MOST_NAMED)
    each = min(row.seconds / (2 * (row.pairs + row.discarded)) for row in rows)
    longer = f"use longer inputs (an invocation takes {duration(each)}), or " if 0.0 < each < SHORT else ""
    return (
        f"too noisy here for {threshold_words(gate)}: {named}; {longer}count instructions instead of time, in a "
        'second benchmark with the same command and counters = ["instructions"]'
    )


def _with_option(command: str, option: str, value: str) -> str:
    """Return a command with this value of an option, instead of the present one.

    >>> _with_option("perftrail compare a b --max-pairs 9 --budget 1min", "--max-pairs", "18")
    'perftrail compare a b --budget 1min --max-pairs 18'
    """
    return shlex.join([*shlex.split(_without_option(command, option)), option, value])


def _without_option(command: str, option: str) -> str:
    """Return a command without an option and its value.

    >>> _without_option("perftrail compare a b --budget 1min --staged", "--budget")
    'perftrail compare a b --staged'
    """
    words = shlex.split(command)
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return shlex.join(words)


FAILS = {
    "slower": "a metric that is certainly worse by {} or more",
    "unclear": "an unclear metric, and a metric that is certainly worse by {} or more",
    "any": "an unclear metric, and a metric that certainly differs by {} or more",
}
"""Verdicts that fail a gate, by policy."""


def policy(gate: Gate) -> str:
    """Return the policy of the gate, and the exit code with its reason."""
    option = f"--fail-on {gate.fail_on}"
    if gate.exit_code == 1:
        broken = "the head fails where the base works" if gate.broken else "there is no verdict"
        return f"{option}: exit code 1, because {broken}"
    if gate.fail_on == "never":
        return f"{option}: exit code 0 whatever the verdict"
    fails = FAILS[gate.fail_on].format(threshold_words(gate))
    count = len(gate.tripped)
    found = f"{counted(count, 'metric')} of {len(gate.rows)}" if count else "none"
    unclear = len(gate.undecided)
    ignored = f"{counted(unclear, 'unclear metric')} {'does' if unclear == 1 else 'do'} not count"
    passed = f"; {ignored} (--fail-on unclear)" if unclear else ""
    return f"{option} fails on {fails}: {found}, so exit code {gate.exit_code}{passed}"


def certainty(gate: Gate) -> str:
    """Return how certain the verdicts are, and which changes could be missed."""
    compared = sum(row.comparison is not None for row in gate.rows)
    if not compared:
        one_build = any(row.one_build for row in gate.rows)
        return "equal builds need no measuring" if one_build else "nothing was compared"
    several = "both verdicts" if compared == 2 else f"all {compared} verdicts"
    shared = f"{several} together are" if compared > 1 else "the verdict is"
    unclear = [row for row in gate.rows if row.verdict is Verdict.UNCLEAR]
    others = unclear or [
        row for row in gate.rows if row.verdict is Verdict.SAME and row.comparison is not None
    ]
    return (
        f"{shared} wrong in at most {percent(1.0 - gate.confidence)} of such comparisons, at any stopping time; "
        f"changes below {threshold_words(gate)} count as none "
        f"({_threshold_source(gate)})" + (f"; {sensitivity(others)}" if others else "")
    )


def _threshold_source(gate: Gate) -> str:
    from_option = gate.threshold_source == "--threshold"
    return gate.threshold_source if from_option else f"{gate.threshold_source}; --threshold changes it"


def equal_builds(gate: Gate) -> str:
    """Return which benchmarks have equal builds, so that no output lists their metrics; empty without any."""
    names = list(dict.fromkeys(row.metric.benchmark for row in gate.rows if row.one_build))
    count = counted(sum(row.one_build for row in gate.rows), "metric")
    return f"equal builds, not measured: {first_named(names, MOST_NAMES)} ({count})" if names else ""


def effort(gate: Gate) -> str:
    """Return the number of pairs and invocations behind the answer."""
    pairs = [row.pairs for row in gate.rows if row.pairs]
    if not pairs:
        return "no invocations"
    least = "" if min(pairs) == max(pairs) else f"{min(pairs)} to "
    new = f", {gate.fresh} new" if gate.fresh < gate.invocations else ""
    layouts = max(row.layouts for row in gate.rows)
    of_layouts = f" of {counted(layouts, 'layout')}" if layouts else ""
    if layouts and all(row.pinned for row in gate.rows if row.layouts):
        of_layouts = layouts_words(layouts, pinned=True) + ","
    invocations = counted(gate.invocations, "invocation")
    return f"{least}{counted(max(pairs), 'pair')}{of_layouts} in random order, {invocations}{new}"


def machine(gate: Gate) -> str:
    """Return the most important facts of the machine, and its id."""
    return machine_words(gate.machine.id, gate.machine.facts)


def machine_words(id: str, facts: Mapping[str, str]) -> str:
    """Return the most important facts of a machine, and its id."""
    facts_words = [
        text.format(facts[fact]) for fact, text in MACHINE.items() if facts.get(fact, "unknown") != "unknown"
    ]
    return f"{', '.join(facts_words)} (machine {id})" if facts_words else f"machine {id}"


def revision_words(revision: Revision) -> str:
    """Return the name of a revision: its label or short id, and its message."""
    label, short = revision.label, revision.short
    name = f"{label} ({short})" if label and label != short else short
    return f"{name} {revision.summary}".strip()


def failure_line(each: FailedSide) -> str:
    """Return why a side cannot be measured, in a line."""
    lines = each.failure.message.strip().splitlines()
    where = f"{each.side} {each.location}".strip()
    return f"{where}: {each.failure.stage}: {lines[0] if lines else ''}{location(each)}"


def location(each: FailedSide) -> str:
    """Return in parentheses the line of the study file that a failure is about, and its log."""
    parts = [each.study_line, f"log: {each.failure.log}" if each.failure.log else ""]
    text = "; ".join(part for part in parts if part)
    return f" ({text})" if text else ""


def limits(gate: Gate) -> Iterator[str]:
    """Yield the limits of the answer: first what differs besides the program's text."""
    yield from difference_words(gate)
    yield from _builds_or_layouts(gate)
    if discarded := pairs_by_metric([(metric_name(row), row.discarded) for row in gate.rows]):
        yield f"discarded and repeated because of other load: {discarded}"
    if noisy := pairs_by_metric([(metric_name(row), row.noisy) for row in gate.rows]):
        yield f"the machine was always busy, so noisy pairs are used: {noisy}"
    within = threshold_words(gate)
    if any(verdict_words(gate, row).startswith("same within ") for row in gate.rows):
        yield f"same within {within}: the whole interval of the change is; the levels may differ by less than that"
    small = [row for row in gate.rows if row.verdict is Verdict.SLOWER and not gate.reaches_threshold(row)]
    if small:
        named = first_named([metric_name(row) for row in small], MOST_NAMED)
        yield f"certainly worse, but perhaps by less than {within}, which does not fail the gate: {named}"
    for names, words in ((gate.appeared, "new in the head"), (gate.disappeared, "gone from the head")):
        if names:
            benchmarks = counted(len(names), "benchmark")
            yield f"{words}: {benchmarks} of its suites, not compared: {first_named(names, MOST_NAMES)}"
    yield from gate.notes
    if words := advice(gate):
        yield words


MOST_NAMES = 5
"""Largest number of benchmarks that a sentence names."""


LAYOUT_FREE = frozenset(name for counter in COUNTED_ALONE for name in COUNTED[counter])
"""Counts, which memory layouts hardly change."""


def _builds_or_layouts(gate: Gate) -> Iterator[str]:
    """Yield that memory layouts may cause a certain difference of two builds, and how to rule that out."""
    rows = [
        row
        for row in gate.rows
        if row.basis == "builds" and row.metric.text not in LAYOUT_FREE and row.scale is Scale.RATIO
        if (found := row.comparison) is not None and layouts_explain(found.effect, found.low, found.high)
    ]
    if not rows:
        return
    noise = gate.layout_noise
    usual = ""
    if noise is not None:
        difference = percent(noise.value * TWO_BUILDS)
        usual = f"{noise.builds} neighbouring builds without a change differ by {difference}"
    yield from dict.fromkeys(layout_words(linked=row.linked, usual=usual) for row in rows)
