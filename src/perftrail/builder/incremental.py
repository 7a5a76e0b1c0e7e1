"""Makes subjects in a tree that an earlier revision was built in, and checks now and then that this is right.

What comes out lies in ``builds/artefacts/DIGEST``, never in the tree, which the next revision changes.
"""

from __future__ import annotations

import shutil
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.builder.artefact import content_of
from perftrail.builder.moving import listing, move, take
from perftrail.builder.relinking import changeable, put_back
from perftrail.builder.steps import Log
from perftrail.builder.trust import read_state, write_state
from perftrail.builder.workplace import Place
from perftrail.file_lock import alone, alone_if_free
from perftrail.file_tree import remove_tree
from perftrail.model.build import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from perftrail.builder.artefact import Content
    from perftrail.builder.trust import TreeState
    from perftrail.builder.users import Users

MOST_TREES = 64
"""So many builds of one recipe may go on at once, each in a tree of its own."""

USED = "used"
"""The file beside a build that went on in a used tree and was not compared itself; it holds the recipe's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A build to be made in a reused tree.

    `recipe` names all that goes into the build but the revision: trees are shared between equal ones.
    `lay_out` puts the revision into a place, `build` runs the recipe in one and gives its failure's words.
    """

    key: str
    recipe: str
    outputs: Sequence[str]
    log: Path
    lay_out: Callable[[Place], Path | Failure]
    build: Callable[[Place], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came of a job: an artefact or why there is none, nothing when the build takes a tree of its own.

    `stale` names builds made before that may be wrong, as a check found; `news` says so.
    """

    outcome: str | Failure | None
    stale: tuple[str, ...] = ()
    news: tuple[str, ...] = ()


class _Distrust(Exception):
    """Trees of a recipe are not to be used again; its text says why."""

    def __init__(self, why: str, made: Made) -> None:
        super().__init__(why)
        self.made = made


class ReusedTrees:
    """The trees below ``builds/worktrees`` and the artefacts that came out of them."""

    def __init__(self, builds: Path, users: Users) -> None:
        self._builds = builds
        self._users = users
        self._home = builds / "worktrees"
        self._last: dict[Path, Job] = {}

    def distrusted(self, recipe: str) -> str:
        """Say why a recipe's trees are not used any more; nothing while they are."""
        path = self._distrust(recipe)
        return path.read_text("utf-8", errors="replace").strip() if path.is_file() else ""

    def make(self, job: Job, home: Path) -> Made:
        """Make a subject with its outputs at ``home/tree``."""
        if self.distrusted(job.recipe):
            return Made(outcome=None)
        log = Log(path=job.log)
        with self._tree(job) as place:
            try:
                return Made(outcome=self._in_tree(job, place, home, log))
            except _Distrust as distrust:
                self._end_trust(job, place, str(distrust), log)
                return replace(distrust.made, news=(_off(str(distrust)),))

    @contextmanager
    def objects(self, job: Job, *, artefact: str) -> Iterator[Place | Failure]:
        """Give a place whose tree holds a subject's objects, just built, to be changed at will.

        They are those that `artefact` was linked from: a used tree that gives anything else is not believed. It comes
        back as it was, at the revision that was built in it last.
        """
        log = Log(path=job.log)
        with self._tree(job) as place:
            fresh = job.lay_out(replace(place, home=place.home / "incoming"))
            if isinstance(fresh, Failure):
                yield fresh
                return
            state = read_state(place.marker)
            with changeable(place.home):
                content: Content | Failure | None = None
                if state.usable and not self.distrusted(job.recipe):
                    move(place.home / "tree", fresh, before=state.files, now=listing(fresh))
                    content = _attempt(job, place, log)
                if content is None or isinstance(content, Failure) or _name(content, job) != artefact:
                    content = _clean(job, place, log)
                yield content if isinstance(content, Failure) else place
            if not state.usable:
                remove_tree(place.home / "tree")

    def confirm(self) -> Made:
        """Compare what was made here and not checked yet with clean builds; says what may be wrong."""
        last, self._last = self._last, {}
        stale: list[str] = []
        for home, job in last.items():
            checked = replace(job, log=job.log.with_suffix(".check.log"))
            with alone_if_free(self._lock(home)) as free:
                if free:
                    stale += self._confirmed(checked, _place(home, checked))
        why = {self.distrusted(job.recipe) for job in last.values()} if stale else set()
        return Made(outcome=None, stale=tuple(stale), news=tuple(map(_off, sorted(why - {""}))))

    def vouch(self, job: Job) -> Made:
        """Compare a build with a clean one, unless it was or is one; when they differ, none in used trees is right."""
        if not (self._builds / job.key / USED).is_file() or self.distrusted(job.recipe):
            return Made(outcome=None)
        checked = replace(job, log=job.log.with_suffix(".check.log"))
        with self._tree(checked) as place:
            why = self._vouched(checked, place)
        if not why:
            return Made(outcome=None)
        used = sorted(path for path in self._builds.glob(f"*/{USED}") if path.read_text() == job.recipe)
        return Made(outcome=None, stale=tuple(path.parent.name for path in used), news=(_off(why),))

    def _vouched(self, job: Job, place: Place) -> str:
        """Make a build again in a clean tree; say how what was kept of it differs, nothing when it does not."""
        state, log = read_state(place.marker), Log(path=job.log)
        write_state(place.marker, replace(state, usable=False))
        fresh = job.lay_out(replace(place, home=place.home / "incoming"))
        if isinstance(fresh, Failure):
            return ""
        now = listing(fresh)
        clean = _clean(job, place, log)
        home = self._builds / job.key
        if why := _difference(content_of(home / "tree", job.outputs, keys=[]), clean):
            self._end_trust(job, place, why, log)
            return why
        write_state(place.marker, replace(state, usable=True, files=now))
        (home / USED).unlink()
        return ""

    def _in_tree(self, job: Job, place: Place, home: Path, log: Log) -> str | Failure:
        incoming = replace(place, home=place.home / "incoming")
        fresh = job.lay_out(incoming)
        if isinstance(fresh, Failure):
            return fresh
        now, state, tree = listing(fresh), read_state(place.marker), place.home / "tree"
        used = False
        write_state(place.marker, replace(state, usable=False, files=now))
        if state.usable:
            changed = move(tree, fresh, before=state.files, now=now)
            log.note(f"# built on in {tree}: {len(changed)} files differ from the revision before")
            content = _attempt(job, place, log)
            if isinstance(content, Failure):
                log.note("[it is made again in a clean tree before that is believed]")
                state = replace(state, usable=False)
            elif state.check_due:
                content = self._checked(job, place, home, log, state=state, found=content)
                state = state.checked()
            else:
                state, used = state.built(job.key), True
        if not state.usable:
            began = time.monotonic()
            content = _clean(job, place, log)
            state = replace(state, seconds=time.monotonic() - began)
        if isinstance(content, Failure):
            return content
        if content.names_build:
            raise _Distrust("the outputs name the directory that they were built in", Made(outcome=None))
        write_state(place.marker, replace(state, usable=True, files=now))
        self._last[place.home] = job
        name = self._keep(content, tree, home, digits=len(job.key))
        if used:
            (home / USED).write_text(job.recipe)
        return name

    def _checked(
        self, job: Job, place: Place, home: Path, log: Log, *, state: TreeState, found: Content
    ) -> Content:
        """Make a build again in a clean tree at the same place. Raises `_Distrust` when that gives another."""
        clean = _clean(job, place, log)
        why = _difference(found, clean)
        if isinstance(clean, Failure):
            raise _Distrust(why, Made(outcome=clean, stale=state.unchecked))
        if not why:
            log.note("# checked, as one in many is: equal to the clean build")
            return clean
        tree = place.home / "tree"
        outcome = None if clean.names_build else self._keep(clean, tree, home, digits=len(job.key))
        raise _Distrust(why, Made(outcome=outcome, stale=state.unchecked))

    def _confirmed(self, job: Job, place: Place) -> tuple[str, ...]:
        """Compare the last build of a tree with a clean one; give the builds that may be wrong."""
        state, tree = read_state(place.marker), place.home / "tree"
        if not state.usable or job.key not in state.unchecked[-1:]:
            return ()
        found = content_of(tree, job.outputs, keys=[place.home.name])
        write_state(place.marker, replace(state, usable=False))
        log = Log(path=job.log)
        fresh = job.lay_out(replace(place, home=place.home / "incoming"))
        clean = fresh if isinstance(fresh, Failure) else _clean(job, place, log)
        if isinstance(clean, Failure) and clean.stage == "checkout":
            return ()
        if why := _difference(found, clean):
            self._end_trust(job, place, why, log)
            return state.unchecked
        write_state(place.marker, state.checked())
        (self._builds / job.key / USED).unlink(missing_ok=True)
        return ()

    def _end_trust(self, job: Job, place: Place, why: str, log: Log) -> None:
        log.note(f"[{why}; from now on each build is made in a clean tree of its own]")
        self._distrust(job.recipe).write_text(why, encoding="utf-8")
        for path in (place.home / "tree", place.home / "incoming"):
            remove_tree(path)

    def _keep(self, content: Content, tree: Path, home: Path, *, digits: int) -> str:
        """Copy outputs to the place that their content names, unless it is there; let a subject lead to it."""
        name = content.digest[:digits]
        kept = self._builds / "artefacts" / name
        with alone(self._builds / "locks" / "artefacts.lock"):
            if not kept.is_dir():
                ours = kept.with_name(f"{name}.{uuid.uuid4().hex}")
                for each in content.parts:
                    target = ours / "tree" / each
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(tree / each, target, follow_symlinks=False)
                ours.rename(kept)
            remove_tree(home)
            home.mkdir(parents=True)
            (home / "tree").symlink_to(f"../artefacts/{name}/tree")
        return name

    @contextmanager
    def _tree(self, job: Job) -> Iterator[Place]:
        """Give the first of a recipe's trees that nobody builds in."""
        for number in range(MOST_TREES):
            home = self._home / f"{job.recipe}-{number}"
            with alone_if_free(self._lock(home)) as free:
                if free:
                    self._users.claim(home.name)
                    home.mkdir(parents=True, exist_ok=True)
                    put_back(home)
                    yield _place(home, job)
                    return
        raise OSError(f"{self._home}: {MOST_TREES} builds of one recipe go on at once")

    def _lock(self, home: Path) -> Path:
        return self._builds / "locks" / f"{home.name}.lock"

    def _distrust(self, recipe: str) -> Path:
        return self._home / f"{recipe}.distrusted"


def _off(why: str) -> str:
    return f"incremental builds are off: {why}"


def _place(home: Path, job: Job) -> Place:
    return Place(home=home, marker=home / "state.json", log=job.log, temporary=home / "tmp")


def _clean(job: Job, place: Place, log: Log) -> Content | Failure:
    tree = place.home / "tree"
    take(tree, place.home / "incoming" / "tree")
    log.note(f"# built in the clean tree {tree}")
    return _attempt(job, place, log)


def _attempt(job: Job, place: Place, log: Log) -> Content | Failure:
    message = job.build(place)
    if message:
        return Failure(stage="build", message=message)
    content = content_of(place.home / "tree", job.outputs, keys=[place.home.name])
    if content.files:
        return content
    message = f"outputs matched nothing: {', '.join(job.outputs)}"
    log.note(f"[{message}]")
    return Failure(stage="build", message=message)


def _name(content: Content, job: Job) -> str:
    """Name what came out of a build as its artefact is named."""
    return content.digest[: len(job.key)]


def _difference(found: Content, clean: Content | Failure) -> str:
    """Say how a build that went on in a used tree differs from the clean one; nothing when it does not."""
    if isinstance(clean, Failure):
        return "a build that went on in a used tree succeeded where a clean one fails"
    if clean.digest == found.digest:
        return ""
    names = found.parts.keys() | clean.parts.keys()
    differing = sorted(name for name in names if found.parts.get(name) != clean.parts.get(name))
    return f"a build that went on in a used tree differs from a clean one: {', '.join(differing[:5])}"
