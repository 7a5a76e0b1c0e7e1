"""The inputs of builds: the tree of the study's source or of a variant's folder, and the trees of other sources."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.builds.artefact import Content, content_of
from perftrail.file_tree import entries_below, remove_tree
from perftrail.model.build import NO_OUTPUT, content_key
from perftrail.model.placeholders import source_placeholder
from perftrail.model.wording import nearest, quoted
from perftrail.ports import PartialSource, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.build import Recipe
    from perftrail.model.subject import Revision


NO_SOURCES: Mapping[str, Revision] = MappingProxyType({})
"""No other sources."""

NO_TREES: Mapping[str, Source] = MappingProxyType({})
"""No other sources or folders."""

_SOURCES = "sources"
_OUTPUT = re.compile(r"\{source\.([^{}]+)\}/+(.+)", re.DOTALL)
_OWN = ""


class Trees:
    """The sources of a study: which tree a recipe uses, and which other trees it needs.

    `others` are the other sources by name, `folders` those of variants that are folders.
    """

    def __init__(
        self, source: Source, *, others: Mapping[str, Source], folders: Mapping[str, Source]
    ) -> None:
        self._source = source
        self._others = others
        self._folders = folders

    def of(self, recipe: Recipe) -> Source:
        """Return the source of a recipe's tree."""
        return self._folders[recipe.root] if recipe.root else self._source

    def content_of(self, revision: Revision, recipe: Recipe) -> str:
        """Return the content key of a revision's tree, without the paths that the recipe ignores."""
        source = self.of(recipe)
        if recipe.unaffected_by and isinstance(source, PartialSource):
            return source.content_without(revision, recipe.unaffected_by)
        return source.content(revision)

    def content(self, wanted: Mapping[str, Revision]) -> list[dict[str, str]]:
        """Return the content keys of other sources' trees.

        Empty without other sources, so that keys stay unchanged.
        """
        named = {name: self._others[name].content(revision) for name, revision in wanted.items()}
        return [named] if named else []

    def check_out(self, wanted: Mapping[str, Revision], directory: Path, log: Path) -> None:
        """Check out the trees of other sources below a directory. Raises `CheckoutFailed`."""
        remove_tree(directory)
        for name, revision in wanted.items():
            directory.mkdir(parents=True, exist_ok=True)
            self._others[name].materialise(revision, str(directory / name), str(log))


def build_source_trees(tree: Path) -> Path:
    """Return the directory of other sources' trees that a build names; `tree` is the build's own tree."""
    return tree.with_name(_SOURCES)


def benchmark_source_trees(out: Path) -> Path:
    """Return the directory of other sources' trees that only a benchmark names; `out` is its output directory."""
    return out.with_name(f"{out.name}.{_SOURCES}")


MOST_CANDIDATES = 20_000
"""Number of files of a tree that are compared with an output for a suggestion."""


def no_output_message(tree: Path, outputs: Sequence[str]) -> str:
    """Return the message for outputs that match no file, with the file that the study may mean."""
    files = [entry.path for entry in islice(entries_below(tree), MOST_CANDIDATES) if not entry.is_directory]
    near = next((found for output in outputs if (found := nearest(output, files))), None)
    remedy = f"did you mean {quoted(near)}?" if near else "correct the recipe's outputs"
    return f"{NO_OUTPUT}{', '.join(outputs)}; {remedy}"


def values_of(directory: Path) -> dict[str, str]:
    """Return the placeholder values of the trees below a directory."""
    if not directory.is_dir():
        return {}
    return {source_placeholder(tree.name): str(tree) for tree in sorted(directory.iterdir())}


def outputs_by_tree(outputs: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Group globs by the source in whose tree they match; an empty name is the build's own tree."""
    globs: dict[str, list[str]] = {}
    for output in outputs:
        found = _OUTPUT.fullmatch(output)
        name, glob = (found[1], found[2]) if found else (_OWN, output)
        globs.setdefault(name, []).append(glob)
    return globs


def content_of_outputs(tree: Path, outputs: Sequence[str], *, keys: Sequence[str]) -> Content:
    """Return the digest of outputs in a build's tree and, as ``{source.NAME}/GLOB``, in other sources' trees."""
    parts = {
        name: content_of(build_source_trees(tree) / name if name else tree, each, keys=keys)
        for name, each in outputs_by_tree(outputs).items()
    }
    if list(parts) == [_OWN]:
        return parts[_OWN]
    return Content(
        digest=content_key({name: part.digest for name, part in parts.items()}),
        files=sum(part.files for part in parts.values()),
        mentions_build=any(part.mentions_build for part in parts.values()),
    )
