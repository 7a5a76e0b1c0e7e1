"""Changes settings for a while and puts them back, whoever dies in between.

What the settings were is written down before the first is changed. A second process, the guard, waits for the
end of the first and then puts everything back. When both are killed, the next perftrail finds the record:
it is locked as long as either lives. The record lies where a restart of the machine, which also forgets
the settings, deletes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perftrail.errors import SettingsError, UsageError
from perftrail.machine.settings import Change, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

RECORD = "changed-settings.json"
READY = b"ready\n"


def record_path() -> Path:
    """Give where changes are written down: a directory of this boot, for root that of the whole machine."""
    if os.geteuid() == 0 and Path("/run").is_dir():
        return Path("/run/perftrail") / RECORD
    own = os.environ.get("XDG_RUNTIME_DIR")
    return Path(own or f"{tempfile.gettempdir()}/perftrail-{os.geteuid()}") / "perftrail" / RECORD


def put_back_left_over(record: Path | None = None) -> tuple[Change, ...]:
    """Undo what a perftrail that was killed with its guard left changed; give what was put back."""
    path = record or record_path()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # nothing was left, or it is another user's, who alone can undo it
        return ()
    try:
        if not _ours(descriptor):
            return ()
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # whoever changed them is alive
        return ()
    else:
        return _put_back(descriptor)
    finally:
        os.close(descriptor)


class Held:
    """Settings that are changed inside its context and what they were after it.

    Raises `SettingsError` when another perftrail holds settings, and when one cannot be changed; then all
    are put back already.
    """

    def __init__(self, changes: Sequence[Change], *, record: Path | None = None) -> None:
        self._changes = tuple(changes)
        self._path = record or record_path()
        self._record = -1
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if not self._changes:
            return self
        self._record = _lock(self._path)
        try:
            _put_back(self._record)
            _write(self._record, json.dumps([asdict(change) for change in self._changes]))
            self._guard = _start_guard(self._record)
            for change in self._changes:
                _set(change.file, change.wanted)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._changes:
            self._leave()

    def _leave(self) -> None:
        _put_back(self._record)
        os.close(self._record)
        guard, self._guard = self._guard, None
        if guard is not None:
            assert guard.stdin is not None
            assert guard.stdout is not None
            guard.stdin.close()
            guard.wait()
            guard.stdout.close()


def run_attached(arguments: Sequence[str]) -> int:
    """Run a command on our own terminal and give its exit code as a shell does.

    Ctrl-C reaches the command too, and it is the command's to answer. Raises `UsageError` when there is no
    such program.
    """
    try:
        process = subprocess.Popen(arguments)
    except OSError as error:
        raise UsageError(f"{arguments[0]} — cannot be started: {error.strerror}") from error
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            code = process.wait()
            return code if code >= 0 else 128 - code


def stand_guard(descriptor: int) -> None:
    """Wait until whoever started this process is gone, then put back what is still changed: the guard's life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(sys.stdout.fileno(), READY)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _put_back(descriptor)


def _start_guard(record: int) -> subprocess.Popen[bytes]:
    """Start the guard, which shares the lock, and wait until it stands."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "perftrail.machine.guard", str(record)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(record,),
        start_new_session=True,
    )
    assert guard.stdout is not None
    if guard.stdout.readline() != READY:
        raise SettingsError(
            "settings — the process that would put them back cannot be started; nothing changed"
        )
    return guard


def _lock(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SettingsError(f"{path} — cannot be written: {error.strerror}; nothing was changed") from error
    if not _ours(descriptor):
        os.close(descriptor)
        raise SettingsError(f"{path} — belongs to somebody else, or others may write to it; remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise SettingsError(
            f"{path} — another perftrail has changed this machine's settings and holds them; end it first"
        ) from error
    return descriptor


def _ours(descriptor: int) -> bool:
    """Whether only we can have written a record: it names files that we would write to."""
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)


def _put_back(descriptor: int) -> tuple[Change, ...]:
    """Undo what a record says, and empty it; what somebody else has changed since then is left as it is."""
    try:
        told = json.loads(os.pread(descriptor, 1 << 20, 0) or b"[]")
        changes = [Change(**each) for each in told]
    except (ValueError, TypeError):  # it was cut short while it was written, before anything was changed
        changes = []
    done = []
    for change in reversed(changes):
        if text_of(Path(change.file)) == change.wanted:
            with contextlib.suppress(SettingsError):
                _set(change.file, change.was)
                done.append(change)
    os.ftruncate(descriptor, 0)
    return tuple(done)


def _set(file: str, value: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_TRUNC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        remedy = "run it as root: sudo perftrail doctor --fix" if isinstance(error, PermissionError) else ""
        raise SettingsError(
            f"{file} — cannot be set to {value}: {error.strerror}; everything is as it was"
            + (f"; {remedy}" if remedy else "")
        ) from error
