"""Makes subjects on this machine, in place, and keeps what came of them by content."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builder.artefact import content_of, content_of_files
from perftrail.builder.environment import build_environment, has_compiler_cache, search_path
from perftrail.builder.finished import Finished, read_finished, remove_tree, write_finished
from perftrail.builder.lock import alone
from perftrail.builder.steps import Log, Steps, version_of
from perftrail.builder.toolchain import Toolchain
from perftrail.errors import CheckoutFailed
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.placeholders import fill, names, study_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from perftrail.model.build import Recipe
    from perftrail.model.subject import Subject
    from perftrail.ports import Source, Starter

_FORM = 1
"""Changes when what a key stands for changes, so that older builds are made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a build or a link lives; `home` is what a failure or a kill leaves to be removed."""

    home: Path
    marker: Path
    log: Path
    temporary: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """Why a build came to nothing, before anybody says at which stage."""

    message: str


class LocalBuilder:
    """Implements `ports.Builder` with directories below `builds` and a log for each build below `logs`.

    A build is finished when its marker is there; without one, whatever a kill left is removed first.
    Several perftrails may share the directories: a lock for each key keeps them apart.
    """

    def __init__(
        self, source: Source, starter: Starter, *, builds: str, logs: str, study_directory: str, cpus: int
    ) -> None:
        self._source = source
        self._starter = starter
        self._builds = Path(builds).absolute()
        self._logs = Path(logs).absolute()
        self._study = Path(study_directory).absolute()
        self._cpus = cpus
        self._tools = Toolchain(self._version, path=search_path())

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Name the tree, the recipe with the study's files that it names, and the tools that it runs."""
        texts = (*recipe.steps, *recipe.env.values())
        tied = any("revision" in names(text) for text in texts)
        return content_key(
            _FORM,
            self._source.content(subject.revision),
            subject.revision.id if tied else "",
            recipe.directory,
            list(recipe.steps),
            dict(recipe.env),
            list(recipe.outputs),
            self._named_files(texts),
            self._tools.fingerprint(texts),
        )

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Make a subject in ``builds/KEY/tree``, or give the one that is there already."""
        key = self.key(subject, recipe)
        home = self._builds / key
        place = _Place(
            home=home, marker=home / "built.json", log=self._logs / f"{key}.log", temporary=home / "tmp"
        )
        with alone(self._lock(key)):
            finished = read_finished(place.marker)
            if finished is not None:
                return _built(key, place, finished, reused=True)
            began = time.monotonic()
            outcome = self._make(key, place, subject, recipe)
            seconds = time.monotonic() - began
            if isinstance(outcome, Failure):
                remove_tree(home)
                return Failure(
                    stage=outcome.stage, message=outcome.message, log=str(place.log), seconds=seconds
                )
            finished = Finished(artefact=outcome, seconds=seconds, log=str(place.log))
            write_finished(place.marker, finished)
            return _built(key, place, finished, reused=False)

    def link_key(
        self, built: Built, *, steps: Sequence[str], env: Mapping[str, str], files: Collection[str]
    ) -> str:
        """Name a built subject, a benchmark's lines with the study's files, and the tools that they run."""
        texts = (*steps, *env.values())
        named = self._named_files(texts)
        used = content_of_files(files, below=self._study)
        tools = self._tools.fingerprint(texts) if steps else []
        return content_key(_FORM, built.key, list(steps), dict(env), named, used, tools)

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
    ) -> Prepared | Failure:
        """Run a benchmark's lines with ``{out}`` at ``builds/KEY/bench/LINK``, or give what is there."""
        key = self.link_key(built, steps=steps, env=env, files=files)
        bench = Path(built.directory).parent / "bench"
        place = _Place(
            home=bench / key,
            marker=bench / f"{key}.json",
            log=self._logs / f"{built.key}-{key}.log",
            temporary=bench / f"{key}.tmp",
        )
        with alone(self._lock(built.key)):
            finished = read_finished(place.marker)
            if finished is None:
                began = time.monotonic()
                trouble = self._link(built, place, steps=steps, env=env, timeout_seconds=timeout_seconds)
                seconds = time.monotonic() - began
                if trouble is not None:
                    remove_tree(place.home)
                    return Failure(stage="link", message=trouble.message, log=str(place.log), seconds=seconds)
                artefact = self._link_artefact(built, key, place, files)
                finished = Finished(artefact=artefact, seconds=seconds, log=str(place.log))
                write_finished(place.marker, finished)
        return Prepared(built=built, out=str(place.home), artefact=finished.artefact)

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Give what the machine's placeholders and ``{out}`` stand for in the benchmark's command."""
        return {**self._values(Path(prepared.built.directory)), "out": prepared.out}

    def _make(self, key: str, place: _Place, subject: Subject, recipe: Recipe) -> str | Failure:
        """Make a subject anew and give its artefact."""
        remove_tree(place.home)
        place.home.mkdir(parents=True)
        log = Log(path=place.log)
        log.begin()
        log.note(
            f"# {subject.revision.id} as {subject.variant}, content {self._source.content(subject.revision)}"
        )
        tree = place.home / "tree"
        try:
            self._source.materialise(subject.revision, str(tree), str(place.log))
        except CheckoutFailed as error:
            log.note(f"[{error}]")
            return Failure(stage="checkout", message=str(error))
        values = {**self._values(tree), "revision": subject.revision.id}
        trouble = self._run(
            recipe.steps,
            recipe.env,
            place,
            directory=tree / recipe.directory,
            values=values,
            timeout_seconds=recipe.timeout_seconds,
        )
        if trouble is not None:
            return Failure(stage="build", message=trouble.message)
        return self._artefact(key, tree, recipe.outputs, log)

    def _link(
        self,
        built: Built,
        place: _Place,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        timeout_seconds: float,
    ) -> _Trouble | None:
        remove_tree(place.home)
        place.home.mkdir(parents=True)
        if not steps:
            return None
        Log(path=place.log).begin()
        tree = Path(built.directory)
        values = {**self._values(tree), "out": str(place.home)}
        return self._run(
            steps, env, place, directory=place.home, values=values, timeout_seconds=timeout_seconds
        )

    def _run(
        self,
        steps: Sequence[str],
        env: Mapping[str, str],
        place: _Place,
        *,
        directory: Path,
        values: Mapping[str, str],
        timeout_seconds: float,
    ) -> _Trouble | None:
        """Run shell lines with placeholders filled: as single words in lines, as they are in variables."""
        log = Log(path=place.log)
        if not directory.is_dir() or not directory.resolve().is_relative_to(place.home.resolve()):
            message = f"build.directory {directory.name!r}: no such directory in this revision"
            log.note(f"[{message}]")
            return _Trouble(message=message)
        cache = self._builds / "ccache" if has_compiler_cache() else None
        if cache is not None and steps:
            log.note(f"# compilers through ccache, kept in {cache}")
        remove_tree(place.temporary)
        place.temporary.mkdir()
        run = Steps(
            lines=[fill(step, values, shlex.quote) for step in steps],
            directory=directory,
            environment={
                **build_environment(temporary=place.temporary, compiler_cache=cache),
                **{name: fill(value, values) for name, value in env.items()},
            },
            timeout_seconds=timeout_seconds,
        )
        message = run.run(self._starter, log)
        remove_tree(place.temporary)
        return _Trouble(message=message) if message else None

    def _artefact(self, key: str, tree: Path, outputs: Sequence[str], log: Log) -> str | Failure:
        if not outputs:
            return key
        content = content_of(tree, outputs, keys=[key])
        if content.files == 0:
            message = f"outputs matched nothing: {', '.join(outputs)}"
            log.note(f"[{message}]")
            return Failure(stage="build", message=message)
        return content.digest[: len(key)]

    def _link_artefact(self, built: Built, key: str, place: _Place, files: Collection[str]) -> str:
        """Name what a benchmark's lines made; along with the subject's outputs when it leads back to them.

        A program linked against a shared library looks the same for every subject: only the path it
        looks for the library in tells that it is not one program.
        """
        made = content_of(place.home, None, keys=[built.key, key])
        subject = built.artefact if made.mentions_build else ""
        return content_key(made.digest, content_of_files(files, below=self._study), subject)

    def _values(self, tree: Path) -> dict[str, str]:
        return {"build": str(tree), "study": str(self._study), "cpus": str(self._cpus)}

    def _named_files(self, texts: Iterable[str]) -> str:
        return content_of_files(study_files(texts, {}), below=self._study)

    def _lock(self, key: str) -> Path:
        return self._builds / "locks" / f"{key}.lock"

    def _version(self, program: str, argument: str) -> str:
        environment = {"PATH": search_path(), "LC_ALL": "C.UTF-8"}
        return version_of(self._starter, program, argument, environment)


def _built(key: str, place: _Place, finished: Finished, *, reused: bool) -> Built:
    return Built(
        key=key,
        artefact=finished.artefact,
        directory=str(place.home / "tree"),
        seconds=finished.seconds,
        log=finished.log,
        reused=reused,
    )
