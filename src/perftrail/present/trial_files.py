"""The result of `measure` as files: perftrail's own JSON, hyperfine's JSON and CSV, and a Markdown table.

Names and meanings of perftrail's JSON never change; new ones may be added.
"""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Value
from perftrail.model.trial import SPLIT, UNITS
from perftrail.model.wording import escaped
from perftrail.present.shared_sentences import estimate_words, interval_words
from perftrail.stats.comparison import Verdict
from perftrail.stats.trial import Contrast, EndReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.json_data import Json
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.trial import CommandResult, TrialMetric, TrialResult


class CommandEstimateJson(TypedDict):
    """The value of one metric with its interval."""

    value: float
    low: float
    high: float
    confidence: float


class CommandMetricJson(TypedDict):
    """The samples of one metric."""

    unit: str
    values: list[float]
    estimate: CommandEstimateJson | None
    method: Annotated[str, "how the metric was measured, if several methods exist; else empty"]


class WarmupsJson(TypedDict):
    """Runs before the first sample."""

    count: int
    first_ratio: Annotated[float, "ratio of the first value to the stable level"]
    stable: Annotated[bool, "whether the remaining values are stable"]


class CommandResultJson(TypedDict):
    """The samples of one command."""

    command: str
    name: str
    parameters: dict[str, Value]
    invocations: int
    metrics: dict[str, CommandMetricJson]
    flags: list[str]
    flagged: Annotated[dict[str, int], "number of samples of each flag"]
    warmups: WarmupsJson
    ended: Annotated[
        EndReason,
        "why measuring stopped. settled: all verdicts are settled; precise: the interval is narrow enough; "
        "most: maximum number of runs; budget: time limit; stopped: interrupted",
    ]
    exit_codes: list[int | None]


class CommandEffectJson(TypedDict):
    """A ratio with its interval."""

    value: float
    low: float
    high: float


class CommandComparisonJson(TypedDict):
    """A comparison of two commands in one metric."""

    result: Annotated[int, "index of the command in results, from 0"]
    against: Annotated[int, "index of the reference in results, from 0"]
    metric: str
    effect: CommandEffectJson
    verdict: Verdict
    minimum_detectable: float | None
    pairs: int
    confidence: float


class ConditionsJson(TypedDict):
    """How the commands were run."""

    environment_padding_bytes: int
    aslr: bool
    seed: int
    sandbox: bool
    cpus: Annotated[list[int] | None, "null: not pinned"]
    threshold: float
    precision: float | None


class TrialJson(TypedDict):
    """The results of several commands."""

    results: list[CommandResultJson]
    comparison: list[CommandComparisonJson]
    shell: Annotated[
        CommandResultJson | None, "the empty command in the shell, whose time every wall time includes"
    ]
    seconds: float
    interrupted: bool
    conditions: ConditionsJson


def as_json(trial_result: TrialResult) -> TrialJson:
    """Return the result as plain data."""
    run_settings = trial_result.trial.run_settings
    stopping_rule = trial_result.trial.stopping_rule
    return {
        "results": [_result_json(result) for result in trial_result.results],
        "comparison": [_contrast_json(contrast) for contrast in trial_result.contrasts],
        "shell": None if trial_result.shell is None else _result_json(trial_result.shell),
        "seconds": round(trial_result.seconds, 6),
        "interrupted": trial_result.stopped,
        "conditions": {
            "environment_padding_bytes": run_settings.padding_bytes,
            "aslr": True,
            "seed": trial_result.trial.seed,
            "sandbox": run_settings.sandbox is not None,
            "cpus": None if run_settings.cpus is None else list(run_settings.cpus),
            "threshold": stopping_rule.threshold,
            "precision": stopping_rule.precision,
        },
    }


def _result_json(result: CommandResult) -> CommandResultJson:
    return {
        "command": result.entry.command,
        "name": result.entry.name,
        "parameters": dict(result.entry.point.as_dict()),
        "invocations": result.runs,
        "metrics": {
            name: _metric_json(result.metrics.get(name), UNITS[name]) for name in UNITS if name not in SPLIT
        },
        "flags": list(result.flags),
        "flagged": dict(result.flags),
        "warmups": {
            "count": result.warmup.count,
            "first_ratio": result.warmup.first_ratio,
            "stable": result.warmup.stable,
        },
        "ended": result.end_reason,
        "exit_codes": list(result.exit_codes),
    }


def _metric_json(metric: TrialMetric | None, unit: str) -> CommandMetricJson:
    if metric is None:
        return {"unit": unit, "values": [], "estimate": None, "method": ""}
    estimate = metric.estimate
    return {
        "unit": unit,
        "values": list(metric.values),
        "estimate": {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "confidence": round(estimate.confidence, 4),
        },
        "method": metric.method,
    }


def _contrast_json(contrast: Contrast) -> CommandComparisonJson:
    comparison = contrast.comparison
    return {
        "result": contrast.entry,
        "against": contrast.against,
        "metric": contrast.metric,
        "effect": {"value": comparison.effect, "low": comparison.low, "high": comparison.high},
        "verdict": comparison.verdict,
        "minimum_detectable": comparison.minimum_detectable,
        "pairs": comparison.pairs,
        "confidence": comparison.confidence,
    }


_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")


def to_json(trial_result: TrialResult) -> str:
    """Return hyperfine's JSON: seconds and bytes, without warm-ups and commands that never ran."""
    results = [_hyperfine_result(result) for result in trial_result.results if result.runs]
    return json.dumps({"results": results}, indent=2, ensure_ascii=False) + "\n"


def to_csv(trial_result: TrialResult) -> str:
    """Return hyperfine's CSV, in seconds, with one column for each parameter."""
    names = list(dict.fromkeys(name for result in trial_result.results for name in result.entry.point.names))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"parameter_{name}" for name in names)])
    for result in trial_result.results:
        if result.runs:
            row, point = _hyperfine_summary(result), result.entry.point.as_dict()
            writer.writerow([*(row[name] for name in _COLUMNS), *(point.get(name, "") for name in names)])
    return text.getvalue()


def _hyperfine_result(result: CommandResult) -> dict[str, Json]:
    parameters = {name: str(value) for name, value in result.entry.point.values}
    return {
        **_hyperfine_summary(result),
        "times": list(_values(result, "wall")),
        "memory_usage_byte": [round(value) for value in _values(result, "peak_memory")],
        "exit_codes": list(result.exit_codes),
        **({"parameters": dict(parameters)} if parameters else {}),
    }


def _hyperfine_summary(result: CommandResult) -> dict[str, Json]:
    times = _values(result, "wall")
    return {
        "command": result.entry.name,
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": statistics.fmean(_values(result, "user")),
        "system": statistics.fmean(_values(result, "system")),
        "min": min(times),
        "max": max(times),
    }


def _values(result: CommandResult, metric: str) -> Sequence[float]:
    return result.metrics[metric].values


_SHOWN = {"wall": "Wall", "cpu": "CPU", "peak_memory": "Peak memory"}


def to_markdown(trial_result: TrialResult) -> str:
    """Return a table with one row for each command, and a column for the verdict if there are several."""
    compared = bool(trial_result.contrasts)
    head = ["Command", *(f"{name} [95 % interval]" for name in _SHOWN.values()), "Runs"]
    rows = [[*head, *(["Wall against the reference"] if compared else [])]]
    rows.append([":---", *["---:"] * (len(rows[0]) - 1)])
    verdicts = {each.entry: each.comparison for each in trial_result.contrasts if each.metric == "wall"}
    references = {group.reference for group in trial_result.trial.groups if group.others}
    for number, result in enumerate(trial_result.results):
        row = [_code(result.entry.name), *(_value(result, metric) for metric in _SHOWN), str(result.runs)]
        if compared:
            row.append("reference" if number in references else _verdict(verdicts.get(number)))
        rows.append(row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def ratio(comparison: Comparison) -> str:
    """Return an effect with its interval: ``1.052 [1.031, 1.074]``."""
    return interval_words(comparison.effect, comparison.low, comparison.high)


def _value(result: CommandResult, metric: str) -> str:
    trial_metric = result.metrics.get(metric)
    return "–" if trial_metric is None else estimate_words(trial_metric.estimate, trial_metric.unit)


def _verdict(comparison: Comparison | None) -> str:
    if comparison is None:
        return "–"
    return "same" if comparison.verdict is Verdict.SAME else f"{comparison.verdict}: × {ratio(comparison)}"


def _code(text: str) -> str:
    """Return text as Markdown code within one table cell."""
    line = escaped(text, longest=None)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}".replace("|", "\\|")
