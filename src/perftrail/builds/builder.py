"""Build subjects on this machine, and store the outcomes by content key."""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import (
    Finished,
    built_of,
    content_of,
    content_of_files,
    content_of_input,
    output_files,
    present_session,
    read_finished,
    write_finished,
)
from perftrail.builds.build_log import Log
from perftrail.builds.build_runner import (
    BuildRunner,
    StepFailure,
    Workspace,
    artefact_of,
    manual_build,
    recording_of,
)
from perftrail.builds.in_use import BuildsInUse
from perftrail.builds.incremental import Job, ReusedTrees
from perftrail.builds.links.record import (
    NOT_RECORDED,
    CannotPin,
    Pinned,
    RawRecord,
    read_record,
    store_reason,
)
from perftrail.builds.links.record import VERSION as RECORD_VERSION
from perftrail.builds.observing import observer
from perftrail.builds.opened_files import ObservedBuilds
from perftrail.builds.pinning import (
    LINKS,
    LayoutLinker,
    Recordings,
    has_record,
    links_of_benchmark,
    names_of_outputs,
    place_for_links,
    replace_programs,
    store_layout,
    store_record,
)
from perftrail.builds.quota import DiskQuota, bytes_below
from perftrail.builds.relinking import (
    keep_outputs,
    moved_aside,
    restore_trees,
    with_missing_linker,
    working_copy,
)
from perftrail.builds.repairs import repairs_key
from perftrail.builds.trees import (
    NO_SOURCES,
    NO_TREES,
    Trees,
    benchmark_source_trees,
    build_source_trees,
    content_of_outputs,
    no_output_message,
)
from perftrail.errors import REPEAT, ChangedEnvironment, InputChanged, StaleBuilds
from perftrail.file_tree import exclusive_lock, remove_tree
from perftrail.installed_programs import recorder_path
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.placeholders import DATE, names
from perftrail.model.reads import BuildReads
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.builds.artefact import Content
    from perftrail.builds.incremental import JobResult
    from perftrail.builds.steps import ShellSteps
    from perftrail.model.build import BenchmarkLines, ManualBuild, Recipe, Stage
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Isolation, Source, Starter


MOST_OBSERVED_OUTPUTS = 1_000_000
"""More files than any known build has among its outputs."""

MOST_FAILED_OBSERVATIONS = 2
"""Number of builds that may fail under strace before a builder stops observing: each is repeated without it."""

_NUMBER = re.compile(r"\b[0-9a-f]{40}\b|[0-9]+")

_KEY_VERSION = 1
"""Version of the content keys: after a change of this number, perftrail repeats older builds."""


class LocalBuilder:
    """Implements `ports.Builder` with directories below `builds` and a log for each build below `logs`.

    A build is finished when its marker exists; otherwise the remains of a killed build are removed first. Several
    perftrail processes may share the directories: a lock for each key separates them.

    The first build of a recipe runs under strace, which shows the files outside of its tree that it opens. Without
    `_observes`, these files do not count: builders of several machines must compute equal keys.
    """

    _observes = True
    _records_links = True

    def __init__(  # noqa: PLR0913 - each is a separate port or directory, passed by name
        self,
        source: Source,
        starter: Starter,
        *,
        builds: str,
        logs: str,
        study_directory: str,
        cpus: int,
        others: Mapping[str, Source] = NO_TREES,
        folders: Mapping[str, Source] = NO_TREES,
        isolation: Isolation | None = None,
        disk_bytes: float | None = None,
    ) -> None:
        self._isolation = isolation
        self._builds = Path(builds).absolute()
        self._logs = Path(logs).absolute()
        self._study = Path(study_directory).absolute()
        self._runner = BuildRunner(
            Trees(source, others=others, folders=folders),
            starter,
            builds=self._builds,
            study=self._study,
            cpus=cpus,
            isolation=isolation,
            disk_bytes=disk_bytes,
        )
        self._builds_in_use = BuildsInUse(self._builds)
        self._quota = DiskQuota(self._builds, self._builds_in_use, budget_bytes=disk_bytes)
        self._messages: list[str] = []
        self._reused = ReusedTrees(self._builds, self._builds_in_use)
        self._stale: tuple[str, ...] = ()
        self._observed = ObservedBuilds(self._builds / "observed", study=self._study)
        self._session = present_session()
        self._failed_observations = 0
        self._recordings = Recordings(self._runner)

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Return the content key of the tree, the recipe with the study's files that it names, and its tools."""
        named = {name for text in (*recipe.steps, *recipe.env.values()) for name in names(text)}
        return content_key(
            _KEY_VERSION,
            self._runner.trees.content_of(subject.revision, recipe),
            subject.revision.id if "revision" in named else "",
            *self._inputs(recipe),
            # Absent without {date}, so that other builds keep their keys.
            *([["date", subject.revision.date]] if DATE in named else []),
        )

    def _inputs(self, recipe: Recipe) -> tuple[object, ...]:
        """Return the inputs of a build other than the revision."""
        declared = self._declared_inputs(recipe)
        return (*declared, *self._changes(content_key("build", *declared)))

    def _changes(self, inputs: str) -> list[list[str]]:
        """Return the changes of files outside of the tree since a build with these declared inputs was observed.

        None are returned while nothing changed, so that the observed build keeps its key.
        """
        changes = self._observed.of(inputs).changes if self._observes else ()
        return [["changes", *changes]] if changes else []

    def _declared_inputs(self, recipe: Recipe) -> tuple[object, ...]:
        texts = (*recipe.steps, *recipe.env.values())
        return (
            recipe.directory,
            list(recipe.steps),
            dict(recipe.env),
            list(recipe.outputs),
            self._runner.study_files_digest(texts),
            self._runner.tools.fingerprint(texts),
            *repairs_key(recipe.repairs, self._study),
            *self._runner.trees.content(recipe.sources),
            *(["only outputs"] if recipe.incremental else []),
            *(self._isolation.visible_settings("build") if self._isolation is not None else ()),
        )

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds: one."""
        return 1

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Do nothing: this builder builds each subject on request."""

    def is_built(self, key: str) -> bool:
        """Return whether a finished build exists."""
        return (self._builds / key / "built.json").is_file()

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Build a subject in ``builds/KEY/tree``, or return its existing build.

        Raises `InputChanged`, and discards the build, if a file of the study that the recipe names changed meanwhile.
        """
        inputs = {file: content_of_input(file) for file in self._runner.study_files(recipe) if file.is_file()}
        key = self.key(subject, recipe)
        workspace = self._workspace(key)
        home = workspace.home
        with exclusive_lock(self._lock(key)):
            self._builds_in_use.claim(key)
            restore_trees(home)
            finished = read_finished(workspace.marker)
            lacks_links = self._records(recipe) and not has_record(home / LINKS)
            if finished is not None and (home / "tree").is_dir() and not lacks_links:
                os.utime(workspace.marker)
                return built_of(key, finished, str(workspace.home / "tree"), reused=True)
            began = time.monotonic()
            outcome: str | Failure
            try:
                outcome = self._build(key, workspace, subject, recipe)
                size = bytes_below(workspace.home)
            except OSError as error:
                outcome = Failure(stage="build", message=_path_too_long(error))
            seconds = time.monotonic() - began
            for file, content in inputs.items():
                if content_of_input(file) != content:
                    remove_tree(home)
                    raise InputChanged(
                        f"{file}: changed during a build, so perftrail discarded the build; {REPEAT}"
                    )
            if isinstance(outcome, Failure):
                remove_tree(home)
                return Failure(
                    stage=outcome.stage, message=outcome.message, log=str(workspace.log), seconds=seconds
                )
            finished = Finished(
                artefact=outcome, seconds=seconds, log=str(workspace.log), bytes=size, session=self._session
            )
            write_finished(workspace.marker, finished)
        self._raise_if_stale()
        self._messages += self._quota.enforce(size)
        return built_of(key, finished, str(workspace.home / "tree"), reused=False)

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Return the content key of a built subject, its relink lines with their files and tools, and the seed.

        Without such lines, the record of its links is part of the key. The build's artefact is part of it, too:
        layouts of a discarded build are not layouts of its replacement.
        """
        if not recipe.relink:
            digest = read_record(self._builds / built.key / LINKS).digest
            return content_key(
                _KEY_VERSION, "pinned", RECORD_VERSION, built.key, built.artefact, digest, layout
            )
        named, tools = (
            self._runner.study_files_digest(recipe.relink),
            self._runner.tools.fingerprint(recipe.relink),
        )
        return content_key(
            _KEY_VERSION, "layout", built.key, built.artefact, list(recipe.relink), named, tools, layout
        )

    @property
    def records_links(self) -> bool:
        """Whether builds here can record their links."""
        return self._records_links and recorder_path() is not None

    def unpinned(self, prepared: Prepared, recipe: Recipe) -> str:
        """Return why the code of a benchmark's programs cannot be placed; empty if no reason is known."""
        if not recipe.pin:
            return NOT_RECORDED
        links = self._builds / prepared.built.key / LINKS
        if self._records(recipe) and not has_record(links):
            return ""  # the build was removed, or is older than records: it is built again
        own = read_record(links)
        benchmark = links_of_benchmark(Path(prepared.out))
        more = read_record(benchmark) if has_record(benchmark) else Pinned()
        if not (own.programs or more.programs):
            return own.unpinned or more.unpinned or "the build links no program"
        return own.unpinned or more.unpinned

    def _records(self, recipe: Recipe) -> bool:
        return self.records_links and recipe.pin

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link a built subject again for each layout in one pass over its objects; store the outputs like builds.

        Without relink lines, the recorded links are repeated. Existing layouts are returned. The first failure ends the
        work.
        """
        keys = {layout: self.layout_key(built, recipe, layout) for layout in layouts}
        found: dict[int, Built | Failure] = {}
        for layout, key in keys.items():
            self._builds_in_use.claim(key)
            finished = read_finished(self._workspace(key).marker)
            if finished is not None:
                tree = str(self._workspace(key).home / "tree")
                found[layout] = built_of(key, finished, tree, reused=True, layout=layout)
        missing = {layout: key for layout, key in keys.items() if layout not in found}
        if missing:
            relink = self._relink if recipe.relink else self._pin
            found |= relink(subject, recipe, built, missing)
            self._messages += self._quota.enforce()
        return {layout: found[layout] for layout in layouts if layout in found}

    def _relink(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Relink in a copy of the tree with the objects; the layouts share the cost of that copy equally."""
        found: dict[int, Built | Failure] = {}
        began = time.monotonic()
        with exclusive_lock(self._lock(built.key)), self._objects(subject, recipe, built) as at:
            if isinstance(at, Failure):
                layout, key = next(iter(missing.items()))
                workspace = self._workspace(key)
                Log(path=workspace.log).begin()
                Log(path=workspace.log).note(f"[{at.message}]")
                return {layout: replace(at, stage="relink", log=at.log or str(workspace.log))}
            share = (time.monotonic() - began) / len(missing)
            for layout, key in missing.items():
                found[layout] = self._relinked_once(subject, recipe, at, key, layout, share)
                if isinstance(found[layout], Failure):
                    break
        return found

    def _relinked_once(
        self, subject: Subject, recipe: Recipe, at: Workspace, key: str, layout: int, share: float
    ) -> Built | Failure:
        log = Log(path=self._workspace(key).log)
        log.begin()
        log.note(f"# {subject.revision.id} as {subject.variant}, relinked with layout {layout}")

        def relinked(home: Path) -> str:
            steps = self._runner.filled_steps(subject, recipe, at, layout=layout)
            failure = self._runner.run(steps, replace(at, log=log.path))
            if failure is not None:
                raise CannotPin(failure.message)
            return keep_outputs(at.home / "tree", recipe.outputs, below=home / "tree", key=at.home.name)

        made = self._make_layout(key, layout, relinked, log=log, share=share)
        if isinstance(made, Failure):
            return replace(made, message=with_missing_linker(made.message, recipe.relink))
        return made

    def _make_layout(
        self, key: str, layout: int, make: Callable[[Path], str], *, log: Log, share: float = 0.0
    ) -> Built | Failure:
        """Make a layout in an empty directory, and store it like a build; `make` returns its artefact.

        `share` are further seconds that it cost.
        """
        workspace, began = self._workspace(key), time.monotonic()
        remove_tree(workspace.home)
        workspace.home.mkdir(parents=True)
        try:
            artefact = make(workspace.home)
        except (CannotPin, LookupError, OSError) as error:
            remove_tree(workspace.home)
            message = str(error.args[0]) if isinstance(error, LookupError) else str(error)
            log.note(f"[{message}]")
            seconds = time.monotonic() - began + share
            return Failure(stage="relink", message=message, log=str(log.path), seconds=seconds)
        finished = Finished(
            artefact=artefact,
            seconds=time.monotonic() - began + share,
            log=str(log.path),
            bytes=bytes_below(workspace.home, shared=False),
        )
        write_finished(workspace.marker, finished)
        return built_of(key, finished, str(workspace.home / "tree"), reused=False, layout=layout)

    def _pin(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Repeat the recorded links of a build for each layout."""
        found: dict[int, Built | Failure] = {}
        scratch = replace(self._workspace(built.key), log=self._logs / f"{built.key}-layouts.log")
        with exclusive_lock(self._lock(built.key)), place_for_links(scratch):
            Log(path=scratch.log).begin()
            linker = LayoutLinker(self._runner, scratch.home / LINKS, scratch)
            for layout, key in missing.items():
                found[layout] = self._pinned_once(subject, recipe, linker, scratch, key, layout)
                if isinstance(found[layout], Failure):
                    break
        return found

    def _pinned_once(
        self, subject: Subject, recipe: Recipe, linker: LayoutLinker, at: Workspace, key: str, layout: int
    ) -> Built | Failure:
        keys, log = (at.home.name, key), Log(path=at.log)
        log.note(f"# layout {layout} of {subject.revision.id} as {subject.variant}")

        def pinned(home: Path) -> str:
            linked = linker.link(layout, lambda text: text.replace(*keys))
            names = names_of_outputs(at.home / "tree", recipe.outputs)
            store_layout(
                at.home / "tree",
                home / "tree",
                names=names,
                linked=linked,
                keys=keys,
                plain=linker.plain_files,
            )
            store_reason(home / LINKS, "")  # so that benchmark builds against it are recorded
            if not recipe.outputs:
                return key
            return content_of_outputs(home / "tree", recipe.outputs, keys=[key]).digest[: len(key)]

        return self._make_layout(key, layout, pinned, log=log)

    @contextmanager
    def _objects(self, subject: Subject, recipe: Recipe, built: Built) -> Iterator[Workspace | Failure]:
        """Yield a workspace with a build's objects to change: a copy of its tree, or a reused tree, built again."""
        workspace = self._workspace(built.key)
        if not (workspace.home / "tree").is_symlink():
            with working_copy(workspace.home):
                yield workspace
            return
        job = self._job(built.key, workspace, subject, recipe)
        log = job.log.with_suffix(".objects.log")
        Log(path=log).begin()
        with self._reused.objects(replace(job, log=log), artefact=built.artefact) as at:
            yield at

    def benchmark_build_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> str:
        """Return the content key of a built subject, a benchmark's build lines with their files, and their tools."""
        used = content_of_files(files, below=self._study)
        return self._benchmark_build_key(built, steps, env, used, sources)

    def _benchmark_build_key(
        self,
        built: Built,
        steps: Sequence[str],
        env: Mapping[str, str],
        used: str,
        sources: Mapping[str, Revision],
    ) -> str:
        texts = (*steps, *env.values())
        named = self._runner.study_files_digest(texts)
        tools = self._runner.tools.fingerprint(texts) if steps else []
        other_trees = self._runner.trees.content(sources)
        return content_key(
            _KEY_VERSION,
            built.key,
            list(steps),
            dict(env),
            named,
            used,
            tools,
            *other_trees,
            *self._changes(_benchmark_inputs(steps, env)),
        )

    def prepare(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        timeout_seconds: float,
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> Prepared | Failure:
        """Run a benchmark's build lines with ``{out}`` at ``builds/KEY/bench/BENCHMARK_KEY``, unless that exists."""
        used = content_of_files(files, below=self._study)  # only once: the files may be edited meanwhile
        key = self._benchmark_build_key(built, steps, env, used, sources)
        directory = Path(built.directory).parent / "bench"
        workspace = Workspace(
            home=directory / key,
            marker=directory / f"{key}.json",
            log=self._logs / f"{built.key}-{key}.log",
            temporary=directory / f"{key}.tmp",
        )
        with exclusive_lock(self._lock(built.key)):
            finished = read_finished(workspace.marker)
            links = links_of_benchmark(workspace.home)
            records = bool(steps) and has_record(Path(built.directory).parent / LINKS)
            if finished is None or (records and not has_record(links)):
                began = time.monotonic()
                remove_tree(links)
                if steps or sources:
                    Log(path=workspace.log).begin()
                failure = (
                    self._runner.check_out_other_sources(built, workspace, sources)
                    or self._run(
                        _benchmark_inputs(steps, env),
                        workspace,
                        lambda: self._runner.benchmark_steps(
                            built, workspace, steps=steps, env=env, timeout_seconds=timeout_seconds
                        ),
                        recorded=partial(store_record, root=workspace.home, outputs=None, into=links)
                        if records
                        else None,
                        links=links,
                    )
                    or self._pin_benchmark(built, workspace, links)
                )
                seconds = time.monotonic() - began
                if failure is not None:
                    remove_tree(links)
                    message = with_missing_linker(failure.message, steps)
                    return _failed_benchmark(workspace, failure.stage, message, seconds)
                try:
                    finished = _finished_benchmark(built, key, workspace, used, seconds)
                except OSError as error:
                    return _failed_benchmark(workspace, "link", _path_too_long(error), seconds)
                write_finished(workspace.marker, finished)
        return Prepared(built=built, out=str(workspace.home), artefact=finished.artefact)

    def _pin_benchmark(self, built: Built, workspace: Workspace, links: Path) -> Failure | None:
        """Link the programs of a benchmark build again with the seed of the layout that it uses; return a failure."""
        if not (built.layout and has_record(links)):
            return None
        try:
            with place_for_links(workspace):
                linked = LayoutLinker(self._runner, links, workspace).link(built.layout, str)
                replace_programs(workspace.home, linked)
        except (CannotPin, OSError) as error:
            return Failure(stage="relink", message=str(error))
        return None

    @property
    def can_observe(self) -> bool:
        """Whether strace is installed, and the builds are not in a sandbox."""
        return observer() is not None and self._isolation is None

    def inputs_key(self, recipe: Recipe) -> str:
        """Return the content key of a build's inputs except its tree and its revision: recipe, files and tools."""
        return content_key(_KEY_VERSION, recipe.root, *self._inputs(recipe))

    def observe(
        self, subject: Subject, recipe: Recipe, benchmark_builds: Sequence[BenchmarkLines]
    ) -> BuildReads:
        """Build a subject and its benchmarks once more under strace, in a temporary tree, and return what they read.

        Nothing of this build is used: strace slows builds down.
        """
        program = observer()
        if program is None:
            return BuildReads(incomplete="strace is not installed")
        if self._isolation is not None:
            return BuildReads(incomplete="builds in a sandbox are not observed")
        if recipe.incremental or recipe.sources or not recipe.outputs:
            return BuildReads(incomplete="only clean builds of one source with declared outputs are observed")
        name = f"{self.key(subject, recipe)}.observed"
        home, log = self._builds / name, self._logs / f"{name}.log"
        workspace = Workspace(home=home, marker=home / "built.json", log=log, temporary=home / "tmp")
        with exclusive_lock(self._lock(name)):
            try:
                tree = self._runner.check_out(workspace, subject, recipe)
                if isinstance(tree, Failure):
                    return BuildReads(incomplete=f"the revision cannot be checked out: {tree.message}")
                steps = self._runner.filled_steps(subject, recipe, workspace)
                reads = self._runner.observe(program, steps, workspace, tree)
                for number, lines in enumerate(benchmark_builds):
                    own = replace(workspace, home=home / "bench" / str(number))
                    reads |= self._runner.observe_benchmark_build(
                        program, lines, own, tree, timeout_seconds=recipe.timeout_seconds
                    )
                outputs = output_files(tree, recipe.outputs, most=MOST_OBSERVED_OUTPUTS)
                return reads | BuildReads(opened=frozenset(outputs))
            finally:
                remove_tree(home)

    def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Compare unchecked builds in reused trees, and all `decisive` ones, with clean builds.

        Raises `ChangedEnvironment` if a decisive one of an earlier session has other outputs now. It is not built again
        if all files outside of its tree are known, because they are part of its key.
        """
        self._record(self._reused.confirm())
        for subject, recipe in decisive:
            if not recipe.incremental:
                self._build_again(subject, recipe)
            else:
                key = self.key(subject, recipe)
                with exclusive_lock(self._lock(key)):
                    result = self._reused.check_build(self._job(key, self._workspace(key), subject, recipe))
                self._record(result)

    def _build_again(self, subject: Subject, recipe: Recipe) -> None:
        """Build a subject of an earlier session once more, and compare the outputs. Raises `ChangedEnvironment`."""
        inputs = content_key("build", *self._declared_inputs(recipe))
        workspace = self._workspace(self.key(subject, recipe))
        if not self._observes or self._observed.is_complete(inputs):
            return
        with exclusive_lock(self._lock(workspace.home.name)):
            finished = read_finished(workspace.marker)
            if finished is None or finished.session == self._session:
                return
            since = finished.session.partition(" ")[0]
            with moved_aside(workspace.home) as originals:
                before = self._outputs(originals / "tree", recipe).digest
                found = [self._outputs_again(workspace, subject, recipe)]
                if found != [before]:
                    found.append(self._outputs_again(workspace, subject, recipe))
            failed = [each for each in found if isinstance(each, Failure)]
            changed = not failed and found[0] == found[-1] != before
            if not (failed or changed):
                write_finished(workspace.marker, replace(finished, session=self._session))
        if changed:
            self._observed.add_environment(inputs, str(found[0]))
            raise ChangedEnvironment((workspace.home.name,), since=since)
        how = "has equal outputs" if found == [before] else "has other outputs each time"
        how = f"fails now: {failed[0].message}" if failed else how
        self._messages.append(f"built {subject} of {since or 'an earlier session'} once more: it {how}")

    def _outputs_again(self, workspace: Workspace, subject: Subject, recipe: Recipe) -> str | Failure:
        """Build a subject in the place of its build, which is elsewhere; return the digest of its outputs."""
        for tree in (workspace.home / "tree", build_source_trees(workspace.home / "tree")):
            remove_tree(tree)
        at = replace(workspace, log=workspace.log.with_suffix(".again.log"))
        checked_out = self._runner.check_out_into(at, subject, recipe)
        if isinstance(checked_out, Failure):
            return checked_out
        failure = self._runner.run(self._runner.filled_steps(subject, recipe, at), at)
        if failure is not None:
            return Failure(stage="build", message=failure.message)
        content = self._outputs(checked_out, recipe)
        if content.files == 0:
            return Failure(stage="build", message=no_output_message(checked_out, recipe.outputs))
        return content.digest

    def _outputs(self, tree: Path, recipe: Recipe) -> Content:
        if recipe.outputs:
            return content_of_outputs(tree, recipe.outputs, keys=())
        return content_of(tree, None, keys=())

    def protect(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Protect existing builds of subjects from removal until this process ends."""
        if self._quota.bounded:
            for subject, recipe in subjects:
                self._builds_in_use.claim(self.key(subject, recipe))

    def messages(self) -> tuple[str, ...]:
        """Return messages since the last call about work other than builds."""
        messages, self._messages = tuple(self._messages), []
        return messages

    def close(self) -> None:
        """Release the builds that were used here; the end of the process does so, too."""
        self._builds_in_use.close()

    def _record(self, result: JobResult) -> None:
        self._stale = result.stale
        self._messages += result.messages
        self._raise_if_stale()

    def _workspace(self, key: str) -> Workspace:
        home, log = self._builds / key, self._logs / f"{key}.log"
        return Workspace(home=home, marker=home / "built.json", log=log, temporary=home / "tmp")

    def _raise_if_stale(self) -> None:
        """Discard builds that a check found to be wrong. Raises `StaleBuilds` if there are any."""
        stale, self._stale = self._stale, ()
        for key in stale:
            (self._builds / key / "built.json").unlink(missing_ok=True)
        if stale:
            raise StaleBuilds(stale)

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Return the values of the machine's placeholders and ``{out}`` in the benchmark's command."""
        return self._runner.benchmark_values(Path(prepared.built.directory), Path(prepared.out))

    def check_out(self, subject: Subject, recipe: Recipe, directory: str) -> ManualBuild:
        """Write a subject's repaired tree into ``DIRECTORY/tree`` and its log into ``DIRECTORY/log``; store nothing."""
        home = Path(directory).absolute()
        workspace = Workspace(home=home, marker=home / "built.json", log=home / "log", temporary=home / "tmp")
        tree = self._runner.check_out(workspace, subject, recipe)
        workspace.temporary.mkdir()
        return manual_build(self._runner.filled_steps(subject, recipe, workspace), workspace, tree)

    def _build(self, key: str, workspace: Workspace, subject: Subject, recipe: Recipe) -> str | Failure:
        """Build a subject and return its artefact."""
        if (outcome := self._build_in_reused_tree(key, workspace, subject, recipe)) is not None:
            return outcome

        def check_out() -> ShellSteps | Failure:
            tree = self._runner.check_out(workspace, subject, recipe)
            return (
                tree if isinstance(tree, Failure) else self._runner.filled_steps(subject, recipe, workspace)
            )

        links = workspace.home / LINKS

        def record(raw: RawRecord) -> None:
            if recipe.sources:
                store_reason(links, "builds of several sources are not recorded")
            else:
                store_record(raw, workspace.home / "tree", recipe.outputs or None, links)

        inputs = content_key("build", *self._declared_inputs(recipe))
        recorded = record if self._records(recipe) else None
        failure = self._run(inputs, workspace, check_out, recorded=recorded, links=links)
        if isinstance(failure, Failure):
            return failure
        if failure is not None:
            return Failure(stage="build", message=failure.message)
        return artefact_of(key, workspace.home / "tree", recipe.outputs, Log(path=workspace.log))

    def _run(
        self,
        inputs: str,
        workspace: Workspace,
        prepare: Callable[[], ShellSteps | Failure],
        *,
        recorded: Callable[[RawRecord], None] | None,
        links: Path,
    ) -> StepFailure | Failure | None:
        """Prepare shell lines and run them: under strace if no build with these declared inputs was observed.

        If they fail under strace, they are prepared and run again without it. `recorded` stores the recorded links in
        the directory `links`; lines that ran under strace are prepared and run again for it, because only one program
        can trace.
        """
        steps = prepare()
        if isinstance(steps, Failure):
            return steps
        program = observer() if steps.lines and self._should_observe(inputs) else None
        if program is not None:
            observed = self._run_observed(program, inputs, steps, workspace)
            if observed and recorded is None:
                return None
            steps = prepare()
            if isinstance(steps, Failure):
                return steps
        if recorded is None:
            return self._runner.run(steps, workspace)
        raw = RawRecord(recording_of(workspace))
        try:
            outcome = self._recordings.run(steps, workspace, raw, again=prepare)
            if not isinstance(outcome, str):
                return outcome
            if outcome:
                store_reason(links, outcome)
            else:
                recorded(raw)
        finally:
            remove_tree(raw.directory)
        return None

    def _run_observed(self, program: str, inputs: str, steps: ShellSteps, workspace: Workspace) -> bool:
        """Run shell lines under strace, the given program; return whether they succeeded."""
        own = (self._builds, self._logs, self._builds.with_name("sources"))
        reads = self._runner.run_observed(program, steps, workspace, ignored=own)
        if isinstance(reads, StepFailure):
            self._failed_observations += 1
            return False
        state = self._observed.of(inputs)
        if state.changed:
            self._messages.append(
                f"builds again, because {counted(len(state.changed), 'file')} that the build opens changed, for "
                f"example {state.changed[0]}"
            )
        if reads.incomplete:
            self._messages.append(
                f"perftrail does not know each file that the build uses: {reads.incomplete}"
            )
        self._observed.add(inputs, reads.outside, incomplete=reads.incomplete)
        return True

    def _should_observe(self, inputs: str) -> bool:
        return (
            self._observes
            and self._isolation is None
            and self._failed_observations < MOST_FAILED_OBSERVATIONS
            and not self._observed.of(inputs).observed
        )

    def _build_in_reused_tree(
        self, key: str, workspace: Workspace, subject: Subject, recipe: Recipe
    ) -> str | Failure | None:
        """Build a subject in a reused tree; `None` if it needs a clean one."""
        if not recipe.incremental or recipe.sources:
            return None
        result = self._reused.build(self._job(key, workspace, subject, recipe), workspace.home)
        self._stale, self._messages = result.stale, [*self._messages, *result.messages]
        if isinstance(result.outcome, str) and self._records(recipe):
            store_reason(workspace.home / LINKS, "links of builds in reused trees are not recorded")
        return result.outcome

    def _job(self, key: str, workspace: Workspace, subject: Subject, recipe: Recipe) -> Job:
        def build(at: Workspace) -> str:
            failure = self._runner.run(self._runner.filled_steps(subject, recipe, at), at)
            return failure.message if failure else ""

        return Job(
            key=key,
            recipe=self.inputs_key(recipe),
            outputs=recipe.outputs,
            log=workspace.log,
            check_out=lambda at: self._runner.check_out(at, subject, recipe),
            build=build,
        )

    def _lock(self, key: str) -> Path:
        return self._builds / "locks" / f"{key}.lock"


def _benchmark_inputs(steps: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the key under which benchmark builds are observed: lines that differ only in numbers share it."""
    return content_key("benchmark", [_NUMBER.sub("0", step) for step in steps], dict(env))


def _benchmark_artefact(built: Built, key: str, workspace: Workspace, used: str) -> str:
    """Return the artefact of a benchmark build; it includes the subject's outputs if the program refers to them.

    A program linked against a shared library is the same for every subject: only the library's path in it shows that it
    is a different program. `used` is the digest of the study's files that the benchmark names.
    """
    content = content_of(workspace.home, None, keys=[built.key, key])
    subject = built.artefact if content.mentions_build else ""
    return content_key(content.digest, used, subject)


def _failed_benchmark(workspace: Workspace, stage: Stage, message: str, seconds: float) -> Failure:
    """Remove what a failed benchmark build left, and return its failure."""
    remove_tree(workspace.home)
    remove_tree(benchmark_source_trees(workspace.home))
    return Failure(stage=stage, message=message, log=str(workspace.log), seconds=seconds)


def _finished_benchmark(built: Built, key: str, workspace: Workspace, used: str, seconds: float) -> Finished:
    """Return the facts of a finished benchmark build. Raises `OSError`."""
    size = bytes_below(workspace.home) + bytes_below(benchmark_source_trees(workspace.home))
    artefact = _benchmark_artefact(built, key, workspace, used)
    return Finished(artefact=artefact, seconds=seconds, log=str(workspace.log), bytes=size)


def _path_too_long(error: OSError) -> str:
    """Return the message for a build whose tree has too long paths. Raises other errors again."""
    if error.errno != errno.ENAMETOOLONG:
        raise error
    why = error.strerror or str(error)
    return f"its tree cannot be used: {why[:1].lower()}{why[1:]}"
