"""TOML strings for arbitrary text."""

from __future__ import annotations

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def toml(text: str) -> str:
    r"""Return any text as a TOML string; characters that disturb a terminal or an editor are escaped.

    >>> print(toml("a 'b' " + chr(27) + chr(0x202e)), toml('say "a"'))
    "a 'b' \u001b\u202e" 'say "a"'
    """
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
