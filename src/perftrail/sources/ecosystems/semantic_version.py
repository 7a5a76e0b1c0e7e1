"""Versions as Rust crates and npm packages have them: Semantic Versioning 2.0."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perftrail.errors import SourceError
from perftrail.model.wording import quoted

_VERSION = re.compile(
    r"[v=]?(?P<major>\d{1,20})(?:\.(?P<minor>\d{1,20})(?:\.(?P<patch>\d{1,20}))?)?"
    r"(?:-(?P<before>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<build>[0-9A-Za-z.-]+))?",
    re.ASCII,
)
_WHOLE = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SemanticVersion:
    """A version; what is before a release is older than it, numbers in it are older than words.

    The build metadata, of which the standard takes no note, only tells apart what would be equal.

    >>> SemanticVersion.read("1.9.0") < SemanticVersion.read("1.10.0-rc.1") < SemanticVersion.read("v1.10")
    True
    """

    numbers: tuple[int, int, int]
    before: tuple[tuple[int, int, str], ...]
    build: str

    @classmethod
    def read(cls, text: str) -> SemanticVersion:
        """Read a version; what is left out at its end is zero. Raises `SourceError`."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise SourceError(f"range: {quoted(text)} is no version number such as 1.4.2 or 2.0.0-rc.1")
        parts = (found["before"] or "").split(".") if found["before"] else []
        named = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return cls(
            (int(found["major"]), int(found["minor"] or 0), int(found["patch"] or 0)),
            # what nothing stands before is later than all of which something does
            named or _NOTHING,
            found["build"] or "",
        )

    @property
    def is_prerelease(self) -> bool:
        """Whether this comes before a release."""
        return self.before != _NOTHING


_NOTHING = ((2, 0, ""),)


def is_semantic_version(text: str) -> bool:
    """Whether a text is a whole version, as a registry writes it; nothing else is handed to a client.

    >>> [is_semantic_version(text) for text in ("1.0.0-rc.1+x", "1.0", "latest", "1.0.0 --registry=x")]
    [True, False, False, False]
    """
    return _WHOLE.fullmatch(text) is not None
