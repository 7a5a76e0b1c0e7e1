"""Releases of a Python package, as the package index has them and pip installs them."""

from __future__ import annotations

import difflib
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.build import content_key
from perftrail.model.subject import Revision
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.package_index import find_releases
from perftrail.sources.pip_command import make_pip, why_pip_failed
from perftrail.sources.ranges import EVERYTHING, parse_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter
    from perftrail.sources.package_index import Release


class ReleaseSource:
    """The releases of a package in the order of their versions; a revision's id is its version.

    Pre-releases and yanked releases are left out unless asked for, and so is whatever this interpreter or
    machine could not install. Each release stands alone: of its dependencies only what the study asks for.
    """

    def __init__(self, asked: Asked, *, cache: str, starter: Starter) -> None:
        self._asked = asked
        self._package = _package(asked.location)
        self._requires = tuple(_requirement(text) for text in asked.requires)
        self._cache = Path(cache) / "pip"
        self._starter = starter
        self._all: tuple[Release, ...] | None = None

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the releases of a range, both ends included; each has the one before it as parent."""
        text = self._asked.range if range is None else range
        ends = parse_range(text) if text else EVERYTHING
        old, new = self._end(ends.old), self._end(ends.new)
        if old is not None and new is not None and old > new:
            raise SourceError(f'range "{text}": is backwards; write "{ends.new}..{ends.old}"')
        releases = self._wanted()
        chosen = [number for number, each in enumerate(releases) if _between(each.version, old=old, new=new)]
        if not chosen:
            raise SourceError(
                f"{self._asked.location}: no release fits; set prereleases or yanked to see more"
            )
        return tuple(
            Revision(
                id=str(releases[number].version),
                summary=f"{self._package} {releases[number].version}",
                label=str(releases[number].version),
                time=releases[number].uploaded,
                parents=(str(releases[number - 1].version),) if number else (),
            )
            for number in chosen
        )

    def within(self, range: str) -> frozenset[str]:
        """Give the versions between two, which need not be releases themselves."""
        ends = parse_range(range)
        old, new = _version(ends.old), _version(ends.new)
        return frozenset(
            str(each.version) for each in self._wanted() if _between(each.version, old=old, new=new)
        )

    def merge(self, revision: Revision) -> None:
        """Give nothing: releases follow each other in one line."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give nothing for each: what a release changes is known only once both are downloaded."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Name what would be installed: the release, what it requires, for which interpreter, from where."""
        requires = [str(each) for each in self._requires]
        interpreter = f"{sys.implementation.cache_tag} {platform.python_version()} {platform.machine()}"
        key = content_key(requires, interpreter, self._asked.index or "")
        return f"pypi:{self._package}=={revision.id}:{key}"

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Install a release into a directory of its own, compiled, with nothing the study does not name."""
        if Path(directory).exists():
            raise CheckoutFailed(f"{directory}: is there already; a release goes into a new directory")
        Path(directory).parent.mkdir(parents=True, exist_ok=True)
        index = ["--index-url", self._asked.index] if self._asked.index else []
        answer = make_pip(self._starter, cache=self._cache).ask(
            "install", "--no-deps", "--no-user", "--compile", "--no-warn-script-location",
            "--root-user-action=ignore", "--progress-bar=off", *index,
            "--target", str(Path(directory).absolute()),
            "--", f"{self._package}=={revision.id}", *map(str, self._requires),
            timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        if answer.failed:
            shutil.rmtree(directory, ignore_errors=True)
            raise CheckoutFailed(
                f"pip cannot install {self._package}=={revision.id}: {why_pip_failed(answer)}"
            )
        Path(directory).mkdir(exist_ok=True)

    def _wanted(self) -> Sequence[Release]:
        return [each for each in self._releases() if not self._left_out(each)]

    def _left_out(self, release: Release) -> str:
        """Why a release does not belong to the history, nothing when it does."""
        if release.yanked and not self._asked.yanked:
            return "was yanked; set source.yanked = true to have it"
        if release.version.is_prerelease and not self._asked.prereleases:
            return "is a pre-release; set source.prereleases = true to have it"
        return ""

    def _releases(self) -> tuple[Release, ...]:
        if self._all is None:
            pip = make_pip(self._starter, cache=self._cache)
            self._all = find_releases(pip, self._package, index=self._asked.index)
            if not self._all:
                raise SourceError(f"{self._asked.location}: has no release for this Python and machine")
        return self._all

    def _end(self, text: str) -> Version | None:
        """The version that an end names; it has to be a release of the history."""
        if not text:
            return None
        version = _version(text)
        for release in self._releases():
            if release.version == version:
                trouble = self._left_out(release)
                if trouble:
                    raise SourceError(f'{self._asked.location}: "{text}" {trouble}')
                return version
        known = [str(release.version) for release in self._wanted()]
        near = " or ".join(f'"{each}"' for each in difflib.get_close_matches(text, known, n=3))
        hint = f"did you mean {near}?" if near else f"they go from {known[0]} to {known[-1]}" if known else ""
        raise SourceError(f'{self._asked.location}: no release "{text}" for this Python and machine; {hint}')


def _between(version: Version, *, old: Version | None, new: Version | None) -> bool:
    return (old is None or old <= version) and (new is None or version <= new)


def _version(text: str) -> Version | None:
    """The version that an end of a range names, `None` for an open end."""
    if not text:
        return None
    try:
        return Version(text)
    except InvalidVersion as error:
        raise SourceError(f'range: "{text}" is no version number such as 1.4.2') from error


def _package(location: str) -> str:
    ecosystem, colon, name = location.partition(":")
    if not colon or ecosystem != "pypi":
        raise SourceError(f'source.location "{location}": write pypi:NAME, the name of a Python package')
    requirement = _requirement(name)
    if requirement.specifier or requirement.url or requirement.marker or requirement.extras:
        raise SourceError(
            f'source.location "{location}": write the name alone; versions go into source.range'
        )
    return canonicalize_name(requirement.name)


def _requirement(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise SourceError(
            f'source: "{text}" is no package requirement such as typing-extensions==4.12.2'
        ) from error
