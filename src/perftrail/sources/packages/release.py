"""Releases of a package in any ecosystem as a history."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import remove_tree
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.ports import CachedSource
from perftrail.sources.packages import open_registry
from perftrail.sources.ranges import EVERYTHING, parse_range, range_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.packages.registry import Release, Version


class ReleaseSource:
    """The releases of a package in the order of their versions; a revision's id is its version.

    Pre-releases, yanked releases, and those that this machine cannot install are left out unless requested.
    """

    def __init__(self, table: SourceTable, *, cache: str, starter: Starter, sandboxed: bool = False) -> None:
        self._table = table
        self._registry = open_registry(table, cache=cache, starter=starter, sandboxed=sandboxed)
        self._all: tuple[Release, ...] | None = None

    def updated(self) -> str:
        """Return when the registry was queried, if its answers are cached."""
        return self._registry.updated() if isinstance(self._registry, CachedSource) else ""

    def update(self) -> None:
        """Query a registry with cached answers again; others are queried by each process."""
        if isinstance(self._registry, CachedSource):
            self._registry.update()
            self._all = None

    def _selected(self, text: str | None) -> tuple[Sequence[Release], list[int]]:
        """Return all wanted releases, and the indices of those in a range."""
        ends = parse_range(text) if text else EVERYTHING
        old, new = self._end(ends.old), self._end(ends.new)
        if old is not None and new is not None and new < old:
            raise SourceError(f'range "{text}" is backwards; write "{ends.new}..{ends.old}"')
        releases = self._wanted()
        indices = [number for number, each in enumerate(releases) if _between(each.version, old=old, new=new)]
        if not indices:
            raise SourceError(
                f"{self._table.location}: the range has no release; set prereleases or yanked to include more"
            )
        return releases, indices

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the releases of a range, both ends included; each has the previous one as parent."""
        self._wanted()  # an error of the registry is not one of the range
        with range_errors(range, of_study=self._table.range):
            releases, indices = self._selected(self._table.range if range is None else range)
        return tuple(
            Revision(
                id=releases[number].id,
                summary=f"{self._registry.package.name} {releases[number].id}",
                label=releases[number].id,
                time=releases[number].uploaded,
                parents=(releases[number - 1].id,) if number else (),
            )
            for number in indices
        )

    def within(self, range: str) -> frozenset[str]:
        """Return the versions of a range, whose ends need not be releases."""
        ends = parse_range(range)
        old = self._registry.version(ends.old) if ends.old else None
        new = self._registry.version(ends.new) if ends.new else None
        return frozenset(each.id for each in self._wanted() if _between(each.version, old=old, new=new))

    def merge(self, revision: Revision) -> None:
        """Return `None`: releases have no merges."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return no files: the changed files are unknown before the download."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Return the content key of a release."""
        return self._registry.content(revision.id)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Fetch a release and write it into a separate directory."""
        target = Path(directory)
        if target.exists():
            raise CheckoutFailed(f"{directory}: exists already; a release needs a new directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._registry.write_release(revision.id, target, log)
        except SourceError as error:
            remove_tree(target)
            with Path(log).open("a", encoding="utf-8", errors="replace") as file:
                print(error, file=file)
            raise CheckoutFailed(str(error)) from error

    def _wanted(self) -> Sequence[Release]:
        return [each for each in self._releases() if not self._why_excluded(each)]

    def _why_excluded(self, release: Release) -> str:
        """Return why a release is excluded; empty if it is not."""
        if release.yanked and not self._table.yanked:
            why = "was deprecated" if self._registry.package.ecosystem == "npm" else "was yanked"
            return f"{why}; set source.yanked = true to include it"
        if release.prerelease and not self._table.prereleases:
            return "is a pre-release; set source.prereleases = true to include it"
        return ""

    def _releases(self) -> tuple[Release, ...]:
        if self._all is None:
            self._all = self._registry.releases()
            if not self._all:
                raise SourceError(f"{self._table.location}: has no release{self._availability}")
        return self._all

    def _release(self, version: Version) -> Release | None:
        return next((each for each in self._releases() if each.version == version), None)

    @property
    def _availability(self) -> str:
        return f" {self._registry.limits}" if self._registry.limits else ""

    def _end(self, text: str) -> Version | None:
        """Return the version of a range's end, `None` for an open one. Raises `SourceError` unless it is a release."""
        if not text:
            return None
        version = self._registry.version(text)
        found = self._release(version)
        if found is None and self.updated():  # the cached list may be older than that release
            self.update()
            found = self._release(version)
        if found is not None:
            if reason := self._why_excluded(found):
                raise SourceError(f'{self._table.location}: "{text}" {reason}')
            return version
        known = [release.id for release in self._wanted()]
        near = " or ".join(map(quoted, difflib.get_close_matches(text, known, n=3)))
        hint = f"did you mean {near}?" if near else f"they go from {known[0]} to {known[-1]}" if known else ""
        raise SourceError(f"{self._table.location}: no release {quoted(text)}{self._availability}; {hint}")


def _between(version: Version, *, old: Version | None, new: Version | None) -> bool:
    return (old is None or not version < old) and (new is None or not new < version)
