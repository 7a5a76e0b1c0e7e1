"""Makes subjects on this machine, in place, and keeps what came of them by content.

Says in words what was removed to make room on the disk, and when there is too little of it.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import (
    Finished,
    built_of,
    content_of,
    content_of_files,
    read_finished,
    write_finished,
)
from perftrail.builds.incremental import Job, ReusedTrees
from perftrail.builds.quota import Disk, bytes_below
from perftrail.builds.relinking import changeable, keep_outputs, put_back
from perftrail.builds.repairs import repairs_key
from perftrail.builds.steps import Log
from perftrail.builds.trees import NO_SOURCES, NO_TREES, Trees, beside_link
from perftrail.builds.users import Users
from perftrail.builds.workbench import Place, Workbench, artefact_of, workplace
from perftrail.errors import StaleBuilds
from perftrail.file_tree import alone, remove_tree
from perftrail.model.build import Built, Failure, Prepared, content_key
from perftrail.model.placeholders import names
from perftrail.model.quantity import counted, quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.builds.incremental import Made
    from perftrail.model.build import Recipe, Workplace
    from perftrail.model.subject import Revision, Subject
    from perftrail.ports import Enclosing, Source, Starter


class Room:
    """The room that a study allows its builds; without a budget there is always enough."""

    def __init__(self, builds: Path, users: Users, *, budget_bytes: float | None) -> None:
        self._disk = Disk(builds, users, budget_bytes=budget_bytes) if budget_bytes else None
        self._told_over = False

    @property
    def bounded(self) -> bool:
        """Whether anything may have to go."""
        return self._disk is not None

    def make(self) -> list[str]:
        """Remove what goes beyond the budget; give what there is to say of it."""
        shrunk = self._disk.shrink() if self._disk is not None else None
        if shrunk is None:
            return []
        news = []
        if shrunk.removed:
            gone = quantity(shrunk.removed_bytes, "B")
            news.append(f"{counted(shrunk.removed, 'build')} removed to make room on the disk ({gone})")
        if shrunk.over and not self._told_over:
            self._told_over = True
            needed, allowed = quantity(shrunk.needed_bytes, "B"), quantity(shrunk.budget_bytes, "B")
            news.append(
                f"the builds in use need {needed}, more than build.disk leaves them ({allowed}): they stay"
            )
        return news


_FORM = 1
"""Changes when what a key stands for changes, so that older builds are made anew."""


class LocalBuilder:
    """Implements `ports.Builder` with directories below `builds` and a log for each build below `logs`.

    A build is finished when its marker is there; without one, whatever a kill left is removed first.
    Several perftrails may share the directories: a lock for each key keeps them apart.
    """

    def __init__(  # noqa: PLR0913 - each is an edge or a place of its own, named where it is given
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
        enclosing: Enclosing | None = None,
        disk_bytes: float | None = None,
    ) -> None:
        self._enclosing = enclosing
        self._builds = Path(builds).absolute()
        self._logs = Path(logs).absolute()
        self._study = Path(study_directory).absolute()
        self._bench = Workbench(
            Trees(source, others=others, folders=folders),
            starter,
            builds=self._builds,
            study=self._study,
            cpus=cpus,
            enclosing=enclosing,
            disk_bytes=disk_bytes,
        )
        self._users = Users(self._builds)
        self._room = Room(self._builds, self._users, budget_bytes=disk_bytes)
        self._news: list[str] = []
        self._reused = ReusedTrees(self._builds, self._users)
        self._stale: tuple[str, ...] = ()

    def key(self, subject: Subject, recipe: Recipe) -> str:
        """Name the tree, the recipe with the study's files that it names, and the tools that it runs."""
        tied = any("revision" in names(text) for text in (*recipe.steps, *recipe.env.values()))
        return content_key(
            _FORM,
            self._bench.trees.content_of(subject.revision, recipe),
            subject.revision.id if tied else "",
            *self._inputs(recipe),
        )

    def _inputs(self, recipe: Recipe) -> tuple[object, ...]:
        """Name what goes into a build beside the revision."""
        texts = (*recipe.steps, *recipe.env.values())
        return (
            recipe.directory,
            list(recipe.steps),
            dict(recipe.env),
            list(recipe.outputs),
            self._bench.named_files(texts),
            self._bench.tools.fingerprint(texts),
            *repairs_key(recipe.repairs, self._study),
            *self._bench.trees.content(recipe.sources),
            *(["only outputs"] if recipe.incremental else []),
            *(self._enclosing.sees("build") if self._enclosing is not None else ()),
        )

    @property
    def hands(self) -> int:
        """How many subjects are made at once: alone, one."""
        return 1

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Begin nothing: alone, each subject is made when it is asked for."""

    def is_made(self, key: str) -> bool:
        """Whether a build lies there finished."""
        return (self._builds / key / "built.json").is_file()

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Make a subject in ``builds/KEY/tree``, or give the one that is there already."""
        key = self.key(subject, recipe)
        place = self._place(key)
        home = place.home
        with alone(self._lock(key)):
            self._users.claim(key)
            put_back(home)
            finished = read_finished(place.marker)
            if finished is not None and (home / "tree").is_dir():
                os.utime(place.marker)
                return built_of(key, finished, str(place.home / "tree"), reused=True)
            began = time.monotonic()
            outcome = self._make(key, place, subject, recipe)
            seconds = time.monotonic() - began
            if isinstance(outcome, Failure):
                remove_tree(home)
                return Failure(
                    stage=outcome.stage, message=outcome.message, log=str(place.log), seconds=seconds
                )
            room = bytes_below(place.home)
            finished = Finished(artefact=outcome, seconds=seconds, log=str(place.log), bytes=room)
            write_finished(place.marker, finished)
        self._take_back()
        self._news += self._room.make()
        return built_of(key, finished, str(place.home / "tree"), reused=False)

    def layout_key(self, built: Built, recipe: Recipe, layout: int) -> str:
        """Name a built subject, the lines that relink with the study's files and the tools they run, and the seed.

        Its artefact counts too: layouts of a discarded build are not layouts of its replacement.
        """
        named, tools = self._bench.named_files(recipe.relink), self._bench.tools.fingerprint(recipe.relink)
        return content_key(
            _FORM, "layout", built.key, built.artefact, list(recipe.relink), named, tools, layout
        )

    def relink(
        self, subject: Subject, recipe: Recipe, built: Built, layouts: Sequence[int]
    ) -> Mapping[int, Built | Failure]:
        """Link a built subject again for each layout, in one visit to its objects; keep outputs like builds.

        A layout that is there already is given. The first that fails is the last that is tried.
        """
        keys = {layout: self.layout_key(built, recipe, layout) for layout in layouts}
        found: dict[int, Built | Failure] = {}
        for layout, key in keys.items():
            self._users.claim(key)
            finished = read_finished(self._place(key).marker)
            if finished is not None:
                tree = str(self._place(key).home / "tree")
                found[layout] = built_of(key, finished, tree, reused=True, layout=layout)
        missing = {layout: key for layout, key in keys.items() if layout not in found}
        if missing:
            found |= self._relink(subject, recipe, built, missing)
            self._news += self._room.make()
        return {layout: found[layout] for layout in layouts if layout in found}

    def _relink(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Relink in a copy of the tree that holds the objects; all that this takes beside is shared equally."""
        found: dict[int, Built | Failure] = {}
        began = time.monotonic()
        with alone(self._lock(built.key)), self._objects(subject, recipe, built) as at:
            if isinstance(at, Failure):
                layout, key = next(iter(missing.items()))
                place = self._place(key)
                Log(path=place.log).begin()
                Log(path=place.log).note(f"[{at.message}]")
                return {layout: replace(at, stage="relink", log=at.log or str(place.log))}
            share = (time.monotonic() - began) / len(missing)
            for layout, key in missing.items():
                found[layout] = self._relinked_once(subject, recipe, at, key, layout, share)
                if isinstance(found[layout], Failure):
                    break
        return found

    def _relinked_once(
        self, subject: Subject, recipe: Recipe, at: Place, key: str, layout: int, share: float
    ) -> Built | Failure:
        place = self._place(key)
        remove_tree(place.home)
        place.home.mkdir(parents=True)
        log = Log(path=place.log)
        log.begin()
        log.note(f"# {subject.revision.id} as {subject.variant}, relinked with layout {layout}")
        began = time.monotonic()
        trouble = self._bench.run(
            self._bench.filled(subject, recipe, at, layout=layout), replace(at, log=place.log)
        )
        message = trouble.message if trouble is not None else ""
        artefact = ""
        if not message:
            try:
                artefact = keep_outputs(
                    at.home / "tree", recipe.outputs, below=place.home / "tree", key=at.home.name
                )
            except LookupError as error:
                message = str(error.args[0])
                log.note(f"[{message}]")
        seconds = time.monotonic() - began + share
        if message:
            remove_tree(place.home)
            return Failure(stage="relink", message=message, log=str(place.log), seconds=seconds)
        finished = Finished(
            artefact=artefact, seconds=seconds, log=str(place.log), bytes=bytes_below(place.home)
        )
        write_finished(place.marker, finished)
        return built_of(key, finished, str(place.home / "tree"), reused=False, layout=layout)

    @contextmanager
    def _objects(self, subject: Subject, recipe: Recipe, built: Built) -> Iterator[Place | Failure]:
        """Give a place with a build's objects, to be changed: its own, or a reused tree where it is built again."""
        place = self._place(built.key)
        if not (place.home / "tree").is_symlink():
            with changeable(place.home):
                yield place
            return
        job = self._job(built.key, place, subject, recipe)
        log = job.log.with_suffix(".objects.log")
        Log(path=log).begin()
        with self._reused.objects(replace(job, log=log), artefact=built.artefact) as at:
            yield at

    def link_key(
        self,
        built: Built,
        *,
        steps: Sequence[str],
        env: Mapping[str, str],
        files: Collection[str],
        sources: Mapping[str, Revision] = NO_SOURCES,
    ) -> str:
        """Name a built subject, a benchmark's lines with the study's files, and the tools that they run."""
        texts = (*steps, *env.values())
        named = self._bench.named_files(texts)
        used = content_of_files(files, below=self._study)
        tools = self._bench.tools.fingerprint(texts) if steps else []
        beside = self._bench.trees.content(sources)
        return content_key(_FORM, built.key, list(steps), dict(env), named, used, tools, *beside)

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
        """Run a benchmark's lines with ``{out}`` at ``builds/KEY/bench/LINK``, or give what is there."""
        key = self.link_key(built, steps=steps, env=env, files=files, sources=sources)
        bench = Path(built.directory).parent / "bench"
        place = Place(
            home=bench / key,
            marker=bench / f"{key}.json",
            log=self._logs / f"{built.key}-{key}.log",
            temporary=bench / f"{key}.tmp",
        )
        with alone(self._lock(built.key)):
            finished = read_finished(place.marker)
            if finished is None:
                began = time.monotonic()
                if steps or sources:
                    Log(path=place.log).begin()
                trouble = self._bench.lay(built, place, sources) or self._bench.link(
                    built, place, steps=steps, env=env, timeout_seconds=timeout_seconds
                )
                seconds = time.monotonic() - began
                if trouble is not None:
                    remove_tree(place.home)
                    remove_tree(beside_link(place.home))
                    return Failure(
                        stage=trouble.stage, message=trouble.message, log=str(place.log), seconds=seconds
                    )
                artefact = self._link_artefact(built, key, place, files)
                room = bytes_below(place.home) + bytes_below(beside_link(place.home))
                finished = Finished(artefact=artefact, seconds=seconds, log=str(place.log), bytes=room)
                write_finished(place.marker, finished)
        return Prepared(built=built, out=str(place.home), artefact=finished.artefact)

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Compare with clean builds what went on in used trees and was not checked yet, and all witnesses."""
        self._take_in(self._reused.confirm())
        for subject, recipe in witnesses:
            if recipe.incremental:
                key = self.key(subject, recipe)
                with alone(self._lock(key)):
                    vouched = self._reused.vouch(self._job(key, self._place(key), subject, recipe))
                self._take_in(vouched)

    def need(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Keep what may be there of subjects from being removed to make room, until this process ends."""
        if self._room.bounded:
            for subject, recipe in subjects:
                self._users.claim(self.key(subject, recipe))

    def news(self) -> tuple[str, ...]:
        """Give what was done beside making subjects since this was asked last, in words."""
        news, self._news = tuple(self._news), []
        return news

    def close(self) -> None:
        """Let go of the builds that were used here, as the end of the process does too."""
        self._users.close()

    def _take_in(self, made: Made) -> None:
        self._stale = made.stale
        self._news += made.news
        self._take_back()

    def _place(self, key: str) -> Place:
        home, log = self._builds / key, self._logs / f"{key}.log"
        return Place(home=home, marker=home / "built.json", log=log, temporary=home / "tmp")

    def _take_back(self) -> None:
        """Make builds unfinished that a check found to be dubious. Raises `StaleBuilds` when there are any."""
        stale, self._stale = self._stale, ()
        for key in stale:
            (self._builds / key / "built.json").unlink(missing_ok=True)
        if stale:
            raise StaleBuilds(stale)

    def command_placeholders(self, prepared: Prepared) -> Mapping[str, str]:
        """Give what the machine's placeholders and ``{out}`` stand for in the benchmark's command."""
        return self._bench.link_values(Path(prepared.built.directory), Path(prepared.out))

    def lay_out(self, subject: Subject, recipe: Recipe, directory: str) -> Workplace:
        """Put a subject's repaired tree into ``DIRECTORY/tree``, with its log beside; keeps nothing of it."""
        home = Path(directory).absolute()
        place = Place(home=home, marker=home / "built.json", log=home / "log", temporary=home / "tmp")
        tree = self._bench.tree(place, subject, recipe)
        place.temporary.mkdir()
        return workplace(self._bench.filled(subject, recipe, place), place, tree)

    def _make(self, key: str, place: Place, subject: Subject, recipe: Recipe) -> str | Failure:
        """Make a subject anew and give its artefact."""
        if (outcome := self._reusing(key, place, subject, recipe)) is not None:
            return outcome
        tree = self._bench.tree(place, subject, recipe)
        if isinstance(tree, Failure):
            return tree
        trouble = self._bench.run(self._bench.filled(subject, recipe, place), place)
        if trouble is not None:
            return Failure(stage="build", message=trouble.message)
        return artefact_of(key, tree, recipe.outputs, Log(path=place.log))

    def _reusing(self, key: str, place: Place, subject: Subject, recipe: Recipe) -> str | Failure | None:
        """Make a subject in the tree of another one; `None` where it is to be made in a clean one."""
        if not recipe.incremental or recipe.sources:
            return None
        made = self._reused.make(self._job(key, place, subject, recipe), place.home)
        self._stale, self._news = made.stale, [*self._news, *made.news]
        return made.outcome

    def _job(self, key: str, place: Place, subject: Subject, recipe: Recipe) -> Job:
        def build(at: Place) -> str:
            trouble = self._bench.run(self._bench.filled(subject, recipe, at), at)
            return trouble.message if trouble else ""

        return Job(
            key=key,
            recipe=content_key(_FORM, recipe.root, *self._inputs(recipe)),
            outputs=recipe.outputs,
            log=place.log,
            lay_out=lambda at: self._bench.tree(at, subject, recipe),
            build=build,
        )

    def _link_artefact(self, built: Built, key: str, place: Place, files: Collection[str]) -> str:
        """Name what a benchmark's lines made; along with the subject's outputs when it leads back to them.

        A program linked against a shared library looks the same for every subject: only the path it
        looks for the library in tells that it is not one program.
        """
        made = content_of(place.home, None, keys=[built.key, key])
        subject = built.artefact if made.mentions_build else ""
        return content_key(made.digest, content_of_files(files, below=self._study), subject)

    def _lock(self, key: str) -> Path:
        return self._builds / "locks" / f"{key}.lock"
