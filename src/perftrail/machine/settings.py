"""What a machine is set to that matters to measurements, and which settings may be changed for a while."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perftrail.machine.gauges import TICK_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A setting that may be changed for a while: its files below the root, and what they should say.

    Only what takes noise away and leaves the program what it is: huge pages, address randomisation and
    sibling threads stay as they are, since else another thing would be measured.
    """

    setting: str
    files: str
    wanted: str


KNOBS = (
    Knob(
        setting="governor",
        files="sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        wanted="performance",
    ),
    Knob(setting="turbo", files="sys/devices/system/cpu/intel_pstate/no_turbo", wanted="1"),
    Knob(setting="turbo", files="sys/devices/system/cpu/cpufreq/boost", wanted="0"),
    Knob(setting="numa_balancing", files="proc/sys/kernel/numa_balancing", wanted="0"),
    Knob(setting="nmi_watchdog", files="proc/sys/kernel/nmi_watchdog", wanted="0"),
    Knob(setting="swappiness", files="proc/sys/vm/swappiness", wanted="1"),
)
"""What `--fix` may change."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file of a setting: what it says, and what it should."""

    setting: str
    file: str
    was: str
    wanted: str


def read_settings(root: str = "/") -> dict[str, str]:
    """Read every setting that this machine tells, by name; an absent one is left out, an empty list is ''."""
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
    """Give what `--fix` would change here: each file of a knob that says something else than is wanted."""
    settings = read_settings(root)
    changes = []
    for knob in KNOBS:
        if knob.setting == "swappiness" and settings.get("swaps", "0") == "0":
            continue
        for file in sorted(Path(root).glob(knob.files)):
            was = text_of(file)
            if was and was != knob.wanted and _offered(file, knob.wanted):
                changes.append(Change(setting=knob.setting, file=str(file), was=was, wanted=knob.wanted))
    return tuple(changes)


def text_of(file: Path) -> str | None:
    """Give what a file of the kernel says, None when it is not there or may not be read."""
    try:
        return file.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return None


def _offered(file: Path, governor: str) -> bool:
    """Whether a frequency driver knows a governor; of other settings, True."""
    offered = (
        text_of(file.with_name("scaling_available_governors")) if file.name == "scaling_governor" else None
    )
    return offered is None or governor in offered.split()


def _power(root: Path) -> str:
    """Say what the machine runs on: ``battery``, ``mains``, or nothing where it has no battery."""
    supplies = sorted((root / "sys/class/power_supply").glob("*"))
    batteries = [supply for supply in supplies if text_of(supply / "type") == "Battery"]
    # Mice and keyboards have batteries too, of the device's own.
    batteries = [supply for supply in batteries if text_of(supply / "scope") != "Device"]
    if not batteries:
        return ""
    drained = any(text_of(supply / "status") == "Discharging" for supply in batteries)
    return "battery" if drained else "mains"


def _stolen(root: Path) -> dict[str, str]:
    """Give the share of all CPU time since the start that a hypervisor took for others."""
    words = (text_of(root / "proc/stat") or "").split("\n", 1)[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return {}
    # Guest time is in user time already: only the first eight fields add up.
    total = sum(int(word) for word in words[1:9])
    share = int(words[8]) / total if total * TICK_SECONDS > 1.0 else 0.0
    return {"stolen_share": f"{share:.6f}"}
