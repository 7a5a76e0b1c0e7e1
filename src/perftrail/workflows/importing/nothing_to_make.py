"""A builder for subjects that were measured elsewhere: it names them, and makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.build import Built, Prepared, content_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perftrail.model.build import Failure, Recipe, Workplace
    from perftrail.model.subject import Revision, Subject

NO_SOURCES: Mapping[str, Revision] = {}


class NothingToMake:
    """A `perftrail.ports.Builder` for whom every subject is there already, in no directory.

    Each subject is an artefact of its own: what others measured is never known to be alike.
    """

    hands = 1

    def key(self, subject: Subject, recipe: Recipe) -> str:  # noqa: ARG002 - nothing is made by it
        """Name a subject by its revision and variant."""
        return _name(subject)

    def made(self, subject: Subject) -> Prepared:
        """Give a subject and its benchmarks, which are all alike, as they are."""
        name = _name(subject)
        built = Built(key=name, artefact=name, directory="", seconds=0.0)
        return Prepared(built=built, out="", artefact=_benchmarks(built))

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def make(self, subject: Subject, recipe: Recipe) -> Built:  # noqa: ARG002 - nothing is made by it
        """Give a subject as it is."""
        return self.made(subject).built

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:  # noqa: ARG002 - nothing is linked
        """Name nothing that could ever be made."""
        return content_key("imported layout", built.key, layout)

    def relink(
        self,
        subject: Subject,
        recipe: Recipe,  # noqa: ARG002 - as above
        built: Built,  # noqa: ARG002 - as above
        layouts: Sequence[int],  # noqa: ARG002 - as above
    ) -> Mapping[int, Built | Failure]:
        """Refuse. Raises `UsageError`."""
        raise UsageError(f"{subject}: its samples were taken elsewhere; there is nothing to relink")

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,  # noqa: ARG002 - nothing is made in it
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> Prepared:
        """Give a benchmark of a subject as it is."""
        artefact = self.link_key(built, steps=steps, env=env, files=files, sources=sources)
        return Prepared(built=built, out="", artefact=artefact)

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing."""

    def news(self) -> tuple[str, ...]:
        """Give nothing: nothing was done."""
        return ()

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Do nothing."""

    def link_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],  # noqa: ARG002 - none is run
        env: Mapping[str, str],  # noqa: ARG002 - as above
        files: Collection[str],  # noqa: ARG002 - as above
        sources: Mapping[str, Revision] = NO_SOURCES,  # noqa: ARG002 - as above
    ) -> str:
        """Name a subject's benchmarks by the subject."""
        return _benchmarks(built)

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:  # noqa: ARG002 - there is none
        """Refuse. Raises `UsageError`."""
        raise UsageError(f"{subject}: its samples were taken elsewhere; there is nothing to build")

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:  # noqa: ARG002 - no command is run
        """Give none: no command is run."""
        return {}


def _name(subject: Subject) -> str:
    return content_key("imported", subject.revision.id, subject.variant)


def _benchmarks(built: Built) -> str:
    return content_key("imported benchmark", built.key)
