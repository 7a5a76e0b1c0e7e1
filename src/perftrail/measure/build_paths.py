"""Show each build to benchmarks at a path of random length, through links."""

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
class LinkedBuild:
    """A build at its linked paths: placeholders that lead through links, and the target of each link."""

    placeholders: Mapping[str, str]
    links: Mapping[str, str]

    def with_original_paths(self, text: str) -> str:
        """Return a message with the build's original paths, so that messages of equal failures are equal."""
        for link in sorted(self.links, key=len, reverse=True):
            text = text.replace(link, self.links[link])
        return text


class BuildPaths:
    """Creates links to builds in a directory that only one process uses at a time.

    A build's path depends only on its names, not on its key. ``{build}`` is reached through a link to its
    parent directory: it stays a real directory, which tools like ``find`` and ``du`` enter. ``{out}`` is a
    link, because the name of its target differs from build to build.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def linked(
        self, prepared: Prepared, names: tuple[str, ...], placeholders: Mapping[str, str]
    ) -> Iterator[LinkedBuild]:
        """Make a build visible below these names until the context ends; also remove links of a killed process.

        Raises `UsageError` if the file system does not support symbolic links.
        """
        base = str(self._directory.joinpath(*names))
        links: dict[str, str] = {}
        linked_placeholders = {
            name: _through_link(value, prepared, base=base, links=links)
            for name, value in placeholders.items()
        }
        self.clear()
        Path(base).parent.mkdir(parents=True, exist_ok=True)
        try:
            for link, target in links.items():
                _link(Path(link), target)
            yield LinkedBuild(placeholders=linked_placeholders, links=links)
        finally:
            self.clear()

    def clear(self) -> None:
        """Remove every link; keep the directory, which a sandbox may show."""
        if self._directory.is_dir():
            empty_directory(self._directory)


def _link(link: Path, target: str) -> None:
    try:
        link.symlink_to(target)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        raise UsageError(
            f"{link.parent}: this file system does not support symbolic links, which show each invocation its build at "
            "another path; choose another directory with --store, or set vary_path = false in [measure]"
        ) from error


def _through_link(path: str, prepared: Prepared, *, base: str, links: dict[str, str]) -> str:
    """Return a path as seen through a link, and record the link in `links`; paths outside the build do not change."""
    home = str(Path(prepared.built.directory).parent)
    if prepared.out and path.startswith(prepared.out):
        # The path itself, or a sibling with its name and a suffix.
        ending, slash, rest = path.removeprefix(prepared.out).partition("/")
        links[f"{base}-out{ending}"] = f"{prepared.out}{ending}"
        return f"{base}-out{ending}{slash}{rest}"
    if path.startswith(f"{home}/"):
        links[base] = home
        return f"{base}{path.removeprefix(home)}"
    return path
