"""Builders for many machines: those that build make every tree anew, and who leads them builds nothing itself.

A used tree is checked against a clean one by whoever used it, later. A machine of others may be gone by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from perftrail.builder.local import LocalBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from perftrail.builder.crew import Places
    from perftrail.builder.workplace import Place
    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.subject import Subject
    from perftrail.ports import Pending, Source, Starter


class CleanBuilder(LocalBuilder):
    """A builder that makes each subject in a clean tree, also where its recipe could go on in a used one."""

    def _reusing(
        self,
        key: str,  # noqa: ARG002 - as the builder that it is calls it
        place: Place,  # noqa: ARG002
        subject: Subject,  # noqa: ARG002
        recipe: Recipe,  # noqa: ARG002
    ) -> str | Failure | None:
        return None


class Makers(Protocol):
    """Others who make subjects, in clean trees; what they made is then there as if it had been made here."""

    @property
    def hands(self) -> int:
        """How many they make at once."""
        ...

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        """Have a subject made as soon as one of them is free; `key` is the name that the build has here."""
        ...

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Have a built subject relinked with some seeds, by the builder that has its objects, or builds it again.

        `layouts` gives the name that each has here.
        """
        ...


class AwayBuilder(LocalBuilder):
    """A builder who has all subjects made by others; a benchmark's own lines it runs here."""

    def __init__(self, source: Source, starter: Starter, *, makers: Makers, **places: Unpack[Places]) -> None:
        super().__init__(source, starter, **places)
        self._makers = makers
        self._begun: dict[str, Pending[Built | Failure]] = {}

    @property
    def hands(self) -> int:
        """How many subjects are made at once."""
        return self._makers.hands

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Have those of some subjects made that are not there yet; all of them are used from now on."""
        for subject, recipe in subjects:
            key = self.key(subject, recipe)
            self._users.claim(key)
            if key not in self._begun and not self.is_made(key):
                self._begun[key] = self._makers.begin(key, subject, recipe)

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Give what was made of a subject, or have it made."""
        self.begin([(subject, recipe)])
        begun = self._begun.pop(self.key(subject, recipe), None)
        if begun is None:
            return super().make(subject, recipe)
        outcome = begun.outcome()
        self._news += self._room.make()
        return outcome

    def _relink(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Have layouts made by others: a tree that came from another machine may name another directory."""
        return self._makers.relink(built, subject, recipe, missing).outcome()

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Check nothing: no tree was used twice."""
