"""Prior weights of revisions, from the paths that they touch and from their messages.

A message that mentions speed or memory is weak evidence.
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


NOTED_WEIGHT = 3.0
"""The weight of a revision whose message mentions speed, relative to one whose message does not.

A misleading message costs log2 of it, 1.6 bits. That is at most two samples, because a clear one gives about
one bit.
"""

MOST_CHARACTERS = 500
"""Number of characters of a message that are read, because messages have no length limit."""

_PERFORMANCE_WORD = re.compile(
    r"\b(?:perf(?:ormance)?|fast(?:er|est)?|quick(?:er|ly)?|slow(?:er|ly|down|s)?|speed(?:s|ed|ing)?(?:[ -]?ups?)?"
    r"|optimi[sz]\w*|cach(?:e|es|ed|ing)|memory|footprint|leak(?:s|ed|ing|age)?|(?:re)?alloc(?:ate|at\w+|s)?"
    r"|regress\w*|latency|throughput|overhead|efficien\w*|bottleneck\w*|hot[ -]?(?:path|spot|loop)s?"
    r"|scal(?:es|able|ability|ing)|contention|lock[ -]?(?:free|less)|vectori[sz]\w*|simd|prefetch\w*|quadratic)\b",
    re.IGNORECASE,
)


def performance_word(message: str) -> str:
    """Return the first word of a message that mentions speed or memory, as written; empty if there is none.

    >>> performance_word("Cache the parsed headers"), performance_word("Fix a typo"), performance_word("Make breakfast")
    ('Cache', '', '')
    """
    found = _PERFORMANCE_WORD.search(message[:MOST_CHARACTERS])
    return found[0] if found else ""


def performance_words(revisions: Sequence[Revision]) -> dict[int, str]:
    """Return the positions of the revisions whose messages mention speed or memory, each with the word."""
    words = {position: performance_word(revision.summary) for position, revision in enumerate(revisions)}
    return {position: word for position, word in words.items() if word}


UNSUSPECTED = 0.1
"""The weight of a revision that touches no suspected path, relative to one that does."""

UNTOUCHED = 0.25
"""The weight of a revision that touches no file, relative to one that touches one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPriors:
    """A weight for each revision, `None` for a uniform prior, and its reasons in words."""

    weights: tuple[float, ...] | None
    reasons: tuple[str, ...]


def path_priors(
    touched: Sequence[Sequence[str]], *, priors: Collection[Prior], suspect: Sequence[str]
) -> RevisionPriors:
    """Return prior weights from the paths that each revision touches; uniform without paths or differences.

    A revision that touches no suspected path has a tenth of the weight. Sizes count by ``1 + log2(files)``,
    for at most 64 files: the largest change has seven times the weight of a change of one file.
    """
    weights = [1.0] * len(touched)
    reasons: list[str] = []
    if not any(touched):
        return RevisionPriors(weights=None, reasons=())
    if "suspect" in priors and suspect:
        pattern = matching(suspect)
        hits = [any(pattern.fullmatch(path) for path in paths) for paths in touched]
        weights = [weight if hit else weight * UNSUSPECTED for weight, hit in zip(weights, hits, strict=True)]
        reasons.append(
            f"{sum(hits[1:])} of {len(touched) - 1} revisions touch {', '.join(suspect)} "
            "and have ten times the prior weight of the others"
        )
    if "size" in priors and len({_size(len(paths)) for paths in touched[1:]}) > 1:
        weights = [weight * _size(len(paths)) for weight, paths in zip(weights, touched, strict=True)]
        reasons.append("revisions that touch more files have a larger prior weight, at most seven times")
    return RevisionPriors(weights=tuple(weights) if reasons else None, reasons=tuple(reasons))


def with_notes(known: RevisionPriors, revisions: Sequence[Revision]) -> RevisionPriors:
    """Add weights from the revisions' messages; nothing if none mentions speed or memory, or if all do."""
    mentioning = performance_words(revisions)
    mentioning.pop(0, None)
    others = len(revisions) - 1
    if not 0 < len(mentioning) < others:
        return known
    weights = known.weights or (1.0,) * len(revisions)
    return RevisionPriors(
        weights=tuple(
            weight * NOTED_WEIGHT if position in mentioning else weight
            for position, weight in enumerate(weights)
        ),
        reasons=(
            *known.reasons,
            f"the messages of {len(mentioning)} of {others} revisions mention speed or memory; "
            "these revisions have three times the prior weight of the others",
        ),
    )


def with_measured(known: RevisionPriors, from_samples: Sequence[float] | None) -> RevisionPriors:
    """Add weights from earlier samples to a prior.

    The search will read some of the same samples again, so these weights count by their square root only.
    """
    if from_samples is None:
        return known
    weights = known.weights or (1.0,) * len(from_samples)
    return RevisionPriors(
        weights=tuple(weight * math.sqrt(each) for weight, each in zip(weights, from_samples, strict=True)),
        reasons=(
            *known.reasons,
            "earlier samples show changes, and revisions near them have a larger prior weight",
        ),
    )


def _size(files: int) -> float:
    return UNTOUCHED if files == 0 else 1.0 + math.log2(min(files, 64))
