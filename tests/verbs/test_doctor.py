"""Findings of the doctor for simulated machines, and the smallest change that it says can be detected."""

from __future__ import annotations

import math
from functools import partial

import pytest

from perftrail.errors import NoAnswer
from perftrail.model.measurement import BusyProcess, Conditions
from perftrail.model.process import Signalled
from perftrail.verbs import doctor
from perftrail.verbs.doctor import GRADES, DoctorFinding, MachineState, diagnose, examine
from perftrail.verbs.resolution import FIRST_COUNT, PAIRS, measure_resolution
from tests.fakes.subject_builder import FakeStarter

QUIET = Conditions(foreign_cpus=0.01, window_seconds=1.0)
GROUPS = {"memory": "cgroup2", "cpu": "cgroup2"}
GOOD_FACTS = {"logical_cpus": "8", "virtualisation": "none", "governor": "performance", "turbo": "off"}
GOOD_SETTINGS = {
    "aslr": "2",
    "thp": "madvise",
    "swaps": "0",
    "numa_nodes": "0",
    "isolated": "2-3",
    "counters": "yes",
    "perf_event_paranoid": "2",
    "clocksource": "tsc",
    "smt_active": "0",
    "power": "mains",
    "heat_throttles": "0",
}


def a_machine(
    *,
    facts: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    conditions: Conditions = QUIET,
    busiest: tuple[BusyProcess, ...] = (),
    cgroups: dict[str, str | None] | None = None,
    clock_seconds: float = 30e-9,
    fixable: frozenset[str] = frozenset(),
) -> dict[str, DoctorFinding]:
    """Diagnose a good machine with some facts changed; return the findings by name."""
    found = diagnose(
        MachineState(
            facts=GOOD_FACTS | (facts or {}),
            settings=GOOD_SETTINGS | (settings or {}),
            conditions=conditions,
            busiest=busiest,
            clock_seconds=clock_seconds,
            cgroups=GROUPS if cgroups is None else cgroups,
            fixable=fixable,
        )
    )
    assert [GRADES.index(each.grade) for each in found] == sorted(GRADES.index(each.grade) for each in found)
    return {each.name: each for each in found}


def test_nothing_is_wrong_with_a_good_machine() -> None:
    assert {each.grade for each in a_machine().values()} == {"fine"}


@pytest.mark.parametrize(
    ("facts", "settings", "name", "grade"),
    [
        ({"governor": "powersave"}, {}, "governor", "spoils"),
        ({"governor": "performance powersave"}, {}, "governor", "spoils"),
        ({"turbo": "on"}, {}, "turbo", "may spoil"),
        ({"virtualisation": "kvm"}, {"stolen_share": "0.001"}, "virtual machine", "may spoil"),
        ({"virtualisation": "kvm"}, {"stolen_share": "0.2"}, "virtual machine", "spoils"),
        ({"virtualisation": "kvm"}, {}, "sibling threads", "unknown"),
        ({"cpu_quota": "1.5"}, {}, "CPU limit", "may spoil"),
        ({}, {"smt_active": "1"}, "sibling threads", "may spoil"),
        ({}, {"aslr": "0"}, "address layout", "may spoil"),
        ({}, {"thp": "always"}, "huge pages", "may spoil"),
        ({}, {"swaps": "1", "swappiness": "60"}, "swap", "may spoil"),
        ({}, {"numa_nodes": "0-1", "numa_balancing": "1"}, "NUMA", "may spoil"),
        ({}, {"isolated": ""}, "isolated CPUs", "may spoil"),
        ({}, {"counters": "no"}, "hardware counters", "unknown"),
        ({}, {"perf_event_paranoid": "4"}, "hardware counters", "may spoil"),
        ({}, {"power": "battery"}, "power", "spoils"),
        ({}, {"heat_throttles": "12"}, "heat", "may spoil"),
    ],
)
def test_a_setting_is_found_with_its_cost_and_who_says_so(
    facts: dict[str, str], settings: dict[str, str], name: str, grade: str
) -> None:
    finding = a_machine(facts=facts, settings=settings)[name]
    assert finding.grade == grade
    if grade in ("spoils", "may spoil"):
        assert finding.cost
        assert finding.remedy
        assert finding.source == "measured" or finding.source.startswith("known: ")


def test_a_busy_machine_names_the_busy_processes() -> None:
    finding = a_machine(
        conditions=Conditions(foreign_cpus=1.2, window_seconds=1.0),
        busiest=(BusyProcess(pid=7, name="ma\x1bke", cpus=0.97),),
    )["load"]
    assert finding.grade == "spoils"
    assert '"ma\\u001bke" (7) 0.97' in finding.here


def test_waiting_for_memory_is_found() -> None:
    pressed = Conditions(foreign_cpus=0.0, memory_pressure=0.2, window_seconds=1.0)
    assert a_machine(conditions=pressed)["memory"].grade == "spoils"


def test_without_control_groups_it_says_what_is_lost() -> None:
    finding = a_machine(cgroups={"memory": None, "cpu": "cgroup2"})["control groups"]
    assert finding.here == "none available for memory"


def test_a_slow_clock_is_found() -> None:
    settings = {"clocksource": "hpet", "clocksources": "tsc hpet"}
    finding = a_machine(settings=settings, clock_seconds=2e-6)["clock"]
    assert (finding.grade, finding.remedy) == ("may spoil", "boot with clocksource=tsc")


def test_only_what_can_be_changed_here_is_promised() -> None:
    facts = {"governor": "powersave", "turbo": "on"}
    found = a_machine(facts=facts, fixable=frozenset({"governor"}))
    assert (found["governor"].fix, found["turbo"].fix) == (True, False)


def test_a_machine_without_information_gives_no_error() -> None:
    found = diagnose(MachineState(facts={}, settings={}, conditions=Conditions()))
    assert "load" in {each.name for each in found if each.grade == "unknown"}


def test_a_noisier_machine_resolves_less() -> None:
    calm = measure_resolution(FakeStarter(seconds=lambda _: 0.05, noise=0.002))
    noisy = measure_resolution(FakeStarter(seconds=lambda _: 0.05, noise=0.05))
    assert calm.wall < 0.01 < noisy.wall
    assert noisy.pairs_for_one_percent > 20 > calm.pairs_for_one_percent
    # The standard error of 20 pairs, times what it takes to be sure and to be seen.
    assert noisy.wall == pytest.approx(0.05 * math.sqrt(2) / math.sqrt(20) * 3.5, rel=0.7)


def test_the_program_is_made_to_last() -> None:
    starter = FakeStarter(seconds=lambda _: 0.05)
    measure_resolution(starter)
    # The fake uses 10 ms of CPU time whatever it is asked to do: below the 20 ms that suffice to scale it.
    counts = {int(words[2].split("-lt ")[1].split()[0]) for words in starter.started}
    assert FIRST_COUNT in counts
    assert len(set(starter.started[-2 * PAIRS :])) == 1


def test_a_shell_that_does_not_run_is_reported() -> None:
    starter = FakeStarter(seconds=lambda _: 0.05, ended=lambda _: Signalled(signal=31))
    with pytest.raises(NoAnswer, match="--quick"):
        measure_resolution(starter)


def test_this_machine_is_diagnosed_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "measure_resolution", partial(measure_resolution, seconds=0.02))
    report = examine()
    assert {"load", "clock", "control groups", "virtual machine"} <= {each.name for each in report.findings}
    assert report.resolution is not None
    assert report.resolution.pairs == 20
    assert report.resolution.wall > 0.0
    assert report.resolution.seconds > 0.01, "the loop takes about as long as it says"
