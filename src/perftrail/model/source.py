"""Where revisions come from, as the study file says it."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from perftrail.model.key import Key

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
