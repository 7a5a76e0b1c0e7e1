"""Power failures: replay the recorded writes of a store up to any point, and lose what was not synced.

A process adds samples to a store under strace and acknowledges each. For a random point of its record, a trial rebuilds
the files as a disk could have them: a write is certainly there if its file was synced later, and a name if its
directory was; any other write may be there, in part or not at all. Shared memory is always lost. The store must open,
be consistent, and have every sample that was acknowledged before the point.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from campaign import Result
from campaign.command_line import attach, become_traced
from perftrail.store import open_store
from tests.store.examples import MACHINE, RUNNABLE, acquaint, key, measurement

SAMPLES = 300
"""Number of samples of a record: enough for several checkpoints of the write-ahead log."""

SECTOR = 512
TRACED = "openat,close,write,pwrite64,ftruncate,fsync,fdatasync,rename,unlink"
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(slots=True)
class File:
    """A file: the changes of its content, as (number, offset, data), where no data cuts it; and its syncs."""

    changes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation on a directory: a name gets a file, or no file."""

    number: int
    name: str
    file: File | None


@dataclass(slots=True)
class Record:
    """What a writer did, numbered in its order: names, files, syncs of the directory, and acknowledged samples."""

    entries: list[Entry] = field(default_factory=list)
    directory_syncs: list[int] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0


def run(seconds: float, seed: int) -> Result:
    """Record a writer, then try power failures at random points for a time."""
    if shutil.which("strace") is None:
        return Result(trials=0, notes=("not run: strace is not installed (Debian: strace)",))
    with tempfile.TemporaryDirectory(prefix="campaign-") as temporary:
        record = record_writer(Path(temporary))
        return replay(record, Path(temporary), seconds=seconds, seed=seed)


def replay(record: Record, directory: Path, *, seconds: float, seed: int) -> Result:
    """Rebuild the store at random points of a record, and name each that lacks an acknowledged sample."""
    chance = random.Random(seed)
    end = time.monotonic() + seconds
    losses: list[str] = []
    trials = 0
    while time.monotonic() < end:
        trials += 1
        point = chance.randrange(record.length + 1)
        rebuilt = directory / "rebuilt"
        shutil.rmtree(rebuilt, ignore_errors=True)
        rebuilt.mkdir()
        _rebuild(record, point, rebuilt, chance)
        if wrong := _wrong(rebuilt / "results.db", record, point):
            losses.append(f"seed {seed}, trial {trials}, after {point} of {record.length} calls: {wrong}")
    notes = (f"{record.length} calls of {SAMPLES} samples; writes are lost in sectors of {SECTOR} bytes",)
    return Result(trials=trials, losses=tuple(losses), notes=notes)


def record_writer(directory: Path) -> Record:
    """Add samples to a store under strace, and return what was written."""
    store, log = directory / "results.db", directory / "strace.log"
    process = os.fork()
    if process == 0:
        become_traced()
        try:
            _write(store)
        finally:
            os._exit(0)
    options = ("-xx", "-s", "100000", "-o", str(log), "-e", f"trace={TRACED}")
    tracer = attach(process, options)
    os.waitpid(process, 0)
    tracer.communicate()
    return _parse(log, directory)


def _write(store: Path) -> None:
    """Add samples, and acknowledge each by a write to a closed descriptor, which only the record shows."""
    for first in (0, SAMPLES // 2):
        with open_store(str(store), access="write") as opened:
            if first == 0:
                acquaint(opened)
            for ordinal in range(first, first + SAMPLES // 2):
                opened.add(measurement(key(ordinal), wall=ordinal / 7))
                try:
                    os.write(999, b"%d" % ordinal)
                except OSError:
                    continue


def _parse(log: Path, directory: Path) -> Record:
    record = Record()
    files: dict[str, File] = {}
    opened: dict[int, File | str] = {}
    with log.open(errors="replace") as lines:
        for line in lines:
            found = _CALL.search(line)
            if found is None or (int(found[3]) < 0 and not found[2].startswith("999,")):
                continue
            call, arguments, result = found[1], found[2], int(found[3])
            texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(arguments)]
            if call == "openat":
                _open(record, files, opened, os.fsdecode(texts[0]), arguments, result, directory)
            elif call in ("rename", "unlink"):
                _rename(record, files, [Path(os.fsdecode(text)).name for text in texts])
            elif call == "close":
                opened.pop(int(arguments), None)
            elif arguments.startswith("999,"):
                record.acknowledged.append((record.length, int(texts[0])))
            else:
                _change(record, opened.get(int(arguments.split(",")[0])), call, arguments, texts)
            record.length += 1
    return record


def _rename(record: Record, files: dict[str, File], names: list[str]) -> None:
    """Record that a name goes away, and that another gets its file."""
    file = files.pop(names[0], None)
    record.entries.append(Entry(record.length, names[0], None))
    if len(names) > 1 and file is not None:
        files[names[1]] = file
        record.entries.append(Entry(record.length, names[1], file))


def _change(record: Record, target: File | str | None, call: str, arguments: str, texts: list[bytes]) -> None:
    """Record a call on an open file or directory."""
    if isinstance(target, str) and call in ("fsync", "fdatasync"):
        record.directory_syncs.append(record.length)
    if not isinstance(target, File):
        return
    if call in ("fsync", "fdatasync"):
        target.syncs.append(record.length)
    elif call in ("pwrite64", "ftruncate"):
        offset = int(arguments.rsplit(",", 1)[1])
        target.changes.append((record.length, offset, texts[0] if call == "pwrite64" else None))
    else:
        raise ValueError(f"a call that this campaign does not know: {call}({arguments[:100]}")


def _open(
    record: Record,
    files: dict[str, File],
    opened: dict[int, File | str],
    path: str,
    arguments: str,
    descriptor: int,
    directory: Path,
) -> None:
    if Path(path) == directory:
        opened[descriptor] = path
    elif Path(path).parent == directory and not path.endswith("-shm"):
        name = Path(path).name
        if name not in files and "O_CREAT" in arguments:
            files[name] = File()
            record.entries.append(Entry(record.length, name, files[name]))
        if name in files:
            opened[descriptor] = files[name]


def _rebuild(record: Record, point: int, directory: Path, chance: random.Random) -> None:
    """Write the files as a disk could have them after a power failure at a point."""
    last_sync = max((number for number in record.directory_syncs if number < point), default=-1)
    lost_from = last_sync + 1
    names: dict[str, File | None] = {}
    # A journal of the file system keeps the order of names: those after some point are lost.
    journal = chance.randint(lost_from, point) if point > lost_from else point
    for entry in record.entries:
        if entry.number < max(lost_from, journal) and entry.number < point:
            names[entry.name] = entry.file
    for name, file in names.items():
        if file is not None:
            (directory / name).write_bytes(_content(file, point, chance))


def _content(file: File, point: int, chance: random.Random) -> bytes:
    synced = max((number for number in file.syncs if number < point), default=-1)
    keep = chance.choice((0.0, 0.5, 1.0))
    content = bytearray()
    for number, offset, data in file.changes:
        if number >= point:
            break
        certain = number < synced
        if data is None:
            if certain or chance.random() < keep:
                content = content[:offset].ljust(offset, b"\0")
            continue
        for start in range(0, len(data), SECTOR):
            if certain or chance.random() < keep:
                part = data[start : start + SECTOR]
                content = content.ljust(offset + start, b"\0")
                content[offset + start : offset + start + len(part)] = part
    return bytes(content)


def _wrong(store: Path, record: Record, point: int) -> str:
    """Return what is wrong with a store after a power failure; empty if nothing."""
    wanted = {ordinal for number, ordinal in record.acknowledged if number < point}
    if not store.exists():
        return f"no store, {len(wanted)} samples acknowledged" if wanted else ""
    try:
        with open_store(str(store), access="write") as opened:
            outcomes = opened.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
        with closing(sqlite3.connect(store)) as database:
            sound = database.execute("PRAGMA integrity_check").fetchone()[0]
    except Exception as error:  # any error is a loss that is named
        return f"{type(error).__name__}: {error}" if wanted else ""
    found = {each.key.ordinal: each for each in outcomes}
    if sound != "ok":
        return f"integrity check: {sound}"
    if lost := wanted - found.keys():
        return f"{len(lost)} of {len(wanted)} acknowledged samples are lost"
    changed = [at for at in found if found[at] != measurement(key(at), wall=at / 7)]
    return f"{len(changed)} samples changed" if changed else ""
