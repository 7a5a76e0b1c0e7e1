"""Makes subjects in a tree that an earlier revision was built in, and checks now and then that this is right.

What comes out lies in ``builds/artefacts/DIGEST``, never in the tree, which the next revision changes.

Turns one revision's tree into another's in place, so that what a build left there is used again.

What is remembered of a tree that goes from revision to revision, and how far it is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of, write_durably
from perftrail.builds.relinking import changeable, put_back
from perftrail.builds.steps import Log
from perftrail.builds.workbench import Place
from perftrail.file_tree import alone, alone_if_free, remove_tree
from perftrail.model.build import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.builds.artefact import Content
    from perftrail.builds.users import Users


TIE = ".git"
"""The file that ties a tree to its mirror, and a submodule's in it to its own: each checkout has other ones."""

_TIED = "tie"


def listing(tree: Path) -> dict[str, str]:
    """Name what each file and link of a fresh tree holds: by its path, kind and content in one digest.

    Ties are all alike: what they hold is no difference between revisions.
    """
    return {
        name: _TIED if _is_tie(tree / name) else _digest(tree / name) for name in sorted(_names(tree, ""))
    }


def move(tree: Path, fresh: Path, *, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Make of a tree that was `before` what `fresh` is `now`; gives the paths that differ.

    A file that both revisions have in common is left as it is, with its date and whatever a build made of
    it. All others get one date, later than everything that was built before: builds compare dates. Ties are
    those of `fresh`, with its own dates.
    """
    gone = [name for name in before if name not in now]
    for name in gone:
        _remove(tree, name)
    ties = [name for name, content in now.items() if content == _TIED]
    changed = [name for name, content in now.items() if before.get(name) != content and content != _TIED]
    stamp = time.time_ns()
    for name in changed:
        target = _room(tree, name)
        shutil.copy2(fresh / name, target, follow_symlinks=False)
        os.utime(target, ns=(stamp, stamp), follow_symlinks=False)
    for name in ties:
        shutil.copy2(fresh / name, _room(tree, name))
    return [*gone, *changed]


def take(tree: Path, fresh: Path) -> None:
    """Put a fresh tree in the place of whatever is there; its ties stay behind, where mirrors look for them."""
    ties = [name for name in _names(fresh, "") if _is_tie(fresh / name)]
    remove_tree(tree)
    fresh.rename(tree)
    fresh.mkdir()
    for name in ties:
        shutil.copy2(tree / name, _room(fresh, name))


def _remove(tree: Path, name: str) -> None:
    """Remove a file with the directories that this leaves empty; nothing that a link leads to."""
    *parents, _ = name.split("/")
    if not all(_is_directory(tree.joinpath(*parents[:depth])) for depth in range(1, len(parents) + 1)):
        return
    remove_tree(tree / name)
    for depth in range(len(parents), 0, -1):
        directory = tree.joinpath(*parents[:depth])
        if any(directory.iterdir()):
            return
        directory.rmdir()


def _room(tree: Path, name: str) -> Path:
    """Give a place where nothing is; what a build put in the way, a link above all, goes."""
    *parents, _ = name.split("/")
    directory = tree
    for parent in parents:
        directory /= parent
        if not _is_directory(directory):
            remove_tree(directory)
            directory.mkdir()
    remove_tree(tree / name)
    return tree / name


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_tie(path: Path) -> bool:
    return path.name == TIE and path.is_file() and not path.is_symlink()


def _digest(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
    kind = "program" if mode & stat.S_IXUSR else "file"
    return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _names(root: Path, prefix: str) -> Iterator[str]:
    with os.scandir(root / prefix) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield name
            elif entry.is_dir(follow_symlinks=False):
                yield from _names(root, f"{name}/")


FIRST_CHECK = 10
"""Which build that goes on in a tree is the first to be compared with a clean one; each check that is passed
doubles the distance to the next, as the same rules of the same project made all builds between."""

RAREST_CHECK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeState:
    """A reused tree: what of the revision lies in it, and which builds made there no check has covered yet.

    `usable`: its last build came to its end; a tree without that is made anew. `gap` is how many builds
    there are from one check to the next, `unchecked` the keys of those since the last one. `seconds` is what
    the last clean build took.
    """

    usable: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    gap: int = FIRST_CHECK
    unchecked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def check_due(self) -> bool:
        """Whether the next build that starts from this tree is to be compared with a clean one."""
        return len(self.unchecked) + 1 >= self.gap

    def built(self, key: str) -> TreeState:
        """One more build was made in the tree."""
        return replace(self, usable=True, unchecked=(*self.unchecked, key))

    def checked(self) -> TreeState:
        """A build was equal to the clean one, and so vouches for those before it."""
        return replace(self, usable=True, unchecked=(), gap=min(RAREST_CHECK, 2 * self.gap))


def read_state(path: Path) -> TreeState:
    """Give what a file says of a tree; of one that says nothing that we understand, that it is not usable."""
    try:
        facts = json.loads(path.read_bytes())
        return TreeState(
            usable=facts["usable"] is True,
            files={str(name): str(content) for name, content in facts["files"].items()},
            gap=int(facts["gap"]),
            unchecked=tuple(map(str, facts["unchecked"])),
            seconds=float(facts["seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return TreeState()


def write_state(path: Path, state: TreeState) -> None:
    """Remember what lies in a tree; seen whole or not at all."""
    write_durably(path, asdict(state))


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
