"""`doctor`: what on this machine spoils measurements, what may be done about it, what can be seen here."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.machine.load import Watch
from perftrail.process.machine.settings import (
    Held,
    possible_changes,
    put_back_left_over,
    read_settings,
    run_attached,
)
from perftrail.workflows.containment import why_no_sandbox
from perftrail.workflows.diagnosis import Signs, diagnose
from perftrail.workflows.resolution import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.search_record import Json
    from perftrail.process.machine.settings import Change
    from perftrail.process.protocol import Capabilities
    from perftrail.workflows.diagnosis import Finding
    from perftrail.workflows.resolution import Resolution

WATCHED_SECONDS = 1.0
CLOCK_READINGS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the doctor found: every finding, the worst first; the resolution unless it was to be quick.

    `put_back` is what a perftrail that was killed had left changed, `held` what is changed now.
    """

    machine: str
    findings: tuple[Finding, ...]
    resolution: Resolution | None
    put_back: tuple[Change, ...] = ()
    held: tuple[Change, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """The report as `doctor --json` prints it."""
        return {
            "machine": self.machine,
            "findings": [finding.as_json() for finding in self.findings],
            "resolution": None if self.resolution is None else self.resolution.as_json(),
            "put_back": [_change_json(change) for change in self.put_back],
            "held": [_change_json(change) for change in self.held],
        }


def examine(*, quick: bool = False, held: tuple[Change, ...] = ()) -> Report:
    """Look at this machine for a second, and unless `quick` measure what can be told apart on it.

    Settings that a killed perftrail left changed are put back first.
    """
    put_back = put_back_left_over()
    with Launcher() as launcher:
        signs = read_signs(launcher.start())
        resolution = None if quick else resolve(launcher)
    return Report(
        machine=read_machine().id,
        findings=diagnose(signs),
        resolution=resolution,
        put_back=put_back,
        held=held,
    )


def read_signs(capabilities: Capabilities) -> Signs:
    """Read everything that a diagnosis needs, and watch the load for a second."""
    with Watch() as watch:
        watch.begin()
        busiest = watch.busiest(seconds=WATCHED_SECONDS)
        conditions = watch.end(0.0)
    return Signs(
        facts=read_machine().facts,
        settings=read_settings(),
        conditions=conditions,
        busiest=busiest,
        clock_seconds=_clock_seconds(),
        cgroups={"memory": capabilities.memory_cgroup, "cpu": capabilities.cpu_cgroup},
        fixable=frozenset(change.setting for change in possible_changes()),
        no_sandbox=why_no_sandbox(),
    )


@contextmanager
def fixed() -> Iterator[tuple[Change, ...]]:
    """Change what may be changed, for as long as this context lasts; give what was changed.

    Raises `SettingsError` when something cannot be, with everything put back.
    """
    put_back_left_over()
    changes = possible_changes()
    with Held(changes):
        yield changes


def run(arguments: Sequence[str]) -> int:
    """Run a command on this terminal; give its exit code. Raises `UsageError` when there is no such program."""
    return run_attached(arguments)


def _clock_seconds() -> float:
    """What reading the clock costs, the loop around it included; the quickest of several tries."""
    tries = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(CLOCK_READINGS):
            time.monotonic_ns()
        tries.append((time.perf_counter() - started) / CLOCK_READINGS)
    return min(tries)


def _change_json(change: Change) -> dict[str, Json]:
    return {"setting": change.setting, "file": change.file, "was": change.was, "set": change.wanted}
