"""Hostile sources of every kind, which must change nothing outside of their directory.

Each trial builds a directory with a root and things around it, lets perftrail unpack, check out, patch or restore
something hostile in the root, removes the result, and compares everything around the root.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections import Counter
from contextlib import chdir, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from campaign import Result
from campaign.hostile_sources import Hostile
from perftrail.builds.build_log import Log
from perftrail.builds.repairs import repair
from perftrail.errors import CheckoutFailed, PerftrailError
from perftrail.file_tree import remove_tree
from perftrail.model.build import Repairs
from perftrail.model.source import Archive
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources import unpacking
from perftrail.sources.archives import ArchiveSource
from perftrail.sources.directory import DirectorySource
from perftrail.sources.fossil import FossilSource
from perftrail.sources.git import GitSource
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.packages.release import ReleaseSource
from perftrail.sources.patched import PlainPatches
from perftrail.store import open_store
from perftrail.store.backup import backup, restore
from tests.sources import crates, npm_packages, packages
from tests.sources.debian_archive import DebianArchive
from tests.sources.fossil_repositories import FossilRepository
from tests.store.examples import MACHINE, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from perftrail.ports import Source

    _Trial = Callable[["_Ground", Hostile], Callable[[], object]]

_PACKAGE = "planted"
_BOMB_BYTES = 1 << 20
_MILD_SHARE = 0.5
_SLOW_EVERY = 40
"""A package manager takes a second, an archive a millisecond: one slow trial after so many fast ones."""


@dataclass(frozen=True, slots=True)
class _Ground:
    """The directory of one trial: only `root` may change. `given` has the hostile source."""

    home: Path
    launcher: Launcher

    @property
    def root(self) -> Path:
        return self.home / "root"

    @property
    def outside(self) -> Path:
        return self.home / "outside"

    @property
    def given(self) -> Path:
        return self.home / "given"

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def log(self) -> str:
        return str(self.root / "log")

    @property
    def cache(self) -> str:
        return str(self.root / "cache")

    def lay_out(self) -> None:
        """Create the root, and files, directories and links around it."""
        for directory in (self.root / "tmp", self.outside / "below", self.home / "user", self.given):
            directory.mkdir(parents=True)
        for name in ("victim", "below/victim", "read-only", "../victim"):
            (self.outside / name).write_text("victim\n")
        (self.outside / "read-only").chmod(0o400)
        (self.outside / "into").symlink_to(self.root)
        (self.outside / "away").symlink_to("/etc")
        (self.home / "user" / ".profile").write_text("victim\n")

    def check_out(self, source: Source) -> None:
        """Check out every revision of a source, one after the other."""
        for revision in source.history():
            source.materialise(revision, str(self.tree), self.log)
            remove_tree(self.tree)


def run(seconds: float, seed: int) -> Result:
    """Run trials of all kinds in turn for a number of seconds."""
    kinds = dict(_FAST)
    slow = {name: trial for name, (program, trial) in _SLOW.items() if shutil.which(program)}
    missing = [name for name in _SLOW if name not in slow]
    ended = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    losses: list[str] = []
    with Launcher() as launcher, tempfile.TemporaryDirectory(prefix="perftrail-campaign-") as top:
        number = 0
        while time.monotonic() < ended:
            group: Mapping[str, _Trial] = slow if slow and number % _SLOW_EVERY == _SLOW_EVERY - 1 else kinds
            names = list(group)
            kind = names[(number // _SLOW_EVERY if group is slow else number) % len(names)]
            found, done = _trial(Path(top) / str(number), launcher, group[kind], Random(f"{seed}.{number}"))
            losses += [f"{kind}, seed {seed}, trial {number}: {each}" for each in found]
            counts[kind] += 1
            accepted[kind] += done
            number += 1
    notes = [
        "trials by kind (refused / accepted): "
        + ", ".join(f"{kind} {counts[kind] - accepted[kind]}/{accepted[kind]}" for kind in counts),
        "compared: names, types, modes, owners, hard links, contents, dates of everything around the root",
        "not compared: dates and hard links of a local git repository's objects, which the mirror shares",
        *([f"not tried, the program is missing: {', '.join(missing)}"] if missing else []),
    ]
    return Result(trials=counts.total(), losses=tuple(losses), notes=tuple(notes))


def _trial(home: Path, launcher: Launcher, trial: _Trial, random: Random) -> tuple[list[str], bool]:
    """Run one trial in a new directory; return what changed outside, and whether perftrail accepted the source."""
    ground = _Ground(home, launcher)
    ground.lay_out()
    hostile = Hostile(random, ground.outside, mild=random.random() < _MILD_SHARE)
    losses: list[str] = []
    accepted = False
    with _environment(ground):
        attempt = trial(ground, hostile)
        before = _snapshot(ground)
        try:
            attempt()
            accepted = True
        except PerftrailError:
            pass
        except Exception as error:
            losses.append(f"{type(error).__name__} instead of an error message: {error}")
        losses += _differences(before, _snapshot(ground))
        remove_tree(ground.tree)
        losses += _differences(before, _snapshot(ground)) if not losses else []
    remove_tree(home)
    return losses, accepted


@contextmanager
def _environment(ground: _Ground) -> Iterator[None]:
    """Run with the home and the working directory around the root, and temporary files in it."""
    rustup = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    (ground.home / "user" / ".rustup").symlink_to(rustup)  # cargo and rustc may be rustup's
    variables = {
        "HOME": str(ground.home / "user"),
        "TMPDIR": str(ground.root / "tmp"),
        "XDG_CACHE_HOME": str(ground.root / "user-cache"),
        "CARGO_HOME": str(ground.root / "cargo"),
    }
    with (
        mock.patch.dict(os.environ, variables),
        mock.patch("tempfile.tempdir", None),
        chdir(ground.home / "user"),
    ):
        yield


def _snapshot(ground: _Ground) -> dict[str, tuple[object, ...]]:
    """Return everything around the root."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, names, files in os.walk(ground.home):
        if directory == str(ground.home):
            names.remove("root")
        for name in (*names, *files, "."):
            path = Path(directory) / name
            status = path.lstat()
            content = _content(path, status.st_mode)
            # A mirror has hard links to a local repository's objects; git touches those that it writes again.
            shared = "objects" in path.parts and path.is_relative_to(ground.given)
            links, date = (0, 0) if shared else (status.st_nlink, status.st_mtime_ns)
            found[os.path.relpath(path, ground.home)] = (
                status.st_mode, status.st_uid, 0 if stat.S_ISDIR(status.st_mode) else links, date, content,
            )  # fmt: skip
    return found


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return bytes(path.readlink())
    return path.read_bytes() if stat.S_ISREG(mode) else b""


def _differences(
    before: Mapping[str, tuple[object, ...]], after: Mapping[str, tuple[object, ...]]
) -> list[str]:
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [f"changed outside the root: {', '.join(map(repr, changed))}"] if changed else []


def _archive_trial(content: bytes, ground: _Ground) -> Callable[[], object]:
    (ground.given / "a").write_bytes(content)
    table = SourceTable(
        kind="release", location=str(ground.given), archives=(Archive(version="1", file="a"),)
    )

    def attempt() -> None:
        source = ArchiveSource(table, cache=ground.cache)
        (revision,) = source.history()
        source.materialise(revision, str(ground.tree), ground.log)

    return attempt


def _tar(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    prefix = hostile.random.choice(("", "w/"))
    compression = hostile.random.choice(("gz", "", "xz", "bz2"))
    return _archive_trial(hostile.tar(prefix=prefix, compression=compression), ground)


def _zip(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    return _archive_trial(hostile.zip(), ground)


def _bomb(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    """Unpack more than the limit, which is lowered so that a trial is short."""
    size = hostile.random.randint(_BOMB_BYTES // 2, 4 * _BOMB_BYTES)
    attempt = _archive_trial(hostile.bomb(size), ground)

    def limited() -> None:
        with mock.patch.object(unpacking, "LARGEST_TREE_BYTES", _BOMB_BYTES):
            attempt()
        written = sum(path.stat().st_size for path in ground.tree.rglob("*") if path.is_file())
        if written > _BOMB_BYTES:
            raise _LimitExceeded(f"{written} bytes in the root, where {_BOMB_BYTES} is the limit")

    return limited


class _LimitExceeded(Exception):
    """Something became larger than its limit."""


def _directory(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    hostile.tree(ground.given / "tree")
    table = SourceTable(kind="directory", location=str(ground.given / "tree"))
    return lambda: ground.check_out(DirectorySource(table))


def _git(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    hostile.git_repository(ground.given / "repository")
    sparse = hostile.random.choice(((), (), ("a",), ("!b",)))
    location = hostile.random.choice(
        (str(ground.given / "repository"), (ground.given / "repository").as_uri())
    )
    table = SourceTable(kind="git", location=location, submodules=True, sparse=sparse)
    return lambda: ground.check_out(GitSource(table, cache=ground.cache, starter=ground.launcher))


def _fossil(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    repository = FossilRepository(ground.given / "project.fossil")
    repository.commit(hostile.fossil_files())
    try:
        location = str(repository.make())
    except AssertionError:  # Fossil refuses to store this check-in
        location = str(ground.given / "missing")
    table = SourceTable(kind="fossil", location=location)
    return lambda: ground.check_out(FossilSource(table, cache=ground.cache, starter=ground.launcher))


def _repairs(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    """Copy a study's files into a hostile tree, and apply hostile patches."""
    hostile.tree(ground.tree)
    (ground.given / "file").write_text("overlay\n")
    (ground.given / "patch").write_bytes(hostile.patch())
    overlay = {hostile.name() or "a": "file" for _ in range(hostile.random.randint(0, 2))}
    repairs = Repairs(
        overlay={path: file for path, file in overlay.items() if not path.startswith("/")}, patches=("patch",)
    )

    def attempt() -> None:
        log = Log(path=Path(ground.log))
        if why := repair(repairs, ground.tree, study=ground.given, starter=ground.launcher, log=log):
            raise CheckoutFailed(why)

    return attempt


def _plain_patch(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    hostile.tree(ground.given / "tree")
    patch = hostile.patch()
    source = DirectorySource(SourceTable(kind="directory", location=str(ground.given / "tree")))

    def attempt() -> None:
        patches = PlainPatches(source, cache=ground.cache, starter=ground.launcher)
        (revision,) = source.history()
        patches.apply(patch, onto=revision, workplace=str(ground.tree))

    return attempt


def _git_patch(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    commit = hostile.git_repository(ground.given / "repository")
    table = SourceTable(kind="git", location=str(ground.given / "repository"))
    patch = hostile.patch()

    def attempt() -> None:
        patches = GitPatches(table, cache=ground.cache, starter=ground.launcher)
        patches.apply(patch, onto=Revision(id=commit, summary=""), workplace=str(ground.tree))

    return attempt


def _backup(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    """Restore a backup with changed tables, or with random changed bytes."""
    saved = ground.given / "saved"
    with open_store(str(ground.given / "results.db"), access="write", machine=MACHINE.id) as store:
        fill(store)
    backup(str(ground.given / "results.db"), saved)
    with closing(sqlite3.connect(saved)) as database:
        for statement in hostile.statements():
            with suppress(sqlite3.Error):
                database.execute(statement)
        database.commit()
    if hostile.random.random() < 0.5:
        content = bytearray(saved.read_bytes())
        for _ in range(hostile.random.randint(1, 40)):
            content[hostile.random.randrange(len(content))] = hostile.random.randrange(256)
        saved.write_bytes(content)
    return lambda: restore(saved, str(ground.root / "restored" / "results.db"))


def _releases(ground: _Ground, location: str, index: str) -> None:
    table = SourceTable(kind="release", location=location, index=index)
    ground.check_out(
        ReleaseSource(
            table, cache=ground.cache, starter=ground.launcher, sandboxed=location.startswith("pypi")
        )
    )


def _npm(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    tarball = hostile.tar(prefix="package/")

    def attempt() -> None:
        with npm_packages.serving(npm_packages.NpmRegistry()) as registry:
            registry.add(_PACKAGE, "1.0.0", {}, tarball=tarball)
            _releases(ground, f"npm:{_PACKAGE}", registry.url)

    return attempt


def _crate(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    crate = hostile.tar(prefix=f"{_PACKAGE}-1.0.0/")

    def attempt() -> None:
        with crates.serving(crates.CrateRegistry()) as registry:
            registry.add(_PACKAGE, "1.0.0", {}, crate=crate)
            _releases(ground, f"crates:{_PACKAGE}", registry.index)

    return attempt


def _debian(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    archive = DebianArchive(ground.given / "archive")
    archive.add(_PACKAGE, "1.0", {}, content=hostile.tar(prefix=f"{_PACKAGE}-1.0/"))
    return lambda: _releases(ground, f"debian:{_PACKAGE}", archive.index)


def _wheel(ground: _Ground, hostile: Hostile) -> Callable[[], object]:
    files = hostile.wheel_files(f"{_PACKAGE}-1.0")

    def attempt() -> None:
        with packages.serving(packages.PackageIndex()) as index:
            index.add(_PACKAGE, "1.0", "x = 1\n", other_files=files)
            _releases(ground, f"pypi:{_PACKAGE}", index.url)

    return attempt


_FAST: Mapping[str, _Trial] = {
    "tar": _tar,
    "zip": _zip,
    "git": _git,
    "directory": _directory,
    "repairs": _repairs,
    "tar bomb": _bomb,
    "patch": _plain_patch,
    "git patch": _git_patch,
    "backup": _backup,
}
_SLOW: Mapping[str, tuple[str, _Trial]] = {
    "fossil": ("fossil", _fossil),
    "npm": ("npm", _npm),
    "wheel": ("python3", _wheel),
    "crate": ("cargo", _crate),
    "debian": ("dpkg-source", _debian),
}
"""Kinds that need an installed program."""
