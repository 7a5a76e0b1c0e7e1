"""Which functions each revision changes, as git's diff names them: the line that begins the function of a hunk.

Git has patterns for the first line of a function in many languages (``diff`` in gitattributes). They cost nothing and
need no build, so they serve for revisions that were never built. A name is not resolved: a function of the same name
in another class of the file counts, too.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.patch import TouchedFile
from perftrail.sources.client import LONG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.sources.git.command import Git

_DRIVERS = {
    "cpp": ("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inc", "C", "H"),
    "python": ("py", "pyx", "pxd"),
    "rust": ("rs",),
    "golang": ("go",),
    "java": ("java",),
    "csharp": ("cs",),
    "fortran": ("f", "f90", "f95", "f03", "f08", "F90"),
    "objc": ("m", "mm"),
    "perl": ("pl", "pm"),
    "php": ("php",),
    "ruby": ("rb",),
    "kotlin": ("kt",),
}
"""Git's pattern of function lines for each ending of a file."""

_PAIRS = 100
"""Number of revisions in one query."""

LARGEST_DIFF_BYTES = 256 << 20
"""Largest output of one query."""

LONGEST_LINE = 1000
"""Characters of a line that are read."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFINITION = re.compile(
    r"\s*(?:async\s+def|def|class|func|fn|(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|unsafe\s+|async\s+|extern\s+\"C\"\s+)*fn)\s"
    r"|[A-Za-z_][^;=]*\([^;]*$"
)
"""A changed line that begins a function: a keyword, or an unindented line with a parenthesis and no semicolon."""


def touched_functions(
    git: Git, repository: Path, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[TouchedFile, ...], ...]:
    """Return the files in which the trees of each pair differ, with names of functions; none for incomplete pairs.

    Empty if git cannot write one of the diffs: some revisions would look as if they touched no function.
    """
    found: dict[tuple[str, str], tuple[TouchedFile, ...]] = {}
    wanted = list(dict.fromkeys(pair for pair in pairs if all(pair)))
    with tempfile.TemporaryDirectory(prefix="perftrail-attributes-") as scratch:
        attributes = Path(scratch, "attributes")
        lines = [f"*.{ending} diff={name}\n" for name, endings in _DRIVERS.items() for ending in endings]
        attributes.write_text("".join(lines))
        for start in range(0, len(wanted), _PAIRS):
            part = wanted[start : start + _PAIRS]
            result = git.run(
                "-c", f"core.attributesFile={attributes}", "diff-tree", "--stdin", "-r", "-p", "-U0",
                "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/",
                "--dst-prefix=b/",
                repository=repository,
                stdin="".join(f"{old} {new}\n" for old, new in part).encode(),
                timeout_seconds=LONG_SECONDS,
                output_bytes=LARGEST_DIFF_BYTES,
            )  # fmt: skip
            if result.failed:
                return ()
            found.update(_read(result.output.decode("utf-8", errors="replace"), frozenset(part)))
    return tuple(found.get(pair, ()) for pair in pairs)


def _read(
    text: str, pairs: frozenset[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], tuple[TouchedFile, ...]]]:
    """Read diffs of trees, each after a line with both trees' ids, which no line of a diff begins with."""
    pair: tuple[str, str] | None = None
    files: dict[str, set[str]] = {}
    path = ""
    for line in text.split("\n"):
        begins = line.partition(" ")
        if (begins[0], begins[2]) in pairs:
            if pair is not None:
                yield pair, _touched(files)
            pair, files, path = (begins[0], begins[2]), {}, ""
        elif line.startswith("diff --git "):
            path = line.rpartition(" b/")[2].rstrip('"')
            files.setdefault(path, set())
        elif line.startswith("@@ ") and path:
            files[path].update(_NAME.findall(line[:LONGEST_LINE].partition(" @@")[2]))
        elif line[:1] in {"+", "-"} and path and not line.startswith(("+++ ", "--- ")):
            text_line = line[1:LONGEST_LINE]
            if _DEFINITION.match(text_line):
                files[path].update(_NAME.findall(text_line.partition("(")[0]))
    if pair is not None:
        yield pair, _touched(files)


def _touched(files: dict[str, set[str]]) -> tuple[TouchedFile, ...]:
    return tuple(TouchedFile(path=path, names=frozenset(names)) for path, names in files.items())
