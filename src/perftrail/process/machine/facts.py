"""What the kernel's files tell of a machine; whatever is not there is left out."""

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
"""The facts that make a machine another one when they change; the others describe it at one time."""

CPU_NAMES = ("model name", "cpu model", "cpu", "uarch", "Processor")
"""The keys under which architectures name their CPU in ``/proc/cpuinfo``."""

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
"""Words in the names of a virtual machine's maker and product, and what they mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What cannot be read from a file: the architecture, and the C library with its version."""

    architecture: str
    libc: str


def read_facts(root: Path, platform: Platform) -> dict[str, str]:
    """Read every fact that this machine tells, by name."""
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
        "governor": _each(sorted(cpus.glob("cpufreq/policy*/scaling_governor"))),
        "turbo": _turbo(cpus),
        "smt": _text(cpus / "smt/control"),
        "microcode": _cpuinfo(root).get("microcode", ""),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _booted(root: Path) -> str:
    """When the machine was started, by its clock: UTC, ISO 8601 as the store writes times."""
    for line in _text(root / "proc/stat").splitlines():
        name, _, seconds = line.partition(" ")
        if name == "btime" and seconds.isdigit() and len(seconds) < 11:  # after year 2286 it is no time
            started = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
            return started.isoformat(timespec="milliseconds")
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace").strip(" \t\r\n\0")
    except OSError:
        return ""


def _each(files: list[Path]) -> str:
    """Give the different contents of some files, which most often is one."""
    return " ".join(sorted({text for text in map(_text, files) if text}))


def _cpuinfo(root: Path) -> dict[str, str]:
    """Give the first value that is known under each key of ``/proc/cpuinfo``."""
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
    """Return the list of CPUs that this process may use, which a container may cut down."""
    for line in _text(root / "proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.partition(":")[2]
    return _text(root / "sys/devices/system/cpu/online")


def _physical_cores(root: Path) -> str:
    """Count the cores of the CPUs that this process may use; two of these may share one (SMT)."""
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
    """Give how many CPUs' worth of time the control groups around this process allow, if they limit it."""
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
    """Give the directories of every control group that can limit our CPU time, our own first."""
    found = []
    for controllers, path in _groups(root):
        if controllers == "":
            found += _upwards(root / "sys/fs/cgroup", path)
        elif "cpu" in controllers.split(","):
            found += _upwards(root / "sys/fs/cgroup/cpu", path)
    return found


def _groups(root: Path) -> list[tuple[str, str]]:
    """Give the control groups of this process: their controllers (none in version 2) and their paths."""
    lines = [line.split(":", 2) for line in _text(root / "proc/self/cgroup").splitlines()]
    return [(words[1], words[2]) for words in lines if len(words) == 3]


def _upwards(mount: Path, path: str) -> list[Path]:
    """Give the directories of a control group and of every one around it."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:length]) for length in range(len(parts), -1, -1)]


def _virtualisation(root: Path) -> str:
    """Say which hypervisor this runs under: ``none``, its name, or ``unknown`` when it hides its name."""
    if "microsoft" in _text(root / "proc/sys/kernel/osrelease").lower():
        return "wsl"
    dmi = root / "sys/class/dmi/id"
    names = " ".join(_text(dmi / name) for name in ("sys_vendor", "product_name", "bios_vendor")).lower()
    names = f"{names} {_text(root / 'sys/hypervisor/type')}".lower()
    is_guest = "hypervisor" in _cpuinfo(root).get("flags", "").split()
    for word, meaning in HYPERVISORS.items():
        # Microsoft and Google also make machines of metal.
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
