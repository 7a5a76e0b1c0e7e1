"""Build subjects in the tree of an earlier revision, and compare some of them with clean builds.

Outputs are stored in ``builds/artefacts/DIGEST``, outside the tree, which the next revision changes. `update_tree`
turns one revision's tree into another's in place, so that the build reuses objects. `TreeState` records which builds
of a tree were checked.
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
from perftrail.builds.build_log import Log
from perftrail.builds.build_runner import Workspace
from perftrail.builds.relinking import restore_trees, working_copy
from perftrail.builds.trees import no_output_message
from perftrail.file_tree import exclusive_lock, publish, remove_tree, try_exclusive_lock
from perftrail.model.build import Failure
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.builds.artefact import Content
    from perftrail.builds.in_use import BuildsInUse


GIT_LINK = ".git"
"""File that links a tree to its mirror, and a submodule to its own; it differs between checkouts."""

_GIT_LINK_ENTRY = "tie"


def listing(tree: Path) -> dict[str, str]:
    """Return a digest for each file and link of a fresh tree: path, kind and content.

    ``.git`` files count as equal: they differ between checkouts, not between revisions.
    """
    return {
        name: _GIT_LINK_ENTRY if _is_git_link(tree / name) else _digest(tree / name)
        for name in sorted(_names(tree, ""))
    }


def update_tree(tree: Path, fresh: Path, *, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Turn the tree of revision `before` into that of revision `now`, taken from `fresh`; return the changed paths.

    A file that is equal in both revisions keeps its date, so that its build results stay valid. All other files get
    one date, later than all build results, because build systems compare dates. ``.git`` files come from `fresh`,
    with their dates.
    """
    gone = [name for name in before if name not in now]
    for name in gone:
        _remove(tree, name)
    links = [name for name, content in now.items() if content == _GIT_LINK_ENTRY]
    changed = [
        name for name, content in now.items() if before.get(name) != content and content != _GIT_LINK_ENTRY
    ]
    stamp = time.time_ns()
    for name in changed:
        target = _free_path(tree, name)
        shutil.copy2(fresh / name, target, follow_symlinks=False)
        os.utime(target, ns=(stamp, stamp), follow_symlinks=False)
    for name in links:
        shutil.copy2(fresh / name, _free_path(tree, name))
    return [*gone, *changed]


def replace_tree(tree: Path, fresh: Path) -> None:
    """Replace a tree by a fresh one; copies of its ``.git`` files stay in `fresh`, where mirrors look for them."""
    links = [name for name in _names(fresh, "") if _is_git_link(fresh / name)]
    remove_tree(tree)
    fresh.rename(tree)
    fresh.mkdir()
    for name in links:
        shutil.copy2(tree / name, _free_path(fresh, name))


def _remove(tree: Path, name: str) -> None:
    """Remove a file, and directories that become empty; do not follow links."""
    *parents, _ = name.split("/")
    if not all(_is_directory(tree.joinpath(*parents[:depth])) for depth in range(1, len(parents) + 1)):
        return
    remove_tree(tree / name)
    for depth in range(len(parents), 0, -1):
        directory = tree.joinpath(*parents[:depth])
        if any(directory.iterdir()):
            return
        directory.rmdir()


def _free_path(tree: Path, name: str) -> Path:
    """Return a path after removing what a build created there, for example a link."""
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


def _is_git_link(path: Path) -> bool:
    return path.name == GIT_LINK and path.is_file() and not path.is_symlink()


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
"""Number of the first incremental build that is compared with a clean one. Each passed check doubles the
distance to the next, because the same rules of the same project determine all builds in between.
"""

RAREST_CHECK = 64
"""Maximum distance between two checks, in builds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeState:
    """State of a reused tree: its revision, and its unchecked builds.

    `usable`: its last build was not interrupted; otherwise the tree is checked out again. `gap` is the number of
    builds between two checks, `unchecked` has the keys since the last one. `seconds` is the time of the last clean
    build.
    """

    usable: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    gap: int = FIRST_CHECK
    unchecked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def check_due(self) -> bool:
        """Whether the next build in this tree is compared with a clean one."""
        return len(self.unchecked) + 1 >= self.gap

    def built(self, key: str) -> TreeState:
        """Return the state after another build in the tree."""
        return replace(self, usable=True, unchecked=(*self.unchecked, key))

    def checked(self) -> TreeState:
        """Return the state after a build that equalled the clean one, which also confirms the builds before it."""
        return replace(self, usable=True, unchecked=(), gap=min(RAREST_CHECK, 2 * self.gap))


def read_state(path: Path) -> TreeState:
    """Return the state in a file; an unreadable file means an unusable tree."""
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
    """Write a tree's state atomically."""
    write_durably(path, asdict(state))


MOST_TREES = 64
"""Maximum number of trees of one recipe, and so of parallel incremental builds."""

UNCHECKED = "used"
"""File in the directory of an incremental build that was not compared itself: the recipe's content key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A build in a reused tree.

    `recipe` is the content key of all inputs except the revision: builds with equal recipes share trees. `check_out`
    checks the revision out into a workspace; `build` runs the recipe there and returns the reason of a failure.
    """

    key: str
    recipe: str
    outputs: Sequence[str]
    log: Path
    check_out: Callable[[Workspace], Path | Failure]
    build: Callable[[Workspace], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """Outcome of a job: an artefact or a failure; neither if the build needs a clean tree.

    `stale` are the keys of earlier builds that a check found to be possibly wrong; `messages` reports them.
    """

    outcome: str | Failure | None
    stale: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class _ReuseStopped(Exception):
    """Trees of a recipe must not be reused any more, for the reason in the text."""

    def __init__(self, why: str, result: JobResult) -> None:
        super().__init__(why)
        self.result = result


class ReusedTrees:
    """The trees below ``builds/worktrees``, and the artefacts of their builds."""

    def __init__(self, builds: Path, builds_in_use: BuildsInUse) -> None:
        self._builds = builds
        self._builds_in_use = builds_in_use
        self._home = builds / "worktrees"
        self._last: dict[Path, Job] = {}

    def why_not_reused(self, recipe: str) -> str:
        """Return why a recipe's trees are not reused any more; empty while they are."""
        path = self._reuse_stopped_file(recipe)
        return path.read_text("utf-8", errors="replace").strip() if path.is_file() else ""

    def build(self, job: Job, home: Path) -> JobResult:
        """Build a subject, with its outputs at ``home/tree``."""
        if self.why_not_reused(job.recipe):
            return JobResult(outcome=None)
        log = Log(path=job.log)
        with self._tree(job) as workspace:
            try:
                return JobResult(outcome=self._build_in_tree(job, workspace, home, log))
            except _ReuseStopped as stopped:
                self._stop_reuse(job, workspace, str(stopped), log)
                return replace(stopped.result, messages=(_reuse_stopped(str(stopped)),))

    @contextmanager
    def objects(self, job: Job, *, artefact: str) -> Iterator[Workspace | Failure]:
        """Yield a workspace whose tree contains a subject's objects, freshly built, which may be changed.

        They must be the objects from which `artefact` was linked, or the tree is not trusted. Afterwards the tree
        is as before, at the revision that was built in it last.
        """
        log = Log(path=job.log)
        with self._tree(job) as workspace:
            fresh = job.check_out(replace(workspace, home=workspace.home / "incoming"))
            if isinstance(fresh, Failure):
                yield fresh
                return
            state = read_state(workspace.marker)
            with working_copy(workspace.home):
                content: Content | Failure | None = None
                if state.usable and not self.why_not_reused(job.recipe):
                    update_tree(workspace.home / "tree", fresh, before=state.files, now=listing(fresh))
                    content = _attempt(job, workspace, log)
                if content is None or isinstance(content, Failure) or _artefact(content, job) != artefact:
                    content = _clean(job, workspace, log)
                yield content if isinstance(content, Failure) else workspace
            if not state.usable:
                remove_tree(workspace.home / "tree")

    def confirm(self) -> JobResult:
        """Compare unchecked builds with clean ones; return those that may be wrong.

        It waits for trees that others use: a worker that looks at a tree in which another one built last must not make
        that one leave its build unchecked.
        """
        last, self._last = self._last, {}
        stale: list[str] = []
        for home, job in last.items():
            checked = replace(job, log=job.log.with_suffix(".check.log"))
            with exclusive_lock(self._lock(home)):
                stale += self._compare_last_build(checked, _workspace(home, checked))
        why = {self.why_not_reused(job.recipe) for job in last.values()} if stale else set()
        return JobResult(
            outcome=None, stale=tuple(stale), messages=tuple(map(_reuse_stopped, sorted(why - {""})))
        )

    def check_build(self, job: Job) -> JobResult:
        """Compare a build with a clean one, unless that was done; a difference invalidates all incremental builds."""
        if not (self._builds / job.key / UNCHECKED).is_file() or self.why_not_reused(job.recipe):
            return JobResult(outcome=None)
        checked = replace(job, log=job.log.with_suffix(".check.log"))
        with self._tree(checked) as workspace:
            why = self._compare_stored_build(checked, workspace)
        if not why:
            return JobResult(outcome=None)
        unchecked = sorted(
            path for path in self._builds.glob(f"*/{UNCHECKED}") if path.read_text() == job.recipe
        )
        return JobResult(
            outcome=None, stale=tuple(path.parent.name for path in unchecked), messages=(_reuse_stopped(why),)
        )

    def _compare_stored_build(self, job: Job, workspace: Workspace) -> str:
        """Build again in a clean tree; describe how the stored build differs, empty if it does not."""
        state, log = read_state(workspace.marker), Log(path=job.log)
        write_state(workspace.marker, replace(state, usable=False))
        fresh = job.check_out(replace(workspace, home=workspace.home / "incoming"))
        if isinstance(fresh, Failure):
            return ""
        now = listing(fresh)
        clean = _clean(job, workspace, log)
        home = self._builds / job.key
        if why := _difference(content_of(home / "tree", job.outputs, keys=[]), clean):
            self._stop_reuse(job, workspace, why, log)
            return why
        write_state(workspace.marker, replace(state, usable=True, files=now))
        (home / UNCHECKED).unlink()
        return ""

    def _build_in_tree(self, job: Job, workspace: Workspace, home: Path, log: Log) -> str | Failure:
        incoming = replace(workspace, home=workspace.home / "incoming")
        fresh = job.check_out(incoming)
        if isinstance(fresh, Failure):
            return fresh
        now, state, tree = listing(fresh), read_state(workspace.marker), workspace.home / "tree"
        unchecked = False
        write_state(workspace.marker, replace(state, usable=False, files=now))
        if state.usable:
            changed = update_tree(tree, fresh, before=state.files, now=now)
            log.note(f"# built in the reused tree {tree}: {counted(len(changed), 'changed file')}")
            content = _attempt(job, workspace, log)
            if isinstance(content, Failure):
                log.note("[built again in a clean tree, to confirm the failure]")
                state = replace(state, usable=False)
            elif state.check_due:
                content = self._compare_new_build(job, workspace, home, log, state=state, found=content)
                state = state.checked()
            else:
                state, unchecked = state.built(job.key), True
        if not state.usable:
            began = time.monotonic()
            content = _clean(job, workspace, log)
            state = replace(state, seconds=time.monotonic() - began)
        if isinstance(content, Failure):
            return content
        if content.names_build:
            raise _ReuseStopped(
                "the outputs contain the name of their build directory", JobResult(outcome=None)
            )
        write_state(workspace.marker, replace(state, usable=True, files=now))
        self._last[workspace.home] = job
        name = self._store_outputs(content, tree, home, digits=len(job.key))
        if unchecked:
            (home / UNCHECKED).write_text(job.recipe)
        return name

    def _compare_new_build(
        self, job: Job, workspace: Workspace, home: Path, log: Log, *, state: TreeState, found: Content
    ) -> Content:
        """Build again in a clean tree at the same path. Raises `_ReuseStopped` if the result differs."""
        clean = _clean(job, workspace, log)
        why = _difference(found, clean)
        if isinstance(clean, Failure):
            raise _ReuseStopped(why, JobResult(outcome=clean, stale=state.unchecked))
        if not why:
            log.note("# checked: equal to the clean build")
            return clean
        tree = workspace.home / "tree"
        outcome = None if clean.names_build else self._store_outputs(clean, tree, home, digits=len(job.key))
        raise _ReuseStopped(why, JobResult(outcome=outcome, stale=state.unchecked))

    def _compare_last_build(self, job: Job, workspace: Workspace) -> tuple[str, ...]:
        """Compare the last build of a tree with a clean one; return the builds that may be wrong."""
        state, tree = read_state(workspace.marker), workspace.home / "tree"
        if not state.usable or job.key not in state.unchecked[-1:]:
            return ()
        found = content_of(tree, job.outputs, keys=[workspace.home.name])
        write_state(workspace.marker, replace(state, usable=False))
        log = Log(path=job.log)
        fresh = job.check_out(replace(workspace, home=workspace.home / "incoming"))
        clean = fresh if isinstance(fresh, Failure) else _clean(job, workspace, log)
        if isinstance(clean, Failure) and clean.stage == "checkout":
            return ()
        if why := _difference(found, clean):
            self._stop_reuse(job, workspace, why, log)
            return state.unchecked
        write_state(workspace.marker, state.checked())
        (self._builds / job.key / UNCHECKED).unlink(missing_ok=True)
        return ()

    def _stop_reuse(self, job: Job, workspace: Workspace, why: str, log: Log) -> None:
        log.note(f"[{why}; from now on, perftrail builds each revision in a clean tree]")
        self._reuse_stopped_file(job.recipe).write_text(why, encoding="utf-8")
        for path in (workspace.home / "tree", workspace.home / "incoming"):
            remove_tree(path)

    def _store_outputs(self, content: Content, tree: Path, home: Path, *, digits: int) -> str:
        """Copy outputs to the directory of their digest, unless it exists; link the subject to it."""
        name = content.digest[:digits]
        stored = self._builds / "artefacts" / name
        with exclusive_lock(self._builds / "locks" / "artefacts.lock"):
            if not stored.is_dir():
                temporary = stored.with_name(f"{name}.{uuid.uuid4().hex}")
                for each in content.parts:
                    target = temporary / "tree" / each
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(tree / each, target, follow_symlinks=False)
                publish(temporary, stored)
            remove_tree(home)
            home.mkdir(parents=True)
            (home / "tree").symlink_to(f"../artefacts/{name}/tree")
        return name

    @contextmanager
    def _tree(self, job: Job) -> Iterator[Workspace]:
        """Yield the first of a recipe's trees that no other build uses."""
        for number in range(MOST_TREES):
            home = self._home / f"{job.recipe}-{number}"
            with try_exclusive_lock(self._lock(home)) as free:
                if free:
                    self._builds_in_use.claim(home.name)
                    home.mkdir(parents=True, exist_ok=True)
                    restore_trees(home)
                    yield _workspace(home, job)
                    return
        raise OSError(f"{self._home}: more than {MOST_TREES} parallel builds of a recipe; lower --jobs")

    def _lock(self, home: Path) -> Path:
        return self._builds / "locks" / f"{home.name}.lock"

    def _reuse_stopped_file(self, recipe: str) -> Path:
        return self._home / f"{recipe}.distrusted"


def _reuse_stopped(why: str) -> str:
    return f"incremental builds are off: {why}"


def _workspace(home: Path, job: Job) -> Workspace:
    return Workspace(home=home, marker=home / "state.json", log=job.log, temporary=home / "tmp")


def _clean(job: Job, workspace: Workspace, log: Log) -> Content | Failure:
    tree = workspace.home / "tree"
    replace_tree(tree, workspace.home / "incoming" / "tree")
    log.note(f"# built in the clean tree {tree}")
    return _attempt(job, workspace, log)


def _attempt(job: Job, workspace: Workspace, log: Log) -> Content | Failure:
    message = job.build(workspace)
    if message:
        return Failure(stage="build", message=message)
    content = content_of(workspace.home / "tree", job.outputs, keys=[workspace.home.name])
    if content.files:
        return content
    message = no_output_message(workspace.home / "tree", job.outputs)
    log.note(f"[{message}]")
    return Failure(stage="build", message=message)


def _artefact(content: Content, job: Job) -> str:
    """Return the artefact of outputs: their digest, as long as a key."""
    return content.digest[: len(job.key)]


def _difference(found: Content, clean: Content | Failure) -> str:
    """Describe how an incremental build differs from the clean one; empty if it does not."""
    if isinstance(clean, Failure):
        return "a build in a reused tree succeeded, but the clean build fails"
    if clean.digest == found.digest:
        return ""
    names = found.parts.keys() | clean.parts.keys()
    differing = sorted(name for name in names if found.parts.get(name) != clean.parts.get(name))
    return f"a build in a reused tree differs from the clean build: {', '.join(differing[:5])}"
