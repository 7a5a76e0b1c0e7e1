"""Placeholders such as ``{threads}`` in commands and shell lines of a study.

A brace is literal unless it encloses only a name; ``{{name}}`` is then a literal ``{name}``. ``${name}`` belongs to the
shell, including nested braces. A ``}}`` without a ``{{`` stays unchanged, so that most shell, awk and JSON texts need
no doubled braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Quote = Callable[[str], str]

COMMON_PLACEHOLDERS = ("build", "study", "cpus", "revision")
"""Placeholders of every line."""

DATE = "date"
"""Date of the revision in UTC, in ISO 8601: only in build recipes."""

OUT = "out"
"""Output directory of a benchmark build: in the lines of that build and in the command."""

LAYOUT = "layout"
"""Seed of a link order, from 1: only in lines that relink."""

DATA = "data"
"""Directory of a service's data, or of a benchmark's: kept over the invocations of a build."""

PORT = "port"
"""Free TCP port that perftrail chose for a service."""

_SOURCE = "source."

_TOKEN = re.compile(r"\{((?:source\.|data\.|port\.)?[A-Za-z_][A-Za-z0-9_-]*)\}|(\$\{)|(\{\{)|(\}\})|(\})")


@dataclass(frozen=True, slots=True)
class _Placeholder:
    name: str


@dataclass(frozen=True, slots=True)
class _Text:
    written: str
    meant: str


def names(text: str) -> tuple[str, ...]:
    """Return the placeholders of a text, each once, in order of appearance.

    >>> names("{out}/mt -t {threads} ${HOME} {{literal}} { print $1 }")
    ('out', 'threads')
    """
    return tuple(dict.fromkeys(piece.name for piece in _pieces(text) if isinstance(piece, _Placeholder)))


def unclosed(text: str, known: Iterable[str]) -> str | None:
    """Return a known placeholder whose brace is not closed, as it is written; else `None`.

    Braces of the shell and of awk may begin with its name, too: they are closed later.

    >>> unclosed("{build/prog", ["build"]), unclosed("run -t {n", ["n"])
    ('{build', '{n')
    >>> unclosed("{build}/prog ${build-x} {n,m} {n = 1}", ["build", "n"])
    """
    either = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    found = re.search(rf"(?<![{{$])\{{({either})(?![A-Za-z0-9_-])(?=/|[^}}]*$)", text)
    return found.group() if found else None


def source_placeholder(name: str) -> str:
    """Return the placeholder, without braces, of another source's tree.

    >>> source_placeholder("app")
    'source.app'
    """
    return f"{_SOURCE}{name}"


def sources_named(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the other sources whose trees texts mention, each once, in order of appearance.

    >>> sources_named(["make -C {build} APP={source.app}"])
    ('app',)
    """
    found = (name for text in texts for name in names(text) if name.startswith(_SOURCE))
    return tuple(dict.fromkeys(name.removeprefix(_SOURCE) for name in found))


def fill(text: str, values: Mapping[str, str], quote: Quote | None = None) -> str:
    """Replace placeholders by values, and doubled braces by single ones.

    `quote` is applied to each value: use `shlex.quote` for shell lines. Placeholders without a value stay.
    Placeholders inside values are not replaced.

    >>> fill("{out}/mt -t {threads} {{x}}", {"threads": "4"})
    '{out}/mt -t 4 {x}'
    """
    parts = []
    for piece in _pieces(text):
        if isinstance(piece, _Text):
            parts.append(piece.meant)
        elif piece.name in values:
            parts.append(quote(values[piece.name]) if quote else values[piece.name])
        else:
            parts.append(f"{{{piece.name}}}")
    return "".join(parts)


def fill_some(text: str, values: Mapping[str, str], quote: Quote | None = None) -> str:
    """Replace some placeholders, and leave the others for a later `fill`.

    Doubled braces stay doubled, and placeholders inside values become literal text.

    >>> fill_some("{out}/{name} {{x}}", {"name": "{cpus}"})
    '{out}/{{cpus}} {{x}}'
    """
    parts = []
    for piece in _pieces(text):
        if isinstance(piece, _Text):
            parts.append(piece.written)
        elif piece.name in values:
            value = quote(values[piece.name]) if quote else values[piece.name]
            parts.append(literal(value))
        else:
            parts.append(f"{{{piece.name}}}")
    return "".join(parts)


def insert_texts(text: str, texts: Mapping[str, str]) -> str:
    """Replace placeholders by texts that may contain placeholders themselves, for a later `fill`.

    >>> insert_texts("{program} {size} {{x}}", {"program": "python3 {build}/run.py"})
    'python3 {build}/run.py {size} {{x}}'
    """
    parts = []
    for piece in _pieces(text):
        if isinstance(piece, _Text):
            parts.append(piece.written)
        else:
            parts.append(texts.get(piece.name, f"{{{piece.name}}}"))
    return "".join(parts)


def split_command(command: str) -> tuple[str, ...]:
    """Split a command into words like a shell, without expansion.

    Values are filled in later, word by word, so that a value cannot become two words. Raises `ValueError` for wrong
    quotes and for an empty command.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {str(error).lower()}") from error
    if not words or not words[0]:
        raise ValueError("names no program to run")
    return words


def _pieces(text: str) -> Iterator[_Placeholder | _Text]:
    at = opened = nested = 0
    for found in _TOKEN.finditer(text):
        yield _Text(text[at : found.start()], text[at : found.start()])
        at = found.end()
        brace = found.group()
        name = found.group(1)
        if name is not None:
            yield _Placeholder(name)
        elif brace == "${":
            nested += 1
            yield _Text(brace, brace)
        elif brace == "{{" and not nested:
            opened += 1
            yield _Text(brace, "{")
        elif brace == "}}" and not nested and opened:
            opened -= 1
            yield _Text(brace, "}")
        else:
            nested = max(0, nested - brace.count("}"))
            yield _Text(brace, brace)
    yield _Text(text[at:], text[at:])


def literal(value: str) -> str:
    """Return a text in which no placeholder is replaced by a later `fill`.

    >>> literal("{x} {y=1}")
    '{{x}} {y=1}'
    """
    return "".join(
        f"{{{{{piece.name}}}}}" if isinstance(piece, _Placeholder) else piece.written
        for piece in _pieces(value)
    )
