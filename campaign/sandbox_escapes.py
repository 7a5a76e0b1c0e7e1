"""Programs in perftrail's sandbox that try to get out, each attempt with its own check outside.

An attempt is a Python program that prints ``ESCAPED: …`` if it reached something that docs/how-to/sandbox.md closes.
Most attempts also leave a trace outside, which the check looks for.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from campaign import Result
from campaign.sandbox_programs import PRELUDE, PROGRAMS, UNPROMISED
from perftrail.model.process import Exited
from perftrail.model.sandbox import Sandbox
from tests.process.sandbox.sandboxes import WHY_NONE, Inside, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Ran
    from perftrail.model.sandbox import Phase

_PYTHON = "/usr/bin/python3"
_MEBIBYTE = 1 << 20
_DISK_BYTES = 32 * _MEBIBYTE
_PROCESSES = 60
_SECRET = "perftrail-campaign-secret"
_ESCAPED = "ESCAPED:"
_KEY_JOIN, _KEY_SESSION = 1, -3
_SYS_ADD_KEY, _SYS_KEYCTL = 248, 250


@dataclass(slots=True)
class _Host:
    """Things around the sandbox that a program could reach: files, sockets, a process, a key."""

    home: Path
    victim: int = 0
    socket_paths: tuple[str, ...] = ()
    later: str = ""
    ports: tuple[int, int] = (0, 0)
    received: list[socket.socket] = field(default_factory=list)
    setuid: str = ""
    segment: int = -1

    def variables(self, inside: Inside) -> dict[str, str]:
        """Return what the attempts are told."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home / "user"),
            "OUTSIDE": str(self.home / "outside"),
            "STUDY": str(inside.study),
            "OWN": str(inside.own),
            "LOGS": str(inside.logs),
            "VICTIM": str(self.victim),
            "SOCKETS": ":".join(self.socket_paths),
            "LATER": self.later,
            "ABSTRACT": f"perftrail-campaign-{os.getpid()}",
            "TCP": str(self.ports[0]),
            "UDP": str(self.ports[1]),
            "SECRET": _SECRET,
            "SETUID": self.setuid,
            "SEGMENT": str(self.segment),
            "LIMIT": str(_DISK_BYTES),
            "PROCESSES": str(_PROCESSES),
        }

    def reached(self) -> str:
        """Return which socket somebody reached, and whether files or the process changed."""
        for listener in self.received:
            try:
                listener.recv(1) if listener.type & socket.SOCK_DGRAM else listener.accept()[0].close()
            except OSError:
                continue
            return f"reached the socket {listener.getsockname()!r}"
        kept = {str(path.relative_to(self.home)): path.read_bytes() for path in sorted(self._files())}
        if kept != dict.fromkeys(kept, _SECRET.encode()) or len(kept) != 3:
            return f"changed files outside: {sorted(kept)}"
        try:
            state = Path(f"/proc/{self.victim}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "Z"
        return "" if state == "S" else f"changed the process outside: it is in state {state}"

    def _files(self) -> Iterator[Path]:
        for directory in ("user", "outside"):
            yield from (path for path in (self.home / directory).rglob("*") if path.is_file())


def run(seconds: float, seed: int) -> Result:
    """Run each attempt in a new sandbox, again and again, for a number of seconds."""
    if WHY_NONE:
        return Result(trials=0, notes=(f"not tried, there is no sandbox here: {WHY_NONE}",))
    ended = time.monotonic() + seconds
    names = list(PROGRAMS)
    counts: Counter[str] = Counter()
    losses: list[str] = []
    unpromised: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="perftrail-campaign-", dir="/var/tmp") as top,
        ExitStack() as stack,
    ):
        host = stack.enter_context(_host(Path(top).resolve()))
        number = 0
        while time.monotonic() < ended:
            name = names[(number + seed) % len(names)]
            phase: Phase = "build" if (number // len(names)) % 2 else "run"
            why = _attempt(name, Path(top).resolve() / str(number), host, phase)
            counts[name] += 1
            if why and name in UNPROMISED:
                unpromised[name] += 1
            elif why:
                losses.append(f"{name}, in a {phase}: {why}")
            number += 1
    notes = [f"{len(counts)} of {len(names)} attempts: {', '.join(counts)}"]
    notes += [
        f"not promised, and reached {times} times: {name}: {UNPROMISED[name]}"
        for name, times in unpromised.items()
    ]
    if os.geteuid() == 0:
        notes.append(
            "run as root, whose sandbox has the same rules and fewer permissions of files in the way"
        )
    return Result(trials=counts.total(), losses=tuple(losses), notes=tuple(notes))


def _attempt(name: str, place: Path, host: _Host, phase: Phase) -> str:
    """Run one attempt; return how it got out, or an empty text."""
    sandbox = Sandbox(disk_bytes=_DISK_BYTES, processes=_PROCESSES, memory_bytes=512 * _MEBIBYTE)
    with mock.patch.dict(os.environ, {"HOME": str(host.home / "user")}), ExitStack() as stack:
        in_study = stack.enter_context(_listening(place / "study" / "service"))
        with opened(place, sandbox, phase=phase) as inside:
            later = stack.enter_context(_listening(Path(host.later)))
            told = {**host.variables(inside), "IN_STUDY": str(place / "study" / "service")}
            program = inside.study / "attempt.py"
            program.write_text(PRELUDE + PROGRAMS[name])
            before = _free(inside.own)
            ran = inside.run(f"exec {_PYTHON} -I {program}", environment=told, timeout_seconds=20.0)
            found = [line for line in inside.output.splitlines() if line.startswith(_ESCAPED)]
            for listener, where in ((in_study, "in the study"), (later, "created later")):
                if _accepted(listener):
                    found.append(f"reached a socket {where}")
            found.append(host.reached())
            if (inside.study / "perftrail.toml").read_text() != "# the study\n":
                found.append("changed the study")
            found.append(_beyond_disk(name, ran, before - _free(inside.own)))
            if name == "leave a daemon" and _is_running("perftrail-campaign-daemon"):
                found.append("a process outlived the program")
        shutil.rmtree(place, ignore_errors=True)
    return "; ".join(each for each in found if each)


def _beyond_disk(name: str, ran: Ran, gone: int) -> str:
    """Return that a program which fills the disk ended by itself."""
    if not name.startswith("fill the disk") or ran.ended != Exited(code=0):
        return ""
    return f"ended by itself after it wrote more than the limit; {gone >> 20} MiB are gone"


def _free(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bfree * status.f_frsize


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(path))
        service.listen()
        service.setblocking(False)
        yield service
    path.unlink(missing_ok=True)


def _accepted(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except OSError:
        return False
    return True


def _is_running(word: str) -> bool:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if word.encode() in (process / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


@contextmanager
def _host(home: Path) -> Iterator[_Host]:
    """Create files, sockets, a process, a shared memory segment and a key outside of all sandboxes."""
    for name in ("user/.ssh/id_secret", "outside/victim", "outside/below/victim"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(_SECRET)
    host = _Host(home)
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0perftrail-campaign-{os.getpid()}")
        abstract.listen()
        paths = stack.enter_context(_service_directories(home))
        services = [stack.enter_context(_listening(path)) for path in paths]
        host.received = [tcp, udp, abstract, *services]
        for each in host.received:
            each.setblocking(False)
        host.ports = (tcp.getsockname()[1], udp.getsockname()[1])
        host.socket_paths = tuple(map(str, paths))
        host.later = str(paths[-1].with_name("later"))
        host.setuid = str(home / "setuid")
        shutil.copyfile("/usr/bin/id", host.setuid)
        Path(host.setuid).chmod(0o4755)
        host.victim = stack.enter_context(_process())
        host.segment = stack.enter_context(_shared_memory())
        _store_key()
        yield host


@contextmanager
def _service_directories(home: Path) -> Iterator[tuple[Path, ...]]:
    """Yield paths of services: in a hidden directory, and where only root can create one, in a visible directory."""
    paths = [home / "service", home / "user" / "agent"]
    if not os.access("/var/lib", os.W_OK):
        yield tuple(paths)
        return
    with tempfile.TemporaryDirectory(prefix="perftrail-campaign-", dir="/var/lib") as visible:
        yield (*paths, Path(visible) / "service")


@contextmanager
def _process() -> Iterator[int]:
    """Yield a process that sleeps."""
    child = os.fork()
    if child == 0:
        time.sleep(100_000)
        os._exit(0)
    try:
        yield child
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


@contextmanager
def _shared_memory() -> Iterator[int]:
    """Yield the key of a segment of System V shared memory."""
    library = ctypes.CDLL(None, use_errno=True)
    key = 0x70740000 | (os.getpid() & 0xFFFF)
    segment = library.shmget(key, 4096, 0o1000 | 0o666)
    try:
        yield key
    finally:
        library.shmctl(segment, 0, None)


def _store_key() -> None:
    """Put a secret into a new session keyring of this process, as logins and agents of a machine do."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(_SYS_KEYCTL, _KEY_JOIN, None)
    library.syscall(_SYS_ADD_KEY, b"user", _SECRET.encode(), _SECRET.encode(), len(_SECRET), _KEY_SESSION)
