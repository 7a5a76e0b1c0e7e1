"""A study on a worker's machine: in the command's own directory, or in a directory of the worker.

A worker that can read the command's marker file works in the command's directory. Otherwise it has the study's files,
sources and builds in its own directory, and the command sends missing ones. `study_digest` and `pack_study` describe
and pack the files in the study's directory, which builds and benchmarks may use.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.packing import (
    SHARED_DIRECTORY,
    files_below,
    has_build,
    pack,
    pack_build,
    unpack,
    unpack_build,
)
from perftrail.cluster.values import MissingFiles, OutcomeWithFiles, PackedFiles
from perftrail.errors import ClusterError
from perftrail.file_tree import exclusive_lock, publish, remove_tree
from perftrail.model.build import Built, content_key
from perftrail.model.measurement import Measurement
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.cluster.values import RemoteStudy
    from perftrail.model.build import Failure, Prepared, Recipe
    from perftrail.model.measurement import Outcome
    from perftrail.model.source import Source
    from perftrail.model.study import Study


LOGS = "logs"
"""Name of the directory of logs in a results directory."""

STUDIES = "studies"
"""Name of the directory of copies in a worker's directory."""

STUDY = "study"
"""Name of the packed files that contain the directory of a study file."""


class StudyCopy:
    """The directories of one study on one machine."""

    def __init__(self, remote_study: RemoteStudy, directory: Path, *, apart: bool) -> None:
        self._remote_study = remote_study
        self.shared = not apart and _read(Path(remote_study.root, remote_study.marker)) == remote_study.token
        own = directory / STUDIES / content_key(remote_study.token)[:16]
        self._study_directory = own / f"study-{remote_study.digest[:16]}"
        self.root = Path(remote_study.root) if self.shared else own

    @cached_property
    def study(self) -> Study:
        """The study with its paths on this machine."""
        study = self._remote_study.study
        if self.shared:
            return study
        local = replace(
            study,
            file=str(self._study_directory / Path(study.file).name),
            directory=str(self._study_directory),
            source=self._source(study.source),
            sources={name: self._source(source) for name, source in study.sources.items()},
        )
        for source in local.every_source.values():
            if source.location.startswith("/") and not Path(source.location).exists():
                raise ClusterError(
                    f"source.location {quoted(source.location)}: does not exist on this machine; use an address that "
                    f"every machine can reach, or {SHARED_DIRECTORY}"
                )
        return local

    def missing_files(
        self, files: Sequence[PackedFiles], prepared: Prepared | None = None
    ) -> MissingFiles | None:
        """Store the sent files, and return the names of those still missing; `None` if there are none."""
        if self.shared:
            return None
        sent = {packed.name: packed.packed for packed in files}
        missing = []
        if not self._study_directory.is_dir() and not self._receive_study(sent):
            missing.append(STUDY)
        if prepared is not None and not has_build(self.root / "builds", prepared):
            name = build_name(prepared)
            if name in sent:
                log = self.root / LOGS / Path(prepared.built.log).name
                unpack_build(sent[name], self.root / "builds", prepared.built, log=str(log))
            else:
                missing.append(name)
        return MissingFiles(names=tuple(missing)) if missing else None

    def on_this_machine(self, prepared: Prepared) -> Prepared:
        """Return a ready benchmark with its paths on this machine."""
        built = replace(prepared.built, directory=self._path_here(prepared.built.directory))
        return replace(prepared, built=built, out=self._path_here(prepared.out))

    def build_outcome(self, outcome: Built | Failure, recipe: Recipe) -> OutcomeWithFiles[Built | Failure]:
        """Return the outcome of a build as the command knows it, with the build itself if the command cannot see it."""
        if self.shared:
            return OutcomeWithFiles(outcome=outcome)
        return OutcomeWithFiles(
            outcome=self._as_command_sees(outcome),
            files=self._pack_builds([outcome], recipe),
            logs=self._pack_logs([f"{LOGS}/{Path(outcome.log).name}"]),
        )

    def relink_outcome(
        self, outcomes: Mapping[int, Built | Failure], recipe: Recipe
    ) -> OutcomeWithFiles[Mapping[int, Built | Failure]]:
        """Return the relinked layouts as the command knows them, with their files if it cannot see them."""
        if self.shared:
            return OutcomeWithFiles(outcome=outcomes)
        return OutcomeWithFiles(
            outcome={layout: self._as_command_sees(outcome) for layout, outcome in outcomes.items()},
            files=self._pack_builds(outcomes.values(), recipe),
            logs=self._pack_logs([f"{LOGS}/{Path(outcome.log).name}" for outcome in outcomes.values()]),
        )

    def _as_command_sees(self, outcome: Built | Failure) -> Built | Failure:
        result = replace(outcome, log=self._path_at_command(outcome.log))
        return (
            replace(result, directory=self._path_at_command(result.directory))
            if isinstance(result, Built)
            else result
        )

    def _pack_builds(self, outcomes: Iterable[Built | Failure], recipe: Recipe) -> tuple[PackedFiles, ...]:
        builds = self.root / "builds"
        return tuple(
            PackedFiles(
                name=each.key, packed=pack_build(builds, each, benchmark_builds=(), outputs=recipe.outputs)
            )
            for each in outcomes
            if isinstance(each, Built)
        )

    def invocation_outcome(self, outcome: Outcome, log: str) -> OutcomeWithFiles[Outcome]:
        """Return the outcome of an invocation as the command knows it, with its logs if the command cannot see them.

        `log` is the common part of the names of its logs, below the results directory.
        """
        if self.shared:
            return OutcomeWithFiles(outcome=outcome)
        result: Outcome
        if isinstance(outcome, Measurement):
            result = replace(outcome, log=self._path_at_command(outcome.log) if outcome.log else "")
        else:
            failure = replace(outcome.failure, log=self._path_at_command(outcome.failure.log))
            result = replace(outcome, failure=failure)
        return OutcomeWithFiles(outcome=result, logs=self._pack_logs(list(files_below(self.root, log))))

    def _pack_logs(self, names: Sequence[str]) -> bytes:
        return pack(self.root, names, what="a log")

    def _receive_study(self, sent: dict[str, bytes]) -> bool:
        if STUDY not in sent:
            return False
        with exclusive_lock(self.root / "study.lock"):
            if not self._study_directory.is_dir():
                incoming = self._study_directory.with_suffix(".incoming")
                remove_tree(incoming)
                unpack(sent[STUDY], incoming)
                publish(incoming, self._study_directory)
        return True

    def _source(self, source: Source) -> Source:
        """Return a source with its path on this machine if it was sent; git repositories are not sent."""
        if source.kind == "git":
            return source
        directory = self._remote_study.study.directory
        location = Path(source.location)
        if location.is_absolute() and location.is_relative_to(directory):
            return replace(source, location=str(self._study_directory / location.relative_to(directory)))
        return source

    def _path_here(self, path: str) -> str:
        return path if self.shared else str(self.root / Path(path).relative_to(self._remote_study.root))

    def _path_at_command(self, path: str) -> str:
        local = Path(path)
        return (
            str(self._remote_study.root / local.relative_to(self.root))
            if local.is_relative_to(self.root)
            else path
        )


def build_name(prepared: Prepared) -> str:
    """Return the name of the packed files with a build and one benchmark build."""
    return f"{prepared.built.key}/{Path(prepared.out).name}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


EXCLUDED = (".perftrail", ".git", "__pycache__")
"""Results, a repository's own files, and files that Python creates again."""


def study_digest(directory: Path) -> str:
    """Return the digest of names, sizes and times of the files in a study's directory."""
    return content_key(sorted(_file_states(directory)))


def pack_study(directory: Path) -> bytes:
    """Pack the files in a study's directory. Raises `ClusterError` if they are too large."""
    names = sorted(each.name for each in directory.iterdir() if each.name not in EXCLUDED)
    return pack(directory, names, what="the files in the study's directory", exclude=EXCLUDED)


def _file_states(directory: Path) -> Iterator[list[str | int]]:
    for parent, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name not in EXCLUDED]
        for name in names:
            path = Path(parent, name)
            state = path.lstat()
            yield [str(path.relative_to(directory)), state.st_size, state.st_mtime_ns]
