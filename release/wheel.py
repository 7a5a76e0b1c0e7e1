"""Check a wheel: its tags, the programs in it, and what these need from the machine."""

from __future__ import annotations

import re
import struct
import subprocess
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GLIBC = "2.17"
"""Oldest version of glibc that the preloaded objects work with; the tag of the wheel states it."""

MUSL = "1.1"
"""Version of musl in the tag. The wheel uses no musl of the machine, and installers require a version."""

PROGRAM = "perftrail/_bin/perftrail-launcher"
RECORDER = "perftrail/_bin/perftrail-recorder"
OBJECTS = ("perftrail/_bin/perftrail-allocations.so", "perftrail/_bin/perftrail-locks.so")

MACHINES = {"x86_64": 62, "aarch64": 183}
"""Architectures of the wheels, with their numbers in an ELF header."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A C library and an architecture that a wheel is for."""

    libc: str
    machine: str

    @property
    def tags(self) -> tuple[str, ...]:
        """The platform tags of the wheel.

        >>> Platform("musl", "aarch64").tags
        ('musllinux_1_1_aarch64',)
        """
        if self.libc == "musl":
            return (f"musllinux_{MUSL.replace('.', '_')}_{self.machine}",)
        # Installers before 2021 know the second name only.
        return (f"manylinux_{GLIBC.replace('.', '_')}_{self.machine}", f"manylinux2014_{self.machine}")


PLATFORMS = tuple(Platform(libc, machine) for libc in ("glibc", "musl") for machine in MACHINES)


@dataclass(frozen=True, slots=True)
class Elf:
    """What a program's or shared object's file requires: the machine, an interpreter, versions of glibc."""

    machine: int
    static: bool
    glibc: tuple[int, ...]

    @classmethod
    def read(cls, content: bytes) -> Elf:
        """Return the facts of a 64-bit little-endian ELF file; raises `ValueError` for other files."""
        if content[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        machine, first, size, count = (
            struct.unpack_from(form, content, at)[0]
            for form, at in (("<H", 18), ("<Q", 32), ("<H", 54), ("<H", 56))
        )
        kinds = {struct.unpack_from("<I", content, first + size * index)[0] for index in range(count)}
        versions = re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", content)
        newest = max((tuple(map(int, each.split(b"."))) for each in versions), default=())
        dynamic, interpreter = 2, 3
        return cls(machine=machine, static=not kinds & {dynamic, interpreter}, glibc=newest)


def problems(wheel: Path, platform: Platform) -> list[str]:
    """Return what is wrong with a wheel for a platform; nothing if it may be published."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [tags] = (archive.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL"))
        stated = sorted(re.findall(r"^Tag: (\S+)$", tags, re.MULTILINE))
        if stated != sorted(f"py3-none-{each}" for each in platform.tags):
            found.append(f"its tags are {', '.join(stated)}")
        programs = {name for name in names if name.startswith("perftrail/_bin/")}
        expected = {PROGRAM, RECORDER, *(OBJECTS if platform.libc == "glibc" else ())}
        if programs != expected:
            found.append(f"its programs are {', '.join(sorted(programs)) or 'missing'}")
        for name in sorted(programs):
            elf = Elf.read(archive.read(name))
            if elf.machine != MACHINES[platform.machine]:
                found.append(f"{name} is for machine {elf.machine}, not for {platform.machine}")
            if not archive.getinfo(name).external_attr >> 16 & 0o100:
                found.append(f"{name} is not executable")
            if name in (PROGRAM, RECORDER) and not elf.static:
                found.append(f"{name} is not static")
            if elf.glibc > tuple(map(int, GLIBC.split("."))):
                found.append(f"{name} needs glibc {'.'.join(map(str, elf.glibc))}")
        if not any(re.search(r"\.data/data/share/man/man1/.*\.1$", name) for name in names):
            found.append("it has no manual pages")
    return found


def starts(launcher: Path, version: str, emulator: Sequence[str] = ()) -> bool:
    """Whether a launcher starts and states this version; `emulator` is the command that runs it."""
    done = subprocess.run([*emulator, str(launcher)], input=b"", capture_output=True, timeout=60, check=False)
    hello = done.stdout.split(b"\n", 1)[0].decode()
    return all(each in hello for each in (f'"version":"{version}"', '"libc":"musl"', '"linking":"static"'))
