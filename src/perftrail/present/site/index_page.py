"""The index page of a site: the state of every metric, its history, and the published reports.

One file of text: charts are drawn by a small script from numbers in the page, because Vega would be most of it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from perftrail._version import __version__
from perftrail.charts.frame import HistoryPoint, evenly, thinned
from perftrail.charts.history import SPARKLINE, sparkline
from perftrail.model.wording import counted, escaped, percent, quantity, scale
from perftrail.present.answer_sentence import revision_name
from perftrail.present.gate import machine_words, ratio_change
from perftrail.present.html_page import Fact, Verdict, content_policy, inert_json, template_text, tied
from perftrail.present.site.badge import LABEL, badge_of, to_svg
from perftrail.present.site.history import RECENT, STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.json_data import Json
    from perftrail.model.published import Publication
    from perftrail.present.html_page import Tone
    from perftrail.present.site.history import MetricState, SiteHistory, SitePoint, State
    from perftrail.results.changes import HistoryChange

AT_ONCE = 40
"""Number of metrics that the page shows at once; a script shows the others on request."""

REPORTS_AT_ONCE = 10

LONGEST_SENTENCE = 300

MOST_SPARKLINE_POINTS = 48

SPARKLINE_RANGE = 0.05
"""Smallest height of a sparkline, as a share of the value: noise does not look like a change."""

DIGITS = 4
"""Fewest significant digits of a drawn value."""

MOST_DIGITS = 8

ENVIRONMENT = {
    "cpu": "CPU",
    "logical_cpus": "CPUs",
    "cpu_quota": "CPU quota",
    "memory_gib": "GiB of memory",
    "kernel": "kernel",
    "libc": "C library",
    "virtualisation": "virtualisation",
    "governor": "CPU governor",
    "turbo": "turbo",
    "smt": "SMT",
    "microcode": "microcode",
}
"""Facts of a machine that can change the speed of a program, with their names."""

NO_CHANGE: Mapping[str, str] = {"unclear": "unclear", "same": "no change", "retired": "retired"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReport:
    """A published report: its directory's address from the index page, and its publication.

    `has_page`: its page was not deleted.
    """

    directory: str
    publication: Publication
    has_page: bool = True

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"{self.directory}/index.html"

    @property
    def results(self) -> str:
        """The address of the values."""
        return f"{self.directory}/results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """A metric as a row of the page: hostile texts, and a sparkline of its newest machine."""

    name: str
    state: State
    word: str
    newest: str
    change: str
    sparkline: str


def to_index(history: SiteHistory, reports: Sequence[PublishedReport]) -> str:
    """Return the index page of a site; `reports` are all reports, the oldest first."""
    from jinja2 import Environment, StrictUndefined

    script = Markup(template_text("site.js"))  # noqa: S704 - our own script, nothing from a study
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["tied"] = tied
    chips = [("all", "all", len(history.metrics))]
    chips += [(state, _chip(history, state), history.counts[state]) for state in STATES]
    return environment.from_string(template_text("site.html")).render(
        question=escaped(history.study or "Performance results", longest=200),
        verdict=verdict_of(history),
        rows=[metric_row(each) for each in history.metrics],
        chips=[chip for chip in chips if chip[2]],
        at_once=AT_ONCE,
        reports=[_report(each) for each in reversed(reports)],
        reports_at_once=REPORTS_AT_ONCE,
        label=LABEL,
        badge=Markup(to_svg(badge_of(history))),  # noqa: S704 - to_svg escapes its texts
        spark=SPARKLINE,
        style=Markup(template_text("page.css") + template_text("site.css")),  # noqa: S704 - as the script
        script=script,
        policy=content_policy([script], evaluates=False),
        charts=Markup(inert_json(_charts(history))),  # noqa: S704 - inert_json escapes it
        written_by=f"Published with perftrail {__version__}",
    )


def verdict_of(history: SiteHistory) -> Verdict:
    """Return the state of a site in a sentence, with its evidence."""
    counts, metrics = history.counts, len(history.current)
    slower, faster, unclear = counts["slower"], counts["faster"], counts["unclear"]
    base = "" if history.comparison is None else escaped(history.comparison.base_name)
    newest = counted(min(RECENT, len(history.revisions)), "measured revision")
    tone: Tone = "worse" if slower else "better" if faster else "plain"
    if slower or faster:
        count, state = (slower, "slower") if slower else (faster, "faster")
        verb = "became" if not base else "is" if count == 1 else "are"
        also = f" and {faster} {_chip(history, 'faster')}" if slower and faster else ""
        than = f"than at {base}" if base else f"within the newest {newest}"
        text = f"{count} of {counted(metrics, 'metric')} {verb} {_chip(history, state)}{also} {than}"
    elif not metrics:
        last = history.publications[-1]
        text, tone = escaped(last.sentence, longest=LONGEST_SENTENCE).removesuffix("."), last.tone
    elif unclear == metrics:
        text, tone = f"Unclear: {history.current[0].reason or 'no verdict is certain'}", "unclear"
    else:
        against = f"against {base}" if base else f"within the newest {newest}"
        text = f"No change in {counted(metrics - unclear, 'metric')} {against}"
    if unclear and unclear < metrics:
        text += f"; {unclear} {'is' if unclear == 1 else 'are'} unclear"
    return Verdict(sentence=f"{text}.", tone=tone, facts=tuple(_facts(history)), notes=tuple(_notes(history)))


def _chip(history: SiteHistory, state: str) -> str:
    """Return the word for a state: of times, or of metrics of several kinds."""
    if state in NO_CHANGE:
        return NO_CHANGE[state]
    are_times = all(each.is_time for each in history.metrics if each.state == state)
    words = {"slower": ("slower", "worse"), "faster": ("faster", "better")}[state]
    return words[0] if are_times else words[1]


def _facts(history: SiteHistory) -> Iterator[Fact]:
    last = history.publications[-1]
    if history.revisions:
        yield Fact(label="Newest revision", text=revision_name(history.revisions[-1]))
    reports = counted(len(history.publications), "report")
    machines = counted(len(history.machines), "machine")
    yield Fact(label="History", text=f"{counted(len(history.revisions), 'revision')}, {machines}, {reports}")
    yield Fact(label="Last published", text=f"{moment(last.published)} UTC")
    measured = [each for each in history.publications if each.metrics]
    if measured:
        machine = measured[-1].machine
        yield Fact(label="Measured on", text=escaped(machine_words(machine.id, machine.facts), longest=200))


def _notes(history: SiteHistory) -> Iterator[str]:
    measured = [each for each in history.publications if each.metrics]
    if len(measured) > 1:
        changed = list(environment_changes(measured[-2], measured[-1]))
        if measured[-2].machine.id != measured[-1].machine.id:
            yield (
                "The newest values are from another machine than those before: values of different machines are "
                "never compared."
            )
        if changed:
            yield f"Since the publication before, this changed: {'; '.join(changed)}."


def environment_changes(before: Publication, after: Publication) -> Iterator[str]:
    """Yield what differs between the machines and the tools of two publications."""
    one, other = before.machine.facts, after.machine.facts
    for fact, name in ENVIRONMENT.items():
        if one.get(fact, "") != other.get(fact, ""):
            values = (escaped(facts.get(fact, "") or "unknown") for facts in (one, other))
            yield f"{name} {' → '.join(values)}"
    old, new = ({tool.partition(":")[0]: tool for tool in each.machine.tools} for each in (before, after))
    for name in old.keys() & new.keys() if old and new else ():
        if old[name] != new[name]:
            values = (escaped(tools[name].partition(": ")[2]) for tools in (old, new))
            yield f"{escaped(name)} {' → '.join(values)}"


def moment(time: str) -> str:
    """Return a stored time in minutes: ``2026-11-26 14:30``."""
    return escaped(time[:16].replace("T", " "))


def metric_row(metric: MetricState) -> MetricRow:
    """Return a metric as a row of the page."""
    estimate = metric.newest.row.estimate
    assert estimate is not None
    values = [each.row.estimate for each in metric.points if each.machine == metric.newest.machine]
    return MetricRow(
        name=escaped(str(metric.name), longest=200),
        state=metric.state,
        word=state_word(metric),
        newest=quantity(estimate.value, escaped(metric.unit), low=estimate.low, high=estimate.high),
        change=_change(metric),
        sparkline=sparkline(
            [each.value for each in evenly(values, MOST_SPARKLINE_POINTS) if each is not None],
            least_range=SPARKLINE_RANGE,
        ),
    )


def state_word(metric: MetricState) -> str:
    """Return the state of a metric in a word: metrics other than times are worse or better."""
    if metric.state in NO_CHANGE:
        return NO_CHANGE[metric.state]
    if metric.is_time:
        return metric.state
    return "worse" if metric.state == "slower" else "better"


def _change(metric: MetricState) -> str:
    """Return the change that decides a state, or why the state is unclear."""
    found = metric.recent
    where = f" since {revision_name(found.since)}" if found and found.since is not None else ""
    if metric.state == "same" and (found is None or where):
        net = f": {100.0 * (found.effect - 1.0):+.2g} %{where}" if found is not None else ""
        return f"of {percent(max(metric.threshold, metric.undetected))} or more{net}"
    if found is None:
        return metric.reason
    reason = f"{metric.reason}: " if metric.reason else ""
    has_interval = found.high > found.low
    size = (
        ratio_change(found.effect, found.low, found.high)
        if has_interval
        else f"{100.0 * (found.effect - 1.0):+.2g} %"
    )
    return f"{reason}{size}{where}"


def _report(report: PublishedReport) -> dict[str, str]:
    publication = report.publication
    return {
        "address": report.address if report.has_page else "",
        "time": moment(publication.published),
        "tone": publication.tone,
        "sentence": escaped(publication.sentence, longest=LONGEST_SENTENCE),
    }


class _Columns:
    """Lists of numbers by number; equal lists are stored once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def number(self, values: Sequence[int]) -> int:
        return self._numbers.setdefault(tuple(values), len(self._numbers))

    @property
    def lists(self) -> list[Json]:
        return [list(values) for values in self._numbers]


def _charts(history: SiteHistory) -> dict[str, Json]:
    """Return the numbers of every chart, in the order of the rows."""
    columns = _Columns()
    machines = {machine: number for number, machine in enumerate(history.machines)}
    series: list[Json] = []
    used: set[int] = set()
    for metric in history.metrics:
        points = thinned([_point(each) for each in metric.points])
        used |= {end for each in points for end in (each.position, each.last)}
        series.append(_chart(metric, points, columns, machines, history))
    revisions: list[Json] = [
        [position, revision_name(each), moment(each.time)]
        for position, each in enumerate(history.revisions)
        if position in used
    ]
    return {
        "revisions": revisions,
        "machines": [escaped(each) for each in machines],
        "columns": columns.lists,
        "series": series,
    }


def _point(point: SitePoint) -> HistoryPoint:
    estimate = point.row.estimate
    assert estimate is not None
    return HistoryPoint(
        position=point.position,
        subject=point.machine,
        revision="",
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        count=estimate.count,
        last=point.position,
    )


def _chart(
    metric: MetricState,
    points: Sequence[HistoryPoint],
    columns: _Columns,
    machines: Mapping[str, int],
    history: SiteHistory,
) -> dict[str, Json]:
    """Return a chart as whole numbers of a small step: each value less the one before, and both ends of its interval.

    `p`, `n`, `m` and `o` are the columns of positions, numbers of samples, machines, and combined revisions.
    """
    divisor, unit = scale(max((abs(each.value) for each in points), default=1.0), escaped(metric.unit))
    step = _step(points) / divisor
    values = [round(each.value / divisor / step) for each in points]
    chart: dict[str, Json] = {
        "u": unit,
        "s": step,
        "v": [value - before for before, value in zip([0, *values], values, strict=False)],
        "l": [value - round(each.low / divisor / step) for value, each in zip(values, points, strict=True)],
        "h": [round(each.high / divisor / step) - value for value, each in zip(values, points, strict=True)],
        "p": columns.number([each.position for each in points]),
        "n": columns.number([each.count for each in points]),
        "m": columns.number([machines[each.subject] for each in points]),
    }
    if any(each.of > 1 for each in points):
        chart["o"] = columns.number([each.last for each in points])
    if metric.changes:
        positions = {revision.id: position for position, revision in enumerate(history.revisions)}
        chart["c"] = [
            [positions[each.row.subject.revision.id], *_change_words(metric, each)] for each in metric.changes
        ]
    return chart


def _change_words(metric: MetricState, each: HistoryChange) -> list[Json]:
    """Return the size of a change, and its description."""
    effect = each.point.effect
    size = f"{100.0 * (effect - 1.0):+.2g} %" if 0.5 < effect < 2.0 else f"× {effect:.3g}"
    word = "worse" if metric.is_worse(effect) else "better"
    where = revision_name(each.row.subject.revision)
    if len(each.candidates) > 1:
        where = f"one of {len(each.candidates)} revisions up to {where}"
    change = ratio_change(effect, each.point.low, each.point.high)
    return [size, word, f"{change}, {word}, at {where}"]


def _step(points: Sequence[HistoryPoint]) -> float:
    """Return a power of ten that is small against the values and their intervals."""
    largest = max((abs(each.value) for each in points), default=0.0)
    if not largest:
        return 1.0
    widths = [each.high - each.low for each in points if each.high > each.low]
    finest = statistics.median(widths) / 20.0 if widths else 0.0
    magnitude = math.floor(math.log10(largest)) + 1
    digits = DIGITS if not finest else magnitude - math.floor(math.log10(finest))
    return float(f"1e{magnitude - max(DIGITS, min(MOST_DIGITS, digits))}")
