"""What a trial found as perftrail's own JSON: names and meanings are a contract, which only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.trial import SPLIT, UNITS
from perftrail.stats.trial import Contrast

if TYPE_CHECKING:
    from perftrail.model.search_record import Json
    from perftrail.stats.trial import Figure, Finding, Findings


def as_json(found: Findings) -> dict[str, Json]:
    """Give everything that was found as plain data."""
    around = found.trial.surroundings
    pace = found.trial.pace
    return {
        "results": [_result(result) for result in found.results],
        "comparison": [_contrast(contrast) for contrast in found.contrasts],
        "shell": None if found.shell is None else _result(found.shell),
        "seconds": round(found.seconds, 6),
        "interrupted": found.stopped,
        "conditions": {
            "environment_padding_bytes": around.padding_bytes,
            "aslr": True,
            "seed": found.trial.seed,
            "sandbox": around.sandbox is not None,
            "cpus": None if around.cpus is None else list(around.cpus),
            "smallest": pace.smallest,
            "precision": pace.precision,
        },
    }


def _result(result: Finding) -> dict[str, Json]:
    return {
        "command": result.entry.command,
        "name": result.entry.name,
        "parameters": dict(result.entry.point.as_dict()),
        "invocations": result.runs,
        "metrics": {
            name: _figure(result.figures.get(name), UNITS[name]) for name in UNITS if name not in SPLIT
        },
        "flags": list(result.flags),
        "flagged": dict(result.flags),
        "warmups": {
            "count": result.warmup.count,
            "first": result.warmup.first,
            "level": result.warmup.level,
        },
        "ended": str(result.why),
        "exit_codes": list(result.exit_codes),
    }


def _figure(figure: Figure | None, unit: str) -> dict[str, Json]:
    if figure is None:
        return {"unit": unit, "values": [], "estimate": None}
    lies = figure.estimate
    plain: dict[str, Json] = {
        "unit": unit,
        "values": list(figure.values),
        "estimate": {
            "value": lies.value,
            "low": lies.low,
            "high": lies.high,
            "confidence": round(lies.confidence, 4),
        },
    }
    return {**plain, "method": figure.method} if figure.method else plain


def _contrast(contrast: Contrast) -> dict[str, Json]:
    found = contrast.comparison
    return {
        "result": contrast.entry,
        "against": contrast.against,
        "metric": contrast.metric,
        "effect": {"value": found.effect, "low": found.low, "high": found.high},
        "verdict": str(found.verdict),
        "smallest_seen": found.smallest_seen,
        "pairs": found.pairs,
        "confidence": found.confidence,
    }
