"""What the metric `works` names: everything that must come off for a revision to count as working."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.model.target import (
    Target,
    TargetError,
    known_value,
    metric_names,
    only_variant,
    parse_metric,
    resolve,
    targets,
)
from perftrail.model.wording import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.metrics import Better
    from perftrail.model.parameters import Point
    from perftrail.model.study import Study

WORKS = "works"
"""The metric that asks where a program began to fail; one of this name in the study goes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """The benchmarks, each at some points, that a revision in a variant must build, run and be read of."""

    text: str
    name: str
    variant: str
    places: tuple[tuple[str, Point], ...]
    unit: str = ""
    better: Better = "higher"

    @property
    def benchmark(self) -> str:
        """The benchmarks that must come off, by name."""
        return ", ".join(dict.fromkeys(name for name, _ in self.places))


Goal = tuple[Target, ...] | Working
"""What a search can be about: figures, or whether it works at all."""


def resolve_goal(study: Study, texts: Sequence[str], variant: str | None = None) -> Goal:
    """Find what texts name: `works`, or figures, all of the study's without any text. Raises `TargetError`."""
    if not texts:
        return every_target(study, variant)
    working = [text for text in texts if asks_whether_it_works(study, text)]
    if working and len(texts) > 1:
        raise TargetError(f"{quoted(working[0])} is another search; ask for it alone", unknown=False)
    if working:
        return resolve_working(study, working[0], variant)
    return tuple(
        {target.name: target for target in (resolve(study, text, variant) for text in texts)}.values()
    )


def asks_whether_it_works(study: Study, text: str) -> bool:
    """Whether a metric's text means `works`, and no metric that the study calls so."""
    return parse_metric(text).name == WORKS and not any(
        WORKS in metric_names(study, name) for name in study.benchmarks
    )


def resolve_working(study: Study, text: str, variant: str | None = None) -> Working:
    """Find what ``works``, ``BENCHMARK.works``, either with ``[parameter=value]``, names. Raises `TargetError`.

    A parameter that is left open stands for all its values, a benchmark that is left out for all of them.
    """
    wanted = parse_metric(text)
    if wanted.benchmark is not None and wanted.benchmark not in study.benchmarks:
        raise TargetError(
            f"no benchmark {quoted(wanted.benchmark)}{suggestion(wanted.benchmark, study.benchmarks)}"
        )
    names = study.benchmarks if wanted.benchmark is None else (wanted.benchmark,)
    chosen = only_variant(study, variant)
    places: list[tuple[str, Point]] = []
    for name in names:
        benchmark = study.benchmarks[name]
        fixed = {key: known_value(benchmark, key, value) for key, value in wanted.fixed.items()}
        points = benchmark.points(chosen)
        places += ((name, point) for point in points if fixed.items() <= point.as_dict().items())
    if not places:
        raise TargetError(f"{quoted(text)}: nothing is run there in variant {chosen}")
    name = text.strip() if len(study.benchmarks) > 1 or wanted.benchmark else f"{places[0][0]}.{text.strip()}"
    return Working(text=text, name=name, variant=chosen, places=tuple(places))


def every_target(study: Study, variant: str | None = None) -> tuple[Target, ...]:
    """Give everything of a study that is worth following: in one variant, or in all of them.

    Of each benchmark at each point: what is declared, what is derived, and of what is measured of any
    program its time and its memory.
    """
    if variant is not None:
        only_variant(study, variant)
    variants = study.variants if variant is None else (variant,)
    return tuple(
        replace(target, text=target.name)
        for chosen in variants
        for benchmark in study.benchmarks
        for name in _worth_following(study, benchmark)
        for target in targets(study, benchmark, name, chosen)
    )


def _worth_following(study: Study, benchmark: str) -> Iterator[str]:
    measured = study.benchmarks[benchmark].measured
    yield from study.benchmarks[benchmark].metrics
    yield from (name for name, each in study.derived.items() if each.benchmark == benchmark)
    yield from (name for name in ("wall", "peak_memory", "instructions") if name in measured)
