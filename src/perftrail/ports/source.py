"""A program's history, and what some sources can do beside telling it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Merge, Revision


class Source(Protocol):
    """A program's history. Never changes the user's own repository or checkout."""

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the study's revisions, or those of another range, oldest first, parents before children.

        Both ends of the range belong. Raises `SourceError` with the remedy when it cannot be read.
        """
        ...

    def within(self, range: str) -> frozenset[str]:
        """Give the ids of every revision of a range, also of one with an open end (``..B``, ``A..``)."""
        ...

    def merge(self, revision: Revision) -> Merge | None:
        """Give what a revision joined, `None` when it joined nothing or nothing that was not there before.

        Each branch is walked along its first parents, back to what the trunk contains. A branch that the
        study links to the revision counts as joined.
        """
        ...

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give for each revision the paths in which it differs from the one before it in the sequence.

        Of the first, and where the source cannot tell, there are none.
        """
        ...

    def content(self, revision: Revision) -> str:
        """Name the content of a revision's tree; equal names, equal trees. Needs no checkout."""
        ...

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Put a revision's whole tree into a directory that does not exist yet.

        What was tried is appended to the file `log`. Raises `CheckoutFailed`, which the caller records.
        """
        ...


@runtime_checkable
class PartlyRead(Protocol):
    """A source that can leave paths out of account when it names a tree."""

    def content_without(self, revision: Revision, globs: tuple[str, ...]) -> str:
        """Name the content of a revision's tree but for what lies in the paths that globs match."""
        ...


@runtime_checkable
class Kept(Protocol):
    """A source that answers from what it was told of itself before, and asks again when something lacks."""

    def asked(self) -> str:
        """Say when it was told what it answers from: ISO 8601; empty when by this process, or never yet."""
        ...

    def ask_again(self) -> None:
        """Ask anew before the next answer, whatever is kept."""
        ...


@runtime_checkable
class Edited(Protocol):
    """A source whose user works in a checkout of it, where changes may lie that are in no revision yet."""

    def edited(self) -> str:
        """Give the id of the revision whose checkout was changed; empty when nothing was, or there is none.

        What is told from is what the checkout's own index notes: it may take a file that was only touched for changed.
        """
        ...


@runtime_checkable
class Growing(Protocol):
    """A source of which we keep a copy, while it grows elsewhere."""

    def refresh(self) -> None:
        """Bring what is new by now, whatever is asked for next. Raises `SourceError` when it cannot be reached."""
        ...
