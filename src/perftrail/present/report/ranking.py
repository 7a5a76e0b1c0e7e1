"""The answer of a matrix: the ranks of its variants by workload in time, memory and the study's own metric."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

from perftrail.model.wording import counted, escaped, listed, number, probability
from perftrail.present.html_page import Fact, Section, Table, Verdict
from perftrail.present.shared_sentences import capitalised
from perftrail.results.ranking import CERTAINTY, rankings
from perftrail.stats.ranking import RankRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.present.report.data import ReportData
    from perftrail.results.ranking import Ranking

FEWEST_VARIANTS = 3
"""Fewest variants that are ranked; the comparison of two variants is the answer itself."""

MOST_NAMED = 3
"""Largest number of variants that a sentence names."""

UNITS = {"s": "time", "B": "memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedQuantity:
    """The rankings of one quantity by workload. `best` is what the best variant has, for example "the least time"."""

    name: str
    best: str
    rankings: tuple[Ranking, ...]

    @property
    def metrics(self) -> str:
        """The metrics of the quantity."""
        return listed(dict.fromkeys(each.metric for each in self.rankings), "or")


def ranked_quantities(data: ReportData) -> tuple[RankedQuantity, ...]:
    """Rank the variants at the newest revision; empty after a search or a comparison, and for few variants."""
    if len(data.variants) < FEWEST_VARIANTS or data.answers or data.comparisons:
        return ()
    quantity_of = {
        (benchmark, metric): quantity
        for benchmark in data.view.study.benchmarks
        for quantity, metric in _metrics(data, benchmark)
    }
    rows = [row for row in data.compared_rows if (row.benchmark, row.metric) in quantity_of]
    found = rankings(data.view, data.measured_here, rows, better=lambda row: data.history_metric(row).better)
    by_quantity: dict[str, list[Ranking]] = {name: [] for name in dict.fromkeys(quantity_of.values())}
    for each in found:
        by_quantity[quantity_of[each.benchmark, each.metric]].append(each)
    return tuple(
        RankedQuantity(name=name, best=_best(name, each[0]), rankings=tuple(each))
        for name, each in sorted(by_quantity.items(), key=lambda item: item[0] in UNITS.values())
        if each
    )


def _metrics(data: ReportData, benchmark: str) -> Iterator[tuple[str, str]]:
    """Yield the ranked metrics of a benchmark with their quantities: the metric of `find`, a time, the memory."""
    rows = {row.metric: row for row in data.compared_rows if row.benchmark == benchmark and row.values}
    question = data.question_metric if data.view.study.find.metric else None
    asked = question.metric if question is not None and question.benchmark == benchmark else ""
    for unit, quantity in UNITS.items():
        names = [name for name, row in rows.items() if row.unit == unit]
        names.sort(key=lambda name: (name != asked, name != "peak_memory"))
        if names:
            yield quantity, names[0]
    if asked in rows and rows[asked].unit not in UNITS:
        yield asked, asked


def _best(name: str, ranking: Ranking) -> str:
    if name in UNITS.values():
        return f"the least {name}"
    return f"the {'lowest' if ranking.better == 'lower' else 'highest'} {escaped(name)}"


def ranking_verdict(
    data: ReportData, quantities: Sequence[RankedQuantity], *, notes: tuple[str, ...]
) -> Verdict:
    """Return which variant is the best one in each quantity, and in how many workloads."""
    text = joined([_sentence(each) for each in quantities])
    workloads = dict.fromkeys((each.benchmark, each.fixed) for one in quantities for each in one.rankings)
    return Verdict(
        sentence=f"{text}.",
        tone="plain",
        facts=(
            *(
                Fact(label=capitalised(each.best.removeprefix("the ")), text=_winners(each))
                for each in quantities
            ),
            Fact(label="Certainty", text=f"{probability(CERTAINTY)} that every rank is in its range"),
            Fact(
                label="Measured",
                text=f"{counted(len(data.variants), 'variant')}, {counted(len(workloads), 'workload')}, "
                f"{counted(sum(len(row.values) for row in data.rows), 'sample')}",
            ),
        ),
        notes=notes,
    )


def joined(sentences: Sequence[str]) -> str:
    """Return sentences as one; a subject is repeated only if it differs. A name keeps its case."""
    first, *others = sentences
    subject = f"{first.partition(' needs ')[0]} needs "
    text = capitalised(first) if first.startswith(("no variant", "one of", "the samples")) else first
    for each in others:
        text += f", and {each.removeprefix(subject)}" if each.startswith(subject) else f"; {each}"
    return text


def _wins(quantity: RankedQuantity) -> Counter[str]:
    """Return in how many workloads each variant is certainly the best one."""
    return Counter(each.winner for each in quantity.rankings if each.winner is not None)


def _sentence(quantity: RankedQuantity) -> str:
    """Return which variant certainly is the best one in the most workloads.

    Without a certain one, return which variants may be the best one.
    """
    count, wins = len(quantity.rankings), _wins(quantity)
    verb, verbs = ("needs", "need") if quantity.name in UNITS.values() else ("has", "have")
    if wins:
        most = max(wins.values())
        names = [name for name, won in wins.items() if won == most]
        share = f"all {count}" if most == count else f"{most} of {count}"
        where = "" if count == 1 else f" in {share} workloads"
        if len(names) > MOST_NAMED:
            return f"{len(names)} variants share first place in {quantity.name}, with {most} of {count} workloads each"
        if len(names) > 1:
            where = f" in {most} of {count} workloads each"
        return f"{listed(map(escaped, names), 'and')} {verb if len(names) == 1 else verbs} {quantity.best}{where}"
    if all(each.ranks == RankRange(1, len(one.ranked)) for one in quantity.rankings for each in one.ranked):
        return f"the samples rank no variant in {quantity.name}"
    if count == 1:
        names = [each.variant for each in quantity.rankings[0].ranked if each.ranks.first == 1]
        few = len(names) <= MOST_NAMED
        subject = listed(map(escaped, names), "or") if few else f"one of {len(names)} variants"
        return f"{subject} {verb} {quantity.best}, but no rank 1 is certain"
    return f"no variant certainly {verb} {quantity.best} in any of {counted(count, 'workload')}"


def _winners(quantity: RankedQuantity) -> str:
    """Return in how many workloads each variant is certainly the best one, and how many are undecided."""
    count, wins = len(quantity.rankings), _wins(quantity)
    words = [f"{escaped(name)} in {won} of {count}" for name, won in wins.most_common()]
    if undecided := count - sum(wins.values()):
        words.append(f"undecided in {undecided} of {count}")
    return ", ".join(words)


def ranking_section(quantities: Sequence[RankedQuantity]) -> Section:
    """Return the ranks of the variants in each quantity, by workload."""
    return Section(
        name="ranking",
        title="Ranks by workload",
        paragraphs=(
            "1 is the best rank. The samples do not separate the ranks of a range such as 2–3. The factor is the value "
            "relative to the best one, the geometric mean over the points of the workload. "
            f"The probability that every rank is in its range is {probability(CERTAINTY)}.",
        ),
        tables=tuple(_table(each) for each in quantities),
        answers=True,
    )


def _table(quantity: RankedQuantity) -> Table:
    names = dict.fromkeys(each.variant for ranking in quantity.rankings for each in ranking.ranked)
    order = sorted(names, key=lambda name: (_mean_rank(quantity, name), name))
    return Table(
        name=f"ranking-{quantity.name}",
        title=capitalised(
            f"{quantity.name} ({quantity.metrics})" if quantity.name in UNITS.values() else quantity.name
        ),
        head=("workload", "points", *map(escaped, order)),
        rows=tuple(
            (_workload(ranking), str(len(ranking.points)), *(_cell(ranking, name) for name in order))
            for ranking in quantity.rankings
        ),
        numbers=frozenset(range(1, len(order) + 2)),
        whole=True,
        best=frozenset(
            (row, 2 + order.index(ranking.winner))
            for row, ranking in enumerate(quantity.rankings)
            if ranking.winner is not None
        ),
    )


def _mean_rank(quantity: RankedQuantity, variant: str) -> float:
    """Return the mean of a variant's ranks, relative to the number of variants of each workload."""
    found = [
        (ranked.ranks.first + ranked.ranks.last) / (2.0 * len(ranking.ranked))
        for ranking in quantity.rankings
        if (ranked := ranking.of(variant)) is not None
    ]
    return mean(found)


def _workload(ranking: Ranking) -> str:
    return escaped(" ".join([ranking.benchmark, *(f"{name}={value}" for name, value in ranking.fixed)]))


def _cell(ranking: Ranking, variant: str) -> str:
    """Return the rank of a variant and its factor, for example "2–3 (1.2×)"."""
    ranked = ranking.of(variant)
    if ranked is None:
        return "–"
    return f"{ranked.ranks} ({number(ranked.relative)}×)" if ranked.relative else str(ranked.ranks)
