"""One start of one process: which, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from perftrail.model.build import Failure, Stage
from perftrail.model.parameters import Point

if TYPE_CHECKING:
    from collections.abc import Mapping

Phase = Literal["warmup", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationKey:
    """Which start this is: of what (a content key), on which machine, in which phase, the how manieth.

    `runnable` is the content of everything that can matter: artefact, command, environment, point and
    what is read from it. The store holds each key at most once.
    """

    runnable: str
    machine: str
    phase: Phase
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What was drawn at random for one invocation, and which invocations it belongs with.

    Invocations of one `block` ran directly one after another, with the same `seed`; only these may be compared
    as pairs. An empty block belongs with no other invocation. `turn` is the place in the block's order, from 0.
    `seed` decides the build's path, the environment's size and the interpreters' hash seeds; 0: nothing was
    drawn, as in older samples. `layout` is the seed with which the build was relinked; 0: as its recipe links it.
    """

    block: str = ""
    turn: int = 0
    seed: int = 0
    layout: int = 0


UNDRAWN = Draw()
"""The draw of an invocation for which nothing was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one invocation gave: a value for each metric, in the metric's unit.

    `methods` says of a metric how it was got where several ways exist. `flags` are words such as
    ``busy`` or ``output-cut`` that limit what the values mean.
    """

    key: InvocationKey
    started: str
    seconds: float
    values: Mapping[str, float]
    methods: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    log: str = ""
    draw: Draw = UNDRAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedInvocation:
    """An invocation that gave no usable value, and why. It counts as done: it is not run again."""

    key: InvocationKey
    started: str
    seconds: float
    failure: Failure
    draw: Draw = UNDRAWN


Outcome = Measurement | FailedInvocation
"""What performing a job ends in; both are facts that the store keeps."""


@dataclass(slots=True, kw_only=True)
class Samples:
    """What a runnable gave on a machine, without its warm-ups: for who reads very many. Not to be changed.

    It is not frozen, only because each takes longer to make then.
    `values` are those of each metric by ordinal; `flags` are those of the samples that have any, by ordinal.
    `failures` are the stages of the starts that failed, warm-ups too. `blocks` and `turns` are those of the
    draws of samples that belong to a block, by ordinal: only samples of one block may be compared as pairs.
    """

    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    flags: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    failures: tuple[Stage, ...] = ()
    blocks: Mapping[int, str] = field(default_factory=dict)
    turns: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where invocations ran: a fingerprint of what matters for speed, and the facts behind it."""

    id: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """A subject at one point of one benchmark, ready to start; `key` is the content that can matter.

    Two revisions whose artefacts are equal share their key, and so their samples.
    """

    key: str
    revision: str
    variant: str
    benchmark: str
    point: Point
    artefact: str
