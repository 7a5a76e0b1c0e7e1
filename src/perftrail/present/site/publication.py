"""What a study's report adds to the earlier publications of its site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.model.build import content_key
from perftrail.model.measurement import tool_version
from perftrail.model.published import (
    Publication,
    PublishedComparison,
    PublishedMachine,
    PublishedMetric,
    PublishedRevision,
    PublishedValues,
    PublishedVerdict,
    published_value,
)
from perftrail.model.target import shown_metrics
from perftrail.present.answer_sentence import revision_name
from perftrail.present.gate import headline
from perftrail.present.site.history import MetricName, joined_values
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from perftrail.model.subject import Revision
    from perftrail.present.html_page import Page
    from perftrail.present.report.data import ReportData
    from perftrail.present.site.history import JoinedValues
    from perftrail.results.gate import Gate
    from perftrail.results.rows import Row

UNPUBLISHED_FACTS = frozenset({"boot_id", "booted"})
"""Facts of a machine that readers do not need, and that would differ in each publication."""

BUILD_LETTERS = 12
"""Length of the published name of a build."""


def publication_of(
    data: ReportData, page: Page, earlier: Sequence[Publication], *, now: datetime
) -> Publication:
    """Return the publication of a report: the values and comparisons that the earlier ones do not have."""
    known = joined_values(earlier)
    metrics: dict[MetricName, list[PublishedValues]] = {}
    described: dict[MetricName, Row] = {}
    numbers: dict[str, int] = {}
    wanted: dict[str, frozenset[str]] = {
        name: frozenset((*shown_metrics(data.view.study, name), *data.view.study.derived))
        for name in data.view.study.benchmarks
    }
    for row in data.rows:
        if row.values and row.metric in wanted[row.benchmark]:
            name, revision = MetricName.of_row(row), row.subject.revision.id
            found = known.get(name, {}).get(data.view.machine.id, {}).get(revision)
            added = _added(row, found, number=numbers.get(revision, len(numbers)))
            if added is not None:
                numbers.setdefault(revision, len(numbers))
                metrics.setdefault(name, []).append(added)
                described[name] = row
    return Publication(
        published=now.isoformat(timespec="seconds"),
        study=data.view.study.title,
        perftrail=__version__,
        sentence=page.verdict.sentence,
        tone=page.verdict.tone,
        evidence=tuple((fact.label, fact.text) for fact in page.verdict.facts),
        machine=PublishedMachine(
            id=data.view.machine.id,
            facts={
                name: text for name, text in data.view.machine.facts.items() if name not in UNPUBLISHED_FACTS
            },
            tools=_tools(data),
        ),
        revisions=tuple(_revision(data.by_id[id_]) for id_ in numbers),
        metrics=tuple(
            PublishedMetric(
                benchmark=name.benchmark,
                variant=name.variant,
                point=name.point.as_dict(),
                metric=name.metric,
                unit=described[name].unit,
                better=data.history_metric(described[name]).better,
                measured=tuple(measured),
            )
            for name, measured in metrics.items()
        ),
        comparisons=tuple(_new_comparisons(data.comparisons, earlier)),
    )


def adds_nothing(publication: Publication, earlier: Sequence[Publication]) -> bool:
    """Whether the last publication already has everything: each value, each comparison, and the answer."""
    if not earlier or publication.metrics or publication.comparisons:
        return False
    last = earlier[-1]
    answer = (publication.study, publication.sentence, publication.tone, publication.evidence)
    return answer == (last.study, last.sentence, last.tone, last.evidence)


def _added(row: Row, known: JoinedValues | None, *, number: int) -> PublishedValues | None:
    """Return the values of a row that are not published yet; `None` if all are.

    A new store, for example of a fresh runner, has other values of the same build: these are added. If the values were
    selected in another way, because of noise or of another build, they replace the published ones.
    """
    values = tuple(map(published_value, row.values))
    build = content_key(*sorted(row.runnables))[:BUILD_LETTERS]
    if known is None:
        return PublishedValues(revision=number, values=values, build=build)
    shared = shared_end(known.values, values) if known.build == build else 0
    if shared == len(values):
        return None
    is_other = known.build == build and not (shared or set(known.values) & set(values))
    if shared or is_other:
        return PublishedValues(revision=number, values=values[shared:], build=build)
    return PublishedValues(revision=number, values=values, build=build, replaces=True)


def shared_end(published: Sequence[float], values: Sequence[float]) -> int:
    """Return how many of the first values are the last published ones.

    >>> shared_end([9.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    2
    """
    longest = min(len(published), len(values))
    fits = (n for n in range(longest, 0, -1) if tuple(published[-n:]) == tuple(values[:n]))
    return next(fits, 0)


def _revision(revision: Revision) -> PublishedRevision:
    return PublishedRevision(
        id=revision.id, label=revision.label, time=revision.time, message=revision.summary
    )


def _tools(data: ReportData) -> tuple[str, ...]:
    """Return the versions of the tools that built the newest revision, one line each; empty if they are unknown."""
    newest = data.measured[-1].id if data.measured else ""
    benchmark = next((row.benchmark for row in reversed(data.rows) if row.values), None)
    if benchmark is None:
        return ()
    for each in reversed(data.view.store.runnables(benchmark)):
        if each.revision == newest and each.origin is not None:
            return tuple(filter(None, map(tool_version, each.origin.tools)))
    return ()


def _new_comparisons(
    comparisons: Sequence[Gate], earlier: Sequence[Publication]
) -> Iterator[PublishedComparison]:
    """Yield the comparisons that are not published yet, the latest first."""
    known = {
        (each.base, each.head, each.finished) for publication in earlier for each in publication.comparisons
    }
    for gate in comparisons:
        if (gate.base.id, gate.head.id, gate.finished) not in known:
            yield PublishedComparison(
                base=gate.base.id,
                head=gate.head.id,
                base_name=revision_name(gate.base),
                finished=gate.finished,
                answer=headline(gate),
                verdicts=tuple(_verdicts(gate)),
            )


def _verdicts(gate: Gate) -> Iterator[PublishedVerdict]:
    for row in gate.rows:
        found, effect = row.comparison, {}
        if found is not None and row.scale is Scale.RATIO:
            effect = {"effect": found.effect, "low": found.low, "high": found.high}
        yield PublishedVerdict(
            benchmark=row.metric.benchmark,
            variant=row.metric.variant,
            point=row.metric.point.as_dict(),
            metric=row.metric.text,
            verdict=row.verdict.value,
            **{name: published_value(value) for name, value in effect.items()},
        )
