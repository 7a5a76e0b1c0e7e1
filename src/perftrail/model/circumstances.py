"""What an invocation's seed decides: the path of its build, the size of its environment, interpreters' hash seeds.

Where a build lies and how large the environment is can change a program's speed though its code is the same
(Mytkowicz et al., ASPLOS 2009). Drawn again for each block, they become noise that repetition averages out.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from perftrail.model.build import content_key

if TYPE_CHECKING:
    from collections.abc import Mapping

PADDING = "PERFTRAIL_PADDING"
"""A variable that only takes room: what lies above a program's stack decides how its data are aligned."""

PADDING_BYTES = 4096
"""The size of an environment varies by up to a page: the stack's place within its page decides alignment."""

PATH_LENGTHS = range(20, 201)
"""How many characters of a build's path are drawn: enough to cross every size class of an allocator up to 256."""

LONGEST_NAME = 100
"""Longer paths consist of two names: some encrypted file systems refuse names above 143 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What surrounds an invocation: `path` names a link to the build, `environment` is added to the study's."""

    path: tuple[str, ...]
    environment: Mapping[str, str]


def circumstances(seed: int, *, padding_bytes: int = PADDING_BYTES) -> Circumstances:
    """Return what a seed decides; the same seed decides the same for every build.

    >>> circumstances(7) == circumstances(7) != circumstances(8)
    True
    """
    return Circumstances(path=_path(seed), environment=MappingProxyType(_environment(seed, padding_bytes)))


def seed_of(*parts: object) -> int:
    """Return a seed above 0 that is the same for the same parts; it fits into 53 bits, as numbers in JSON do."""
    return 1 + _number(2**52, "seed", *parts)


def _environment(seed: int, padding_bytes: int) -> dict[str, str]:
    """Return the variables; Python reads a decimal number below 2**32, Perl 16 hexadecimal digits; 0 means off."""
    size = _number(padding_bytes, "padding", seed) if padding_bytes else 0
    return {
        PADDING: "x" * size,
        "PYTHONHASHSEED": str(1 + _number(2**32 - 1, "python", seed)),
        "PERL_HASH_SEED": f"{1 + _number(2**52, 'perl', seed):016x}",
    }


def _path(seed: int) -> tuple[str, ...]:
    length = PATH_LENGTHS[_number(len(PATH_LENGTHS), "path length", seed)]
    letters = "".join(content_key("path", seed, part) for part in range(-(-length // 32)))[:length]
    if length <= LONGEST_NAME:
        return (letters,)
    return letters[: length // 2], letters[length // 2 + 1 :]


def _number(below: int, *parts: object) -> int:
    return int(content_key(*parts)[:15], 16) % below
