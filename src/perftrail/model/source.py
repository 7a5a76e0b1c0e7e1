"""Sources of revisions: the `[source]` table, packages, pins of several sources, and ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, get_args

from perftrail.model.field import Key
from perftrail.model.subject import Revision
from perftrail.model.wording import listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.json_data import Json


# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.


SourceKind = Literal["git", "fossil", "release", "directory", "samples"]
Walk = Literal["first-parent", "all", "merges", "tags"]
Distribution = Literal["wheel", "sdist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Where to read a revision's human name, for example its release: a file and a pattern with one group."""

    file: Annotated[str, Key("A file of the revision, relative to its root.", stand_in="-")]
    pattern: Annotated[str, Key("A regular expression whose only group is the label.", stand_in="()")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SquashedBranch:
    """A squashed branch: its name, and the revision that contains its work."""

    branch: Annotated[str, Key("The branch, its tip, or a tag on it.", stand_in="-")]
    merge: Annotated[str, Key("The revision that contains the squashed branch.", stand_in="-")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Revisions to exclude from building: one or a range, with a reason."""

    reason: Annotated[str, Key("Why perftrail must not build them, for later readers.", stand_in="-")]
    range: Annotated[str | None, Key("The range, A..B, both ends included; either end may be open.")] = None
    revision: Annotated[str | None, Key("One revision: an id or its beginning, a tag, a release.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One release as an archive (tar or zip): its version, its location and its checksum."""

    version: Annotated[str, Key("The name of this release.", stand_in="-")]
    file: Annotated[str, Key("The archive: a path below source.location, or an address.", stand_in="-")]
    sha256: Annotated[str, Key("Its checksum, SHA-256 in 64 digits; optional for a local file.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where revisions come from.

    `location` is a path, absolute or relative to the study's directory, or an address. For releases it is
    ``ECOSYSTEM:NAME`` (``pypi:``, ``crates:``, ``npm:``, ``debian:``), or the directory of the `archives`. For
    samples it is the files of other tools, with ``*``, ``?`` and ``**``. `range` is ``A..B``: A is the
    older end, which belongs to the history. Keys for releases only apply to packages.
    """

    kind: Annotated[SourceKind, Key("Kind of the history.", stand_in="git")]
    location: Annotated[
        str,
        Key(
            "A repository's path, relative to this file, or its address. For releases: pypi:NAME, crates:NAME, "
            "npm:NAME or debian:NAME, or the directory or address of their archives. For samples: the "
            "files, with *, ? and **.",
            stand_in=".",
        ),
    ]
    range: Annotated[
        str | None,
        Key(
            "The range of the history, A..B; A is the older end and belongs to it. For git and Fossil also days, "
            "2024-01-01..2024-06-30, last 200 or tags:v1.*."
        ),
    ] = None
    at: Annotated[
        str | None,
        Key("The pinned revision while perftrail searches another source. Default: the last of the range."),
    ] = None
    walk: Annotated[Walk, Key("Which revisions of a git or Fossil history; always in topological order.")] = (
        "first-parent"
    )
    touching: Annotated[
        tuple[str, ...], Key("Only revisions that change one of these files, relative to the root.")
    ] = ()
    sparse: Annotated[
        tuple[str, ...],
        Key(
            "Only these files of a git revision are checked out and count as its content: directories, or "
            "patterns with *, ** and ?; patterns after ! are excluded."
        ),
    ] = ()
    submodules: Annotated[bool, Key("Whether to check out a git revision's submodules.")] = True
    label: Annotated[Label | None, Key("Where to read the release of a revision.")] = None
    link: Annotated[
        tuple[SquashedBranch, ...],
        Key("Squashed branches: if the culprit is such a revision, the search continues in its branch."),
    ] = ()
    skip: Annotated[
        tuple[Skip, ...], Key("Revisions to exclude from building, each entry with its reason.")
    ] = ()
    requires: Annotated[
        tuple[str, ...],
        Key("Python packages only: additional requirements for each release, as for pip."),
    ] = ()
    distribution: Annotated[
        Distribution | None,
        Key("Python packages only: install from wheels only, or from source distributions only."),
    ] = None
    index: Annotated[
        str | None,
        Key(
            "Releases only: the address of another package index. For Debian: lines as in sources.list, "
            "ADDRESS SUITE COMPONENT; without ADDRESS, the archive of this machine's packages."
        ),
    ] = None
    prereleases: Annotated[bool, Key("Releases only: whether pre-releases belong to the history.")] = False
    yanked: Annotated[bool, Key("Releases only: whether yanked or deprecated releases belong to it.")] = False
    format: Annotated[
        str | None,
        Key("Samples only: the tool format of the files. Default: detected for each file."),
    ] = None
    archives: Annotated[
        tuple[Archive, ...],
        Key("Releases only: instead of a package, an archive for each version, the oldest first."),
    ] = ()


Ecosystem = Literal["pypi", "crates", "npm", "debian"]
ECOSYSTEMS: tuple[Ecosystem, ...] = get_args(Ecosystem)

_NPM_PART = r"[A-Za-z0-9_~][A-Za-z0-9._~-]*"
_NAMES: Mapping[Ecosystem, re.Pattern[str]] = {
    "pypi": re.compile(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]"),
    "crates": re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}"),
    "npm": re.compile(rf"(?:@{_NPM_PART}/)?{_NPM_PART}"),
    "debian": re.compile(r"[a-z0-9][a-z0-9+.-]+"),
}
"""Safe package names: none is an option, a path or an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package name and its ecosystem."""

    ecosystem: Ecosystem
    name: str

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}"


def read_package(location: str) -> Package:
    """Parse ``ECOSYSTEM:NAME``; raises `ValueError` with the mistake.

    >>> str(read_package("npm:@scope/name"))
    'npm:@scope/name'
    >>> read_package("crates:--config")
    Traceback (most recent call last):
    ValueError: "--config" is not a valid package name; write crates:NAME, versions go into source.range
    """
    written, colon, name = location.partition(":")
    if not colon and _NAMES["pypi"].fullmatch(location):
        raise ValueError(
            f"{quoted(location)} lacks its ecosystem; write {quoted('pypi:' + location)} for a Python package, "
            f"or {listed(f'{each}:…' for each in ECOSYSTEMS if each != 'pypi')}"
        )
    if "://" in location:
        raise ValueError(f"{quoted(location)} is an address; write a package, for example pypi:NAME")
    for ecosystem in ECOSYSTEMS:
        if written == ecosystem and colon:
            if _NAMES[ecosystem].fullmatch(name) is None:
                raise ValueError(
                    f"{quoted(name)} is not a valid package name; write {ecosystem}:NAME, "
                    "versions go into source.range"
                )
            return Package(ecosystem=ecosystem, name=name)
    near = nearest(written, ECOSYSTEMS) if colon else None
    hint = f"did you mean {quoted(f'{near}:{name}')}?" if near else f"write {listed(_FORMS)}"
    raise ValueError(f"{quoted(location)} is not a valid package; {hint}")


_FORMS = [f"{ecosystem}:NAME" for ecosystem in ECOSYSTEMS]


MAIN = "main"
"""Name of ``[source]`` among the others, which are ``[sources.NAME]``."""


class PinsJson(TypedDict, total=False):
    """The pinned sources of a study with several sources."""

    along: Annotated[str, "the source whose history is searched"]
    pins: Annotated[dict[str, str], "the pinned revision of each other source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The source whose history is searched, and the pinned revision of each other one.

    `folders` maps the folders of variants to their revisions.
    """

    along: str = MAIN
    at: Mapping[str, Revision] = field(default_factory=dict)
    folders: Mapping[str, Revision] = field(default_factory=dict)

    def revision(self, source: str, searched: Revision) -> Revision:
        """Return the revision of a source, at the revision `searched` of the source whose history is searched."""
        return searched if source == self.along else self.at[source]

    def as_json(self) -> PinsJson:
        """Return the pins as JSON; empty for a study with one source."""
        if not self.at:
            return {}
        return {"along": self.along, "pins": {name: revision.id for name, revision in self.at.items()}}

    def __str__(self) -> str:
        """Describe the pins; empty for a study with one source. Labels are hostile text."""
        if not self.at:
            return ""
        pinned = listed([f"{name} at {_name(revision)}" for name, revision in self.at.items()], "and")
        return f"along {self.along}, with {pinned}"


NO_PINS = Pins()
"""Pins of a study with one source."""


def stored_pins(question: Mapping[str, Json]) -> Pins:
    """Return the pins of a stored question, the inverse of `Pins.as_json`."""
    pins = question.get("pins")
    if not isinstance(pins, dict):
        return NO_PINS
    at = {name: Revision(id=str(id_)) for name, id_ in pins.items()}
    return Pins(along=str(question["along"]), at=at)


def _name(revision: Revision) -> str:
    if revision.label and revision.label != revision.id:
        return f"{revision.label} ({revision.short})"
    return revision.short


_NEWEST = re.compile(r"last\s+(\d{1,9})")
_WITHOUT = re.compile(r"\^(?P<old>\S+)\s+(?P<new>[^^\s].*)|(?P<first>[^^\s].*?)\s+\^(?P<second>\S+)")
_TAGS = "tags:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """A range between two revisions, by names or dates as written; an open end is empty."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest revisions, by their number."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The revisions with a matching tag; ``*`` and ``?`` are wildcards."""

    pattern: str


Span = Ends | Newest | Tagged


def read_span(text: str) -> Span:
    """Parse ``A..B``, ``A..``, ``..B``, ``^A B``, ``last 200`` or ``tags:v1.*``.

    Raises `ValueError` with the mistake.

    >>> read_span("v1.0..v2.0") == read_span("^v1.0 v2.0") == Ends(old="v1.0", new="v2.0")
    True
    >>> read_span("last 200"), read_span("tags:v1.*").pattern
    (Newest(count=200), 'v1.*')
    """
    text = text.strip()
    if text.startswith(_TAGS):
        pattern = text.removeprefix(_TAGS).strip()
        if not pattern:
            raise ValueError('names no tags; write "tags:v1.*"')
        return Tagged(pattern=pattern)
    if (newest := _NEWEST.fullmatch(text)) is not None:
        if not int(newest[1]):
            raise ValueError('contains no revision; write "last 200"')
        return Newest(count=int(newest[1]))
    return _read_ends(text)


WORKING_TREE = "."
"""Name of the files of a git check-out as they are, tracked or not."""

STAGED = ":staged"
"""Name of what is staged in a git check-out's index."""

_WITH_WORKING_TREE = re.compile(r"(?P<both>\.{4})|\.{3}(?P<new>[^.].*)?|(?P<old>.*[^.])\.{3}")
"""A range with the working tree as an end, or as both."""


def _read_ends(text: str) -> Ends:
    if (found := _WITH_WORKING_TREE.fullmatch(text)) is not None:
        both = found["both"] is not None
        old, new = found["old"] or "", found["new"] or ""
        return Ends(
            old=WORKING_TREE if both or not found["old"] else old.strip(),
            new=WORKING_TREE if both or found["old"] else new.strip(),
        )
    old, dots, new = (part.strip() for part in text.partition(".."))
    if not dots and (two := _WITHOUT.fullmatch(text)) is not None:
        old, dots, new = two["old"] or two["second"], "..", two["new"] or two["first"]
    if not dots or not (old or new):
        raise ValueError('is not a range; write "OLD..NEW"')
    if new.startswith(".") or ".." in new:
        raise ValueError('has too many dots; write "OLD..NEW", both ends included')
    if old.startswith("^") or new.startswith("^"):
        raise ValueError('has an additional "^"; write "OLD..NEW"')
    return Ends(old=old, new=new)


def matching(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for paths: ``*`` within a name, ``**`` across, a directory for all its files.

    >>> [bool(matching(["src/**/*.c", "doc"]).fullmatch(path)) for path in ("src/a.c", "src/b/a.c", "doc/x", "a.c")]
    [True, True, True, False]
    """
    return re.compile("|".join(f"(?:{_translated(pattern)})(?:/.*)?" for pattern in patterns), re.DOTALL)


def _translated(pattern: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removesuffix("/"))
    return "".join(known.get(part, re.escape(part)) for part in parts)
