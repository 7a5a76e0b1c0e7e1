"""One runnable on every machine: each start with its values, what marks them, and where its output is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import FailedInvocation, Measurement
from perftrail.model.quantity import quantity
from perftrail.present.page_files import log_end
from perftrail.present.report.words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from perftrail.model.measurement import Machine, Outcome
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.ports import Store

LOG_BYTES = 256_000
"""So much of a log is given at most: its end, where it says what went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsHere:
    """Every start of a runnable on one machine, warm-ups first."""

    machine: Machine
    outcomes: tuple[Outcome, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of which any start has a value, in the order of the starts."""
        found = [each for each in self.outcomes if isinstance(each, Measurement)]
        return tuple(dict.fromkeys(name for each in found for name in each.values))


def starts(store: Store, key: str) -> tuple[StartsHere, ...]:
    """Give every start of a runnable, machine by machine; nothing where there was none."""
    found = (
        StartsHere(machine=machine, outcomes=store.outcomes([key], machine.id).get(key, ()))
        for machine in store.machines().values()
    )
    return tuple(each for each in found if each.outcomes)


def units(study: Study, benchmark: str) -> Mapping[str, str]:
    """The unit of each metric of a benchmark; nothing of one that the study has no more."""
    known = study.benchmarks.get(benchmark)
    if known is None:
        return {}
    measured = {name: metric.unit for name, metric in known.measured.items()}
    return measured | {name: metric.unit for name, metric in known.metrics.items()}


def value_words(outcome: Outcome, metric: str, unit: str) -> str:
    """Write what a start gave of a metric, with how it was got where that may differ."""
    if not isinstance(outcome, Measurement) or metric not in outcome.values:
        return ""
    method = outcome.methods.get(metric)
    return quantity(outcome.values[metric], unit) + (f" ({shown(method)})" if method else "")


def kept_log(outcome: Outcome) -> str:
    """Say where the store says that a start's output is kept; empty where it left none."""
    return outcome.failure.log if isinstance(outcome, FailedInvocation) else outcome.log


def log_of(store: Store, key: str, machine: str, phase: str, ordinal: int, *, results: Path) -> str | None:
    """Give the end of the log of one start; `None` where there is no such start, or it left none.

    What the store names is read only where it lies beneath the study's own logs.
    """
    for each in store.outcomes([key], machine).get(key, ()):
        if (each.key.phase, each.key.ordinal) == (phase, ordinal):
            return log_end(kept_log(each), results, most=LOG_BYTES) or None
    return None


def outcome_json(outcome: Outcome) -> dict[str, Json]:
    """Give a start as the API does."""
    plain: dict[str, Json] = {
        "phase": outcome.key.phase,
        "ordinal": outcome.key.ordinal,
        "started": outcome.started,
        "seconds": outcome.seconds,
    }
    if isinstance(outcome, FailedInvocation):
        failure = outcome.failure
        return {
            **plain,
            "values": {},
            "flags": [],
            "failure": {"stage": failure.stage, "message": failure.message},
        }
    return {**plain, "values": dict(outcome.values), "flags": list(outcome.flags), "failure": None}
