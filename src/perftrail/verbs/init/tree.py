"""Read the files and manifests of a program, which may contain anything, for drafting its first study."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from perftrail.model.placeholders import fill_some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Files by their path below one directory, whether each is executable, and the texts that were read.

    `place` is that directory's path from the revision's root, empty for the root itself. `name` is the
    program's usual name. Names are untrusted: only those that `usable` accepts are written to a study.
    """

    name: str
    programs: Mapping[str, bool]
    texts: Mapping[str, str] = field(default_factory=dict)
    place: str = ""

    def __contains__(self, path: str) -> bool:
        return path in self.programs

    def __iter__(self) -> Iterator[str]:
        return iter(self.programs)

    def text(self, path: str) -> str:
        """Return a file's text, empty if it was not read."""
        return self.texts.get(path, "")

    def first(self, *paths: str) -> str | None:
        """Return the first of these paths that exists."""
        return next((path for path in paths if path in self.programs), None)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the files that match a pattern, shallow ones first; ``*`` spans directories."""
        found = (path for path in self.programs if fnmatchcase(path, pattern))
        return tuple(sorted(found, key=lambda path: (path.count("/"), path)))

    def has_directory(self, path: str) -> bool:
        """Whether there are files below a path."""
        return any(each.startswith(f"{path}/") for each in self.programs)

    def directories(self) -> tuple[str, ...]:
        """Return the subdirectories of this directory."""
        return tuple(dict.fromkeys(path.partition("/")[0] for path in self.programs if "/" in path))

    def below(self, directory: str) -> Tree:
        """Return the files of one directory, as a separate tree."""
        start = f"{directory}/"
        return Tree(
            name=self.name,
            programs={
                path.removeprefix(start): is_program
                for path, is_program in self.programs.items()
                if path.startswith(start)
            },
            texts={
                path.removeprefix(start): text for path, text in self.texts.items() if path.startswith(start)
            },
            place=self.path(directory),
        )

    def path(self, path: str) -> str:
        """Return the path of an existing or built file, from the revision's root."""
        return "/".join(part for part in (self.place, path) if part)

    def word(self, path: str = "") -> str:
        """Return a path as one word of a command, starting with ``{build}``.

        >>> Tree(name="a", programs={}, place="src").word("a {b}")
        "{build}/'src/a {{b}}'"
        """
        whole = self.path(path)
        return fill_some("{build}/{path}", {"path": whole}, shlex.quote) if whole else "{build}"


def usable(path: str) -> bool:
    """Whether a path is safe in a shell line: printable, no blanks, no option, no shell characters.

    >>> [usable(path) for path in ("bench/run.sh", "a b", "-rf", "$(x)")]
    [True, False, False, False]
    """
    return (
        path.isprintable()
        and not path.startswith(("-", "/", "~"))
        and not set(path) & set(" '\"`$\\{}*?[]<>|&;()#!")
        and ".." not in path.split("/")
    )


def table(within: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table inside tables, an empty one if there is none.

    >>> table({"a": {"b": {"c": 1}}}, "a", "b"), table({"a": []}, "a", "b")
    ({'c': 1}, {})
    """
    found: object = within
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object) -> str:
    """Return a value if it is text, else empty text."""
    return value if isinstance(value, str) else ""


def names(value: object) -> tuple[str, ...]:
    """Return the texts of a list, empty for other values."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
