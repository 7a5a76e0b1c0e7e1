"""What making a subject takes and what came of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.subject import Revision

Stage = Literal[
    "checkout", "build", "link", "relink", "start", "crash", "timeout", "memory", "metric", "skipped"
]
"""Where making or running a subject can fail; ``link`` is the build of a benchmark against it.

``relink``: the build could not be linked in another order; the build as its recipe links it is usable.

``skipped`` is no failure of the program: the study says that the revision is not to be built.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What is done to a revision's tree before its recipe: files put into it, then patches applied.

    `overlay` gives for each place in the tree the study's file that goes there; `patches` come in order. The
    study's files are named relative to its directory.
    """

    overlay: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.overlay or self.patches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What makes a subject from a clean tree: repairs, then shell lines in which only placeholders are open.

    `sources` are the other sources whose trees it names, each at its revision. `root` is the folder that
    the tree is made of, of a variant that has one. `incremental` allows it to go on in the tree of another
    revision; only `outputs` are kept then. Changes in the paths that `unaffected_by` matches do not count.
    `relink` holds shell lines that link the objects again in an order that ``{layout}`` decides; they are no
    part of the build as `steps` link it.
    """

    directory: str
    steps: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 1800.0
    outputs: tuple[str, ...] = ()
    repairs: Repairs = field(default_factory=Repairs)
    sources: Mapping[str, Revision] = field(default_factory=dict)
    root: str = ""
    incremental: bool = False
    unaffected_by: tuple[str, ...] = ()
    relink: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A subject that could not be made or run: at which stage, why, and where its log lies.

    `message` is the most telling text that is known, in the failing program's own words: hostile text.
    """

    stage: Stage
    message: str
    log: str = ""
    seconds: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Whether a limit was run into: what asks for more would run into it, too."""
        return self.stage in ("timeout", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A subject that can be used.

    `key` names the content that went in, `artefact` the content that came out: two subjects with one
    artefact are one build. `directory` is the subject's own build directory. `reused`: made earlier.
    `layout` is the seed with which it was relinked; 0: as its recipe links it.
    """

    key: str
    artefact: str
    directory: str
    seconds: float
    log: str = ""
    reused: bool = False
    layout: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where a subject's recipe can be gone through by hand: its tree, nothing made in it yet.

    `directory` and `environment` are those in which the steps run, `lines` the steps with nothing left open.
    `failure` says why the tree could not be had or repaired; it is then as far as it got.
    """

    directory: str
    environment: Mapping[str, str]
    lines: tuple[str, ...]
    log: str
    failure: Failure | None = None


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
    return _digest(_JSON.encode(parts))


class ContentKeys:
    """The keys of much content that ends alike; the end is put into words once.

    >>> ContentKeys("c", 4).key("a", "b") == content_key("a", "b", "c", 4)
    True
    """

    def __init__(self, *end: object) -> None:
        self._end = _JSON.encode(end)[1:]

    def key(self, *parts: str) -> str:
        """Name content that begins with at least one part of its own."""
        return _digest(f"{_begun(parts)}, {self._end}")


@lru_cache(maxsize=256)
def _begun(parts: tuple[str, ...]) -> str:
    """The beginning of content in words; much content begins alike, one after the other."""
    return _JSON.encode(parts)[:-1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no place in a content key")


_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=True, default=_plain)


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
