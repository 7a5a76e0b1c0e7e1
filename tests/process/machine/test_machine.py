"""Facts of a machine, read from files like those of real machines."""

from __future__ import annotations

import getpass
import platform
import re
import socket
from typing import TYPE_CHECKING

import pytest

from perftrail.process.machine import read_machine
from perftrail.process.machine.facts import Platform

if TYPE_CHECKING:
    from pathlib import Path

XEON = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R)   Processor @ 2.50GHz
microcode\t: 0x1
flags\t\t: fpu vme hypervisor lahf_lm
power management:

processor\t: 1
model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz
"""
RYZEN = "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X\nflags\t\t: fpu vme\n"
BIG_LITTLE = """processor\t: 0
BogoMIPS\t: 48.00
CPU implementer\t: 0x41
CPU part\t: 0xd05

processor\t: 1
CPU implementer\t: 0x41
CPU part\t: 0xd0b
"""
POWER = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.3\n"

HERE = Platform(architecture="x86_64", libc="glibc 2.36")


def make(root: Path, files: dict[str, str]) -> str:
    """Make a directory with the files of a machine's root."""
    usual = {
        "proc/cpuinfo": XEON,
        "proc/meminfo": "MemTotal:       24684096 kB\nMemFree:  1 kB\n",
        "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-3,8\n",
        "proc/self/cgroup": "0::/\n",
        "proc/sys/kernel/osrelease": "6.18.44\n",
        "proc/sys/kernel/random/boot_id": "de07d436\n",
        "proc/stat": "cpu  1 2 3\nbtime 1795227844\nprocesses 7\n",
        "sys/devices/system/cpu/online": "0-63\n",
    }
    for name, content in (usual | files).items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return str(root)


def facts(root: Path, files: dict[str, str] | None = None) -> dict[str, str]:
    return dict(read_machine(make(root, files or {}), HERE).facts)


def test_the_facts_of_a_machine_are_read(tmp_path: Path) -> None:
    assert facts(tmp_path) == {
        "cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz",
        "logical_cpus": "5",
        "online_cpus": "64",
        "memory_gib": "24",
        "kernel": "6.18.44",
        "architecture": "x86_64",
        "libc": "glibc 2.36",
        "virtualisation": "unknown",
        "boot_id": "de07d436",
        "booted": "2026-11-21T02:24:04.000+00:00",
        "microcode": "0x1",
    }


def test_physical_cores_are_counted_among_the_processors_that_may_be_used(tmp_path: Path) -> None:
    siblings = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}\n"
        for cpu in range(8)
    }
    allowed = {"proc/self/status": "Cpus_allowed_list:\t0-2,4,6\n"}
    assert (
        facts(tmp_path / "all", {**siblings, "proc/self/status": "Cpus_allowed_list:\t0-7\n"})[
            "physical_cores"
        ]
        == "4"
    )
    assert facts(tmp_path / "some", {**siblings, **allowed})["physical_cores"] == "3"
    assert "physical_cores" not in facts(tmp_path / "unknown", allowed)


def test_this_machine_can_be_read_and_stays_the_same() -> None:
    machine = read_machine()
    assert read_machine() == machine
    assert re.fullmatch("[0-9a-f]{12,}", machine.id)
    assert machine.facts["architecture"] == platform.machine()
    assert machine.facts["kernel"] == platform.release()
    assert int(machine.facts["logical_cpus"]) >= 1
    assert int(machine.facts["memory_gib"]) >= 0


def test_no_name_of_a_host_or_user_is_read() -> None:
    texts = " ".join(read_machine().facts.values()).split()
    assert socket.gethostname() not in texts
    assert getpass.getuser() not in texts


def test_a_machine_without_information_is_still_a_machine(tmp_path: Path) -> None:
    machine = read_machine(str(tmp_path), HERE)
    assert dict(machine.facts) == {
        "cpu": "unknown",
        "architecture": "x86_64",
        "libc": "glibc 2.36",
        "virtualisation": "none",
    }


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("proc/cpuinfo", RYZEN),
        ("proc/meminfo", "MemTotal: 50331648 kB\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
        ("proc/sys/kernel/osrelease", "6.19.0\n"),
        ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ("sys/hypervisor/type", "xen\n"),
    ],
)
def test_a_fact_that_affects_speed_makes_another_machine(tmp_path: Path, file: str, content: str) -> None:
    before = read_machine(make(tmp_path / "before", {}), HERE)
    after = read_machine(make(tmp_path / "after", {file: content}), HERE)
    assert before.id != after.id


@pytest.mark.parametrize(
    "other",
    [
        Platform(architecture="aarch64", libc="glibc 2.36"),
        Platform(architecture="x86_64", libc="musl"),
    ],
)
def test_another_architecture_or_c_library_is_another_machine(tmp_path: Path, other: Platform) -> None:
    root = make(tmp_path, {})
    assert read_machine(root, HERE).id != read_machine(root, other).id


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("proc/sys/kernel/random/boot_id", "another\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("proc/meminfo", "MemTotal:       24684000 kB\n"),
        (".dockerenv", ""),
    ],
)
def test_a_temporary_fact_keeps_the_machine(tmp_path: Path, file: str, content: str) -> None:
    before = read_machine(make(tmp_path / "before", {}), HERE)
    after = read_machine(make(tmp_path / "after", {file: content}), HERE)
    assert before.id == after.id


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (RYZEN, "AMD Ryzen 9 7950X"),
        (BIG_LITTLE, "implementer 0x41 part 0xd05 0xd0b"),
        (POWER, "POWER9, altivec supported"),
        ("", "unknown"),
    ],
    ids=["x86", "arm", "power", "nothing"],
)
def test_the_cpu_is_named_on_every_architecture(tmp_path: Path, cpuinfo: str, name: str) -> None:
    assert facts(tmp_path, {"proc/cpuinfo": cpuinfo})["cpu"] == name


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"proc/cpuinfo": RYZEN}, "none"),
        ({"proc/cpuinfo": RYZEN, "sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n"}, "none"),
        ({"sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n"}, "hyper-v"),
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "kvm"),
        ({"sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "amazon"),
        ({"sys/class/dmi/id/sys_vendor": "innotek GmbH\n"}, "virtualbox"),
        ({"sys/hypervisor/type": "xen\n"}, "xen"),
        ({"proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}, "wsl"),
        ({}, "unknown"),
    ],
)
def test_the_hypervisor_is_named_if_it_shows_itself(tmp_path: Path, files: dict[str, str], name: str) -> None:
    assert facts(tmp_path, files)["virtualisation"] == name


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, "1.5"),
        (
            {
                "proc/self/cgroup": "0::/user/a\n",
                "sys/fs/cgroup/user/a/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/user/cpu.max": "200000 100000\n",
            },
            "2",
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            "0.5",
        ),
    ],
    ids=["unlimited", "version 2", "the least of all around", "version 1"],
)
def test_the_tightest_limit_on_cpu_time_counts(
    tmp_path: Path, files: dict[str, str], quota: str | None
) -> None:
    assert facts(tmp_path, files).get("cpu_quota") == quota


def test_governors_turbo_and_containers_are_reported(tmp_path: Path) -> None:
    texts = facts(
        tmp_path,
        {
            "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpufreq/policy2/scaling_governor": "performance\n",
            "sys/devices/system/cpu/cpufreq/boost": "0\n",
            "sys/devices/system/cpu/smt/control": "on\n",
            ".dockerenv": "",
        },
    )
    assert (texts["governor"], texts["turbo"], texts["smt"]) == ("performance powersave", "off", "on")
    assert texts["container"] == "docker"
