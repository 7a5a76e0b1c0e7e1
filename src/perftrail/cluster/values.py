"""What goes between a command and the workers that do its work: frozen values, and nothing else of ours.

On which terms a worker works.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from perftrail.model.build import Recipe
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a study is made and measured, as the command sees it, whose version of perftrail is `version`.

    `root` is its results directory and `token` what that is known by, whichever command uses it. `sign` is the file
    that this command has left there, which says so: who reads it sees the same directory, and no copy of it. `digest`
    names what lies beside the study file. `own` is a patched revision of our own.
    """

    study: Study
    root: str
    token: str
    sign: str = field(compare=False)
    digest: str
    version: str
    own: Patched | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A job: make this subject; `key` is the name that the command has for what comes of it."""

    key: str
    subject: Subject
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinking:
    """A job: relink this subject with each of these seeds; `layouts` gives the name that the command has for each.

    `artefact` is that of the subject's build where the command has it from.
    """

    making: Making
    artefact: str
    layouts: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Files that travel: packed, below one directory that both sides know by their own paths."""

    name: str
    packed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried(Generic[T]):
    """What came of a job, with what the command has not where it does not see the worker's directory.

    That is the builds that were made, by their keys, and packed logs, by their names below the results directory.
    """

    outcome: T
    files: tuple[Parcel, ...] = ()
    logs: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacks:
    """A worker of its own directory has nothing of these names yet; nothing was done. Send them along."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """As which machine it works, so many builds at once, with its own files below this directory.

    `apart`: also where it sees a command's own directory, it keeps to this one. `version` is its perftrail's.
    """

    machine: Machine
    builds: int
    directory: Path
    apart: bool
    version: str
