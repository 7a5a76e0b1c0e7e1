"""Prior weights of revisions: from the paths and functions that they touch, their messages, and earlier samples.

A message that mentions speed or memory is weak evidence. A profile of both ends is strong evidence: the culprit
usually touches a function whose cost, or whose calls' cost, moved. The weights of a profile come from 30 known culprits
of 8 projects.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.source import matching

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from perftrail.model.patch import TouchedFile
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

MOVED_SHARE, RUNS_SHARE, FILES_SHARE, ANY_SHARE = 0.65, 0.2, 0.1, 0.05
"""Shares of a profile's prior: equal parts for each function whose cost moved, divided among the revisions that touch
it; for revisions that touch other functions that ran; for those that touch only the rest of these functions' files,
headers or files of the build; and for all revisions. A share without revisions goes to the others."""

_HEADERS_AND_BUILD = re.compile(
    r"(?:.*\.(?:h|hh|hpp|hxx|inc|def|mk|cmake|ac|am|in|bazel|bzl|gradle|kts|toml|cfg)|(?:GNU)?[Mm]akefile\S*"
    r"|CMakeLists\.txt|meson\.build|configure|SConstruct|BUILD|Cargo\.lock|go\.(?:mod|sum)|build\.rs|setup\.py|pom\.xml)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPriors:
    """A weight for each revision, `None` for a uniform prior, and its reasons in words."""

    weights: tuple[float, ...] | None
    reasons: tuple[str, ...]


def path_priors(touched: Sequence[Sequence[str]], *, suspect: Sequence[str]) -> RevisionPriors:
    """Return prior weights from the paths that each revision touches; uniform without paths.

    A revision that touches no suspected path has a tenth of the weight.
    """
    if not any(touched):
        return RevisionPriors(weights=None, reasons=())
    pattern = matching(suspect)
    hits = [any(pattern.fullmatch(path) for path in paths) for paths in touched]
    reason = (
        f"{sum(hits[1:])} of {len(touched) - 1} revisions touch {', '.join(suspect)} "
        "and have ten times the prior weight of the others"
    )
    return RevisionPriors(weights=tuple(1.0 if hit else UNSUSPECTED for hit in hits), reasons=(reason,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledFunctions:
    """Functions of a profile of both ends, as (name, base name of the file): those whose cost moved, and the others."""

    moved: tuple[tuple[str, str], ...]
    runs: tuple[tuple[str, str], ...]


def plain_name(name: str) -> str:
    """Return the last part of a function's name, without parameters and type arguments.

    >>> [plain_name(each) for each in ("tree::Node<int>::insert(int, char)", "main.T.Run", "<a::B as c::D>::go", "f")]
    ['insert', 'Run', 'go', 'f']
    """
    depth = 0
    kept: list[str] = []
    for character in name:
        depth += character == "<"
        if character == "(" and not depth and kept:
            break
        if not depth:
            kept.append(character)
        depth -= character == ">" and depth > 0
    words = re.findall(r"[^\W\d]\w*", "".join(kept))
    return words[-1] if words else name


def profile_priors(touched: Sequence[Sequence[TouchedFile]], functions: ProfiledFunctions) -> RevisionPriors:
    """Return prior weights from the functions whose cost moved between the ends; uniform if none moved.

    `touched` are the files of each revision; the first revision is the good end and cannot be the culprit.
    """
    count = len(touched) - 1
    if not functions.moved or count < 1:
        return RevisionPriors(weights=None, reasons=())
    files = {file for _, file in (*functions.moved, *functions.runs) if file}
    moved = {(plain_name(name), file) for name, file in functions.moved}
    runs = {(plain_name(name), file) for name, file in functions.runs} - moved
    touching: dict[tuple[str, str], list[int]] = {}
    others: set[int] = set()
    rest: set[int] = set()
    for position, of_revision in enumerate(touched[1:], start=1):
        for each in of_revision:
            file = each.path.rpartition("/")[2]
            hits = {key for key in moved if key[0] in each.names and key[1] in {"", file}}
            for key in hits:
                touching.setdefault(key, []).append(position)
            if any(name in each.names and of_file in {"", file} for name, of_file in runs):
                others.add(position)
            if file in files or _HEADERS_AND_BUILD.fullmatch(file):
                rest.add(position)
    suspects = {position for positions in touching.values() for position in positions}
    if not suspects:
        return RevisionPriors(weights=None, reasons=())
    weights = [0.0] * len(touched)

    def give(share: float, positions: Collection[int]) -> None:
        for position in positions:
            weights[position] += share / len(positions)

    for positions in touching.values():
        give(MOVED_SHARE / len(touching), sorted(set(positions)))
    give(RUNS_SHARE, others - suspects)
    give(FILES_SHARE, rest - others - suspects)
    give(ANY_SHARE, range(1, len(touched)))
    mean = sum(weights) / count
    # Weights are relative to an even prior; the first revision's is never used.
    relative = (1.0, *(weight / mean for weight in weights[1:]))
    share = 100.0 * sum(relative[each] for each in suspects) / count
    reason = (
        f"a profile of both ends: {len(suspects)} of {count} revisions touch a function whose cost, or the cost of its "
        f"calls, moved; these revisions have {share:.0f} % of the prior"
    )
    return RevisionPriors(weights=relative, reasons=(reason,))


def combined(known: RevisionPriors, more: RevisionPriors) -> RevisionPriors:
    """Return a prior with the weights of both multiplied, and the reasons of both."""
    if known.weights is None or more.weights is None:
        return more if known.weights is None else known
    return RevisionPriors(
        weights=tuple(one * other for one, other in zip(known.weights, more.weights, strict=True)),
        reasons=(*known.reasons, *more.reasons),
    )


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
