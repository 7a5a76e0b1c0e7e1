"""Making subjects usable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perftrail.model.build import Built, Failure, Prepared, Recipe, Workplace
    from perftrail.model.subject import Revision, Subject


class Builder(Protocol):
    """Makes subjects usable, each in its own directory, and keeps what came of it by content."""

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Name what goes into a build: tree, recipe, toolchain. Equal keys, equal builds."""
        ...

    @property
    def hands(self) -> int:
        """How many subjects it makes at once, of those that were begun."""
        ...

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Begin to make subjects, as many at once as it has hands; `make` then waits for what came of each.

        With one hand nothing need be begun.
        """
        ...

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Make a subject in a clean directory, or give the one that is there already."""
        ...

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Name what goes into a built subject relinked with a seed, from 1; makes nothing."""
        ...

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link the objects of a built subject again by the recipe's `relink` lines, once for each seed.

        Return each as a separate build, which has the recipe's outputs only; the subject's own build stays as it
        is. Several at once share the cost of reaching the objects. After a failure the remaining seeds are missing.
        """
        ...

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
        sources: Mapping[str, Revision] = ...,
    ) -> Prepared | Failure:
        """Run a benchmark's own build lines against a built subject, in an ``{out}`` of its own.

        `steps` and `env` still hold their placeholders. `sources` are the other sources whose trees the lines
        or the command name, each at its revision; none unless given. `files` are absolute paths of the study's own
        files that the command uses: their content goes into the artefact beside what the lines make.
        """
        ...

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Keep what is there of subjects that are used later; may be called at any time, again too."""
        ...

    def news(self) -> tuple[str, ...]:
        """Give what was done beside making subjects since this was asked last, in words for people."""
        ...

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Compare with clean builds what was made in used trees and not checked yet, and witnesses one by one.

        Raises `StaleBuilds` when they differ, as `make` may: the builds are taken back then.
        """
        ...

    def link_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = ...,
    ) -> str:
        """Name what goes into a benchmark's build, as `prepare` would make it; makes nothing."""
        ...

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:
        """Put a subject's tree, repaired, into a new directory below `directory`, as `make` does before its steps.

        What is stored of the subject is left as it is. What fails is told with what is there.
        """
        ...

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Give what ``{build}``, ``{out}``, ``{study}`` and ``{cpus}`` stand for when the command runs."""
        ...
