"""Wording of messages: quotes, lists of choices, and suggestions."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_QUOTE = 80
MOST_LISTED = 12


LONGEST = 100


def escaped(text: str, *, longest: int | None = LONGEST, kept: str = "") -> str:
    r"""Return hostile text as printable text: control and direction characters escaped, except `kept`; length cut.

    >>> print(escaped("a" + chr(27) + "[31mb"), escaped("right" + chr(0x202e) + "left"), escaped("abcdef", longest=4))
    a\x1b[31mb right\u202eleft abc…
    """
    safe = text if text.isprintable() else "".join(_escaped(letter, kept) for letter in text)
    return safe if longest is None or len(safe) <= longest else f"{safe[: longest - 1]}…"


def _escaped(letter: str, kept: str) -> str:
    return letter if letter.isprintable() or letter in kept else ascii(letter)[1:-1]


def quoted(text: str) -> str:
    r"""Quote text for a message: escape control and direction characters, shorten long text in the middle.

    >>> print(quoted("a\tb"))
    "a\tb"
    """
    if len(text) > LONGEST_QUOTE:
        half = LONGEST_QUOTE // 2
        text = f"{text[:half]} … {text[-half:]}"
    if all(letter.isprintable() for letter in text):
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text)


def listed(choices: Iterable[str], last: str = "or") -> str:
    """List choices for a message, up to `MOST_LISTED`.

    >>> listed(["git", "fossil", "release"])
    'git, fossil or release'
    """
    names = list(dict.fromkeys(choices))
    if len(names) > MOST_LISTED:
        return ", ".join(names[:MOST_LISTED]) + f" {last} {len(names) - MOST_LISTED} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + f" {last} {names[-1]}"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to `word`, `None` if none is.

    >>> nearest("colour", ["color", "size"])
    'color'
    """
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold()[:200], by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the near miss, or the choices.

    >>> suggestion("gti", ["git", "fossil"])
    '; did you mean "git"?'
    >>> suggestion("cvs", ["git", "fossil"])
    '; choose git or fossil'
    """
    names = list(choices)
    near = nearest(word, names)
    if near is not None:
        return f"; did you mean {quoted(near)}?"
    return f"; choose {listed(names)}" if names else ""
