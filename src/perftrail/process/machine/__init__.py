"""Identify the machine: a fingerprint of the facts that affect speed, and the facts themselves.

Samples of different fingerprints are never pooled. No host name, user name or serial number is read. A machine of a
cluster gets a name that distinguishes it from equal machines.
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
    """Return the machine of this process; a `name` distinguishes it from equal machines with other names.

    `root` contains ``proc`` and ``sys``; `platform` is the answer of the C library and the kernel. Call this before
    the process binds itself to some CPUs: their number is part of the fingerprint, because a container may have
    only some.
    """
    facts = read_facts(Path(root), platform or read_platform())
    # As pairs, so that nothing depends on the order in which facts are read.
    fingerprint = [[fact, facts.get(fact, "")] for fact in FINGERPRINT]
    if name:
        return Machine(id=content_key("machine", fingerprint, name)[:16], facts={"name": name, **facts})
    return Machine(id=content_key("machine", fingerprint)[:16], facts=facts)


def read_platform() -> Platform:
    """Return the architecture and the C library of this machine."""
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        libc = "musl"  # the only other C library that CPython supports on Linux
    return Platform(architecture=os.uname().machine, libc=libc)
