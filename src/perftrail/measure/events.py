"""What workflows tell whoever watches: console, page and tests render these, workflows never print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.measure.sources import LeftOut
    from perftrail.model.build import Built, Failure
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Json
    from perftrail.model.subject import Revision, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRead:
    """The source's revisions are known, oldest first."""

    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The study says that these revisions are not to be built, for one reason."""

    left_out: LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStarted:
    """A subject is being made."""

    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFinished:
    """A subject was made or not. `known`: nothing was done, the store knew what came of it."""

    subject: Subject
    outcome: Built | Failure
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderSaid:
    """The builder did something beside making a subject that people should know: made room, lost its trust."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFailed:
    """A benchmark could not be made against a subject that could."""

    subject: Subject
    benchmark: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinked:
    """A subject was linked in other orders, each named by its seed; the last one may have failed."""

    subject: Subject
    outcomes: Mapping[int, Built | Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelinkedAlike:
    """The benchmark's files were equal for several layout seeds: the recipe's relink has no effect."""

    subject: Subject
    benchmark: str
    layouts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SameArtefact:
    """Subjects are one build, measured once: equal artefacts, whatever their revisions."""

    benchmark: str
    subjects: tuple[Subject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """An invocation ended, in a measurement or in a recorded failure."""

    cell: Cell
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Points are skipped, since a smaller value of the same axis failed on time or memory already."""

    cells: tuple[Cell, ...]
    because: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: invocations done, and how many seconds are left at least and at most.

    Of so many points that are `unseen`, it is not known what they take, and it may be more.
    """

    done: int
    left_least: int
    left_most: int
    seconds_least: float
    seconds_most: float
    unseen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A search took a step. `belief` is its state after it, `resumed` when it is told from the store."""

    number: int
    words: str
    belief: Mapping[str, Json] = field(default_factory=dict)
    resumed: bool = False


Event = (
    HistoryRead
    | Skipped
    | BuildStarted
    | BuildFinished
    | BuilderSaid
    | LinkFailed
    | Relinked
    | RelinkedAlike
    | SameArtefact
    | Invoked
    | GivenUp
    | Progress
    | Stepped
)
