"""Which of a study's sources is walked, and at which revision each of the others is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.model.subject import Revision
from perftrail.model.wording import listed

if TYPE_CHECKING:
    from perftrail.model.trail import Json

MAIN = "main"
"""What ``[source]`` is called among the others, which ``[sources.NAME]`` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The source that is walked, and the revision of each other one.

    `folders` are the revisions of variants that have a folder of their own, by folder.
    """

    along: str = MAIN
    at: Mapping[str, Revision] = field(default_factory=dict)
    folders: Mapping[str, Revision] = field(default_factory=dict)

    def revision(self, source: str, walked: Revision) -> Revision:
        """Give the revision at which a source is used where the walk stands at `walked`."""
        return walked if source == self.along else self.at[source]

    def as_json(self) -> dict[str, Json]:
        """Say it in JSON; nothing in a study of one source."""
        if not self.at:
            return {}
        return {"along": self.along, "pins": {name: revision.id for name, revision in self.at.items()}}

    def __str__(self) -> str:
        """Say it in words; nothing in a study of one source. Labels are hostile text."""
        if not self.at:
            return ""
        held = listed([f"{name} at {_name(revision)}" for name, revision in self.at.items()], "and")
        return f"along {self.along}, with {held}"


ALONE = Pins()
"""The pins of a study that has one source."""


def pins_asked(question: Mapping[str, Json]) -> Pins:
    """Give the pins that a question, a search's for instance, was asked with, as `Pins.as_json` told them."""
    held = question.get("pins")
    if not isinstance(held, dict):
        return ALONE
    at = {name: Revision(id=str(id_)) for name, id_ in held.items()}
    return Pins(along=str(question["along"]), at=at)


def _name(revision: Revision) -> str:
    if revision.label and revision.label != revision.id:
        return f"{revision.label} ({revision.short})"
    return revision.short
