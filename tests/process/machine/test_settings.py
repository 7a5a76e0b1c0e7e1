"""Settings of a machine, and which of them can be changed temporarily."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftrail.process.machine.settings import possible_changes, read_settings
from tests.process.machine.fake_root import stat, write_files

if TYPE_CHECKING:
    from pathlib import Path

CPU = "sys/devices/system/cpu"


def test_available_settings_are_read_and_missing_ones_left_out(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/stat": stat(idle=90.0, stolen=10.0),
            "proc/sys/kernel/randomize_va_space": "2\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "proc/swaps": "Filename Type\n/dev/sda2 partition\n",
            f"{CPU}/isolated": "\n",
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "4\n",
        },
    )
    assert read_settings(str(tmp_path)) == {
        "aslr": "2",
        "thp": "madvise",
        "swaps": "1",
        "isolated": "",
        "heat_throttles": "7",
        "counters": "no",
        "stolen_share": "0.100000",
    }


@pytest.mark.parametrize(
    ("files", "power"),
    [
        ({"AC/type": "Mains", "BAT0/type": "Battery", "BAT0/status": "Discharging"}, "battery"),
        ({"AC/type": "Mains", "BAT0/type": "Battery", "BAT0/status": "Full"}, "mains"),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, None),
        ({}, None),
    ],
)
def test_the_battery_of_a_mouse_is_not_that_of_the_machine(
    tmp_path: Path, files: dict[str, str], power: str | None
) -> None:
    write_files(tmp_path, {f"sys/class/power_supply/{name}": text for name, text in files.items()})
    assert read_settings(str(tmp_path)).get("power") == power


def test_only_available_settings_that_differ_would_be_changed(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            f"{CPU}/cpufreq/policy0/scaling_governor": "powersave\n",
            f"{CPU}/cpufreq/policy0/scaling_available_governors": "performance powersave\n",
            f"{CPU}/cpufreq/policy1/scaling_governor": "performance\n",
            f"{CPU}/cpufreq/policy2/scaling_governor": "ondemand\n",
            f"{CPU}/cpufreq/policy2/scaling_available_governors": "ondemand userspace\n",
            f"{CPU}/intel_pstate/no_turbo": "0\n",
            "proc/sys/kernel/nmi_watchdog": "0\n",
            "proc/sys/vm/swappiness": "60\n",
            "proc/swaps": "Filename Type\n",
        },
    )
    changes = possible_changes(str(tmp_path))
    assert [(change.setting, change.was, change.wanted) for change in changes] == [
        ("governor", "powersave", "performance"),
        ("turbo", "0", "1"),
    ]
    assert changes[0].file == str(tmp_path / CPU / "cpufreq/policy0/scaling_governor")
