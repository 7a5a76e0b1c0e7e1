"""Remove untrusted trees, claim temporary files, lock files, find the user's cache.

Trees that untrusted programs wrote are removed without following links, including unreadable parts. A claimed file
belongs to a living process, so that leftovers of killed ones can be removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import IO


def user_cache() -> Path:
    """Return perftrail's directory in the user's cache, as the XDG base directory specification says."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "perftrail"


def remove_tree(path: Path) -> None:
    """Remove a file, link or tree without following links. Nothing may change it meanwhile."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    _open_up(path)
    shutil.rmtree(path)


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


def _open_up(directory: Path) -> None:
    """Restore the permission to list and change a directory and its subdirectories; links do not change."""
    directory.chmod(0o700)
    with os.scandir(directory) as entries:
        inside = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    for each in inside:
        _open_up(each)


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
    with path.open("ab") as file:
        yield file.fileno()


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
        """Open a directory of the tree, and create what is missing of it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        current = os.open(self._root, flags)
        for part in parts:
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
                below = os.open(part, flags, dir_fd=current)
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
    for parent, directories, names in os.walk(directory):
        for name in (*directories, *names):
            os.utime(Path(parent) / name, ns=(now, now), follow_symlinks=False)
