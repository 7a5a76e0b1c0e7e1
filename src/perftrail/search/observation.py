"""What is reported to a search: samples in batches, builds, failed revisions, boot sessions."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample: the position of its build, and the metric's value, in its own unit.

    `value` is `None` if the invocation failed; `noisy` marks a sample that other load disturbed.
    """

    position: int
    value: float | None
    noisy: bool = False

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"sample of position {self.position}: {self.value!r} is not a finite value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples that were taken directly one after another, in this order.

    `seconds` is the cost of all samples. `layout` is the seed with which their builds were relinked, at a
    cost of `relink_seconds`; 0 for the builds as linked by the recipe. `certificate` marks a block that a
    certificate requested, in random order. `stored`: the samples are older than the search, and count in no budget.
    """

    samples: tuple[Sample, ...]
    seconds: float = 0.0
    layout: int = 0
    relink_seconds: float = 0.0
    certificate: bool = False
    stored: bool = False

    def __post_init__(self) -> None:
        _check_seconds("batch", self.seconds)
        _check_seconds("batch: relinking", self.relink_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A revision was built, at a cost of `seconds`; its artefact equals that of position `same_as`, if present."""

    position: int
    seconds: float = 0.0
    same_as: int | None = None

    def __post_init__(self) -> None:
        _check_seconds(f"position {self.position}", self.seconds)
        if self.position == self.same_as:
            raise ValueError(f"position {self.position}: same_as names the position itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A revision that failed to build or run; that does not show on which side of the change it is."""

    position: int
    seconds: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds(f"position {self.position}", self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSession:
    """All later samples are of this boot session, whose levels are not comparable with those of others."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotRelink:
    """The builds cannot be linked in other layouts, for this reason."""

    reason: str


Observation = Batch | Built | Unusable | BootSession | CannotRelink


def _check_seconds(what: str, seconds: float) -> None:
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{what}: {seconds!r} seconds; must be finite, zero or more")
