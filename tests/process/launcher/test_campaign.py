"""The fault campaign: every hostile program, and the launcher killed in every phase of each.

In each case no process and no cgroup is left, and there is an outcome to record.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import Command, Ended, Exited, OutOfMemory, Signalled, TimedOut
from perftrail.process.launcher import Launcher
from tests.process.launcher.traces import cgroups_of, eventually, is_alive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.process.launcher.traces import Trial

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Fault:
    """A hostile program: its command, the seconds until its largest effect, and the expected ending."""

    name: str
    program: str
    arguments: tuple[object, ...]
    ended: Ended
    at_its_worst: float
    more: Mapping[str, Any] = field(default_factory=dict)


SHELL = "/bin/sh"
FAULTS = (
    Fault("forks a bomb of 500", "fork_bomb", (500, "respawn"), TimedOut(), 0.3, {"timeout_seconds": 0.5}),
    Fault(
        "ignores every signal it can",
        SHELL,
        ("-c", "trap '' TERM INT HUP QUIT; while :; do sleep 1000; done"),
        TimedOut(),
        0.05,
        {"timeout_seconds": 0.5},
    ),
    Fault("hides in another session", "daemon", (0, 1000, 1), TimedOut(), 0.05, {"timeout_seconds": 0.5}),
    Fault(
        "closes its output",
        SHELL,
        ("-c", "exec <&- >&- 2>&-; while :; do :; done"),
        TimedOut(),
        0.05,
        {"timeout_seconds": 0.5},
    ),
    Fault("prints 1 GiB", "print_bytes", (1 << 30, 1), Exited(code=0), 0.1, {"output_cap_bytes": MEBIBYTE}),
    Fault(
        "eats memory to the limit",
        "eat_memory",
        (1000,),
        OutOfMemory(),
        0.03,
        {"memory_limit_bytes": 300 * MEBIBYTE},
    ),
    Fault("dies by a signal", SHELL, ("-c", "sleep 0.2; kill -SEGV $$"), Signalled(signal=11), 0.05),
    Fault("never ends", "daemon", (0, 0, 1), TimedOut(), 0.05, {"timeout_seconds": 0.5}),
)

PHASES = (
    pytest.param(0.0, marks=pytest.mark.long, id="before"),
    pytest.param(0.0005, marks=pytest.mark.long, id="in the start"),
    pytest.param(0.002, marks=pytest.mark.long, id="just after"),
    pytest.param(None, id="at its worst"),
)
"""Seconds after the job was sent: before, during and just after the start; None is the time of the largest effect."""

SAMPLED_OR_OFF = [pytest.param(method, marks=pytest.mark.long) for method in ("sampled", "off")]


def command_of(fault: Fault, trial: Trial) -> Command:
    more = {"stdout": str(trial.directory / "output"), **fault.more}
    if fault.program == SHELL:
        more["environment"] = {"PATH": "/usr/bin:/bin"}
    return trial.command(fault.program, *fault.arguments, **more)


def by_name(fault: Fault) -> str:
    return fault.name


@pytest.mark.parametrize("tree_memory", ["auto", *SAMPLED_OR_OFF])
@pytest.mark.parametrize("fault", FAULTS, ids=by_name)
def test_a_hostile_program_has_an_outcome_and_leaves_nothing(
    plain_launcher: Path, trial: Trial, fault: Fault, tree_memory: str
) -> None:
    with Launcher(plain_launcher) as launcher:
        guard = launcher.start().pid
        if fault.ended == OutOfMemory() and not (launcher.start().memory_cgroup and tree_memory == "auto"):
            pytest.skip("without a cgroup the limit is on each process's address space: malloc fails")
        command = command_of(fault, trial)
        object.__setattr__(command, "tree_memory", tree_memory)
        ran = launcher.run(command)
        assert ran.ended == fault.ended
        assert trial.living() == []
        assert cgroups_of(guard) == []
        assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("whom", ["server", "guard"])
@pytest.mark.parametrize("fault", FAULTS, ids=by_name)
def test_killing_the_launcher_leaves_nothing_and_is_reported(
    plain_launcher: Path, trial: Trial, fault: Fault, whom: str, phase: float | None
) -> None:
    with Launcher(plain_launcher) as launcher:
        can = launcher.start()
        victim = can.server_pid if whom == "server" else can.pid
        outcome: list[Ended | LauncherError] = []

        def run() -> None:
            try:
                outcome.append(launcher.run(command_of(fault, trial)).ended)
            except LauncherError as error:
                outcome.append(error)

        running = threading.Thread(target=run)
        running.start()
        time.sleep(fault.at_its_worst if phase is None else phase)  # the phase is what is tried
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)

        def nothing_left() -> bool:
            launchers = [pid for pid in (can.pid, can.server_pid) if is_alive(pid)]
            return not launchers and not trial.living() and not cgroups_of(can.pid)

        assert eventually(nothing_left)
        running.join(30)
        [found] = outcome
        assert isinstance(found, LauncherError) or found == fault.ended
        assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)
