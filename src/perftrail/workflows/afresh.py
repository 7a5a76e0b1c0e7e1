"""Starting over when builds that were used turn out to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from perftrail.errors import StaleBuilds
from perftrail.workflows.events import BuilderSaid

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session

Result = TypeVar("Result")


def afresh(
    session: Session, work: Callable[[], Generator[Event, None, Result]]
) -> Generator[Event, None, Result]:
    """Do work, and once more from its start each time that builds which it used were taken back.

    What is right is kept, samples too: they are named by what was measured. It comes to an end, since each
    time the recipe of such builds is from then on followed in clean trees only.
    """
    while True:
        try:
            return (yield from work())
        except StaleBuilds as stale:
            yield BuilderSaid(
                text=f"{len(stale.keys)} builds may hold stale objects, as a check against a clean build shows: "
                "they are made again in clean trees; measurements of those that come out the same stay"
            )
            session.workshop.forget()
