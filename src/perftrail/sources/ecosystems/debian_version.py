"""Versions as Debian packages have them, in the order that dpkg gives them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perftrail.errors import SourceError
from perftrail.model.wording import quoted

_VERSION = re.compile(
    r"(?:(?P<epoch>\d{1,10}):)?(?P<upstream>\d[A-Za-z0-9.+~:-]*?)(?:-(?P<revision>[A-Za-z0-9.+~]+))?",
    re.ASCII,
)
_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_BEFORE = re.compile(r"~(?!dfsg|ds|repack|deb|bpo|ubuntu)")

_Part = tuple[tuple[int, ...], int]
_END: _Part = ((0,), 0)
"""What stands at the end of a version: after ``~``, before anything else."""


@dataclass(frozen=True, slots=True, order=True)
class DebianVersion:
    """A version in parts that compare as dpkg compares them: ``~`` is before the end, letters before others.

    >>> DebianVersion.read("1.0~rc1-1") < DebianVersion.read("1.0-1") < DebianVersion.read("1.0-1+deb12u1")
    True
    >>> DebianVersion.read("2.0") < DebianVersion.read("1:1.0")
    True
    """

    epoch: int
    upstream: tuple[_Part, ...]
    revision: tuple[_Part, ...]

    @classmethod
    def read(cls, text: str) -> DebianVersion:
        """Read a version. Raises `SourceError` for what is none."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise SourceError(f"range: {quoted(text)} is no version of a Debian package such as 1.4.2-1")
        return cls(int(found["epoch"] or 0), _parts(found["upstream"]), _parts(found["revision"] or ""))


def is_debian_version(text: str) -> bool:
    """Whether a text is a version; nothing else is handed to a client.

    >>> [is_debian_version(text) for text in ("1:2.0~rc1-3+b1", "unstable", "1.0 -o x")]
    [True, False, False]
    """
    return _VERSION.fullmatch(text) is not None


def is_prerelease(text: str) -> bool:
    """Whether the upstream part says so: ``~rc1``; not what Debian itself adds, ``~dfsg`` or ``~bpo``.

    >>> [is_prerelease(text) for text in ("2.0~rc1-1", "2.0~dfsg-1", "2.0-1~bpo12+1")]
    [True, False, False]
    """
    found = _VERSION.fullmatch(text)
    return found is not None and _BEFORE.search(found["upstream"]) is not None


def _parts(text: str) -> tuple[_Part, ...]:
    found = [
        ((*map(_place, letters), 0), int(digits or 0))
        for letters, digits in _PARTS.findall(text)
        if letters or digits
    ]
    return (*(found or [_END]), _END)


def _place(letter: str) -> int:
    """The place of a character that is no digit among the others."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 256
