"""The loop of every search: it asks, a probe takes, it is told, the journal writes it down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from perftrail.search.action import Settled
from perftrail.workflows import put

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.search.action import Action
    from perftrail.search.answer import Answer
    from perftrail.search.snapshot import Belief
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.journal import Journal

Told = TypeVar("Told")
Heard_contra = TypeVar("Heard_contra", contravariant=True)


class Asking(Protocol[Heard_contra]):
    """A search: told what came of what it asked for, until it is settled."""

    def tell(self, news: Heard_contra) -> None:
        """Take news in."""
        ...

    def ask(self) -> Action:
        """Say what to do next."""
        ...

    @property
    def belief(self) -> Belief | None:
        """What is believed now."""
        ...


class Taking(Protocol[Told]):
    """Whoever does what a search asks for, over revisions in a line."""

    @property
    def revisions(self) -> Sequence[Revision]:
        """The revisions that positions stand for."""
        ...

    def take(self, position: int, readings: int) -> Generator[Event, None, Told]:
        """Do it."""
        ...

    def words(self, news: Told, held: Belief | None) -> str:
        """Say what came of it and what is believed now."""
        ...

    def plain(self, news: Told) -> dict[str, Json]:
        """Put what came of it as plain data."""
        ...


def pursue(
    search: Asking[Told], probe: Taking[Told], journal: Journal, *, part: Mapping[str, Json] | None = None
) -> Generator[Event, None, Answer]:
    """Go on until a search is settled; `part` is said of each step in the journal, for searches inside others."""
    while not isinstance(action := search.ask(), Settled):
        news = yield from probe.take(action.position, action.readings)
        search.tell(news)
        held = search.belief
        yield journal.step(
            action={
                "measure": probe.revisions[action.position].id,
                "position": action.position,
                "readings": action.readings,
                **(part or {}),
            },
            news=probe.plain(news),
            belief=put.belief(held, probe.revisions),
            words=probe.words(news, held),
        )
    return action.answer
