"""Interrupt commands at one system call each, and check what they leave.

Each trial is a fresh study, a command that strace interrupts at one call, and the same command again. No sample that
was stored after the interruption may be missing or different at the end, none may be stored twice, no traceback may be
printed, the second command must end well, `find` must give its usual answer, and the program may have started at most
once more than it has samples.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import Result, command_line
from campaign.scenarios import SCENARIOS, invocations, prepare, starts, write_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from campaign.command_line import Call, Ended
    from campaign.scenarios import Scenario


def interrupt(
    names: Sequence[str], injection: Callable[[Call], str], *, seconds: float, seed: int, may_print: bool
) -> Result:
    """Interrupt every scenario at random calls until the time is over; each call at most once.

    `injection` returns strace's expression for a call. With `may_print`, an interrupted command may print an error.
    """
    if shutil.which("strace") is None:
        return Result(trials=0, notes=("not run: strace is not installed (Debian: strace)",))
    command_line.import_all()
    with tempfile.TemporaryDirectory(prefix="campaign-") as temporary:
        root = Path(temporary)
        write_study(root / "template")
        points = [(scenario, call) for scenario in SCENARIOS for call in _calls(scenario, root, names)]
        possible = Counter(scenario.name for scenario, _ in points)
        random.Random(seed).shuffle(points)
        end = time.monotonic() + seconds
        done: Counter[str] = Counter()
        losses: list[str] = []
        for number, (scenario, call) in enumerate(points):
            if time.monotonic() > end:
                break
            done[scenario.name] += 1
            directory = root / f"trial-{number}"
            losses += _trial(
                scenario, call, injection(call), root / "template", directory, may_print=may_print
            )
            shutil.rmtree(directory, ignore_errors=True)
    notes = tuple(f"{name}: {done[name]} of {possible[name]} calls" for name in possible)
    return Result(trials=done.total(), losses=tuple(losses), notes=notes)


def _calls(scenario: Scenario, root: Path, names: Sequence[str]) -> Sequence[Call]:
    directory = root / f"calls-{scenario.name}"
    prepare(scenario, root / "template", directory)
    return command_line.calls(scenario.command, directory, names)


def _trial(
    scenario: Scenario, call: Call, injection: str, template: Path, directory: Path, *, may_print: bool
) -> Iterator[str]:
    """Yield what was lost in one trial."""
    prepare(scenario, template, directory)
    where = f"{scenario.name}, {injection} ({call.text})"
    trace = f"trace={call.name}"
    first = command_line.run(
        scenario.command, directory, strace=("-o", "/dev/null", "-e", trace, "-e", injection)
    )
    store = directory / scenario.store
    try:
        kept = dict(invocations(store))
        second = command_line.run(scenario.command, directory)
        if second.code and scenario.name in ("restore", "backup") and store.exists():
            # A finished copy is never overwritten.
            second = command_line.run(("store", "stats", "--store", scenario.store), directory)
        stored = invocations(store)
    except Exception as error:  # any error is a loss that is named
        yield f"{where}: {type(error).__name__}: {error}"
        return
    for ended in (first, second):
        if "Traceback" in ended.stderr:
            yield f"{where}: traceback: {ended.stderr.strip().splitlines()[-1]}"
    if first.stderr and not may_print and "Error" in first.stderr:
        yield f"{where}: {first.stderr.strip()[-200:]}"
    if second.code:
        yield f"{where}: the second command exits with {second.code}: {second.stderr.strip()[-200:]}"
        return
    if lost := [key for key, values in kept.items() if stored.get(key) != values]:
        yield f"{where}: {len(lost)} stored invocations are lost"
    if scenario.name == "run" and len(stored) != len({key[0] for key in stored}) * 3:
        yield f"{where}: {len(stored)} invocations at the end"
    if scenario.name in ("run", "find") and starts(directory) > len(stored) + 1:
        yield f"{where}: {starts(directory)} starts for {len(stored)} invocations"
    if scenario.name == "find" and (wrong := _wrong_answer(second)):
        yield f"{where}: {wrong}"


def _wrong_answer(ended: Ended) -> str:
    changes = json.loads(ended.stdout)["changes"]
    return "" if len(changes) == 1 and len(changes[0]["revisions"]) == 1 else f"{len(changes)} changes"
