"""Where revisions come from, as the study file says it.

A package of an ecosystem, as ``ECOSYSTEM:NAME`` names it.

Which of a study's sources is walked, and at which revision each of the others is held.

The stretch of a history that a study is about, in the words that a range may be written in.

Paths as a study names many of them at once: ``*`` within a name, ``**`` across directories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from perftrail.model.field import Key
from perftrail.model.subject import Revision
from perftrail.model.wording import listed, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.search_record import Json


# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.


SourceKind = Literal["git", "fossil", "release", "directory", "samples"]
Walk = Literal["first-parent", "all", "merges", "tags"]
Distribution = Literal["wheel", "sdist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Where a revision's human name (its release, say) is written: a file and a pattern with one group."""

    file: Annotated[str, Key("A file of the revision, relative to its root.", stand_in="-")]
    pattern: Annotated[str, Key("A regular expression whose only group is the label.", stand_in="()")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A branch that was squashed: which one, and the revision that its work went into."""

    branch: Annotated[str, Key("The branch, its tip, or a tag on it.", stand_in="-")]
    merge: Annotated[str, Key("The revision that the branch was squashed into.", stand_in="-")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Revisions that are not to be built: one, or a range of them, and why."""

    reason: Annotated[str, Key("Why they are not to be built, for whoever reads it later.", stand_in="-")]
    range: Annotated[
        str | None, Key("The stretch, A..B, both ends included; either end may be left open.")
    ] = None
    revision: Annotated[str | None, Key("The one revision: an id or its beginning, a tag, a release.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One release as an archive, tar or zip: its version, where it lies and what it must be."""

    version: Annotated[str, Key("The name of this release.", stand_in="-")]
    file: Annotated[str, Key("The archive: a path below source.location, or an address.", stand_in="-")]
    sha256: Annotated[
        str, Key("Its checksum, SHA-256 in 64 digits; of a file of this machine it may be left out.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where revisions come from.

    `location` is a path, made absolute against the study's directory, or an address; of releases it is
    ``ECOSYSTEM:NAME`` (``pypi:``, ``crates:``, ``npm:``, ``debian:``), or where the `archives` lie; of samples it is
    the files of other tools that hold them, with ``*``, ``?`` and ``**``. `range` is ``A..B`` with A the known-old end,
    part of the history. What is for releases only is for packages.
    """

    kind: Annotated[SourceKind, Key("What the history is kept in.", stand_in="git")]
    location: Annotated[
        str,
        Key(
            "A repository's path, relative to this file, or its address; of releases, pypi:NAME, crates:NAME, "
            "npm:NAME or debian:NAME, or the directory or address that their archives lie below; of samples, the "
            "files, with *, ? and **.",
            stand_in=".",
        ),
    ]
    range: Annotated[
        str | None,
        Key(
            "The stretch of history, A..B; A is the known-old end and belongs to it. Of git and Fossil also days, "
            "2024-01-01..2024-06-30, last 200 or tags:v1.*."
        ),
    ] = None
    at: Annotated[
        str | None,
        Key("The revision that is used while another source is walked; without it, the last of the range."),
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
            "Of a git revision only these files are there to build and count as its content: directories, or "
            "patterns with *, ** and ?; those after ! are left out."
        ),
    ] = ()
    submodules: Annotated[bool, Key("Whether a git revision's submodules are there to build.")] = True
    label: Annotated[Label | None, Key("Where a revision says which release it belongs to.")] = None
    link: Annotated[
        tuple[Link, ...],
        Key("Squashed branches: when the culprit is such a revision, the search goes into its branch."),
    ] = ()
    skip: Annotated[
        tuple[Skip, ...], Key("Revisions that are not to be built, each entry with its reason.")
    ] = ()
    requires: Annotated[
        tuple[str, ...],
        Key("Python packages only: what else to install beside each release, as for pip."),
    ] = ()
    distribution: Annotated[
        Distribution | None,
        Key("Python packages only: install from wheels only, or from source distributions only."),
    ] = None
    index: Annotated[
        str | None,
        Key(
            "Releases only: the address of another package index; of Debian, lines as in sources.list, "
            "ADDRESS SUITE COMPONENT; without ADDRESS, of the archive that this machine's packages come from."
        ),
    ] = None
    prereleases: Annotated[bool, Key("Releases only: whether pre-releases belong to the history.")] = False
    yanked: Annotated[bool, Key("Releases only: whether yanked or deprecated releases belong to it.")] = False
    format: Annotated[
        str | None,
        Key("Samples only: which tool's format the files have; without it, each file is recognised."),
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
"""What may be handed to a client: no name is an option, a path or an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The name of a package and the ecosystem it belongs to."""

    ecosystem: Ecosystem
    name: str

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}"


def read_package(location: str) -> Package:
    """Read ``ECOSYSTEM:NAME``; raises `ValueError`, whose text says what is wrong with the one given.

    >>> str(read_package("npm:@scope/name"))
    'npm:@scope/name'
    >>> read_package("crates:--config")
    Traceback (most recent call last):
    ValueError: "--config" is no name of a package; write crates:NAME, versions go into source.range
    """
    written, colon, name = location.partition(":")
    if not colon and _NAMES["pypi"].fullmatch(location):
        raise ValueError(
            f"{quoted(location)} lacks its ecosystem; write {quoted('pypi:' + location)} for a Python package, "
            f"or {listed(f'{each}:…' for each in ECOSYSTEMS if each != 'pypi')}"
        )
    if "://" in location:
        raise ValueError(f"{quoted(location)} is an address; releases are of a package, as pypi:NAME")
    for ecosystem in ECOSYSTEMS:
        if written == ecosystem and colon:
            if _NAMES[ecosystem].fullmatch(name) is None:
                raise ValueError(
                    f"{quoted(name)} is no name of a package; write {ecosystem}:NAME, "
                    "versions go into source.range"
                )
            return Package(ecosystem=ecosystem, name=name)
    near = nearest(written, ECOSYSTEMS) if colon else None
    hint = f"did you mean {quoted(f'{near}:{name}')}?" if near else f"write {listed(_FORMS)}"
    raise ValueError(f"{quoted(location)} is no package; {hint}")


_FORMS = [f"{ecosystem}:NAME" for ecosystem in ECOSYSTEMS]


MAIN = "main"
"""What ``[source]`` is called among the others, which ``[sources.NAME]`` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The source that is walked, and the revision of each other one.

    `folders` are the revisions of variants that have a folder of their own, by folder.
    """

    along: str = MAIN
    at: Mapping[str, Revision] = field(default_factory=dict)
    folders: Mapping[str, Revision] = field(default_factory=dict)

    def revision(self, source: str, walked: Revision) -> Revision:
        """Give the revision at which a source is used where the walk stands at `walked`."""
        return walked if source == self.along else self.at[source]

    def as_json(self) -> dict[str, Json]:
        """Say it in JSON; nothing in a study of one source."""
        if not self.at:
            return {}
        return {"along": self.along, "pins": {name: revision.id for name, revision in self.at.items()}}

    def __str__(self) -> str:
        """Say it in words; nothing in a study of one source. Labels are hostile text."""
        if not self.at:
            return ""
        held = listed([f"{name} at {_name(revision)}" for name, revision in self.at.items()], "and")
        return f"along {self.along}, with {held}"


ALONE = Pins()
"""The pins of a study that has one source."""


def pins_asked(question: Mapping[str, Json]) -> Pins:
    """Give the pins that a question, a search's for instance, was asked with, as `Pins.as_json` told them."""
    held = question.get("pins")
    if not isinstance(held, dict):
        return ALONE
    at = {name: Revision(id=str(id_)) for name, id_ in held.items()}
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
    """From one revision to another, by their names or dates as they were written; an open end is empty."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """So many revisions, the newest of the walk."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The revisions that have a tag of such a name; ``*`` and ``?`` stand for others' letters."""

    pattern: str


Span = Ends | Newest | Tagged


def read_span(text: str) -> Span:
    """Read ``A..B``, ``A..``, ``..B``, ``^A B``, ``last 200`` or ``tags:v1.*``.

    Raises `ValueError`, whose text says what is wrong with the one given.

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
            raise ValueError('asks for no revision; write "last 200"')
        return Newest(count=int(newest[1]))
    return _read_ends(text)


def _read_ends(text: str) -> Ends:
    old, dots, new = (part.strip() for part in text.partition(".."))
    if not dots and (two := _WITHOUT.fullmatch(text)) is not None:
        old, dots, new = two["old"] or two["second"], "..", two["new"] or two["first"]
    if not dots or not (old or new):
        raise ValueError('is not a range; write "OLD..NEW"')
    if new.startswith(".") or ".." in new:
        raise ValueError('has too many dots; write "OLD..NEW", both ends belong to it')
    if old.startswith("^") or new.startswith("^"):
        raise ValueError('has a "^" too many; write "OLD..NEW"')
    return Ends(old=old, new=new)


def matching(patterns: Sequence[str]) -> re.Pattern[str]:
    """Give the pattern of all paths that are meant: ``*`` within a name, ``**`` across, a directory for all in it.

    >>> [bool(matching(["src/**/*.c", "doc"]).fullmatch(path)) for path in ("src/a.c", "src/b/a.c", "doc/x", "a.c")]
    [True, True, True, False]
    """
    return re.compile("|".join(f"(?:{_translated(pattern)})(?:/.*)?" for pattern in patterns), re.DOTALL)


def _translated(pattern: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removesuffix("/"))
    return "".join(known.get(part, re.escape(part)) for part in parts)
