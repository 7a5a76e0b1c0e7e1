"""Load between two readings of a watch, from counters like those of real machines."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from perftrail.model.measurement import flags
from perftrail.model.process import Command, Exited
from perftrail.process.launcher import Launcher
from perftrail.process.machine.load import Watch
from tests.process.machine.cpu_load import hog
from tests.process.machine.fake_root import ManualClock, stat, write_files


def watch(root: Path, clock: ManualClock, files: dict[str, str] | None = None) -> Watch:
    return Watch(str(write_files(root, {"proc/stat": stat()} | (files or {}))), clocks=clock.clocks())


def test_foreign_use_is_busy_time_without_perftrails(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.at += 1.0
        clock.own += 0.1
        write_files(tmp_path, {"proc/stat": stat(idle=0.5, waiting=0.2)})
        found = watched.end(0.7)
    assert found.foreign_cpus == pytest.approx(2.0 - 0.7 - 0.1 - 0.7)
    assert found.foreign_method == "proc-stat"
    assert found.window_seconds == pytest.approx(1.0)


def test_the_exact_count_of_all_cpu_time_is_preferred(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/cpuacct"
    clock = ManualClock()
    with watch(
        tmp_path, clock, {f"{group}/release_agent": "", f"{group}/cpuacct.usage": "1000000000\n"}
    ) as watched:
        watched.begin()
        clock.at += 0.1
        write_files(tmp_path, {f"{group}/cpuacct.usage": "1123000000\n"})
        found = watched.end(0.1)
    assert found.foreign_method == "cpuacct"
    assert found.foreign_cpus == pytest.approx(0.23)


def test_the_count_of_a_container_is_not_that_of_the_machine(tmp_path: Path) -> None:
    with watch(tmp_path, ManualClock(), {"sys/fs/cgroup/cpuacct/cpuacct.usage": "1\n"}) as watched:
        assert watched.method == "proc-stat"


def test_loads_that_a_short_invocation_cannot_resolve_are_not_reported(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.at += 0.005
        found = watched.end(0.005)
    assert found.foreign_cpus is None
    assert flags(found, 0.25) == ()


def test_short_invocations_are_judged_by_the_time_around_them(tmp_path: Path) -> None:
    clock = ManualClock()
    idle = 0.0
    with watch(tmp_path, clock) as watched:
        for _ in range(30):
            watched.begin()
            clock.at += 0.010
            idle += 0.010
            write_files(tmp_path, {"proc/stat": stat(idle=idle)})
            found = watched.end(0.005)
    assert found.foreign_cpus == pytest.approx(0.5)
    assert found.window_seconds == pytest.approx(0.2)


def test_a_pause_in_which_something_may_have_been_built_is_not_foreign(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.at += 1.0
        watched.end(2.0)
        clock.at += 30.0  # both CPUs worked
        watched.begin()
        clock.at += 0.1
        assert watched.end(0.2).foreign_cpus is None


def test_an_invocation_that_was_broken_off_is_forgotten(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.at += 0.05
        watched.begin()
        clock.at += 0.19
        assert watched.end(0.38).foreign_cpus is None


def test_stolen_time_is_distinguished_from_foreign_use(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.at += 1.0
        write_files(tmp_path, {"proc/stat": stat(idle=1.0, stolen=0.4)})
        found = watched.end(0.6)
    assert found.stolen_cpus == pytest.approx(0.4)
    assert found.foreign_cpus == pytest.approx(0.0, abs=1e-9)


def test_a_suspend_shows_in_the_clocks(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        watched.begin()
        clock.asleep += 3600.0
        assert watched.end(0.0).suspended_seconds == pytest.approx(3600.0)


def test_pressure_heat_swapping_and_limits_are_reported(tmp_path: Path) -> None:
    clock = ManualClock()
    cpu = "sys/devices/system/cpu"

    def counters(pressed: int, pages: int, heat: int, throttled: int) -> dict[str, str]:
        return {
            "proc/pressure/cpu": f"some avg10=0.00 total={pressed}\nfull avg10=0.00 total=0\n",
            "proc/pressure/memory": "some avg10=0.00 total=5\nfull avg10=0.00 total=0\n",
            "proc/vmstat": f"nr_free_pages 1\npswpin {pages}\npswpout 7\nswap_ra 0\n",
            f"{cpu}/cpu0/thermal_throttle/core_throttle_count": f"{heat}\n",
            "sys/fs/cgroup/job/cpu.stat": f"usage_usec 1\nnr_throttled {throttled}\nthrottled_usec {throttled}00\n",
        }

    constant = {
        "proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/cpu.max": "100000 100000\n",
        f"{cpu}/cpufreq/policy0/scaling_cur_freq": "2400000\n",
        f"{cpu}/cpufreq/policy1/scaling_cur_freq": "3100000\n",
        "sys/class/thermal/thermal_zone0/temp": "54000\n",
    }
    with watch(tmp_path, clock, constant | counters(0, 3, 1, 2)) as watched:
        watched.begin()
        clock.at += 0.5
        write_files(tmp_path, counters(250_000, 5, 2, 4))
        found = watched.end(0.0)
    assert found.cpu_pressure == pytest.approx(0.5)
    assert found.memory_pressure == 0.0
    assert found.io_pressure is None
    assert (found.swapped_pages, found.throttled) == (2, 3)
    assert found.throttled_seconds == pytest.approx(200e-6)
    assert (found.cpu_hertz, found.celsius) == (3.1e9, 54.0)


def test_a_machine_without_information_is_not_an_error(tmp_path: Path) -> None:
    with Watch(str(tmp_path)) as watched:
        watched.begin()
        found = watched.end(0.0)
        assert (found.foreign_cpus, found.values()) == (None, {})
        assert watched.recent() == 0.0


def test_the_last_half_second_is_known_after_watching_it(tmp_path: Path) -> None:
    clock = ManualClock()
    with watch(tmp_path, clock) as watched:
        loads = []
        for number in range(9):
            write_files(tmp_path, {"proc/stat": stat(idle=number / 16)})
            loads.append(watched.recent())
            clock.at += 1 / 16
    assert loads[:8] == [None] * 8
    assert loads[8] == pytest.approx(1.0)


def test_a_watch_closes_its_files(tmp_path: Path) -> None:
    before = open_files()
    with watch(tmp_path, ManualClock()):
        assert len(open_files()) > len(before)
    assert open_files() == before


def test_a_real_cpu_load_is_seen_during_a_real_invocation() -> None:
    loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    command = Command(
        arguments=("/bin/sh", "-c", loop),
        environment={},
        directory="/",
        tree_memory="off",
        timeout_seconds=60.0,
    )
    with (
        hog() as hogging,
        Launcher() as launcher,
        Watch(own_processes=lambda: (launcher.start().server_pid,)) as watched,
    ):
        launcher.start()
        idle_before, at_before = idle_seconds(), time.monotonic()
        watched.begin()
        hogged_before = hogging.cpu_seconds()
        ran = launcher.run(command)
        hogged = hogging.cpu_seconds() - hogged_before
        found = watched.end(ran.cpu_seconds)
        outer = time.monotonic() - at_before
        idle = idle_seconds() - idle_before
    assert ran.ended == Exited(code=0)
    assert found.foreign_cpus is not None
    foreign_seconds = found.foreign_cpus * found.window_seconds
    cpus = os.cpu_count() or 1
    # Each CPU's count lags by a tick of at most 10 ms; idle and stolen time are cut to 10 ms.
    lag = 0.01 * (cpus + 2)
    assert foreign_seconds >= hogged - lag
    assert foreign_seconds <= max(0.0, outer * cpus - idle - ran.cpu_seconds) + 2 * lag
    assert flags(found, 0.5 * foreign_seconds / found.window_seconds) >= ("busy",)
    assert "busy" not in flags(found, cpus + 1.0)


def open_files() -> list[str]:
    return sorted(file.name for file in Path("/proc/self/fd").iterdir())


def idle_seconds() -> float:
    """Return the idle seconds of /proc/stat."""
    words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
