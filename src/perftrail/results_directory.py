"""Create results directories, recognise those that this user created, and refuse all others.

A repository or an archive may contain a results directory with links out of it, or with forged samples. So perftrail
uses only directories that it created for this user (decision 44). A new directory gets a random name in a file, and
the user's state directory gets a file with this name. A copy of a directory has another inode: it is not recognised.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import secrets
import shlex
import stat
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import StoreError
from perftrail.file_tree import open_to_read, user_state
from perftrail.git_variables import git_variables
from perftrail.model.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = ".perftrail"
"""Name of the directory of results in a study's directory."""

DATABASE = "results.db"

IDENTITY = "directory.id"
"""File with the random name of a results directory."""

EMPTIED = frozenset({"counts", "fixtures", "paths", "resident", "sandboxes", "scratch", "shells"})
"""Directories whose content perftrail removes, without following links; programs may write links there."""

DIRECTORIES = EMPTIED | {"backports", "builds", "logs", "report", "runners", "sources"}
"""Every directory that perftrail creates in a results directory."""

FILES = (f"{DATABASE}*", f"{IDENTITY}*", ".gitignore", "cluster.*", "study.toml", "watch*")
"""Patterns of every file that perftrail creates in a results directory."""

_EMPTY = (f"{IDENTITY}*", ".gitignore")
"""Files of a directory whose creation was interrupted; it has no results yet."""

GIT_SECONDS = 30.0

_ours: set[tuple[int, int]] = set()
"""Devices and inodes of the directories that this process created, but could not record."""

_expected: list[Path] = []
"""Directories that the blocks of `claiming` may create, one entry for each block."""

_checked: set[tuple[Path, int, int, int]] = set()


def verify(directory: Path) -> Path:
    """Return a results directory that perftrail may use, also a missing or an empty one.

    Raises `StoreError` for a directory of unknown origin, for one that git tracks, and for links in it.
    """
    try:
        state = _state(directory)
        if state is None or _is_empty(directory):
            return directory
        if (key := (directory, state.st_dev, state.st_ino, state.st_mtime_ns)) not in _checked:
            _claim_created(directory)
            if not is_ours(directory):
                raise StoreError(_unknown(directory))
            _refuse_links(directory)
            _refuse_tracked(directory)  # a failure of git was not one when the user accepted the directory
            _checked.add(key)
    except OSError as error:
        raise StoreError(
            f"{directory}: cannot be read: {error.strerror}; name another directory with --store"
        ) from error
    return directory


def target_of(named: Path) -> Path:
    """Return a path that the user named, without a link in its last part. Raises `StoreError` for a link elsewhere.

    A link may lead to the user's own results; in a repository, it may lead anywhere.
    """
    if not named.is_symlink():
        return named
    target = Path(os.path.realpath(named))
    if is_ours(target) or is_ours(target.parent):
        return target
    raise StoreError(f"{named}: is a symbolic link, but not to your results; name its target, {target}")


def _state(directory: Path) -> os.stat_result | None:
    """Return the status of a directory, `None` if it is missing. Raises `StoreError` for anything else."""
    try:
        state = directory.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(state.st_mode):
        return state
    raise StoreError(
        f"{directory}: is {_kind(state.st_mode)}, not a results directory; remove it, or name another with --store"
    )


def create(directory: Path) -> None:
    """Create a results directory, unless it exists with content. Raises `OSError`."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir()
        created = True
    except FileExistsError:
        created = False
    with suppress(OSError):  # the caller reports that it cannot write there
        if created or (_is_empty(directory) and not is_ours(directory)):
            _claim(directory)


def create_parent(database: Path) -> None:
    """Create the directory of a store's file, unless it exists. Raises `OSError`."""
    if database.name == DATABASE:
        create(database.parent)
    else:
        database.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def claiming(directory: Path) -> Iterator[None]:
    """Claim a results directory that is missing or empty now, if the block's code creates its content.

    Such code writes a mirror of the source, logs and builds, but no samples.
    """
    if os.path.lexists(directory) and not _is_empty(directory):
        yield
        return
    _expected.append(directory)
    try:
        yield
    finally:
        _claim_created(directory)
        _expected.remove(directory)


def _claim_created(directory: Path) -> None:
    """Claim a directory that a block of `claiming` created."""
    with suppress(OSError):  # commands that only read also work in a directory that they cannot open
        if directory not in _expected or not directory.is_dir() or is_ours(directory):
            return
        if not os.path.lexists(directory / DATABASE):
            _claim(directory)


def accept(directory: Path) -> None:
    """Remember a directory of unknown origin as the user's. Raises `StoreError` as `verify` does.

    A valid name in the directory stays, because other users of the directory may remember it.
    """
    try:
        _state(directory)
        _refuse_links(directory)
        if failure := _refuse_tracked(directory):
            raise StoreError(
                f"{directory}: cannot be accepted, because its tracked files are unknown: {failure}; repair the "
                "repository around it, or name another directory with --store"
            )
        with _opened(directory) as descriptor:
            identity = _identity(directory) or _write_identity(directory, descriptor)
            state = os.fstat(descriptor)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be accepted: {error.strerror}") from error
    try:
        _write_record(identity, state)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be accepted: {_forgetful()}") from error


def is_ours(directory: Path) -> bool:
    """Return whether perftrail created a directory for this user, or this user accepted it."""
    try:
        state = directory.lstat()
        if (state.st_dev, state.st_ino) in _ours:
            return True
        identity = _identity(directory)
        return identity is not None and _owner(state) in _records(identity)
    except (OSError, UnicodeDecodeError):
        return False


def _claim(directory: Path) -> None:
    """Write a new identity into a directory and into the user's state."""
    with _opened(directory) as descriptor:
        state = os.fstat(descriptor)
        try:
            _write_record(_write_identity(directory, descriptor), state)
        except OSError:  # this process knows the directory; `verify` explains it to later ones
            _ours.add((state.st_dev, state.st_ino))


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _identity(directory: Path) -> str | None:
    """Return the name in a directory, `None` without a valid one. Raises `OSError` if it cannot be read."""
    try:
        with open_to_read(directory / IDENTITY, follow=False) as file:
            identity = file.read(100).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    return identity if re.fullmatch(r"[0-9a-f]{32}", identity) else None


def _write_identity(directory: Path, descriptor: int) -> str:
    """Write a new name into a directory, and return it; also keep the directory out of ``git status``."""
    identity = secrets.token_hex(16)
    _write(f"{IDENTITY}.{identity}", identity, descriptor)
    os.rename(f"{IDENTITY}.{identity}", IDENTITY, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    if directory.name == RESULTS:
        with suppress(OSError):  # it exists
            _write(".gitignore", "*\n", descriptor)
    return identity


def _records(identity: str) -> list[str]:
    """Return the records of a name in the user's state, one for each directory: an accepted copy has the same name."""
    try:
        return _record(identity).read_text("ascii").splitlines()
    except FileNotFoundError:
        return []


def _write_record(identity: str, state: os.stat_result) -> None:
    """Add the directory with a name to the user's state. Raises `OSError`."""
    user_state().mkdir(parents=True, exist_ok=True, mode=0o700)
    if _owner(state) in _records(identity):
        return
    record = _record(identity)
    record.parent.mkdir(exist_ok=True)
    with record.open("a", encoding="ascii") as file:
        file.write(f"{_owner(state)}\n")


def _write(name: str, text: str, directory: int) -> None:
    """Write a new file into a directory, never through a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=directory), "w", encoding="ascii") as file:
        file.write(text)


def _record(identity: str) -> Path:
    """Return the file with a name in the user's state. Raises `OSError` if another user may have written there."""
    state = user_state()
    found = state.lstat()
    owners = {os.geteuid(), state.parent.stat().st_uid}  # also of root in the home directory of a user
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & stat.S_IWOTH or found.st_uid not in owners:
        raise PermissionError(errno.EACCES, "is not a directory of this user alone", state)
    return state / "results" / identity


def _owner(state: os.stat_result) -> str:
    """Return what distinguishes a directory from its copies. Devices have other numbers after a reboot."""
    return f"{state.st_uid} {state.st_ino}"


def _is_empty(directory: Path) -> bool:
    return all(any(fnmatchcase(name, each) for each in _EMPTY) for name in os.listdir(directory))  # noqa: PTH208


def _unknown(directory: Path) -> str:
    """Return the message for a directory of unknown origin."""
    why = "" if _can_remember() else f" Here it cannot remember one: {_forgetful()}."
    return (
        f"{directory}: perftrail did not create this results directory for you on this machine; a repository or an "
        f"archive may contain one with links and forged samples.{why} If it is yours, for example a copy or of an "
        f"older perftrail: perftrail store accept {shlex.quote(str(directory))}; otherwise remove it, or name another "
        "with --store"
    )


def _can_remember() -> bool:
    """Return whether this user's state directory is writable, or can be created."""
    state = user_state()
    nearest = next(each for each in (state, *state.parents) if os.path.exists(each))  # noqa: PTH110 - raises nothing
    return os.access(nearest, os.W_OK | os.X_OK)


def _forgetful() -> str:
    return f"{user_state()} is not writable; set XDG_STATE_HOME to a directory that lasts"


def _refuse_links(directory: Path) -> None:
    """Raise `StoreError` for entries that perftrail does not create."""
    with os.scandir(directory) as entries:
        for entry in entries:
            _refuse_entry(entry, directory, wanted=_wanted(entry.name))
            if not entry.is_dir(follow_symlinks=False) or entry.name in EMPTIED:
                continue
            # Another process may remove what it no longer needs.
            with suppress(FileNotFoundError), os.scandir(entry.path) as inside:
                for each in inside:
                    _refuse_entry(each, directory, wanted="")


def _refuse_tracked(directory: Path) -> str:
    """Raise `StoreError` for a directory that git tracks; return why git failed, else an empty text."""
    tracked = _tracked(directory)
    if tracked.file:
        raise StoreError(
            f"{directory}: git tracks {tracked.file}, so a check-out can replace results; remove it from the "
            "repository with git rm -r --cached, or name another directory with --store"
        )
    return tracked.failure


def _wanted(name: str) -> str:
    """Return the kind that an entry must have; empty for names that perftrail does not use."""
    if name in DIRECTORIES:
        return "directory"
    return "file" if any(fnmatchcase(name, each) for each in FILES) else ""


def _refuse_entry(entry: os.DirEntry[str], directory: Path, *, wanted: str) -> None:
    is_directory, is_file = entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)
    if (is_directory and wanted != "file") or (is_file and wanted != "directory"):
        return
    try:
        found = _kind(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    raise StoreError(
        f"{entry.path}: is {found}, which perftrail does not create there; remove it, or name another directory than "
        f"{directory} with --store"
    )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a directory",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tracked:
    """A file of a directory that git tracks, or why git failed; both are empty if git tracks none."""

    file: str = ""
    failure: str = ""


@functools.cache
def _tracked(directory: Path) -> _Tracked:
    """Return what git tracks of a directory; nothing outside of a repository.

    Git reads the settings of the repository, but `ls-files` starts none of its programs except the watcher of files. It
    refuses a repository of another user, except one that `GIT_DIR` names.
    """
    parent = Path(os.path.realpath(directory.parent))
    root = next((each for each in (parent, *parent.parents) if os.path.lexists(each / ".git")), None)
    if root is None:
        return _Tracked()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--literal-pathspecs", "ls-files", "-z"]
    try:
        done = subprocess.run(
            [*command, "--", directory.name],
            cwd=parent,
            env={
                **environment,
                **git_variables(settings_file=os.devnull),
                "GIT_DIR": str(root / ".git"),
                "GIT_WORK_TREE": str(root),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except OSError as error:
        return _Tracked(failure=f"git cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return _Tracked(failure=f"git did not end within {GIT_SECONDS:g} s")
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        return _Tracked(failure=escaped(lines[0] if lines else f"exit code {done.returncode}", longest=300))
    return _Tracked(file=os.fsdecode(done.stdout.partition(b"\0")[0]))
