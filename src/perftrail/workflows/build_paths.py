"""Paths of random length at which benchmarks see their builds."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.file_tree import empty_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.model.build import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenAt:
    """A build seen at other paths: placeholders that lead through links, and where each link leads."""

    placeholders: Mapping[str, str]
    links: Mapping[str, str]

    def plain(self, text: str) -> str:
        """Return a message with the build's own paths, so that messages of equal failures are equal."""
        for link in sorted(self.links, key=len, reverse=True):
            text = text.replace(link, self.links[link])
        return text


class BuildPaths:
    """Makes links to builds in its own directory, which only one process uses at a time.

    Every build is seen at the same path for the same names, whatever its key is. ``{build}`` is reached through a
    link to the directory around it: it stays a directory itself, which tools like ``find`` and ``du`` enter.
    ``{out}`` is a link, because the name of what it leads to differs from build to build.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def seen(
        self, prepared: Prepared, names: tuple[str, ...], placeholders: Mapping[str, str]
    ) -> Iterator[SeenAt]:
        """Make a build visible below these names until the end; also removes what a killed process left.

        Raises `UsageError` where the file system takes no symbolic links.
        """
        base = str(self._directory.joinpath(*names))
        links: dict[str, str] = {}
        moved = {
            name: _through_link(value, prepared, base=base, links=links)
            for name, value in placeholders.items()
        }
        self._clear()
        Path(base).parent.mkdir(parents=True, exist_ok=True)
        try:
            for link, target in links.items():
                _link(Path(link), target)
            yield SeenAt(placeholders=moved, links=links)
        finally:
            self._clear()

    def _clear(self) -> None:
        """Remove every link; the directory stays, as a sandbox may show it."""
        if self._directory.is_dir():
            empty_directory(self._directory)


def _link(link: Path, target: str) -> None:
    try:
        link.symlink_to(target)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        raise UsageError(
            f"{link.parent}: this file system takes no symbolic links, by which each invocation sees its build at "
            "another path; name another place with --store, or write vary_path = false in [measure]"
        ) from error


def _through_link(path: str, prepared: Prepared, *, base: str, links: dict[str, str]) -> str:
    """Return a path as seen through a link, which is noted in `links`; paths outside of the build stay."""
    home = str(Path(prepared.built.directory).parent)
    if prepared.out and path.startswith(
        prepared.out
    ):  # itself, or what lies beside it under its name with an ending
        ending, slash, rest = path.removeprefix(prepared.out).partition("/")
        links[f"{base}-out{ending}"] = f"{prepared.out}{ending}"
        return f"{base}-out{ending}{slash}{rest}"
    if path.startswith(f"{home}/"):
        links[base] = home
        return f"{base}{path.removeprefix(home)}"
    return path
