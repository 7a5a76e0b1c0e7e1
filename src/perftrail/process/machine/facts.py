"""Read facts about the machine from the kernel's files; missing facts are left out."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = (
    "cpu",
    "logical_cpus",
    "cpu_quota",
    "memory_gib",
    "kernel",
    "architecture",
    "libc",
    "virtualisation",
)
"""Facts of the fingerprint: a change makes it another machine. The other facts describe it at one time."""

CPU_NAMES = ("model name", "cpu model", "cpu", "uarch", "Processor")
"""Keys of the CPU's name in ``/proc/cpuinfo``, by architecture."""

HYPERVISORS = {
    "amazon ec2": "amazon",
    "google": "google",
    "innotek": "virtualbox",
    "kvm": "kvm",
    "microsoft": "hyper-v",
    "openstack": "kvm",
    "parallels": "parallels",
    "qemu": "kvm",
    "virtualbox": "virtualbox",
    "vmware": "vmware",
    "xen": "xen",
}
"""Words in the manufacturer and product of a virtual machine, with the name of the hypervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Facts that are in no file: the architecture, and the C library with its version."""

    architecture: str
    libc: str


def read_facts(root: Path, platform: Platform) -> dict[str, str]:
    """Return every available fact of this machine, by name."""
    cpus = root / "sys/devices/system/cpu"
    facts = {
        "cpu": _cpu(root),
        "logical_cpus": _count(_allowed_cpus(root)),
        "physical_cores": _physical_cores(root),
        "online_cpus": _count(_text(cpus / "online")),
        "cpu_quota": _cpu_quota(root),
        "memory_gib": _memory_gib(root),
        "kernel": _text(root / "proc/sys/kernel/osrelease"),
        "architecture": platform.architecture,
        "libc": platform.libc,
        "virtualisation": _virtualisation(root),
        "container": _container(root),
        "boot_id": _text(root / "proc/sys/kernel/random/boot_id"),
        "booted": _booted(root),
        "governor": _distinct_texts(sorted(cpus.glob("cpufreq/policy*/scaling_governor"))),
        "turbo": _turbo(cpus),
        "smt": _text(cpus / "smt/control"),
        "microcode": _cpuinfo(root).get("microcode", ""),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _booted(root: Path) -> str:
    """Return when the machine was started, by its clock: UTC, ISO 8601 in the store's format."""
    for line in _text(root / "proc/stat").splitlines():
        name, _, seconds = line.partition(" ")
        # More than ten digits would be after year 2286.
        if name == "btime" and seconds.isdigit() and len(seconds) < 11:
            started = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
            return started.isoformat(timespec="milliseconds")
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace").strip(" \t\r\n\0")
    except OSError:
        return ""


def _distinct_texts(files: list[Path]) -> str:
    """Return the distinct contents of some files, usually one."""
    return " ".join(sorted({text for text in map(_text, files) if text}))


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the first known value of each key in ``/proc/cpuinfo``."""
    found: dict[str, str] = {}
    for line in _text(root / "proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            found.setdefault(key.strip(), " ".join(value.split()))
    return found


def _cpu(root: Path) -> str:
    known = _cpuinfo(root)
    for name in CPU_NAMES:
        if name in known:
            return known[name]
    parts = {
        line.split(":")[1].strip()
        for line in _text(root / "proc/cpuinfo").splitlines()
        if line.startswith("CPU part") and ":" in line
    }
    if parts:  # Arm names its cores by number only; a big.LITTLE machine has several kinds
        return f"implementer {known.get('CPU implementer', '?')} part {' '.join(sorted(parts))}"
    return "unknown"


def _allowed_cpus(root: Path) -> str:
    """Return the list of CPUs that this process may use; a container may restrict it."""
    for line in _text(root / "proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.partition(":")[2]
    return _text(root / "sys/devices/system/cpu/online")


def _physical_cores(root: Path) -> str:
    """Return the number of cores of the CPUs that this process may use; two CPUs may share a core (SMT)."""
    cpus = root / "sys/devices/system/cpu"
    siblings = {
        _text(cpus / f"cpu{cpu}/topology/thread_siblings_list") for cpu in _members(_allowed_cpus(root))
    }
    return "" if not siblings or "" in siblings else str(len(siblings))


def _count(ranges: str) -> str:
    return str(len(_members(ranges)) or "")


def _members(ranges: str) -> list[int]:
    """Return the members of a list as the kernel writes it.

    >>> _members("0-3,8")
    [0, 1, 2, 3, 8]
    """
    found: list[int] = []
    for part in ranges.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += range(int(first), int(last or first) + 1)
    return found


def _memory_gib(root: Path) -> str:
    for line in _text(root / "proc/meminfo").splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "MemTotal:" and words[1].isdigit():
            return str(round(int(words[1]) / (1 << 20)))
    return ""


def _cpu_quota(root: Path) -> str:
    """Return the CPU quota of this process's control groups, in CPUs; empty without a limit."""
    least = float("inf")
    for controllers, path in _groups(root):
        if controllers == "":
            quotas = [_text(group / "cpu.max") for group in _upwards(root / "sys/fs/cgroup", path)]
        elif "cpu" in controllers.split(","):
            quotas = [
                f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}"
                for group in _upwards(root / "sys/fs/cgroup/cpu", path)
            ]
        else:
            continue
        for quota, period in (words for words in map(str.split, quotas) if len(words) == 2):
            if quota.isdigit() and period.isdigit() and int(period):
                least = min(least, int(quota) / int(period))
    return "" if least == float("inf") else f"{least:g}"


def control_groups(root: Path) -> list[Path]:
    """Return the directories of every control group that can limit this process's CPU time, its own first."""
    found = []
    for controllers, path in _groups(root):
        if controllers == "":
            found += _upwards(root / "sys/fs/cgroup", path)
        elif "cpu" in controllers.split(","):
            found += _upwards(root / "sys/fs/cgroup/cpu", path)
    return found


def _groups(root: Path) -> list[tuple[str, str]]:
    """Return the control groups of this process: controllers (none in version 2) and paths."""
    lines = [line.split(":", 2) for line in _text(root / "proc/self/cgroup").splitlines()]
    return [(words[1], words[2]) for words in lines if len(words) == 3]


def _upwards(mount: Path, path: str) -> list[Path]:
    """Return the directories of a control group and of all its parents."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:length]) for length in range(len(parts), -1, -1)]


def _virtualisation(root: Path) -> str:
    """Return the hypervisor: ``none``, its name, or ``unknown`` if it hides its name."""
    if "microsoft" in _text(root / "proc/sys/kernel/osrelease").lower():
        return "wsl"
    dmi = root / "sys/class/dmi/id"
    names = " ".join(_text(dmi / name) for name in ("sys_vendor", "product_name", "bios_vendor")).lower()
    names = f"{names} {_text(root / 'sys/hypervisor/type')}".lower()
    is_guest = "hypervisor" in _cpuinfo(root).get("flags", "").split()
    for word, meaning in HYPERVISORS.items():
        # Microsoft and Google also build physical machines.
        if word in names and (is_guest or word not in ("microsoft", "google")):
            return meaning
    return "unknown" if is_guest else "none"


def _container(root: Path) -> str:
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    return ""


def _turbo(cpus: Path) -> str:
    if no_turbo := _text(cpus / "intel_pstate/no_turbo"):
        return "off" if no_turbo == "1" else "on"
    if boost := _text(cpus / "cpufreq/boost"):
        return "on" if boost == "1" else "off"
    return ""
