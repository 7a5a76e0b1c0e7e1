"""The positions of the functions and texts of a C file, for edits of its layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_NOT_CODE = re.compile(
    r"/\*.*?\*/|//(?:\\\n|[^\n])*"  # comments
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"  # texts and characters
    r"|^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*",  # lines of the preprocessor, with those that continue them
    re.DOTALL | re.MULTILINE,
)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|el|endif)")
_ATTRIBUTE = re.compile(r"__attribute__ ?\(\(.*?\)\)")
_NAME = re.compile(r"(\w+)\)? ?\((?!\w+\) ?\()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function's definition: its name, its prototype without `;`, and the offsets of its text.

    `body` is the offset after its opening brace. `block` names the preprocessor conditions around it: definitions may
    be exchanged within one block.
    """

    name: str
    prototype: str
    start: int
    body: int
    end: int
    block: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A C file: its functions in order, and the offsets of its text constants, quotes included."""

    functions: tuple[Function, ...]
    texts: tuple[tuple[int, int], ...]


def read_source(text: str) -> Source:
    """Find the functions and text constants of a C file; unclear ones are excluded."""
    code, texts, directives = list(text), [], []
    for found in _NOT_CODE.finditer(text):
        start, end = found.span()
        if found.group().lstrip().startswith("#"):
            directives.append(found)
        elif found.group().startswith('"'):
            texts.append((start, end))
        code[start:end] = [letter if letter == "\n" else " " for letter in found.group()]
    return Source(functions=tuple(_functions(text, "".join(code), _blocks(directives))), texts=tuple(texts))


def _blocks(directives: list[re.Match[str]]) -> list[tuple[int, tuple[int, ...]]]:
    """Return the conditions that hold from each offset on, as the offsets of their `#if` and `#else` lines."""
    blocks: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for found in directives:
        keyword = _CONDITION.match(found.group())
        if keyword is None:
            continue
        block = blocks[-1][1]
        if keyword[1] != "if":
            block = block[:-1]
        if keyword[1] != "endif":
            block = (*block, found.start())
        blocks.append((found.end(), block))
    return blocks


def _functions(text: str, code: str, blocks: list[tuple[int, tuple[int, ...]]]) -> list[Function]:
    found, depth, began, opened = [], 0, 0, 0
    for brace in re.finditer(r"[{};]", code):
        at = brace.start()
        if brace.group() == "{":
            depth += 1
            opened = at if depth == 1 else opened
        elif brace.group() == "}":
            depth -= 1
            if depth == 0 and (function := _function(text, code, blocks, (began, opened, at + 1))):
                found.append(function)
        if depth == 0:
            began = at + 1
    # braces do not balance if conditions cut through them: then no function is certain
    return found if depth == 0 else []


def _function(
    text: str, code: str, blocks: list[tuple[int, tuple[int, ...]]], offsets: tuple[int, int, int]
) -> Function | None:
    began, opened, end = offsets
    head = code[began:opened]
    start = began + len(head) - len(head.lstrip())
    prototype = " ".join(head.split())
    name = _NAME.search(_ATTRIBUTE.sub("", prototype))
    plain = prototype.endswith(")") and "=" not in prototype and not prototype.startswith("typedef")
    if name is None or not plain or '"' in text[start:opened] or "#" in text[start:opened]:
        return None
    block = _block(blocks, start)
    if block != _block(blocks, end) or code[start - 1 : start].strip():
        return None
    return Function(name=name[1], prototype=prototype, start=start, body=opened + 1, end=end, block=block)


def _block(blocks: list[tuple[int, tuple[int, ...]]], at: int) -> tuple[int, ...]:
    return next((block for (_, block), (after, _) in pairwise(blocks) if at < after), blocks[-1][1])
