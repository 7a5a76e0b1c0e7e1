"""A study with everything a workflow needs at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.source import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.measurement import Machine
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.ports import Source, Store
    from perftrail.workflows.bench import Bench
    from perftrail.workflows.workshop import Workshop


def just_now() -> str:
    """Say of sources of which nothing is kept when they were asked."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A study, its source, its store and this machine: what a workflow needs that only looks.

    `source` is the one that is walked; `pins` say at which revisions the study's others are held. `asked` says
    when a source was asked for what it answers from what is kept: ISO 8601, empty when by this process.
    """

    study: Study
    machine: Machine
    source: Source
    store: Store
    workshop: Workshop
    pins: Pins = ALONE
    asked: Callable[[], str] = just_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(View):
    """A view that may also make and measure.

    So many things of a search may be done `at_once`: one, where everything is done here.
    """

    bench: Bench
    at_once: int = 1
