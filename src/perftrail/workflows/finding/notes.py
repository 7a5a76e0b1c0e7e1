"""What a project's own words say of a revision: a message that speaks of speed or memory is a weak hint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision

NOTED = 3.0
"""The weight of a revision whose message speaks of speed, beside one whose message does not.

A message that misleads costs log2 of it, 1.6 bits: two readings at most, as one that is clear tells about one.
"""

LONGEST = 500
"""So many letters of a message are looked at; it is as long as whoever wrote it pleased."""

_TELLING = re.compile(
    r"\b(?:perf(?:ormance)?|fast(?:er|est)?|quick(?:er|ly)?|slow(?:er|ly|down|s)?|speed(?:s|ed|ing)?(?:[ -]?ups?)?"
    r"|optimi[sz]\w*|cach(?:e|es|ed|ing)|memory|footprint|leak(?:s|ed|ing|age)?|(?:re)?alloc(?:ate|at\w+|s)?"
    r"|regress\w*|latency|throughput|overhead|efficien\w*|bottleneck\w*|hot[ -]?(?:path|spot|loop)s?"
    r"|scal(?:es|able|ability|ing)|contention|lock[ -]?(?:free|less)|vectori[sz]\w*|simd|prefetch\w*|quadratic)\b",
    re.IGNORECASE,
)


def speaks_of(message: str) -> str:
    """Give the first word of a message that speaks of speed or memory, as it stands there; empty where none does.

    >>> speaks_of("Cache the parsed headers"), speaks_of("Fix a typo"), speaks_of("Make breakfast")
    ('Cache', '', '')
    """
    found = _TELLING.search(message[:LONGEST])
    return found[0] if found else ""


def noted(revisions: Sequence[Revision]) -> dict[int, str]:
    """Give the positions of the revisions whose messages speak of speed or memory, each with the word."""
    words = {position: speaks_of(revision.summary) for position, revision in enumerate(revisions)}
    return {position: word for position, word in words.items() if word}
