"""Read the machine's settings that affect measurements, and change some of them for a while.

All changes are undone, even if a process is killed. The original settings are written to a file before the first
change. A second process, the guard, waits for the end of the first and then restores everything. If both are killed,
the next perftrail process finds the file, which is locked as long as either lives. The file is in a directory that a
reboot empties, because a reboot also resets the settings.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perftrail.errors import SettingsError, UsageError
from perftrail.own_python import own_python
from perftrail.process.machine.counters import TICK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


@dataclass(frozen=True, slots=True, kw_only=True)
class TunableSetting:
    """A setting that may be changed for a while: its files below the root, and the wanted values.

    Only settings that reduce noise and do not change the program: huge pages, address randomisation and sibling
    threads stay as they are, because otherwise something else would be measured.
    """

    setting: str
    files: str
    wanted: str


TUNABLE_SETTINGS = (
    TunableSetting(
        setting="governor",
        files="sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        wanted="performance",
    ),
    TunableSetting(setting="turbo", files="sys/devices/system/cpu/intel_pstate/no_turbo", wanted="1"),
    TunableSetting(setting="turbo", files="sys/devices/system/cpu/cpufreq/boost", wanted="0"),
    TunableSetting(setting="numa_balancing", files="proc/sys/kernel/numa_balancing", wanted="0"),
    TunableSetting(setting="nmi_watchdog", files="proc/sys/kernel/nmi_watchdog", wanted="0"),
    TunableSetting(setting="swappiness", files="proc/sys/vm/swappiness", wanted="1"),
)
"""Settings that `--fix` may change."""

PLAIN_FILES = {
    "aslr": "proc/sys/kernel/randomize_va_space",
    "thp": "sys/kernel/mm/transparent_hugepage/enabled",
    "swappiness": "proc/sys/vm/swappiness",
    "numa_nodes": "sys/devices/system/node/online",
    "numa_balancing": "proc/sys/kernel/numa_balancing",
    "nmi_watchdog": "proc/sys/kernel/nmi_watchdog",
    "isolated": "sys/devices/system/cpu/isolated",
    "nohz_full": "sys/devices/system/cpu/nohz_full",
    "perf_event_paranoid": "proc/sys/kernel/perf_event_paranoid",
    "clocksource": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "clocksources": "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "smt_active": "sys/devices/system/cpu/smt/active",
}
"""Settings that are the whole content of a file, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file of a setting, its present value and its wanted value."""

    setting: str
    file: str
    was: str
    wanted: str


def read_settings(root: str = "/") -> dict[str, str]:
    """Return every available setting of this machine, by name; an empty list is ''."""
    top = Path(root)
    found = {name: text for name, file in PLAIN_FILES.items() if (text := text_of(top / file)) is not None}
    if "thp" in found:
        found["thp"] = found["thp"].partition("[")[2].partition("]")[0]
    swaps = text_of(top / "proc/swaps")
    if swaps is not None:
        found["swaps"] = str(max(0, len(swaps.splitlines()) - 1))
    power = _power(top)
    if power:
        found["power"] = power
    events = top / "sys/bus/event_source/devices"
    found["counters"] = "yes" if any(events.glob("cpu*")) or any(events.glob("armv*")) else "no"
    heat = sorted((top / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count"))
    if heat:
        found["heat_throttles"] = str(
            sum(int(text) for file in heat if (text := text_of(file) or "").isdigit())
        )
    return found | _stolen(top)


def possible_changes(root: str = "/") -> tuple[Change, ...]:
    """Return the changes of `--fix` on this machine: each file whose value is not the wanted one."""
    settings = read_settings(root)
    changes = []
    for tunable in TUNABLE_SETTINGS:
        if tunable.setting == "swappiness" and settings.get("swaps", "0") == "0":
            continue
        for file in sorted(Path(root).glob(tunable.files)):
            was = text_of(file)
            if was and was != tunable.wanted and _is_available(file, tunable.wanted):
                changes.append(
                    Change(setting=tunable.setting, file=str(file), was=was, wanted=tunable.wanted)
                )
    return tuple(changes)


def text_of(file: Path) -> str | None:
    """Return the content of a kernel file; `None` if it is missing or unreadable."""
    try:
        return file.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return None


def _is_available(file: Path, governor: str) -> bool:
    """Return whether a frequency driver has a governor; True for other settings."""
    offered = (
        text_of(file.with_name("scaling_available_governors")) if file.name == "scaling_governor" else None
    )
    return offered is None or governor in offered.split()


def _power(root: Path) -> str:
    """Return the power supply: ``battery``, ``mains``, or an empty text without a battery."""
    supplies = sorted((root / "sys/class/power_supply").glob("*"))
    batteries = [supply for supply in supplies if text_of(supply / "type") == "Battery"]
    # Mice and keyboards have their own batteries, with the scope "Device".
    batteries = [supply for supply in batteries if text_of(supply / "scope") != "Device"]
    if not batteries:
        return ""
    drained = any(text_of(supply / "status") == "Discharging" for supply in batteries)
    return "battery" if drained else "mains"


def _stolen(root: Path) -> dict[str, str]:
    """Return the share of all CPU time since boot that a hypervisor stole."""
    words = (text_of(root / "proc/stat") or "").split("\n", 1)[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return {}
    # Guest time is in user time already: only the first eight fields add up.
    total = sum(int(word) for word in words[1:9])
    share = int(words[8]) / total if total * TICK_SECONDS > 1.0 else 0.0
    return {"stolen_share": f"{share:.6f}"}


RECORD = "changed-settings.json"
"""Name of the file with the original settings."""

READY = b"ready\n"
"""Line that the guard prints when it is ready."""


def record_path() -> Path:
    """Return the path of the record: below /run for root, else in the runtime or temporary directory."""
    if os.geteuid() == 0 and Path("/run").is_dir():
        return Path("/run/perftrail") / RECORD
    own = os.environ.get("XDG_RUNTIME_DIR")
    return Path(own or f"{tempfile.gettempdir()}/perftrail-{os.geteuid()}") / "perftrail" / RECORD


def restore_abandoned_settings(record: Path | None = None) -> tuple[Change, ...]:
    """Undo the changes of a perftrail process that was killed with its guard; return the restored settings."""
    path = record or record_path()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # there is none, or it belongs to another user
        return ()
    try:
        if not _is_private(descriptor):
            return ()
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the process that changed them is alive
        return ()
    else:
        return _restore_recorded(descriptor)
    finally:
        os.close(descriptor)


class ChangedSettings:
    """Changed settings inside its context, and the original ones afterwards.

    Raises `SettingsError` if another perftrail process changed settings, and if one cannot be changed; then all are
    restored before.
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
            _restore_recorded(self._record)
            _write(self._record, json.dumps([asdict(change) for change in self._changes]))
            self._guard = _start_guard(self._record)
            for change in self._changes:
                _set(change.file, change.wanted)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._changes:
            self._restore()

    def _restore(self) -> None:
        _restore_recorded(self._record)
        os.close(self._record)
        guard, self._guard = self._guard, None
        if guard is not None:
            assert guard.stdin is not None
            assert guard.stdout is not None
            guard.stdin.close()
            guard.wait()
            guard.stdout.close()


def run_attached(arguments: Sequence[str]) -> int:
    """Run a command on this terminal, and return its exit code as a shell does.

    Ctrl-C reaches the command, too, which decides what to do. Raises `UsageError` if the program does not exist.
    """
    try:
        process = subprocess.Popen(arguments)
    except OSError as error:
        raise UsageError(f"{arguments[0]} — cannot be started: {error.strerror}") from error
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            code = process.wait()
            return code if code >= 0 else 128 - code


def run_guard(descriptor: int) -> None:
    """Wait for the end of the parent process, then restore the settings: the guard's main function."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(sys.stdout.fileno(), READY)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _restore_recorded(descriptor)


def _start_guard(record: int) -> subprocess.Popen[bytes]:
    """Start the guard, which shares the lock, and wait until it is ready."""
    guard = subprocess.Popen(
        own_python("-m", "perftrail.process.machine.restoring_guard", str(record)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(record,),
        start_new_session=True,
    )
    assert guard.stdout is not None
    if guard.stdout.readline() != READY:
        raise SettingsError("settings — cannot start the process that restores them; nothing changed")
    return guard


def _lock(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SettingsError(f"{path} — cannot be written: {error.strerror}; nothing was changed") from error
    if not _is_private(descriptor):
        os.close(descriptor)
        raise SettingsError(f"{path} — belongs to another user, or others may write to it; remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise SettingsError(
            f"{path} — another perftrail process has changed this machine's settings; end it first"
        ) from error
    return descriptor


def _is_private(descriptor: int) -> bool:
    """Return whether only this user can write to a record. perftrail writes to the files that it names."""
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)


def _restore_recorded(descriptor: int) -> tuple[Change, ...]:
    """Undo the changes of a record and empty it; settings with other values than perftrail's stay."""
    try:
        result = json.loads(os.pread(descriptor, 1 << 20, 0) or b"[]")
        changes = [Change(**each) for each in result]
    except (ValueError, TypeError):  # an incomplete record was written before any change
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
            f"{file} — cannot be set to {value}: {error.strerror}; all settings have their original values"
            + (f"; {remedy}" if remedy else "")
        ) from error
