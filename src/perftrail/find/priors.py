"""What is believed of each revision before anything is measured, from what it touches and what it says.

What a project's own words say of a revision: a message that speaks of speed or memory is a weak hint.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.source import matching

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from perftrail.model.study import Prior
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


UNSUSPECTED = 0.1
"""The weight of a revision that touches none of the suspected paths, beside one that does."""

UNTOUCHED = 0.25
"""The weight of a revision that touches nothing at all, beside one that touches one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beforehand:
    """A weight for each revision, `None` when all are alike, and what it rests on in words."""

    weights: tuple[float, ...] | None
    said: tuple[str, ...]


def weigh(
    touched: Sequence[Sequence[str]], *, priors: Collection[Prior], suspect: Sequence[str]
) -> Beforehand:
    """Weigh revisions by the paths that each touches; where no paths are known, or all touch alike, none does.

    Suspected paths count one to ten. Of sizes counts the logarithm: ``1 + log2(files)``, at most 64 files, so
    that the largest change is seven times as likely as one of a single file.
    """
    weights = [1.0] * len(touched)
    said: list[str] = []
    if not any(touched):
        return Beforehand(weights=None, said=())
    if "suspect" in priors and suspect:
        pattern = matching(suspect)
        hits = [any(pattern.fullmatch(path) for path in paths) for paths in touched]
        weights = [weight if hit else weight * UNSUSPECTED for weight, hit in zip(weights, hits, strict=True)]
        said.append(
            f"{sum(hits[1:])} of {len(touched) - 1} revisions touch {', '.join(suspect)} "
            "and count ten times as much as the others"
        )
    if "size" in priors and len({_size(len(paths)) for paths in touched[1:]}) > 1:
        weights = [weight * _size(len(paths)) for weight, paths in zip(weights, touched, strict=True)]
        said.append("revisions that touch more files count more, at most seven times as much")
    return Beforehand(weights=tuple(weights) if said else None, said=tuple(said))


def with_notes(known: Beforehand, revisions: Sequence[Revision]) -> Beforehand:
    """Add what the revisions' own messages say; where none speaks of speed or memory, or all do, nothing."""
    speaking = noted(revisions)
    speaking.pop(0, None)
    others = len(revisions) - 1
    if not 0 < len(speaking) < others:
        return known
    weights = known.weights or (1.0,) * len(revisions)
    return Beforehand(
        weights=tuple(
            weight * NOTED if position in speaking else weight for position, weight in enumerate(weights)
        ),
        said=(
            *known.said,
            f"the messages of {len(speaking)} of {others} revisions speak of speed or memory, "
            "and these count three times as much as the others",
        ),
    )


def with_measured(known: Beforehand, warm: Sequence[float] | None) -> Beforehand:
    """Add what earlier measurements show to what is known beforehand.

    The search will read some of the same samples again, so their weights count by their square root only.
    """
    if warm is None:
        return known
    weights = known.weights or (1.0,) * len(warm)
    return Beforehand(
        weights=tuple(weight * math.sqrt(each) for weight, each in zip(weights, warm, strict=True)),
        said=(*known.said, "earlier measurements show changes, and revisions near them count more"),
    )


def _size(files: int) -> float:
    return UNTOUCHED if files == 0 else 1.0 + math.log2(min(files, 64))
