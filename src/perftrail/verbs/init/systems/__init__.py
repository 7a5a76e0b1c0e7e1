"""Build systems: detect each in a tree, and draft its build and benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import is_safe_path
from perftrail.verbs.init.systems import autotools, cargo, cmake, golang, make, maven, meson, npm, python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.verbs.init.draft import BuildDraft, Tree

    Detect = Callable[[Tree], BuildDraft | None]
    """Returns the build of a tree, or `None` if the tree does not use this system."""


SYSTEMS: Mapping[str, Detect] = {
    "cargo": cargo.detect,
    "go": golang.detect,
    "maven": maven.detect,
    "cmake": cmake.detect,
    "meson": meson.detect,
    "autotools": autotools.detect,
    "pyproject": python.detect,
    "npm": npm.detect,
    "make": make.detect,
}
"""Every build system by name; of several in one tree, the first is preferred: it names most of its outputs."""

_NOT_PROGRAMS = frozenset(
    {
        "test",
        "tests",
        "doc",
        "docs",
        "example",
        "examples",
        "contrib",
        "vendor",
        "third_party",
        "deps",
        "fuzz",
    }
)
"""Names of directories that do not contain the build of the program."""


def detect(tree: Tree) -> tuple[tuple[BuildDraft, str], ...]:
    """Return every possible build of a tree with its directory, the best first.

    Subdirectories are examined only if nothing builds at the root.
    """
    here = _builds_in(tree, "")
    if here:
        return here
    inside = [
        each
        for each in tree.directories()
        if each.lower() not in _NOT_PROGRAMS and not each.startswith(".") and is_safe_path(each)
    ]
    return tuple(found for directory in sorted(inside) for found in _builds_in(tree, directory))


def _builds_in(tree: Tree, directory: str) -> tuple[tuple[BuildDraft, str], ...]:
    below = tree.below(directory) if directory else tree
    builds = (detect_one(below) for detect_one in SYSTEMS.values())
    return tuple((build, below.prefix) for build in builds if build is not None)
