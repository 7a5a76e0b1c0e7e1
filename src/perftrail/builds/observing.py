"""Observe with strace which files a build or a benchmark uses.

The rules and their limits are in docs/decisions/0036 for the files of a build's tree, and in 0045 for all other files.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perftrail.builds.artefact import content_of_opened
from perftrail.builds.environment import search_path
from perftrail.builds.named_files import may_be_input
from perftrail.model.reads import BuildReads
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CALLS = (
    "trace=%file,fchdir,?getdents,?getdents64,?io_uring_setup,?open_by_handle_at,"
    "bind,listen,getsockname,connect,sendto,sendmsg,?sendmmsg"
)
"""System calls that name files, list directories or ask another process; ``?``: unknown on some machines."""

Traced = Literal["the build", "the benchmark"]
"""What is traced, in messages."""

OPENING_CALLS = (
    "trace=?open,?openat,?openat2,?execve,?execveat,?chdir,fchdir,"
    "?chroot,?mount,?io_uring_setup,?open_by_handle_at,?bind,?listen,getsockname,?connect"
)
"""The calls among `CALLS` with which programs open files or begin to ask another process."""

WITHOUT_IO_URING = "inject=?io_uring_setup:error=ENOSYS"
"""Observed programs find no io_uring, as on older kernels and in containers: strace would not see its files. CMake, for
example, asks for one."""

LARGEST_TRACE_BYTES = 1 << 30
"""A larger trace is not read, and the observation is incomplete."""

MOST_FILES = 10_000
"""Number of files outside of a tree whose content is compared."""

_CLOCK_NS = 20_000_000
"""Dates of files are older than the clock by up to a tick of the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The files that can be inputs of an observed process: not below `ignored`, and unchanged since `since_ns`.

    A file that changes during the observation is a result, or state of another program. `study` is the directory of the
    study. Paths that begin with a match of `ignored_paths` do not count either, whether they exist or not.
    """

    study: Path
    ignored: tuple[Path, ...]
    since_ns: int
    ignored_paths: re.Pattern[str] = re.compile("(?!)")

    def contents(self, paths: Iterable[str], *, absent: Iterable[str] = ()) -> dict[str, str]:
        """Return the inputs among paths with the digests of their contents, `MOST_FILES` at most.

        `absent` are files that the process tried to open: one that still does not exist is an input without content.
        Names below the study's directory are relative to it, so that a study that is moved keeps them.
        """
        found: dict[str, str] = {}
        for name in (*sorted(paths), *sorted(absent)):
            path = Path(name)
            if len(found) == MOST_FILES:
                break
            if self._is_input(path):
                relative = path.relative_to(self.study) if path.is_relative_to(self.study) else path
                found[str(relative)] = content_of_opened(path)
        return found

    def _is_input(self, path: Path) -> bool:
        if not may_be_input(path, below=self.study) or any(map(path.is_relative_to, self.ignored)):
            return False
        if self.ignored_paths.match(str(path)):
            return False
        try:
            str(path).encode()  # the store cannot represent other names
            state = path.stat()
            return stat.S_ISREG(state.st_mode) and state.st_ctime_ns < self.since_ns - _CLOCK_NS
        except FileNotFoundError:
            return True
        except (OSError, UnicodeEncodeError):
            return False


def observer() -> str | None:
    """Return the path of strace, or `None` if it is not installed."""
    return shutil.which("strace", path=search_path())


def observing_words(program: str, trace: Path, *, calls: str = CALLS) -> tuple[str, ...]:
    """Return the words before a command whose file accesses are appended to a file.

    strace is a grandchild of the command (``-D``), so that the command ends when its first process does. The launcher
    then kills daemons that the command started, and strace, which would wait for them.
    """
    options = (
        "-D",
        "-f",
        "-y",
        "-q",
        "--seccomp-bpf",
        "--output-append-mode",
        "-e",
        calls,
        "-e",
        WITHOUT_IO_URING,
    )
    return (program, *options, "-o", str(trace), "--")


_LINE = re.compile(r"(?P<pid>\d+) +(?P<text>.*)", re.DOTALL)
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>.*)", re.DOTALL)
_UNFINISHED = re.compile(r"(?P<begin>.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(?P<rest>.*)")
_TEXT = r'"(?P<text>(?:[^"\\]|\\.)*)"'
_AT = r"(?:(?:AT_FDCWD|\d+)<(?P<at>(?:[^>\\]|\\.)*)>, *)?"
_PATH = re.compile(_AT + _TEXT)
_DESCRIPTOR = re.compile(r"(\d+)<(?P<path>(?:[^>\\]|\\.)*)>")
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}

_OPEN = frozenset({"open", "openat", "openat2", "creat"})
_EXECUTE = frozenset({"execve", "execveat"})
_MOVE = frozenset({"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"})
_LIST = frozenset({"getdents", "getdents64"})
_HIDING = frozenset({"chroot", "pivot_root", "mount", "open_by_handle_at", "io_uring_setup", "move_mount"})
_ALIASES = ("/proc/self/cwd", "/proc/self/root")
_SEND = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})
_HARMLESS_SOCKETS = ("/run/nscd/", "/var/run/nscd/", "/run/systemd/userdb/", "/var/lib/sss/pipes/nss")
"""Sockets of services that the C library asks for the names of users and groups."""

_FAMILY = re.compile(r"(?:, |msg_name=)\{sa_family=(\w+)")
_HARMLESS_FAMILIES = ("AF_NETLINK", "AF_UNSPEC")
"""The kernel itself, and the end of a connection."""

_UNIX = re.compile(r'sun_path=(?P<abstract>@?)"(?P<text>(?:[^"\\]|\\.)*)"')
_HOST = re.compile(r'_port=htons\((?P<port>\d+)\).*?inet_(?:addr\(|pton\(AF_INET6, )"(?P<host>[^"]*)"')
_BEGUN = ("EINPROGRESS", "EALREADY", "EINTR")
"""Errors of connections that may be established nevertheless."""


_Named = tuple[str | None, str]
"""A path as a process named it, after the directory from which it is relative; `None` if that is unknown."""


def read_trace(trace: Path, *, tree: Path, directory: Path) -> BuildReads:
    """Return the paths of a tree that a traced build used; `directory` is that of its first process."""
    accesses = _read(trace, directory, "the build")
    return accesses if isinstance(accesses, BuildReads) else accesses.inside(os.path.realpath(tree))


def read_opened(trace: Path, *, directory: Path, scope: Scope, traced: Traced) -> BuildReads:
    """Return the files of a scope that a traced process opened; `directory` is where it began."""
    accesses = _read(trace, directory, traced)
    return accesses if isinstance(accesses, BuildReads) else accesses.outside(scope)


def _read(trace: Path, directory: Path, traced: Traced) -> _Accesses | BuildReads:
    """Return the accesses of a trace, or why there are none."""
    if not trace.is_file() or trace.stat().st_size == 0:
        return BuildReads(incomplete="strace recorded nothing; perhaps it may not trace processes here")
    if trace.stat().st_size > LARGEST_TRACE_BYTES:
        return BuildReads(incomplete=f"{traced} uses too many files to observe it")
    accesses = _Accesses(directory, traced=traced)
    with trace.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            accesses.add(line.rstrip("\n"))
    return accesses


@dataclass(slots=True)
class _Accesses:
    """File accesses of all processes of a build or a benchmark, gathered line by line."""

    directory: InitVar[Path]
    traced: Traced
    opened: set[_Named] = field(default_factory=set)
    executed: set[_Named] = field(default_factory=set)
    absent: set[_Named] = field(default_factory=set)
    moved: set[_Named] = field(default_factory=set)
    looked_up: set[_Named] = field(default_factory=set)
    listed: set[_Named] = field(default_factory=set)
    incomplete: str = ""
    _directories: dict[str, None] = field(default_factory=dict)
    _directory_of: dict[str, str] = field(default_factory=dict)
    _begun: dict[str, str] = field(default_factory=dict)
    _bound: dict[str, str] = field(default_factory=dict)
    _listening: set[str] = field(default_factory=set)

    def __post_init__(self, directory: Path) -> None:
        self._directories[os.path.realpath(directory)] = None

    def add(self, line: str) -> None:
        """Add a line of the trace. A call of a killed process may have no end; it returned no content."""
        found = _LINE.fullmatch(line)
        if found is None:
            return
        pid, text = found["pid"], found["text"]
        if text.startswith("+++"):
            self._directory_of.pop(pid, None)  # another process may get this number
            return
        if (unfinished := _UNFINISHED.fullmatch(text)) is not None:
            self._begun[pid] = unfinished["begin"]
            return
        if (resumed := _RESUMED.fullmatch(text)) is not None:
            text = self._begun.pop(pid, "") + resumed["rest"]
        if (call := _CALL.fullmatch(text)) is not None:
            self._add_call(pid, call["name"], call["arguments"], call["result"])

    def _add_call(self, pid: str, name: str, arguments: str, result: str) -> None:
        succeeded = not result.startswith(("-1", "?"))
        if name in _SEND or name in ("bind", "listen", "getsockname"):
            if succeeded or any(error in result for error in _BEGUN):
                self._use_socket(pid, name, arguments)
        elif name in _HIDING:
            if succeeded:
                self._doubt(f"{self.traced} uses {name}, behind which strace sees no files")
        elif name in _LIST or name == "fchdir":
            descriptor = _DESCRIPTOR.match(arguments)
            if descriptor is not None and name in _LIST:
                self.listed.add((None, _unescaped(descriptor["path"])))
            elif descriptor is not None and succeeded:
                self._enter(pid, _unescaped(descriptor["path"]))
        else:
            paths = self._paths(pid, arguments, only_first=name in _EXECUTE)
            self.looked_up.update(paths)
            if succeeded:
                self._add_success(pid, name, paths, arguments, result)
            elif name in _OPEN | _EXECUTE and "ENOENT" in result and not _is_directory(arguments):
                self.absent.update(paths)

    def _use_socket(self, pid: str, name: str, arguments: str) -> None:
        """Note the addresses at which the build's own processes listen; doubt what it asks at any other address."""
        socket = arguments.partition(">")[0].partition("<")[2]
        if name == "listen":
            self._listening.add(socket)
        elif (family := _FAMILY.search(arguments)) is None or family[1] in _HARMLESS_FAMILIES:
            return
        elif name not in _SEND:
            self._bound[socket] = self._address(pid, arguments)
        else:
            address = self._address(pid, arguments)
            own = {self._bound.get(each) for each in self._listening}
            if not (address.startswith(_HARMLESS_SOCKETS) or own & {address, *_also_reached(address)}):
                self._doubt(f"{self.traced} asks another process at {address[:80]}, {_purpose(address)}")

    def _address(self, pid: str, arguments: str) -> str:
        """Return the address in a call: a path, ``HOST port N``, or the text itself if it is another one."""
        if (found := _UNIX.search(arguments)) is not None:
            path = _unescaped(found["text"])
            if found["abstract"]:
                return f"@{path}"
            return os.path.normpath(os.path.join(self._directory_of.get(pid, f"?{pid}"), path))  # noqa: PTH118 - any bytes
        if (found := _HOST.search(arguments)) is None:
            return arguments.partition("{")[2].partition("}")[0]
        host = ip_address(found["host"])
        if isinstance(host, IPv6Address):
            host = host.ipv4_mapped or host
        return f"{host} port {found['port']}"

    def _paths(self, pid: str, arguments: str, *, only_first: bool) -> list[_Named]:
        paths: list[_Named] = []
        for found in _PATH.finditer(arguments):
            at, path = found["at"], _unescaped(found["text"])
            if at is not None and found[0].startswith("AT_FDCWD"):
                self._enter(pid, _unescaped(at))
            if path.startswith(_ALIASES):
                self._doubt(f"{self.traced} names files as {path[:40]}")
            paths.append((_unescaped(at) if at is not None else self._directory_of.get(pid), path))
            if only_first:
                break
        return paths

    def _add_success(self, pid: str, name: str, paths: Sequence[_Named], arguments: str, result: str) -> None:
        if name in _OPEN and not _is_directory(arguments):
            self.opened.update(paths)
            if (descriptor := _DESCRIPTOR.match(result)) is not None:
                self.opened.add((None, _unescaped(descriptor["path"])))
        elif name in _EXECUTE:
            self.opened.update(paths)
            self.executed.update(paths)
        elif name in _MOVE:
            self.moved.update(paths)
        elif name == "chdir" and paths:
            base, path = paths[0]
            if base is None and not path.startswith("/"):
                self._directory_of.pop(pid, None)
                known = [os.path.realpath(f"{each}/{path}") for each in self._directories]
                self._directories.update(dict.fromkeys(known))
            else:
                self._enter(pid, os.path.realpath(path if path.startswith("/") else f"{base}/{path}"))

    def _enter(self, pid: str, directory: str) -> None:
        self._directory_of[pid] = directory
        self._directories[directory] = None

    def _doubt(self, why: str) -> None:
        self.incomplete = self.incomplete or why

    def inside(self, tree: str) -> BuildReads:
        """Return the paths inside a tree, each as it was named and without symbolic links."""
        resolved: dict[str, str] = {}

        def paths(named: set[_Named]) -> Iterator[str]:
            for full in self._full(named):
                parent, _, name = full.rpartition("/")
                if parent not in resolved:
                    resolved[parent] = os.path.realpath(parent)
                for found in {full, f"{resolved[parent]}/{name}", os.path.realpath(full)}:
                    if found == tree or found.startswith(f"{tree}/"):
                        yield found[len(tree) + 1 :]

        # Go opens directories like files to list them.
        every = frozenset(paths(self.opened))
        directories = {path for path in every if os.path.isdir(f"{tree}/{path}")}  # noqa: PTH112 - any bytes
        opened = (every - directories) | frozenset(paths(self.moved))
        if any(".git" in path.split("/") for path in every):
            self._doubt(f"{self.traced} reads git's data, for example with git describe")
        return BuildReads(
            opened=opened - {""},
            looked_up=(frozenset(paths(self.looked_up)) | directories) - opened,
            listed=frozenset(paths(self.listed)),
            incomplete=self.incomplete,
        )

    def outside(self, scope: Scope) -> BuildReads:
        """Return the opened and executed files of a scope, with their contents, and those that were not found.

        A link counts by its name.
        """
        named = {_source_of_bytecode(path) for path in self._full(self.opened)}
        named |= {path for each in self._full(self.executed) if (path := _interpreter(each))}
        targets = {real for path in named if (real := os.path.realpath(path)) != path}
        absent = {path for path in self._full(self.absent) if _source_of_bytecode(path) == path} - named
        contents = scope.contents(named - targets, absent=absent)
        if len(contents) == MOST_FILES:
            self._doubt(f"{self.traced} opens more than {counted(MOST_FILES, 'file')}")
        return BuildReads(outside=contents, incomplete=self.incomplete)

    def _full(self, named: set[_Named]) -> Iterator[str]:
        """Yield absolute paths; a path in an unknown directory may be in each directory that a process was in."""
        for base, path in named:
            bases = list(self._directories) if base is None else [base]
            for each in ["/"] if path.startswith("/") else bases:
                yield os.path.normpath(os.path.join(each, path))  # noqa: PTH118 - any bytes


_BYTECODE = re.compile(r"(?P<directory>.*)/__pycache__/(?P<module>[^/]+?)\.[^/]*")


def _source_of_bytecode(path: str) -> str:
    """Return the module whose bytecode Python opened instead of it; Python writes the bytecode itself.

    >>> _source_of_bytecode("/lib/__pycache__/fast.cpython-313.pyc"), _source_of_bytecode("/lib/fast.so")
    ('/lib/fast.py', '/lib/fast.so')
    """
    found = _BYTECODE.fullmatch(path)
    return path if found is None else f"{found['directory']}/{found['module']}.py"


def _interpreter(path: str) -> str:
    """Return the program that the kernel starts for a script, without a call that strace sees; empty for others."""
    try:
        with Path(path).open("rb") as file:
            words = file.readline(4096).split() if file.read(2) == b"#!" else []
    except OSError:
        return ""
    return os.fsdecode(words[0]) if words else ""


def _is_directory(arguments: str) -> bool:
    flags = arguments.rpartition('"')[2]
    return "O_DIRECTORY" in flags or "O_PATH" in flags


def _also_reached(address: str) -> tuple[str, ...]:
    """Return the addresses for all interfaces at which a process of this machine may listen for an address."""
    host, _, port = address.partition(" port ")
    with suppress(ValueError):
        if ip_address(host).is_loopback:
            return (f"0.0.0.0 port {port}", f":: port {port}")
    return ()


def _purpose(address: str) -> str:
    """Return what a process may want at an address, for a message."""
    host = address.partition(" port ")[0]
    with suppress(ValueError):
        if not (ip_address(host).is_loopback or ip_address(host).is_unspecified):
            return "perhaps for a download: pin what it downloads, or it is not the revision's own"
    return "for example a compile server"


def _unescaped(text: str) -> str:
    """Return a name without strace's escapes."""
    if "\\" not in text:
        return text

    def plain(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)

    # Each escape is one byte of a name.
    raw = _ESCAPE.sub(plain, text)
    return raw if raw.isascii() else os.fsdecode(raw.encode("latin-1", "replace"))
