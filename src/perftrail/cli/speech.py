"""Text from elsewhere, made fit for a terminal: what others wrote never becomes a control sequence."""

from __future__ import annotations

LONGEST = 72


def first_line(text: str, *, longest: int = LONGEST) -> str:
    """The first line of a hostile text that has several, fit for a terminal."""
    lines = text.strip().splitlines()
    return plain(lines[0], longest=longest) if lines else ""


def plain(text: str, *, longest: int = LONGEST) -> str:
    r"""Write hostile text so that it stays text: control and direction characters escaped, length cut.

    >>> plain("a" + chr(27) + "[31mb")
    'a\\x1b[31mb'
    """
    safe = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"
