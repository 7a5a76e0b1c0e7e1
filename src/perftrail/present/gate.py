"""A comparison in words, and in each format of `compare --format`. Only the functions of formats escape text.

Formats: Markdown for a comment on a pull or merge request, plain lines for a CI log, workflow commands for GitHub,
JUnit XML, and OpenMetrics text, which GitLab shows as a metrics report. The JUnit XML follows the stricter schema in
use (of Ant's JUnit task), so that readers of the laxer ones accept it.
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
import xml.etree.ElementTree as ET  # only written here
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perftrail.model.build import content_key
from perftrail.model.program import layout_words, layouts_explain
from perftrail.model.recipe import PLAIN
from perftrail.model.wording import change, counted, decimals, escaped, levels, percent, quantity
from perftrail.present.html_page import fenced, inert
from perftrail.present.shared_sentences import capitalised, interval_words, pairs_by_metric
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
    worse = [row for row in gate.rows if row.verdict is Verdict.SLOWER]
    better = [row for row in gate.rows if row.verdict is Verdict.FASTER]
    unclear = sum(row.verdict is Verdict.UNCLEAR for row in gate.rows)
    if not gate.rows:
        return "nothing could be compared"
    if worse or better:
        parts = [f"{metric_name(row)} {row_effect(row)}" for row in (*worse, *reversed(better))]
        more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
        count = f"{len(worse)} of {metrics} worse" if worse else f"{len(better)} of {metrics} better"
        rest = f"; {unclear} of {len(gate.rows)} unclear" if unclear else ""
        return f"{count}: {', '.join(parts[:MOST_NAMED])}{more}{rest}"
    if unclear:
        return f"no change is certain, {unclear} of {metrics} unclear; {could_miss(gate) or detectable_words(gate)}"
    if all(row.one_build for row in gate.rows):
        return "the same: the builds are equal"
    smaller = [f"{metric_name(row)} {row_effect(row)}" for row in gate.rows if _certain_but_small(row)]
    more = f" and {len(smaller) - MOST_NAMED} more" if len(smaller) > MOST_NAMED else ""
    certain = f"; smaller differences are certain: {', '.join(smaller[:MOST_NAMED])}{more}" if smaller else ""
    return f"the same to within {percent(gate.threshold)}, {len(gate.rows)} of {metrics}{certain}"


def _certain_but_small(row: Row) -> bool:
    """Whether a row certainly differs, by less than the threshold."""
    return row.verdict is Verdict.SAME and row.least > EXACT


def verdict_words(gate: Gate, row: Row) -> str:
    """Return a row's verdict with what it means: what is equal, or which change could be missed."""
    found = row.comparison
    if found is None or row.one_build:
        return row.word
    if row.verdict is Verdict.UNCLEAR:
        least = found.minimum_detectable
        known = "too few pairs" if least is None else f"could miss a change below {percent(least)}"
        return f"{row.word}: {known}"
    if row.verdict is Verdict.SAME and _certain_but_small(row):
        return f"differs by less than {percent(gate.threshold)}"
    if row.verdict is Verdict.SAME and (abs(row.size) > EXACT or found.high - found.low > EXACT):
        return f"same within {percent(gate.threshold)}"
    return row.word


def unclear_warning(gate: Gate) -> str:
    """Return that unclear metrics do not fail the gate, what they could miss, and the policy that makes them fail.

    The text is empty without such metrics.
    """
    rows = gate.undecided
    if not rows or gate.exit_code == 1:
        return ""
    found = [row.comparison.minimum_detectable for row in rows if row.comparison is not None]
    known = [least for least in found if least is not None]
    if not known:
        missed = "there are too few pairs for a verdict"
    elif percent(min(known)) == percent(max(known)):
        missed = f"a change below {percent(max(known))} could be missed"
    else:
        span = f"{percent(min(known))} to {percent(max(known))}"
        missed = f"changes below {span} could be missed, depending on the metric"
    are = "is" if len(rows) == 1 else "are"
    count = f"{len(rows)} of {counted(len(gate.rows), 'metric')} {are} unclear"
    return f"{count}: {missed}; --fail-on unclear makes an unclear gate fail"


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
        is_equal = abs(math.log(comparison.effect)) < EXACT
        return "equal each time" if is_equal else f"{_size(comparison, comparison.effect)} each time"
    if comparison.effect >= 2.0 or comparison.effect <= 0.5:
        return f"× {interval_words(comparison.effect, comparison.low, comparison.high)}"
    low, value, high = ((each - 1.0) * 100.0 for each in (comparison.low, comparison.effect, comparison.high))
    digits = min(2, decimals(value, low, high))
    return f"{_signed(value, digits)} % [{_signed(low, digits)}, {_signed(high, digits)}]"


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
    return levels(row.base.value, row.head.value, unit, shown=lambda ratio: _size(comparison, ratio))


def interval_bar(row: Row, limit: float) -> str:
    """Return a row's change and its interval as a bar of characters; `limit` is the logarithm of the ratio at its ends.

    The middle means no change. An arrow at an end stands for values beyond it.
    """
    letters = ["·"] * BAR_WIDTH
    middle = BAR_WIDTH // 2
    letters[middle] = "│"
    comparison = row.comparison
    if comparison is not None:
        columns = [
            round(middle + math.log(each) / limit * middle)
            for each in (comparison.low, comparison.effect, comparison.high)
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
    sizes = [abs(row.size) for row in gate.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    typical = statistics.median_low(sizes) if sizes else 0.0
    return min(math.log(4.0), max(4.0 * math.log1p(gate.threshold), 2.0 * typical))


def detectable_words(gate: Gate) -> str:
    """Return the minimum detectable change in words."""
    minimums = [
        row.comparison.minimum_detectable
        for row in gate.rows
        if row.comparison is not None and row.comparison.minimum_detectable is not None
    ]
    if not minimums:
        needed = max(
            (row.comparison.needed_pairs for row in gate.rows if row.comparison is not None), default=0
        )
        return f"no verdict yet: a verdict needs {needed} pairs" if needed else "no metric was compared"
    if max(minimums) < EXACT:
        return "any change would have been detected: all samples are equal"
    if len(minimums) == 1 or percent(min(minimums)) == percent(max(minimums)):
        return f"a change of {percent(max(minimums))} would have been detected"
    span = f"{percent(min(minimums))} to {percent(max(minimums))}"
    return f"a change of {span} would have been detected, depending on the metric"


MOST_PAIRS = 1000
"""perftrail does not propose more pairs than this: the metric is too noisy on this machine."""


def could_miss(gate: Gate) -> str:
    """Return that the comparison could miss a change of the threshold, and how many more pairs would detect it.

    The text is empty if it could not.
    """
    more = sorted(gate.more_pairs(row) for row in gate.rows if gate.could_miss(row))
    if not more:
        return ""
    least, most = (
        _rounded(pairs) if pairs <= MOST_PAIRS else f"more than {MOST_PAIRS:,}"
        for pairs in (more[0], more[-1])
    )
    count = (
        f"{least} more pairs"
        if least == most
        else f"{least} more pairs for the steadiest metric, {most} for the noisiest"
    )
    about = "" if least.startswith("more") else "about "
    return f"could miss a {percent(gate.threshold)} change; needs {about}{count}"


def _rounded(pairs: int) -> str:
    """Return an estimated count with one digit, or two below a hundred."""
    size = 10 ** max(0, len(str(pairs)) - (2 if pairs < 200 else 1))
    return f"{math.ceil(pairs / size) * size:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCommand:
    """The next useful command: hostile text, quoted for a shell; and its purpose in a verb phrase."""

    command: str
    purpose: str


def next_command(gate: Gate) -> NextCommand | None:
    """Return the command that settles or explains the answer; `None` if there is nothing left to do.

    It finds the culprit of a change, or shows what differs between two neighbouring revisions. For unclear metrics it
    measures more pairs.
    """
    if gate.verdict in (Verdict.SLOWER, Verdict.FASTER):
        if gate.head.parents[:1] == (gate.base.id,):
            return NextCommand(
                command=f"perftrail explain {gate.head.short}",
                purpose="show what changed; its parent is the base",
            )
        return (
            NextCommand(command=gate.find_command, purpose="find the culprit") if gate.find_command else None
        )
    smallest = min((row.least for row in gate.rows if _certain_but_small(row)), default=0.0)
    if gate.verdict is Verdict.SAME and gate.repeat and smallest:
        threshold = f"{50.0 * math.expm1(smallest):.1g}%"
        command = _with_option(gate.repeat, "--threshold", threshold)
        return NextCommand(command=command, purpose="judge the smaller difference, too")
    pairs = max((row.pairs for row in gate.rows), default=0)
    if gate.verdict is Verdict.UNCLEAR and gate.repeat and pairs:
        command = _with_option(gate.repeat, "--max-pairs", str(_pairs_to_try(gate, pairs)))
        return NextCommand(command=command, purpose="measure more pairs")
    return None


def _pairs_to_try(gate: Gate, pairs: int) -> int:
    """Return a maximum of pairs that detects the threshold in each unclear metric, or in the steadiest.

    It is twice the present maximum if a useful number of pairs would not detect it.
    """
    totals = sorted(row.pairs + gate.more_pairs(row) for row in gate.rows if gate.could_miss(row))
    if not totals or totals[0] > MOST_PAIRS:
        return 2 * pairs
    return max(pairs + 1, totals[-1] if totals[-1] <= MOST_PAIRS else totals[0])


def _with_option(command: str, option: str, value: str) -> str:
    """Return a command with this value of an option, instead of the present one.

    >>> _with_option("perftrail compare a b --max-pairs 9 --budget 1min", "--max-pairs", "18")
    'perftrail compare a b --budget 1min --max-pairs 18'
    """
    words = shlex.split(command)
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return shlex.join([*words, option, value])


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
    fails = FAILS[gate.fail_on].format(percent(gate.threshold))
    count = len(gate.tripped)
    found = f"{counted(count, 'metric')} of {len(gate.rows)}" if count else "none"
    unclear = len(gate.undecided)
    ignored = f"{counted(unclear, 'unclear metric')} {'does' if unclear == 1 else 'do'} not count"
    passed = f"; {ignored} (--fail-on unclear)" if unclear else ""
    return f"{option} fails on {fails}: {found}, so exit code {gate.exit_code}{passed}"


def certainty(gate: Gate) -> str:
    """Return how certain the verdicts are, and the minimum detectable change."""
    compared = sum(row.comparison is not None for row in gate.rows)
    if not compared:
        one_build = any(row.one_build for row in gate.rows)
        return "equal builds need no measuring" if one_build else "nothing was compared"
    several = "both verdicts" if compared == 2 else f"all {compared} verdicts"
    shared = f"{several} together are" if compared > 1 else "the verdict is"
    certain = all(row.verdict in (Verdict.SLOWER, Verdict.FASTER) for row in gate.rows)
    return (
        f"{shared} wrong in at most {percent(1.0 - gate.confidence)} of such comparisons, at any stopping time; "
        f"changes below {percent(gate.threshold)} count as none "
        f"({_threshold_source(gate)})" + ("" if certain else f"; {detectable_words(gate)}")
    )


def _threshold_source(gate: Gate) -> str:
    from_option = gate.threshold_source == "--threshold"
    return gate.threshold_source if from_option else f"{gate.threshold_source}; --threshold changes it"


def effort(gate: Gate) -> str:
    """Return the number of pairs and invocations behind the answer."""
    pairs = [row.pairs for row in gate.rows if row.pairs]
    if not pairs:
        return "no invocations"
    least = "" if min(pairs) == max(pairs) else f"{min(pairs)} to "
    new = f", {gate.fresh} new" if gate.fresh < gate.invocations else ""
    layouts = max(row.layouts for row in gate.rows)
    of_layouts = f" of {counted(layouts, 'layout')}" if layouts else ""
    invocations = counted(gate.invocations, "invocation")
    return f"{least}{counted(max(pairs), 'pair')}{of_layouts} in random order, {invocations}{new}"


def machine(gate: Gate) -> str:
    """Return the name of the machine with its most important facts."""
    facts = gate.machine.facts
    facts_words = [
        text.format(facts[fact]) for fact, text in MACHINE.items() if facts.get(fact, "unknown") != "unknown"
    ]
    return ", ".join([gate.machine.id, *facts_words])


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
    """Yield the limits of the answer."""
    yield from _builds_or_layouts(gate)
    if discarded := pairs_by_metric([(metric_name(row), row.discarded) for row in gate.rows]):
        yield f"discarded and repeated because of other load: {discarded}"
    if noisy := pairs_by_metric([(metric_name(row), row.noisy) for row in gate.rows]):
        yield f"the machine was always busy, so noisy pairs are used: {noisy}"
    within = percent(gate.threshold)
    if any(verdict_words(gate, row) == f"same within {within}" for row in gate.rows):
        yield f"same within {within}: the whole interval of the change is; the levels may differ by less than that"
    small = [row for row in gate.rows if row.verdict is Verdict.SLOWER and not gate.reaches_threshold(row)]
    if small:
        worse, least = counted(len(small), "worse metric"), percent(gate.threshold)
        yield f"{worse} may differ by less than {least}, which does not fail the gate"
    yield from gate.notes


def _builds_or_layouts(gate: Gate) -> Iterator[str]:
    """Yield that memory layouts may cause a certain difference of two builds, and how to rule that out."""
    rows = [
        row
        for row in gate.rows
        if row.basis == "builds"
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


SIGNS = {Verdict.SLOWER: "🔴", Verdict.FASTER: "🟢", Verdict.UNCLEAR: "⚪", Verdict.SAME: "⚫"}
"""Signs, always printed together with the verdict's word."""

MOST_ROWS, MOST_FOLDED = 100, 60
"""Maximum number of changed rows, and of folded rows of each verdict. A comment can have 65,536 characters."""

MOST_FAILED = 20
"""Maximum number of failed sides in a comment."""


def to_markdown(gate: Gate) -> str:
    """Return the comparison as Markdown. Hostile text stays text and mentions no user."""
    return "\n".join(_markdown_lines(gate)).rstrip() + "\n"


def marker(gate: Gate) -> str:
    """Return the line by which a later comparison of the same study finds its comment."""
    return f"<!-- perftrail compare {content_key(gate.title)[:16]} -->"


def _markdown_lines(gate: Gate) -> Iterator[str]:
    yield marker(gate)
    yield f"### {inert(gate.title)}"
    yield ""
    yield f"**{inert(headline(gate))}**"
    yield ""
    if warning := unclear_warning(gate):
        yield f"⚠️ **{inert(warning)}**"
        yield ""
    yield f"Base {inert(revision_words(gate.base))}  "
    yield f"Head {inert(revision_words(gate.head))}"
    yield from _rows(gate)
    yield from _failed_sides(gate)
    yield ""
    yield f"- Gate: {inert(policy(gate))}"
    yield f"- How sure: {inert(certainty(gate))}"
    yield f"- Measured: {inert(effort(gate))}"
    yield f"- Machine: {inert(machine(gate))}"
    yield from (f"- {inert(capitalised(text))}" for text in limits(gate))
    if (found := next_command(gate)) is not None:
        yield from _command(f"Next: {found.purpose}", found.command)
    yield from _command("To repeat it", gate.repeat)


def _rows(gate: Gate) -> Iterator[str]:
    changed = [row for row in gate.rows if row.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    limit = bar_limit(gate)
    if changed:
        yield from _table(gate, changed[:MOST_ROWS], limit, omitted=len(changed) - MOST_ROWS)
    for verdict, word in ((Verdict.UNCLEAR, "unclear"), (Verdict.SAME, "unchanged")):
        rows = [row for row in gate.rows if row.verdict is verdict]
        if rows:
            opened = " open" if gate.fail_on in ("unclear", "any") and verdict is Verdict.UNCLEAR else ""
            yield ""
            yield f"<details{opened}><summary>{counted(len(rows), f'{word} metric')}</summary>"
            yield from _table(gate, rows[:MOST_FOLDED], limit, omitted=len(rows) - MOST_FOLDED)
            yield ""
            yield "</details>"


def _table(gate: Gate, rows: Sequence[Row], limit: float, *, omitted: int) -> Iterator[str]:
    yield ""
    head = ("", "metric", "base", "head", change_title(gate), "chart", "verdict")
    yield f"| {' | '.join(map(inert, head))} |"
    yield "| --- | :--- | ---: | ---: | :--- | :---: | :--- |"
    for row in rows:
        verdict = verdict_words(gate, row)
        cells = (
            SIGNS[row.verdict],
            inert(metric_name(row)),
            *(_unbroken(level) for level in levels_words(row)),
            _unbroken(row_effect(row)) if row.comparison is not None else inert(row_effect(row)),
            f"`{interval_bar(row, limit)}`" if row.comparison is not None else "",
            inert(f"{verdict}, fails the gate" if gate.trips(row) else verdict),
        )
        yield f"| {' | '.join(cells)} |"
    if omitted > 0:
        yield ""
        yield f"and {counted(omitted, 'more metric')}"
    yield ""
    if all(row.comparison is None for row in rows):
        return
    low, high = (f"{100.0 * math.expm1(end):+.0f} %".replace("-", "−") for end in (-limit, limit))
    yield f"<sub>Each chart spans {low} to {high}; the bar is the interval.</sub>"


def _unbroken(text: str) -> str:
    """Keep a number and its unit on one line of a narrow column."""
    return inert(text).replace(" ", "\u00a0")


def _failed_sides(gate: Gate) -> Iterator[str]:
    if gate.failed_sides:
        yield ""
        failures = counted(len(gate.failed_sides), "failure")
        yield f"<details{' open' if gate.broken else ''}><summary>{failures}</summary>"
        yield ""
        yield from (f"- {inert(failure_line(each))}" for each in gate.failed_sides[:MOST_FAILED])
        if len(gate.failed_sides) > MOST_FAILED:
            yield f"- and {len(gate.failed_sides) - MOST_FAILED} more"
        yield ""
        yield "</details>"


def _command(title: str, command: str) -> Iterator[str]:
    """Yield a command with its title; nothing without a command."""
    if command:
        yield ""
        yield f"{title}:"
        yield ""
        yield from fenced(escaped(command, longest=None))


def to_plain(gate: Gate) -> str:
    """Return the comparison as lines: the answer first; each other line begins with its subject."""
    return "".join(f"{_without_commands(line)}\n" for line in _lines(gate))


def _lines(gate: Gate) -> Iterator[str]:
    yield headline(gate)
    yield f"base {revision_words(gate.base)}"
    yield f"head {revision_words(gate.head)}"
    for row in gate.rows:
        meaning = verdict_words(gate, row)
        parts = (
            metric_name(row),
            row_effect(row),
            *levels_words(row),
            counted(row.pairs, "pair"),
            "" if meaning == row.word else meaning.removeprefix(f"{row.word}: "),
        )
        yield "  ".join([f"{row.word}{'!' if gate.trips(row) else ''}".ljust(8), *filter(None, parts)])
    yield from (f"failed    {failure_line(each)}" for each in gate.failed_sides)
    if warning := unclear_warning(gate):
        yield f"warning {warning}"
    yield f"gate {policy(gate)}"
    yield f"certainty {certainty(gate)}"
    yield f"measured {effort(gate)}"
    yield f"machine {machine(gate)}"
    yield from (f"note {text}" for text in limits(gate))
    yield f"repeat {gate.repeat}"
    if gate.find_command:
        yield f"find {gate.find_command}"


def _without_commands(line: str) -> str:
    """Return one printable line that no CI runner executes as a command."""
    return escaped(line, longest=None).replace("##[", "## [").replace("##vso", "## vso")


MOST_ANNOTATIONS = 10
"""Maximum number of annotations of one kind that GitHub shows for a step."""


def github_annotations(gate: Gate, *, file: str) -> Iterator[str]:
    """Yield an error for each metric that trips the gate, for each broken side, or for a missing answer.

    Unclear metrics that do not trip it have one warning. `file` is the annotated file.
    """
    for row in gate.tripped[:MOST_ANNOTATIONS]:
        yield _annotation(file, f"{metric_name(row)} is {row.word}", f"{metric_name(row)}: {row_effect(row)}")
    for failed in gate.broken[: max(0, MOST_ANNOTATIONS - len(gate.tripped))]:
        message = f"{failed.failure.stage}: {failed.failure.message}{location(failed)}"
        yield _annotation(file, f"{failed.title} is broken", message)
    if gate.exit_code == 1 and not gate.broken:
        yield _annotation(file, "no answer", headline(gate))
    elif warning := unclear_warning(gate):
        yield _annotation(file, "unclear", warning, kind="warning")


def _annotation(file: str, title: str, message: str, *, kind: Literal["error", "warning"] = "error") -> str:
    return f"::{kind} file={_property(file)},line=1,title={_property(title)}::{_text(message)}"


def _text(text: str) -> str:
    r"""Escape a message of a workflow command.

    >>> _text("50 %\n::error::x")
    '50 %25%0A::error::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    """A case without a verdict: its name, the kind of its problem, and a description."""

    case: str
    kind: str
    message: str


def to_junit(gate: Gate) -> str:
    """Return the comparison as JUnit XML; hostile texts stay within their elements."""
    root = ET.Element("testsuites")
    errors = _errors(gate)
    for number, suite in enumerate(dict.fromkeys([*(row.metric.benchmark for row in gate.rows), *errors])):
        rows = [row for row in gate.rows if row.metric.benchmark == suite]
        _suite(root, gate, suite, number=number, rows=rows, errors=errors.get(suite, []))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _errors(gate: Gate) -> dict[str, list[_Error]]:
    """Return problems without a verdict by suite: the broken benchmarks of the head, else the missing answer."""
    errors: dict[str, list[_Error]] = {}
    for each in gate.broken:
        message = f"{each.failure.message}{location(each)}"
        error = _Error(case=each.title, kind=each.failure.stage, message=message)
        errors.setdefault(each.benchmark or "build", []).append(error)
    if gate.exit_code == 1 and not errors:
        why = [failure_line(each) for each in gate.failed_sides]
        errors["gate"] = [_Error(case="answer", kind="no answer", message="\n".join([headline(gate), *why]))]
    return errors


def _suite(
    root: ET.Element,
    gate: Gate,
    benchmark: str,
    *,
    number: int,
    rows: Sequence[Row],
    errors: Sequence[_Error],
) -> None:
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "id": str(number),
            "package": "perftrail",
            "name": xml_text(benchmark),
            "timestamp": gate.finished[:19],
            "hostname": xml_text(gate.machine.id) or "unknown",
            "tests": str(len(rows) + len(errors)),
            "failures": str(sum(gate.trips(row) for row in rows)),
            "errors": str(len(errors)),
            "skipped": str(sum(_skipped(gate, row) for row in rows)),
            "time": f"{sum(row.seconds for row in rows):.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    values = {"base": gate.base.id, "head": gate.head.id, "machine": machine(gate)}
    for key, text in values.items():
        ET.SubElement(properties, "property", {"name": key, "value": xml_text(text)})
    for row in rows:
        _case(suite, gate, row)
    for each in errors:
        case = _named_case(suite, benchmark, each.case)
        message = xml_text(each.message)
        ET.SubElement(case, "error", {"type": each.kind, "message": message}).text = message
    sentences = "\n".join(part for part in (headline(gate), unclear_warning(gate)) if part)
    ET.SubElement(suite, "system-out").text = xml_text(sentences)
    ET.SubElement(suite, "system-err")


def _case(suite: ET.Element, gate: Gate, row: Row) -> None:
    case = _named_case(suite, row.metric.benchmark, metric_name(row), seconds=row.seconds)
    message = xml_text(f"{metric_name(row)}: {verdict_words(gate, row)}, {row_effect(row)}")
    if gate.trips(row):
        ET.SubElement(case, "failure", {"type": str(row.verdict), "message": message}).text = message
    elif _skipped(gate, row):
        ET.SubElement(case, "skipped", {"message": message})


def _skipped(gate: Gate, row: Row) -> bool:
    """Whether a row counts as skipped: its verdict is unclear and does not trip the gate, but is no success either."""
    return row.verdict is Verdict.UNCLEAR and not gate.trips(row)


def _named_case(suite: ET.Element, benchmark: str, name: str, *, seconds: float = 0.0) -> ET.Element:
    attributes = {"classname": xml_text(benchmark), "name": xml_text(name), "time": f"{seconds:.3f}"}
    return ET.SubElement(suite, "testcase", attributes)


def xml_text(text: str) -> str:
    r"""Escape text for XML: control characters and halves of surrogate pairs become printable characters.

    >>> print(xml_text("a\x1b[31m" + chr(0xd800)))
    a\x1b[31m\ud800
    """
    return escaped(text, longest=None, allowed="\t\n")


FAMILIES: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "perftrail_value": (
        "Median at the head, in the metric's unit.",
        lambda row: None if row.head is None else row.head.value,
    ),
    "perftrail_ratio": (
        "Ratio head/base; 1 means equal.",
        lambda row: 1.0 if row.one_build else None if row.comparison is None else row.comparison.effect,
    ),
    "perftrail_worse": (
        "1 where the head is certainly worse, else 0.",
        lambda row: float(row.verdict is Verdict.SLOWER),
    ),
    "perftrail_unclear": (
        "1 where there is no certain verdict, else 0.",
        lambda row: float(row.verdict is Verdict.UNCLEAR),
    ),
    "perftrail_minimum_detectable": (
        "The relative change that the pairs detect.",
        lambda row: None if row.comparison is None else row.comparison.minimum_detectable,
    ),
}
"""Families of metrics: their help text, and their value in a row; `None` without one."""


def to_metrics(gate: Gate) -> str:
    """Return every row of every family; the labels identify the metric."""
    return "\n".join(_metric_lines(gate)) + "\n"


def _metric_lines(gate: Gate) -> Iterator[str]:
    for family, (meaning, value) in FAMILIES.items():
        yield f"# TYPE {family} gauge"
        yield f"# HELP {family} {meaning}"
        for row in gate.rows:
            number = value(row)
            if number is not None:
                yield f"{family}{{{_labels(row)}}} {number!r}"
    yield "# EOF"


def _labels(row: Row) -> str:
    metric = row.metric
    labels = {
        "benchmark": metric.benchmark,
        "metric": metric.text,
        "point": str(metric.point),
        "unit": metric.unit,
        "variant": metric.variant,
    }
    return ",".join(f'{name}="{_label_value(text)}"' for name, text in labels.items() if text)


def _label_value(text: str) -> str:
    r"""Escape a label's value.

    >>> print(_label_value('a"b\\' + chr(10)))
    a\"b\\\\n
    """
    return escaped(text, longest=None).replace("\\", "\\\\").replace('"', '\\"')


FORMATS: Mapping[str, Callable[[Gate], str]] = {
    "plain": to_plain,
    "github": to_markdown,
    "gitlab": to_markdown,
    "junit": to_junit,
    "metrics": to_metrics,
    "json": lambda gate: json.dumps(gate.as_json(), indent=1) + "\n",
}
"""Function that writes each format."""
