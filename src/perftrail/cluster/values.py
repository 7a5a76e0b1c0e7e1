"""Values that a command and its workers exchange, all frozen and plain; and the options of a worker."""

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
class RemoteStudy:
    """A study as the command sees it; `version` is the command's perftrail version.

    `root` is the results directory and `token` its identity, whichever command uses it. `marker` is a file that this
    command wrote there: a process that can read it sees the same directory, and not a copy. `digest` describes the
    files in the study's directory. `patched` is a patched revision.
    """

    study: Study
    root: str
    token: str
    marker: str = field(compare=False)
    digest: str
    version: str
    patched: Patched | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """A job: build this subject; `key` is the command's content key of the build."""

    key: str
    subject: Subject
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RelinkRequest:
    """A job: relink this subject with each of these seeds; `layouts` has the command's content keys.

    `artefact` is that of the subject's build, if the command has it.
    """

    build: BuildRequest
    artefact: str
    layouts: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFiles:
    """Packed files below one directory that both sides know by their own paths."""

    name: str
    packed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeWithFiles(Generic[T]):
    """Outcome of a job, with everything that the command cannot see in the worker's directory.

    `files` are builds, by their keys; `logs` are packed logs, by their names below the results directory.
    """

    outcome: T
    files: tuple[PackedFiles, ...] = ()
    logs: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFiles:
    """The names of files that a worker with its own directory lacks; the job did not run. Send them."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Options of a worker: its machine, its parallel builds, and the directory of its own files.

    `apart`: use that directory even if the command's own directory is visible. `version` is the worker's perftrail
    version.
    """

    machine: Machine
    builds: int
    directory: Path
    apart: bool
    version: str
