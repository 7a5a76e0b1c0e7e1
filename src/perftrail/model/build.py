"""What making a subject takes and what came of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Stage = Literal["checkout", "build", "link", "start", "crash", "timeout", "memory", "metric"]
"""Where making or running a subject can fail; ``link`` is the build of a benchmark against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The shell lines that make a subject from a clean tree, with nothing left open but placeholders."""

    directory: str
    steps: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 1800.0
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A subject that could not be made or run: at which stage, why, and where its log lies.

    `message` is the most telling text that is known, in the failing program's own words: hostile text.
    """

    stage: Stage
    message: str
    log: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A subject that can be used.

    `key` names the content that went in, `artefact` the content that came out: two subjects with one
    artefact are one build. `directory` is the subject's own build directory. `reused`: made earlier.
    """

    key: str
    artefact: str
    directory: str
    seconds: float
    log: str = ""
    reused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A benchmark made ready on a built subject; `out` is where its own build put things.

    `artefact` names what the benchmark's own lines made and the study's files that its command uses; the
    subject's outputs are named by `built.artefact`.
    """

    built: Built
    out: str
    artefact: str


def content_key(*parts: object) -> str:
    """Name content by a digest of its JSON form: equal parts, equal key; 32 hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no place in a content key")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A build as the store keeps it: what was made, of which revision first, and what came of it.

    A subject's build ends in `Built`, a benchmark's build on it (`benchmark` names it) in `Prepared`,
    either in a `Failure`, which is a fact and not tried again unless asked.
    """

    key: str
    revision: str
    variant: str
    outcome: Built | Prepared | Failure
    benchmark: str = ""
    finished: str = ""
