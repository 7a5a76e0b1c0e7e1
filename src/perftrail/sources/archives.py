"""Releases in a plain table: for each version an archive, by path or by address."""

from __future__ import annotations

import difflib
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.subject import Revision
from perftrail.model.wording import quoted
from perftrail.sources.archives_fetch import fetch, place_of
from perftrail.sources.archives_unpack import unpack
from perftrail.sources.ranges import EVERYTHING, parse_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Archive
    from perftrail.model.source import Source as Asked


class ArchiveSource:
    """The archives of a study's table, in its order, the first the oldest; a revision's id is its version.

    What a table says of a version is believed only once it is asked for: an archive that is gone, or is not
    what its checksum promises, is a revision that cannot be had.
    """

    def __init__(self, asked: Asked, *, cache: str) -> None:
        self._asked = asked
        self._cache = Path(cache) / "archives"
        self._archives: Mapping[str, Archive] = {each.version: each for each in asked.archives}
        self._versions = list(self._archives)
        self._digests: dict[str, str] = {}

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the versions of a range, both ends included; each has the one before it as parent."""
        text = self._asked.range if range is None else range
        first, last = self._ends(text)
        return tuple(
            Revision(
                id=version,
                summary=self._archives[version].file,
                label=version,
                parents=tuple(self._versions[max(0, number - 1) : number]),
            )
            for number, version in enumerate(self._versions)
            if first <= number <= last
        )

    def within(self, range: str) -> frozenset[str]:
        """Give the versions of a range; either end may be open."""
        first, last = self._ends(range)
        return frozenset(self._versions[first : last + 1])

    def merge(self, revision: Revision) -> None:
        """Give nothing: releases follow each other in one line."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give nothing for each: what a release changes is known only once both are unpacked."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Name what an archive holds by its checksum; one that is not there is named by its place."""
        archive = self._archive(revision)
        return content_key("archive", archive.sha256 or self._digest(archive))

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Fetch an archive, check it, and unpack it; a single directory around everything is left out."""
        if Path(directory).exists():
            raise CheckoutFailed(f"{directory}: is there already; a release goes into a new directory")
        try:
            archive = self._archive(revision)
        except SourceError as error:
            raise CheckoutFailed(str(error)) from error
        with Path(log).open("a", encoding="utf-8", errors="replace") as file:
            print(f"$ unpack {place_of(archive, self._asked.location)} into {directory}", file=file)
            try:
                taken = fetch(archive, base=self._asked.location, cache=self._cache)
                print(f"{unpack(taken, Path(directory))} files", file=file)
            except CheckoutFailed as error:
                shutil.rmtree(directory, ignore_errors=True)
                print(error, file=file)
                raise

    def _archive(self, revision: Revision) -> Archive:
        if revision.id not in self._archives:
            raise SourceError(self._unknown(revision.id))
        return self._archives[revision.id]

    def _digest(self, archive: Archive) -> str:
        """The checksum of an archive of this machine whose checksum the table does not give."""
        if archive.version not in self._digests:
            path = Path(place_of(archive, self._asked.location))
            if not path.is_file():
                return f"none at {path}"
            with path.open("rb") as file:
                self._digests[archive.version] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[archive.version]

    def _ends(self, text: str | None) -> tuple[int, int]:
        """The places in the table of a range's ends."""
        ends = parse_range(text) if text else EVERYTHING
        first = self._number(ends.old) if ends.old else 0
        last = self._number(ends.new) if ends.new else len(self._versions) - 1
        if first > last:
            raise SourceError(f'range "{text}": is backwards; write "{ends.new}..{ends.old}"')
        return first, last

    def _number(self, version: str) -> int:
        if version not in self._archives:
            raise SourceError(self._unknown(version))
        return self._versions.index(version)

    def _unknown(self, version: str) -> str:
        near = difflib.get_close_matches(version, self._versions, n=3)
        hint = f"; did you mean {' or '.join(map(quoted, near))}?" if near else ""
        return f"source.archives: has no version {quoted(version)}{hint}"
