"""Run builds and benchmark builds: check out trees, fill placeholders, run shell lines, write logs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of_files
from perftrail.builds.build_log import Log, log_excerpt
from perftrail.builds.compiler_caches import CACHE_SHARE, Caches, has_ccache, is_usable_sccache, write_wrapper
from perftrail.builds.environment import build_environment, search_path
from perftrail.builds.links.record import CannotPin
from perftrail.builds.named_files import named_files
from perftrail.builds.observing import OPENING_CALLS, Scope, observing_words, read_opened, read_trace
from perftrail.builds.repairs import repair
from perftrail.builds.steps import MOST_OUTPUT_BYTES, ShellSteps
from perftrail.builds.toolchain import local_tools, version_of
from perftrail.builds.trees import (
    benchmark_source_trees,
    build_source_trees,
    content_of_outputs,
    no_output_message,
    values_of,
)
from perftrail.errors import CheckoutFailed
from perftrail.file_tree import real_path, remove_tree, user_home
from perftrail.model.build import NO_DIRECTORY, Failure, ManualBuild
from perftrail.model.placeholders import DATE, LAYOUT, fill, names
from perftrail.model.process import Command, describe_end
from perftrail.model.reads import BuildReads
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.builds.links.replay import Linker
    from perftrail.builds.trees import Trees
    from perftrail.model.build import BenchmarkLines, Built, Recipe, Stage
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Isolation, Starter


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Directories and files of a build.

    A failed build leaves only `log`. A killed one may leave `home` and `temporary`; the next attempt removes these.
    """

    home: Path
    marker: Path
    log: Path
    temporary: Path

    def contains(self, directory: Path) -> bool:
        """Return whether a path is a directory inside `home`, also through symbolic links."""
        return directory.is_dir() and real_path(directory).is_relative_to(real_path(self.home))

    def shortened(self, text: str) -> str:
        """Shorten paths inside the tree and the temporary directory in a text."""
        return text.replace(f"{self.home / 'tree'}/", "").replace(f"{self.temporary}/", "")


def recording_of(workspace: Workspace) -> Path:
    """Return the directory into which the recorder of a build's links writes."""
    return workspace.temporary.with_name(f"{workspace.temporary.name}.recording")


_SETTINGS = r"\.(?!(?:local|pyenv|rustup)/)"
"""Caches and settings in the home directory: its hidden files, except directories with programs and libraries."""

LONGEST_LINK_SECONDS = 600.0
"""Longest time of one link that is repeated."""

LONGEST_NOTE = 10_000
"""Characters of a linker's output that the log keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTemplates:
    """Shell lines and variables of the study with open placeholders, their directory and their timeout."""

    steps: Sequence[str]
    env: Mapping[str, str]
    directory: Path
    timeout_seconds: float

    def fill(self, workspace: Workspace, values: Mapping[str, str], *, caches: Caches) -> ShellSteps:
        """Fill placeholders: quoted as single words in lines, unquoted in variables."""
        return ShellSteps(
            lines=[fill(step, values, shlex.quote) for step in self.steps],
            directory=self.directory,
            environment={
                **caches.environment(build_environment(temporary=workspace.temporary), home=workspace.home),
                **{name: fill(value, values) for name, value in self.env.items()},
            },
            timeout_seconds=self.timeout_seconds,
        )


def manual_build(steps: ShellSteps, workspace: Workspace, tree: Path | Failure) -> ManualBuild:
    """Return the directory in which a person can run the steps; the tree's root if the steps' directory is missing."""
    root = workspace.home / "tree"
    directory = (
        steps.directory if workspace.contains(steps.directory) else root if root.is_dir() else workspace.home
    )
    return ManualBuild(
        directory=str(directory),
        environment=steps.environment,
        lines=tuple(steps.lines),
        log=str(workspace.log),
        failure=tree if isinstance(tree, Failure) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailure:
    """The reason of a failed build; the caller may replace its stage."""

    message: str
    stage: Stage = "link"


class BuildRunner:
    """Checks out trees and runs shell lines in them, for one study on this machine."""

    def __init__(
        self,
        trees: Trees,
        starter: Starter,
        *,
        builds: Path,
        study: Path,
        cpus: int,
        isolation: Isolation | None,
        disk_bytes: float | None,
    ) -> None:
        self.trees = trees
        self.tools = local_tools(starter, study=study)
        self._starter = starter
        self._isolation = isolation
        self._builds = builds
        self._study = study
        self._cpus = cpus
        self._disk_bytes = disk_bytes

    def check_out(self, workspace: Workspace, subject: Subject, recipe: Recipe) -> Path | Failure:
        """Check a subject out, repair its tree and start its log; return the tree, or the failure."""
        remove_tree(workspace.home)
        workspace.home.mkdir(parents=True)
        return self.check_out_into(workspace, subject, recipe)

    def check_out_into(self, workspace: Workspace, subject: Subject, recipe: Recipe) -> Path | Failure:
        """Check a subject out as `check_out` does, into a directory that has other files, but no tree."""
        log = Log(path=workspace.log)
        log.begin()
        source = self.trees.of(recipe)
        log.note(f"# {subject.revision.id} as {subject.variant}, content {source.content(subject.revision)}")
        if not subject.revision.date and any(DATE in names(text) for text in _texts(recipe)):
            return Failure(stage="build", message=f"its recipe uses {{{DATE}}}, but the revision has no date")
        tree = workspace.home / "tree"
        try:
            source.materialise(subject.revision, str(tree), str(workspace.log))
            self.trees.check_out(recipe.sources, build_source_trees(tree), workspace.log)
        except CheckoutFailed as error:
            log.note(f"[{error}]")
            return Failure(stage="checkout", message=str(error))
        if message := repair(recipe.repairs, tree, study=self._study, starter=self._starter, log=log):
            return Failure(stage="build", message=message)
        return tree

    def observe_benchmark_build(
        self, program: str, lines: BenchmarkLines, workspace: Workspace, tree: Path, *, timeout_seconds: float
    ) -> BuildReads:
        """Run a benchmark's build lines against an observed build under strace; return what they use of its tree."""
        workspace.home.mkdir(parents=True)
        values = self.benchmark_values(tree, workspace.home)
        templates = StepTemplates(
            steps=lines.steps, env=lines.env, directory=workspace.home, timeout_seconds=timeout_seconds
        )
        filled = templates.fill(workspace, values, caches=self.caches)
        return self.observe(program, filled, workspace, tree)

    def check_out_other_sources(
        self, built: Built, workspace: Workspace, sources: Mapping[str, Revision]
    ) -> StepFailure | None:
        """Check out the other sources' trees that a benchmark needs and that the build does not have."""
        existing = build_source_trees(Path(built.directory))
        wanted = {name: revision for name, revision in sources.items() if not (existing / name).is_dir()}
        try:
            self.trees.check_out(wanted, benchmark_source_trees(workspace.home), workspace.log)
        except CheckoutFailed as error:
            Log(path=workspace.log).note(f"[{error}]")
            return StepFailure(message=str(error), stage="checkout")
        return None

    def benchmark_steps(
        self,
        built: Built,
        workspace: Workspace,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        timeout_seconds: float,
    ) -> ShellSteps:
        """Return a benchmark's build lines without open placeholders, and empty their directory."""
        remove_tree(workspace.home)
        workspace.home.mkdir(parents=True)
        tree = Path(built.directory)
        values = self.benchmark_values(tree, workspace.home)
        templates = StepTemplates(
            steps=steps, env=env, directory=workspace.home, timeout_seconds=timeout_seconds
        )
        return templates.fill(workspace, values, caches=self.caches)

    def filled_steps(
        self, subject: Subject, recipe: Recipe, workspace: Workspace, *, layout: int = 0
    ) -> ShellSteps:
        """Return a recipe's lines for a subject's tree without open placeholders; with a layout, its relink lines."""
        tree = workspace.home / "tree"
        templates = StepTemplates(
            steps=recipe.relink if layout else recipe.steps,
            env=recipe.env,
            directory=tree / recipe.directory,
            timeout_seconds=recipe.timeout_seconds,
        )
        values = {**self.values(tree), "revision": subject.revision.id, DATE: subject.revision.date}
        if layout:
            values[LAYOUT] = str(layout)
        return templates.fill(workspace, values, caches=self.caches)

    def observe(self, program: str, steps: ShellSteps, workspace: Workspace, tree: Path) -> BuildReads:
        """Run shell lines under strace, the given program; return the files of the tree that they use."""
        trace = tree.with_name("trace")
        trace.unlink(missing_ok=True)
        failure = self.run(steps.with_prefix(*observing_words(program, trace)), workspace)
        if failure is not None:
            return BuildReads(incomplete=f"the observed build fails: {failure.message}")
        return read_trace(trace, tree=tree, directory=steps.directory) if steps.lines else BuildReads()

    def run_observed(
        self, program: str, steps: ShellSteps, workspace: Workspace, *, ignored: tuple[Path, ...]
    ) -> BuildReads | StepFailure:
        """Run shell lines under strace, the given program; return the files outside of the tree that they open.

        Files below `ignored`, and settings in the home directory, do not count.
        """
        trace = workspace.log.with_suffix(".trace")
        trace.unlink(missing_ok=True)
        settings = re.compile(f"{re.escape(str(user_home()))}/{_SETTINGS}")
        scope = Scope(study=self._study, ignored=ignored, since_ns=time.time_ns(), ignored_paths=settings)
        try:
            prefix = observing_words(program, trace, calls=OPENING_CALLS)
            failure = self.run(steps.with_prefix(*prefix), workspace)
            return failure or read_opened(trace, directory=steps.directory, scope=scope, traced="the build")
        finally:
            trace.unlink(missing_ok=True)

    def run(self, steps: ShellSteps, workspace: Workspace) -> StepFailure | None:
        """Run shell lines; return the reason if they cannot run or one of them fails."""
        log = Log(path=workspace.log)
        if not workspace.contains(steps.directory):
            message = f"{NO_DIRECTORY}{quoted(steps.directory.name)}: no such directory in this revision"
            log.note(f"[{message}]")
            return StepFailure(message=message)
        if steps.lines and (text := str(self.caches)):
            log.note(f"# {text}")
        remove_tree(workspace.temporary)
        workspace.temporary.mkdir()
        with self._isolated(workspace, steps.directory) as starter:
            message = workspace.shortened(steps.run(starter, log))
        remove_tree(workspace.temporary)
        return StepFailure(message=message) if message else None

    @contextmanager
    def linker(self, workspace: Workspace) -> Iterator[Linker]:
        """Yield a function that starts linkers, which can write only to the workspace's temporary directory."""
        log, output = Log(path=workspace.log), workspace.log.with_suffix(".now")
        with self._isolated_in([workspace.temporary]) as starter:

            def run(arguments: Sequence[str], environment: Mapping[str, str], directory: str) -> str:
                log.note(f"$ {shlex.join(arguments)}")
                ran = starter.run(
                    Command(
                        arguments=tuple(arguments),
                        environment=environment,
                        directory=directory,
                        stdout=str(output),
                        stderr=str(output),
                        output_cap_bytes=MOST_OUTPUT_BYTES,
                        timeout_seconds=LONGEST_LINK_SECONDS,
                        tree_memory="off",
                    )
                )
                ended = describe_end(ran.ended, timeout_seconds=LONGEST_LINK_SECONDS)
                text = os.fsdecode(output.read_bytes()) if output.is_file() else ""
                output.unlink(missing_ok=True)
                if ended:
                    log.note(text[-LONGEST_NOTE:])
                    raise CannotPin(f"{Path(arguments[0]).name}, {ended}: {log_excerpt(text)}")
                return text

            yield run

    def _isolated(self, workspace: Workspace, directory: Path) -> AbstractContextManager[Starter]:
        """Return a starter that can write to the trees, the outputs and the temporary files.

        It names each directory instead of their parent, so that a build cannot replace one by a link.
        """
        is_benchmark_build = directory == workspace.home
        tree = (workspace.home.parent.parent if is_benchmark_build else workspace.home) / "tree"
        own = (workspace.home, benchmark_source_trees(workspace.home)) if is_benchmark_build else ()
        recording = recording_of(workspace)
        directories = (tree, build_source_trees(tree), *own, workspace.temporary, recording)
        return self._isolated_in([each for each in directories if each.is_dir() and not each.is_symlink()])

    def _isolated_in(self, writable: Sequence[Path]) -> AbstractContextManager[Starter]:
        if self._isolation is None:
            return nullcontext(self._starter)
        return self._isolation.sandboxed("build", list(map(str, writable)))

    @property
    def caches(self) -> Caches:
        """The compiler caches of this machine, and their directories."""
        program = self._sccache_program
        sccache = self._builds / "sccache" if program else None
        if program and sccache is not None:
            write_wrapper(sccache, program)
        return Caches(
            ccache=self._builds / "ccache" if has_ccache() else None,
            sccache=sccache,
            sccache_bytes=None if self._disk_bytes is None else self._disk_bytes * CACHE_SHARE,
        )

    @cached_property
    def _sccache_program(self) -> str:
        """The path of a usable sccache, or empty: in a sandbox, a build writes nothing that another build reads."""
        program = None if self._isolation is not None else shutil.which("sccache", path=search_path())
        return (
            program if program is not None and is_usable_sccache(self._version(program, "--version")) else ""
        )

    def values(self, tree: Path) -> dict[str, str]:
        """Return the values of placeholders in a build in this tree."""
        other_trees = values_of(build_source_trees(tree))
        return {"build": str(tree), "study": str(self._study), "cpus": str(self._cpus), **other_trees}

    def benchmark_values(self, tree: Path, out: Path) -> dict[str, str]:
        """Return the values of placeholders in a benchmark's build lines and command."""
        return {**self.values(tree), **values_of(benchmark_source_trees(out)), "out": str(out)}

    def study_files(self, recipe: Recipe) -> Sequence[Path]:
        """Return the files of the study that a recipe names, copies into the tree or applies."""
        named = named_files(_texts(recipe), {}, below=self._study)
        return [
            self._study / name for name in (*named, *recipe.repairs.overlay.values(), *recipe.repairs.patches)
        ]

    def study_files_digest(self, texts: Iterable[str]) -> str:
        """Return the digest of the study's files that texts name."""
        return content_of_files(named_files(texts, {}, below=self._study), below=self._study)

    def _version(self, program: str, argument: str) -> str:
        environment = {"PATH": search_path(), "LC_ALL": "C.UTF-8"}
        return version_of(self._starter, program, argument, environment)


def _texts(recipe: Recipe) -> tuple[str, ...]:
    return (*recipe.steps, *recipe.env.values())


def artefact_of(key: str, tree: Path, outputs: Sequence[str], log: Log) -> str | Failure:
    """Return the digest of a build's outputs; without declared outputs, the content key of its inputs."""
    if not outputs:
        return key
    content = content_of_outputs(tree, outputs, keys=[key])
    if content.files == 0:
        message = no_output_message(tree, outputs)
        log.note(f"[{message}]")
        return Failure(stage="build", message=message)
    return content.digest[: len(key)]
