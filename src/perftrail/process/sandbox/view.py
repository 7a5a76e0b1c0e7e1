"""The parts of this machine that programs in a sandbox see, as arguments of bubblewrap.

`PrivateDirectories` are a sandbox's own directories: /tmp, home and /dev/shm.
"""

from __future__ import annotations

import glob
import os
import pwd
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perftrail.errors import SandboxError
from perftrail.file_tree import claimed_directory, empty_directory, real_path, remove_left_over

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from types import TracebackType


_NAMESPACES = ("user", "pid", "ipc", "uts")
_PROC_OF_KERNEL = ("sys", "irq", "bus", "fs", "acpi", "scsi", "sysrq-trigger", "mtrr")
"""Parts of /proc that change the kernel. Root's own files stay writable to root, whatever capabilities it lost."""

_KEYS = ("/proc/keys", "/proc/key-users")
"""Lists of the kernel's keys, which name those of the user outside."""

_SECRETS = ("/etc/shadow*", "/etc/gshadow*", "/etc/ssh/*_key", "/etc/ssl/private/*", "/etc/krb5.keytab")
"""Files that only root can read; perftrail started as root could read them inside, too."""

_HOMES = ("/home", "/root")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the sandbox has its own
_EMPTY_BYTES = 1 << 20
_RESOLVER = Path("/etc/resolv.conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What programs in a sandbox can read and write.

    They see the machine read-only, except hidden parts: homes, /run, /tmp, secrets, and `hidden`. Hidden parts can
    be shown again: `shown` is readable, `writable` is writable. All are absolute paths without links; of two paths,
    the deeper one wins. With `shares_network`, bubblewrap starts in the network of another sandbox.
    """

    writable: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    shares_network: bool = False

    def arguments(self, private: PrivateDirectories) -> tuple[str, ...]:
        """Return bubblewrap's arguments for this view; later ones cover earlier ones."""
        return tuple(self._words(private))

    def _words(self, private: PrivateDirectories) -> Iterator[str]:
        spaces = (*_NAMESPACES, *(() if self.network or self.shares_network else ("net",)))
        yield from (f"--unshare-{space}" for space in spaces)
        if self.shares_network:  # where bubblewrap starts then, this user may have another number
            yield from ("--uid", str(os.getuid()), "--gid", str(os.getgid()))
        # Process 1 is the launcher's guard: when it ends the kernel ends all others, and none of them can end it.
        yield from ("--as-pid-1", "--cap-drop", "ALL", "--hostname", "sandbox")
        yield from ("--ro-bind", "/", "/", *_devices(private), "--proc", "/proc")
        for name in _PROC_OF_KERNEL:
            yield from _read_only(f"/proc/{name}")
        for path in filter(os.path.exists, _KEYS):
            yield from ("--ro-bind", "/dev/null", path)
        yield from ("--bind", str(private.tmp), "/tmp", "--bind", str(private.tmp), "/var/tmp")  # noqa: S108 - theirs
        yield from _empty("/run")
        own = _own_homes()
        homes = [
            home for home in _HOMES if home not in own and Path(home).is_dir() and not Path(home).is_symlink()
        ]
        for home in homes:
            yield from _empty(home)
        for path in own:
            yield from ("--bind", str(private.home), path)
        if self.network:
            yield from _read_only(str(real_path(_RESOLVER)))
        for path in (path for pattern in _SECRETS for path in glob.glob(pattern)):  # noqa: PTH207 - absolute
            yield from ("--ro-bind", "/dev/null", path)
        sockets = () if self.network else _sockets()
        covered = ("/run", "/dev", "/proc", *_TEMPORARY, *homes, *own, *self._paths())
        for path in (path for path in sockets if not _deepest_above(path, covered)):
            yield from ("--ro-bind", "/dev/null", path)
        for path in sorted({*self._paths(), str(private.exchange)}, key=_depth):
            yield from self._mount(path, private)
        for path in (path for path in sockets if self._is_shown(path)):
            yield from ("--ro-bind", "/dev/null", path)
        emptied = (path for path in ("/run", *homes, *self.hidden) if Path(path).is_dir())
        yield from (word for path in emptied for word in ("--remount-ro", path))
        yield from ("--chdir", "/")

    def _mount(self, path: str, private: PrivateDirectories) -> Sequence[str]:
        if path in self.writable or path == str(private.exchange):
            return ("--bind", path, path)
        return _read_only(path) if path in self.shown else _empty(path)

    def _is_shown(self, path: str) -> bool:
        """Whether a path is in a shown directory, or is shown itself."""
        above = path if path in self._paths() else _deepest_above(path, self._paths())
        return above in self.shown and above not in self.writable

    def _paths(self) -> tuple[str, ...]:
        return (*self.writable, *self.shown, *self.hidden)

    def mount_points(self, private: PrivateDirectories) -> frozenset[Path]:
        """Return the mount points in the sandbox's own directories: they must exist as long as the sandbox."""
        bases = {"/tmp": private.tmp, "/var/tmp": private.tmp, **dict.fromkeys(_own_homes(), private.home)}  # noqa: S108
        paths = {*self._paths(), *_own_homes(), str(private.exchange)}
        return frozenset(
            directory / os.path.relpath(path, base)
            for base, directory in bases.items()
            for path in _outermost(path for path in paths if path.startswith(f"{base}/"))
        )


def _sockets() -> list[str]:
    """Return the paths of the machine's sockets.

    A network namespace has no abstract sockets of the machine, but sockets with a path are reached through the file
    system.
    """
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    named = {
        fields[7] for line in lines if len(fields := line.split(None, 7)) == 8 and fields[7].startswith("/")
    }
    return sorted({os.path.realpath(path) for path in named if _is_socket(Path(path))})


def _is_socket(path: Path) -> bool:
    """Whether a path is a socket; not if another user's directory hides it, as from the sandboxed program."""
    try:
        return path.is_socket()
    except OSError:
        return False


def _deepest_above(path: str, directories: Iterable[str]) -> str:
    """Return the deepest of some directories that contains a path; empty if none does."""
    return max((each for each in directories if path.startswith(f"{each}/")), key=_depth, default="")


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not inside another of them."""
    every = tuple(paths)
    return [path for path in every if not any(path.startswith(f"{other}/") for other in every)]


def _depth(path: str) -> int:
    """Return the depth of a path: deeper mounts come later, so that none is hidden by a mount above it."""
    return path.count("/")


def refuse_whole_home(directory: str) -> None:
    """Raise `SandboxError` for a directory that cannot be shown without showing the whole home directory."""
    real = os.path.realpath(directory)
    for home in _own_homes():
        if os.path.commonpath([real, home]) == real:
            raise SandboxError(
                f"{directory} — contains the whole home directory, which a sandbox hides: use a separate "
                "directory, or name the required paths in sandbox.readable"
            )


def _own_homes() -> tuple[str, ...]:
    """Return the existing home directories of this user: by $HOME, and by the system's list of users."""
    named = [os.environ.get("HOME", "")]
    with suppress(KeyError):  # containers have users that the system does not list
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    real = (os.path.realpath(path) for path in named if path.startswith("/"))
    return tuple(path for path in dict.fromkeys(real) if path != "/" and Path(path).is_dir())


def _devices(private: PrivateDirectories) -> Sequence[str]:
    return ("--dev", "/dev", "--bind", str(private.shared_memory), "/dev/shm", "--remount-ro", "/dev")  # noqa: S108 - theirs


def _empty(path: str) -> Sequence[str]:
    return ("--size", str(_EMPTY_BYTES), "--tmpfs", path) if Path(path).is_dir() else ()


def _read_only(path: str) -> Sequence[str]:
    return ("--ro-bind-try", path, path)


_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp creates the directory
_DIRECTORY = "perftrail-private-"


class PrivateDirectories:
    """Directories of a single sandbox; a context manager that removes them.

    They are real directories, so that perftrail can empty them between two invocations, and their content counts as
    disk space. Only `/dev/shm` is in memory, as programs expect. `exchange` has the same name inside.
    """

    def __init__(self, below: Path) -> None:
        below.mkdir(parents=True, exist_ok=True)
        self._claims = ExitStack()
        self.path = real_path(self._claims.enter_context(claimed_directory(_DIRECTORY, below=below)))
        self.tmp, self.home, self.exchange = (self.path / name for name in ("tmp", "home", "exchange"))
        for directory in (self.tmp, self.home, self.exchange):
            directory.mkdir(mode=0o700)
        in_memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else self.path
        self.shared_memory = self._claims.enter_context(claimed_directory(_DIRECTORY, below=in_memory))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories that a program inside can fill."""
        return (self.tmp, self.home, self.exchange, self.shared_memory)

    def empty(self, *, keep: Collection[Path] = ()) -> bool:
        """Remove what the last program left, except the mount points in `keep`.

        Return False, after removing everything, if that program moved a mount point: everything must then be
        mounted again.
        """
        intact = all(path.exists() and real_path(path) == path for path in keep)
        for directory in self.directories:
            empty_directory(directory, keep=keep if intact else ())
        return intact

    def remove(self) -> None:
        """Remove all directories."""
        self._claims.close()


def remove_left_over_directories(*below: Path) -> None:
    """Remove directories of killed perftrail processes in memory and below these directories."""
    for directory in (_IN_MEMORY, *below):
        remove_left_over(_DIRECTORY, below=directory)
