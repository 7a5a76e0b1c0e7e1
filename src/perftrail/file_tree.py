"""Remove and create untrusted trees, claim temporary files, open, lock and publish files, find the user's directories.

Trees that untrusted programs wrote are removed without following links, including unreadable parts. A claimed file
belongs to a living process, so that leftovers of killed ones can be removed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import stat
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import IO


def user_home() -> Path:
    """Return the user's home directory; ``/`` where neither the environment nor the system names one."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def expanded(path: str) -> Path:
    """Return a path with ``~`` replaced by the user's home directory, if there is one."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def real_path(path: Path | str) -> Path:
    """Return a path without symbolic links; links that form a loop stay, for which `Path.resolve` fails."""
    return Path(os.path.realpath(path))


def user_cache() -> Path:
    """Return perftrail's directory in the user's cache, as the XDG base directory specification defines it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else user_home() / ".cache") / "perftrail"


def user_state() -> Path:
    """Return perftrail's directory in the user's state, as the XDG base directory specification defines it.

    Where the home directory is missing or not writable, as in some containers, it is a directory for temporary files.
    """
    named = os.environ.get("XDG_STATE_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "perftrail"
    state = user_home() / ".local" / "state" / "perftrail"
    if state.is_dir() or os.access(user_home(), os.W_OK | os.X_OK):
        return state
    return Path(tempfile.gettempdir()) / f"perftrail-state-{os.geteuid()}"


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Create a directory for the block; also remove those that processes of this user left when they were killed."""
    _remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=f"{_TEMPORARY}{os.getpid()}-") as name:
        yield Path(name)


ABANDONED_AFTER_SECONDS = 24 * 3600.0
"""The id of a living process in another container may be unknown here, but no such process runs for a day."""

_TEMPORARY = "perftrail-tmp-"


@functools.cache
def _remove_abandoned() -> None:
    """Remove the old temporary directories of this user's dead processes, once in each process."""
    oldest = time.time() - ABANDONED_AFTER_SECONDS
    for found in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*-*"):
        pid = found.name.removeprefix(_TEMPORARY).partition("-")[0]
        with suppress(OSError):
            status = found.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_ours and pid.isdecimal() and status.st_mtime < oldest and not Path("/proc", pid).exists():
                remove_tree(found)


MOST_DEPTH = 500
"""Trees with more levels of directories are refused: no build needs them, and each level needs a descriptor."""


class TreeTooDeep(OSError):
    """A tree has more than `MOST_DEPTH` levels of directories; its `errno` is ENAMETOOLONG."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """An entry of a tree: its name in a directory, that directory's descriptor and path below the root, its status.

    The descriptor is open only until the next entry.
    """

    name: str
    directory: int
    below: str
    status: os.stat_result

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, and not a link to one."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def path(self) -> str:
        """The path below the root."""
        return f"{self.below}/{self.name}" if self.below else self.name


def entries_below(root: Path, *, skipped: Collection[str] = ()) -> Iterator[TreeEntry]:
    """Yield everything below a directory, each directory before its content, without following links below it.

    Paths may be longer than the system's limit. Directories with `skipped` names are left out. Entries that vanish
    or cannot be opened are skipped. Raises `TreeTooDeep`.
    """
    levels: list[tuple[int, str, Iterator[tuple[str, os.stat_result]]]] = []
    try:
        _enter(levels, root, "", None)
        while levels:
            directory, below, inside = levels[-1]
            found = next(inside, None)
            if found is None:
                os.close(levels.pop()[0])
                continue
            entry = TreeEntry(found[0], directory, below, found[1])
            if entry.is_directory and entry.name in skipped:
                continue
            yield entry
            if entry.is_directory:
                if len(levels) > MOST_DEPTH:
                    message = f"more than {MOST_DEPTH} levels of directories"
                    raise TreeTooDeep(errno.ENAMETOOLONG, message, str(root))
                _enter(levels, entry.name, entry.path, directory)
    finally:
        for directory, _, _ in levels:
            os.close(directory)


def _enter(
    levels: list[tuple[int, str, Iterator[tuple[str, os.stat_result]]]],
    name: str | Path,
    below: str,
    parent: int | None,
) -> None:
    try:
        directory = os.open(name, _ROOT if parent is None else _DIRECTORY, dir_fd=parent)
    except OSError:
        return
    levels.append((directory, below, iter(_listed(directory))))


def _listed(directory: int) -> list[tuple[str, os.stat_result]]:
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DIRECTORY = _ROOT | os.O_NOFOLLOW


def remove_tree(path: Path) -> None:
    """Remove a file, link or tree of any depth without following links. Nothing may change it meanwhile."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    path.chmod(0o700)
    root = os.open(path, _DIRECTORY)
    try:
        _empty(root)
    finally:
        os.close(root)
    path.rmdir()


def _empty(root: int) -> None:
    """Remove everything in a directory. Nested directories are first moved up: their paths may be too long."""
    moved = 0
    while True:
        with os.scandir(root) as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        if not inside:
            return
        for name, is_directory in inside:
            if not is_directory:
                os.unlink(name, dir_fd=root)
                continue
            below = _open_with_permissions(name, root)
            try:
                with os.scandir(below) as entries:
                    deeper = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
                for each, has_more in deeper:
                    if has_more:
                        moved += 1
                        os.close(_open_with_permissions(each, below))
                        os.rename(
                            each, f".removed-{moved}-{uuid.uuid4().hex}", src_dir_fd=below, dst_dir_fd=root
                        )
                    else:
                        os.unlink(each, dir_fd=below)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=root)


def _open_with_permissions(name: str, parent: int) -> int:
    """Open a directory, also one without permissions for its owner."""
    if not os.access(name, os.R_OK | os.W_OK | os.X_OK, dir_fd=parent):
        os.chmod(name, 0o700, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def emptied(directory: Path) -> Path:
    """Create a directory, or remove its contents."""
    directory.mkdir(parents=True, exist_ok=True)
    empty_directory(directory)
    return directory


def empty_directory(directory: Path, *, keep: Collection[Path] = ()) -> None:
    """Remove the content of a directory, but not the directory: something may be mounted on it.

    The paths in `keep` stay, with their parents.
    """
    with os.scandir(directory) as entries:
        inside = [Path(entry.path) for entry in entries]
    for path in inside:
        if path in keep:
            continue
        if not path.is_symlink() and any(path in kept.parents for kept in keep):
            empty_directory(path, keep=keep)
        else:
            remove_tree(path)


@contextmanager
def claimed_directory(prefix: str, *, below: Path) -> Iterator[Path]:
    """Yield a new private directory, which is removed at the end with its content."""
    with _claimed(lambda: Path(tempfile.mkdtemp(prefix=prefix, dir=below))) as path:
        yield path


@contextmanager
def claimed_file(prefix: str, *, below: Path) -> Iterator[Path]:
    """Yield a new, empty, private file, which is removed at the end."""

    def create() -> Path:
        descriptor, path = tempfile.mkstemp(prefix=prefix, dir=below)
        os.close(descriptor)
        return Path(path)

    with _claimed(create) as path:
        yield path


def remove_left_over(prefix: str, *, below: Path) -> tuple[Path, ...]:
    """Remove and return the leftovers of this user's ended processes."""
    removed = []
    for path in sorted(below.glob(f"{prefix}*")):
        # The path is another user's, claimed or removed meanwhile; or an ending process still writes to it.
        with suppress(OSError):
            if _removed_unclaimed(path):
                removed.append(path)
    return tuple(removed)


@contextmanager
def _claimed(create: Callable[[], Path]) -> Iterator[Path]:
    descriptor = -1
    while descriptor < 0:
        path = create()
        descriptor = _claim(path)
    try:
        yield path
    finally:
        try:
            remove_tree(path)
        finally:
            os.close(descriptor)


def _claim(path: Path) -> int:
    """Lock a new path; return -1 if another process removed it before.

    The kernel releases the lock when the process ends. A process id would be ambiguous: it differs between containers,
    and is reused.
    """
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return -1
    with suppress(OSError):  # a file system without locks, where no other process gets one either
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _leads_to(path, descriptor):
        return descriptor
    os.close(descriptor)
    return -1


def _removed_unclaimed(path: Path) -> bool:
    """Remove a path unless it is claimed (`OSError`) or not ours."""
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _leads_to(path, descriptor):
            return False
        remove_tree(path)
        return True
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open a path that anybody may have created: never through a link, without waiting for a pipe."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Lock a file exclusively; wait for other locks of it to end."""
    with _opened(path) as number:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield


@contextmanager
def shared_lock(path: Path) -> Iterator[None]:
    """Lock a file together with other readers, but not with an `exclusive_lock`."""
    with _opened(path) as number:
        fcntl.flock(number, fcntl.LOCK_SH)
        yield


@contextmanager
def try_exclusive_lock(path: Path) -> Iterator[bool]:
    """Lock a file exclusively if it is free, without waiting; yield whether that succeeded."""
    with _opened(path) as number:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_to_read(path: Path, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file, without waiting for a pipe. Raises `OSError`.

    Paths below ``/dev`` and ``/proc`` may be pipes and devices: ``/dev/stdin``, and what a shell passes.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    return os.fdopen(_opened_file(path, flags), "rb")


def write_file(path: Path, content: bytes | str, *, append: bool = False) -> None:
    """Write a file that the user named, but not through a link, and without waiting for a pipe. Raises `OSError`.

    A repository may contain a link with a name that perftrail's guides use. Paths below ``/dev`` and
    ``/proc`` may be anything.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    if not _is_device_path(path):
        refuse_link(path)
        flags |= os.O_NOFOLLOW
    with os.fdopen(_opened_file(path, flags), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def create_directory(path: Path) -> Path:
    """Create a directory and its parents, unless they exist; refuse a link to one. Raises `OSError`."""
    refuse_link(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def refuse_link(path: Path) -> None:
    """Raise `OSError` for a symbolic link."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "It is a symbolic link", str(path))


def _is_device_path(path: Path) -> bool:
    return path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",))


def _opened_file(path: Path, flags: int) -> int:
    """Open a file that is regular, or below ``/dev`` or ``/proc``; reading and writing it blocks as usual."""
    descriptor = os.open(path, flags, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode) or not (stat.S_ISREG(mode) or _is_device_path(path)):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
        raise OSError(code, "Is a directory" if stat.S_ISDIR(mode) else "It is not a regular file", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def publish(finished: Path, path: Path) -> None:
    """Rename a finished file or directory to `path`, where it replaces a file or an empty directory.

    The content is on the disk before the rename: after a power failure, `path` has all of it, or its old content.
    """
    sync_file_system(finished.parent)
    finished.replace(path)
    sync_directory(path.parent)


def sync_file_system(path: Path) -> None:
    """Write everything of a file system to its disk: one call, whatever the number of files."""
    directory = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(directory):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    finally:
        os.close(directory)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class NewTree:
    """Creates the entries of an untrusted tree below a new directory, and never follows a link.

    Every directory of an entry's path is opened by its parent's descriptor without following links. Each method raises
    `OSError` if a link or a file is in the way, or if the entry exists.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def directory(self, parts: Sequence[str]) -> None:
        """Create a directory and its parents, unless they exist."""
        os.close(self._descend(parts))

    @contextmanager
    def file(self, parts: Sequence[str], *, program: bool) -> Iterator[IO[bytes]]:
        """Yield a new file for writing."""
        with self._parent(parts) as (parent, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as opened:
                yield opened
                os.fchmod(opened.fileno(), 0o755 if program else 0o644)

    def link(self, parts: Sequence[str], target: str) -> None:
        """Create a symbolic link, wherever it leads."""
        with self._parent(parts) as (parent, name):
            os.symlink(target, name, dir_fd=parent)

    def hard_link(self, parts: Sequence[str], target: Sequence[str]) -> None:
        """Create a hard link to a file of the tree."""
        with self._parent(target) as (old_parent, old), self._parent(parts) as (parent, name):
            os.link(old, name, src_dir_fd=old_parent, dst_dir_fd=parent, follow_symlinks=False)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file, if it exists."""
        with self._parent(parts) as (parent, name), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)

    @contextmanager
    def _parent(self, parts: Sequence[str]) -> Iterator[tuple[int, str]]:
        parent = self._descend(parts[:-1])
        try:
            yield parent, parts[-1]
        finally:
            os.close(parent)

    def _descend(self, parts: Sequence[str]) -> int:
        """Open a directory of the tree, after creating it and its parents if necessary."""
        current = os.open(self._root, _DIRECTORY)
        for part in parts:
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
                below = os.open(part, _DIRECTORY, dir_fd=current)
            finally:
                os.close(current)
            current = below
        return current


def set_same_date(directory: Path) -> None:
    """Set the date of everything below a directory to the present.

    Otherwise, build tools would consider some files older than those generated from them, and generate these again:
    ``configure`` from ``configure.ac``, by a tool that may be missing.
    """
    now = time.time_ns()
    for entry in entries_below(directory):
        os.utime(entry.name, ns=(now, now), dir_fd=entry.directory, follow_symlinks=False)
