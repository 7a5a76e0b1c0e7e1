"""Builds: the recipe of a subject, the result, and content keys."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from perftrail.model.wording import REFUSED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.subject import Revision

Stage = Literal[
    "checkout",
    "build",
    "link",
    "relink",
    "fixture",
    "start",
    "crash",
    "timeout",
    "memory",
    "metric",
    "absent",
    "skipped",
]
"""Stage at which a build or run can fail; ``link`` is a benchmark build against the subject.

``relink``: linking in another order failed; the build as its recipe links it is usable.

``fixture``: a service, or a line around the invocations, failed.

``absent``: the suite of the revision does not have the benchmark.

``skipped`` is not a failure of the program: the study excludes the revision from building.
"""


NO_OUTPUT = "outputs matched no file: "
"""Start of the message of a build that lacks an output."""

NO_DIRECTORY = "build.directory "
"""Start of the message of a build whose steps have no directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """Changes to a revision's tree before its recipe: files copied into it, then patches.

    `overlay` maps each path in the tree to a file of the study; `patches` apply in order. Paths of study files are
    relative to the study's directory.
    """

    overlay: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to change."""
        return bool(self.overlay or self.patches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to build a subject from a clean tree: repairs, then shell lines with open placeholders.

    `sources` are the other sources that the lines name, each at its revision. `root` is the folder that is the
    tree, for a variant with its own folder. `incremental` allows a build in the tree of another revision; then
    only `outputs` are stored. Changes in paths that match `unaffected_by` do not count. `relink` contains shell
    lines that link the objects in an order that ``{layout}`` decides; they are not part of the normal build. Without
    such lines, `pin` records the build's links, to repeat them with code at other places.
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
    pin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkLines:
    """Shell lines and variables that build a benchmark on a built subject, with open placeholders."""

    steps: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed build or run: the stage, the reason, and the path of its log.

    `message` is the most useful text of the failed program, in its own words: hostile text.
    """

    stage: Stage
    message: str
    log: str = ""
    seconds: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Whether the program reached a limit; a larger point would reach it, too."""
        return self.stage in ("timeout", "memory")

    def ended_with(self, ends: Sequence[str]) -> bool:
        """Whether the program ended in one of these ways: ``exit 77`` or ``SIGKILL``.

        >>> Failure(stage="crash", message="exit code 77: no display").ended_with(["exit 77"])
        True
        >>> Failure(stage="crash", message="killed by signal 9 (SIGKILL)").ended_with(["exit 9", "SIGKILL"])
        True
        """
        found = re.match(r"exit code (\d+)\b|killed by signal \d+ \((SIG[A-Z0-9]+)\)", self.message)
        return found is not None and (f"exit {found[1]}" if found[1] else found[2]) in ends

    @property
    def is_of_machine(self) -> bool:
        """Whether its words name a fault of this machine: a full disk, too little memory, or no network.

        Such a failure tells nothing about the revision: no search uses it.

        >>> Failure(stage="crash", message="exit code 1: sort: write failed: No space left on device").is_of_machine
        True
        >>> Failure(stage="crash", message="exit code 1: connect: Connection refused").is_of_machine
        False
        """
        return self._has(_FAULTS_OF_MACHINE)

    @property
    def may_pass(self) -> bool:
        """Whether the next command tries again: a fault of this machine, or a host that was not reached.

        >>> Failure(stage="build", message="curl: (6) Could not resolve host: example.org").may_pass
        True
        >>> Failure(stage="build", message="Could not resolve host: x (the sandbox refused the network)").may_pass
        False
        """
        return self._has((*_FAULTS_OF_MACHINE, *_UNREACHED))

    def _has(self, faults: Sequence[_Fault]) -> bool:
        return REFUSED not in self.message and any(
            self.stage in stages and words.search(self.message) for stages, words in faults
        )


KILLED_FOR_MEMORY = "the kernel killed a process because no memory was left"
"""Part of the message of a process that the kernel killed for other processes' sake, not for a limit."""

_Fault = tuple[tuple[Stage, ...], re.Pattern[str]]
"""Stages at which only the machine can cause a fault, and the words of the fault."""

_BUILT: tuple[Stage, ...] = ("checkout", "build", "link", "relink")
_FAULTS_OF_MACHINE: tuple[_Fault, ...] = (
    (
        (*_BUILT, "fixture", "start", "crash", "metric"),
        re.compile(rf"(?i)no space left on device|disk quota exceeded|{KILLED_FOR_MEMORY}"),
    ),
    # A benchmark that starts can itself be the reason for these.
    (
        (*_BUILT, "fixture", "start"),
        re.compile(r"(?i)cannot allocate memory|out of memory allocating|too many open files"),
    ),
    # A benchmark and its services connect to each other, so that only builds fetch something.
    (
        _BUILT,
        re.compile(
            r"(?i)temporary failure (?:in name resolution|resolving)|\bEAI_AGAIN\b|network is unreachable"
        ),
    ),
)

_UNREACHED: tuple[_Fault, ...] = (
    (
        _BUILT,
        re.compile(
            r"(?i)(?:could not|failed to|can't|cannot) (?:resolve|connect)|name or service not known|\bENOTFOUND\b"
            r"|failed to establish a new connection|no route to host|connection (?:timed out|refused|reset)"
        ),
    ),
)
"""Here the host may be gone for ever, as that of an old dependency: a search passes over such a revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A usable build of a subject.

    `key` is the digest of the inputs, `artefact` the digest of the outputs: subjects with equal artefacts are
    one build. `directory` is the subject's build directory. `reused`: the build existed before. `layout` is the
    seed of a relinked build; 0 is the link order of the recipe.
    """

    key: str
    artefact: str
    directory: str
    seconds: float
    log: str = ""
    reused: bool = False
    layout: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualBuild:
    """A tree in which a person can run a subject's recipe step by step.

    The steps run in `directory` with `environment`; `lines` are the steps without open placeholders. `failure`
    states why the checkout or a repair failed; the tree is then incomplete.
    """

    directory: str
    environment: Mapping[str, str]
    lines: tuple[str, ...]
    log: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A benchmark build on a built subject; `out` is its output directory.

    `artefact` covers the benchmark's own outputs and the study's files that its command uses. `built.artefact`
    covers the subject's outputs.
    """

    built: Built
    out: str
    artefact: str


def content_key(*parts: object) -> str:
    """Return a digest of the parts' JSON form, 32 hexadecimal digits: equal parts have equal keys."""
    return _digest(_JSON.encode(parts))


class ContentKeys:
    """Content keys of many parts with a common end; the end is serialised once.

    >>> ContentKeys("c", 4).key("a", "b") == content_key("a", "b", "c", 4)
    True
    """

    def __init__(self, *end: object) -> None:
        self._end = _JSON.encode(end)[1:]

    def key(self, *parts: str) -> str:
        """Return the key of content that begins with at least one part."""
        return _digest(f"{_begun(parts)}, {self._end}")


@lru_cache(maxsize=256)
def _begun(parts: tuple[str, ...]) -> str:
    """Return the serialised beginning; neighbouring keys often share it."""
    return _JSON.encode(parts)[:-1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be part of a content key")


_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=True, default=_plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A build in the store: its first revision, its variant, and its outcome.

    The outcome of a subject's build is `Built`, that of a benchmark build (named by `benchmark`) is `Prepared`. A
    `Failure` is a fact, too: perftrail repeats the build only with `--retry-failed`. A failure that this machine caused
    has no record. `recipe` is the content key of the recipe without revision and tools; empty in results of older
    versions.
    """

    key: str
    revision: str
    variant: str
    outcome: Built | Prepared | Failure
    benchmark: str = ""
    finished: str = ""
    recipe: str = ""
