"""Claims: sentences about a study's figures, each with what would bear it out."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from perftrail.model.key import AXIS, Key
from perftrail.model.parameters import Value

_BAND = re.compile(r"\s*(-?\d+(?:\.\d+)?)?\s*\.\.\s*(-?\d+(?:\.\d+)?)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence that is to be judged: by a ratio, an exponent, how far something goes, or not at all.

    One of `ratio`, `exponent`, `reaches` and `cannot` says how; the first three are bands, as `read_band` reads
    them. `at` are the points that count, all where it says nothing.
    """

    says: Annotated[str, Key("The sentence, as its author has it.", stand_in="-")]
    metric: Annotated[
        str, Key("The metric it is about: NAME, or BENCHMARK.NAME where several benchmarks have it.")
    ] = ""
    variant: Annotated[str, Key("The variant it is about.")] = ""
    against: Annotated[str, Key("With ratio: the variant that it is held against.")] = ""
    at: Annotated[
        Mapping[str, tuple[Value, ...]],
        Key("The points that count: for each parameter, the values; without it, all.", names=AXIS),
    ] = field(default_factory=dict)
    along: Annotated[str, Key("With exponent or reaches: the parameter along which it is looked at.")] = ""
    ratio: Annotated[
        str, Key('It is borne out when variant / against lies in this band: "1.5..3", "1.2.." or "..1".')
    ] = ""
    exponent: Annotated[
        str, Key('It is borne out when the metric grows with a power in this band: "1.7..2.3".')
    ] = ""
    reaches: Annotated[
        str,
        Key('It is borne out when the largest value of along that can be had lies in this band: "..300".'),
    ] = ""
    cannot: Annotated[str, Key("Why it cannot be judged here.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """From one number to another, both included; an open end is infinite."""

    low: float
    high: float

    def holds(self, low: float, high: float) -> bool:
        """Whether a whole interval lies in it."""
        return self.low <= low and high <= self.high

    def misses(self, low: float, high: float) -> bool:
        """Whether an interval has nothing in common with it."""
        return high < self.low or low > self.high


def read_band(text: str) -> Band:
    """Read ``LOW..HIGH``, either of which may be left out. Raises `ValueError`, which says what is wrong.

    >>> read_band("1.5..3"), read_band("..0.9")
    (Band(low=1.5, high=3.0), Band(low=-inf, high=0.9))
    """
    found = _BAND.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        raise ValueError('is no band; write "LOW..HIGH", "LOW.." or "..HIGH"')
    band = Band(
        low=float(found[1]) if found[1] else -math.inf, high=float(found[2]) if found[2] else math.inf
    )
    if band.low > band.high:
        raise ValueError("has its ends the wrong way round")
    return band
