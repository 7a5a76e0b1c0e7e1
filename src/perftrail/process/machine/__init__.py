"""Which machine this is: a fingerprint of what matters for speed, and the facts behind it.

Samples of different fingerprints are never pooled. No host name, user name or serial number is read; a machine
that works for others beside its like is given a name, by which they are told apart.
"""

from __future__ import annotations

import os
from pathlib import Path

from perftrail.model.build import content_key
from perftrail.model.measurement import Machine
from perftrail.process.machine.facts import FINGERPRINT, Platform, read_facts
from perftrail.process.machine.load import Watch

__all__ = ["Platform", "Watch", "read_machine"]


def read_machine(root: str = "/", platform: Platform | None = None, *, name: str = "") -> Machine:
    """Read the machine that this process runs on; with a `name` it is another one than its like of other names.

    `root` is where ``proc`` and ``sys`` are; `platform` what the C library and the kernel say when asked
    directly. Read it before this process binds itself to some CPUs: their number is part of the fingerprint,
    as in a container that has only some.
    """
    facts = read_facts(Path(root), platform or asked())
    # As pairs, so that nothing depends on the order in which facts are read.
    fingerprint = [[fact, facts.get(fact, "")] for fact in FINGERPRINT]
    if name:
        return Machine(id=content_key("machine", fingerprint, name)[:16], facts={"name": name, **facts})
    return Machine(id=content_key("machine", fingerprint)[:16], facts=facts)


def asked() -> Platform:
    """Ask the kernel and the C library what they are."""
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        libc = "musl"  # the only other C library that CPython supports on Linux
    return Platform(architecture=os.uname().machine, libc=libc)
