"""Build systems: how to detect each in a tree, and how to build with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import usable
from perftrail.verbs.init.systems import autotools, cargo, cmake, golang, make, meson, npm, python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.verbs.init.draft import Building, Tree

    Detect = Callable[[Tree], Building | None]
    """Returns how to build a tree, or `None` if this system does not build it."""


SYSTEMS: Mapping[str, Detect] = {
    "cargo": cargo.detect,
    "go": golang.detect,
    "cmake": cmake.detect,
    "meson": meson.detect,
    "autotools": autotools.detect,
    "pyproject": python.detect,
    "npm": npm.detect,
    "make": make.detect,
}
"""Every build system by name. If several fit, the one that names most of its outputs comes first."""

_ASIDE = frozenset(
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
"""Directories that contain no program's own build."""


def detect(tree: Tree) -> tuple[tuple[Building, str], ...]:
    """Return every way to build a tree, with its directory; the best comes first.

    Subdirectories are examined only if nothing builds at the root.
    """
    here = _at(tree, "")
    if here:
        return here
    inside = [
        each
        for each in tree.directories()
        if each.lower() not in _ASIDE and not each.startswith(".") and usable(each)
    ]
    return tuple(found for directory in sorted(inside) for found in _at(tree, directory))


def _at(tree: Tree, directory: str) -> tuple[tuple[Building, str], ...]:
    place = tree.below(directory) if directory else tree
    found = (detect_one(place) for detect_one in SYSTEMS.values())
    return tuple((building, place.place) for building in found if building is not None)
