"""Texts for people avoid the words that CONTRIBUTING.md replaces by standard terms."""

from __future__ import annotations

import ast
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.starting import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

AVOIDED = re.compile(
    r"\b(?:purses?|rota|outposts?|anew|so many|as far as|all the same|taken back|strangers?'?|stretch(?:es)?|strays?"
    r"|accus(?:ed|es)|bouts?|duels?|set aside|beforehand|crews?|telling lines?|made fit|in turns|beside|whoever"
    r"|what came of|what failed|could not be had|(?<!instead )of (?:its|their) own(?= and| by|[.,;:?)]|$))\b",
    re.IGNORECASE,
)
"""Words with a standard term, or metaphors; a word with ordinary meanings, such as `look` or `room`, is not listed."""

QUOTED = {
    "CONTRIBUTING.md": "it lists the avoided words",
}
"""Files that quote avoided words, and why."""

CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def texts(name: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file with their lines: pages without blocks of code, docstrings and strings of Python."""
    source = (REPOSITORY / name).read_text("utf-8")
    if not AVOIDED.search(source):
        return
    if not name.endswith(".py"):
        prose = CODE_BLOCK.sub(lambda block: "\n" * block.group().count("\n"), source)
        yield from enumerate(prose.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("kinds", [("*.md",), ("src/*.py", "benchmarks/*.py"), ("*.html", "*.js", "*.jinja")])
def test_texts_use_standard_terms(kinds: tuple[str, ...]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *kinds], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not (REPOSITORY / name).is_symlink()]
    found = [
        f"{name}:{line}: {word.group()}"
        for name in names
        if name not in QUOTED and (REPOSITORY / name).exists()
        for line, text in texts(name)
        for word in AVOIDED.finditer(text)
    ]
    assert names
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("measured in turns", ["in turns"]),
        ("a launcher of its own.", ["of its own"]),
        ("the directory of its own files", []),
        ("another file instead of its own.", []),
    ],
)
def test_an_avoided_word_is_found_and_an_ordinary_one_is_not(text: str, found: list[str]) -> None:
    assert AVOIDED.findall(text) == found
