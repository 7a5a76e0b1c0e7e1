"""Interrupt commands at one system call each, and check what they leave.

Each trial is a fresh copy of a prepared study, a command that strace interrupts at one call, and the same command
again. No sample that was stored after the interruption may be missing or different at the end, none may be stored
twice, no traceback may be printed, and the second command must end well. Each scenario also compares its result with
one that was not interrupted. Only calls that were really interrupted count as trials.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from campaign import Result, command_line
from campaign.scenarios import SCENARIOS, invocations, prepare, write_study
from tests.copied import copy_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from campaign.command_line import Call
    from campaign.scenarios import Scenario

logger = logging.getLogger("campaign")

IN_MEMORY = Path("/dev/shm")
"""File system in memory: what a sync costs on a disk is not what these campaigns test."""

GOLDEN = 0.6180339887498949
"""Steps of this share of a run visit all of it evenly, whenever they end."""

TRIALS_BETWEEN_MESSAGES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A scenario before its command, the same after it, and the calls of the command."""

    scenario: Scenario
    before: Path
    after: Path
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to interrupt: the names of the calls, strace's expression for one, which are wanted, and until when.

    `ends` is a time of `time.monotonic`.
    """

    names: Sequence[str]
    injection: Callable[[Call], str]
    is_wanted: Callable[[Call], bool]
    seed: int
    ends: float


def interrupt(
    names: Sequence[str],
    injection: Callable[[Call], str],
    *,
    seconds: float,
    seed: int,
    is_wanted: Callable[[Call], bool] = lambda _: True,
    only: Sequence[str] = (),
) -> Result:
    """Interrupt every scenario at calls spread over its run until the time is over; each call at most once.

    `injection` returns strace's expression for a call; `is_wanted` leaves calls out. `only` names scenarios; default:
    all, each in a process. With the time for it, every call is interrupted.
    """
    if shutil.which("strace") is None:
        return Result(trials=0, notes=("not run: strace is not installed (Debian: strace)",))
    command_line.import_all()
    plan = Plan(
        names=names, injection=injection, is_wanted=is_wanted, seed=seed, ends=time.monotonic() + seconds
    )
    context = multiprocessing.get_context("fork")
    processes = []
    for scenario in SCENARIOS:
        if only and scenario.name not in only:
            continue
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_send_result, args=(scenario, plan, sender))
        process.start()
        sender.close()
        processes.append((scenario, process, receiver))
    results = []
    for scenario, process, receiver in processes:
        try:
            results.append(receiver.recv())
        except EOFError:
            results.append(Result(trials=0, losses=(f"{scenario.name}: the campaign itself ended",)))
        process.join()
    return Result(
        trials=sum(each.trials for each in results),
        losses=tuple(loss for each in results for loss in each.losses),
        notes=tuple(note for each in results for note in each.notes),
    )


def _send_result(scenario: Scenario, plan: Plan, sender: Connection) -> None:
    sender.send(_interrupt_scenario(scenario, plan))


def _interrupt_scenario(scenario: Scenario, plan: Plan) -> Result:
    """Interrupt one scenario until the time is over, at least once."""
    with _temporary_root() as root:
        write_study(root / "template")
        prepared = _prepared(scenario, root, plan)
        done, losses = 0, list[str]()
        for call in spread(prepared.calls, plan.seed):
            if done and time.monotonic() > plan.ends:
                break
            found = list(_trial(prepared, call, plan.injection(call), root / "study"))
            if found == [NOT_REACHED]:
                continue
            done += 1
            losses += found
            for loss in found:
                logger.info("loss: %s", loss)
            if done % TRIALS_BETWEEN_MESSAGES == 0:
                logger.info(
                    "%s: %d of %d calls, %d losses", scenario.name, done, len(prepared.calls), len(losses)
                )
    note = f"{scenario.name}: {done} of {len(prepared.calls)} calls, {len(losses)} losses"
    return Result(trials=done, losses=tuple(losses), notes=(note,))


@contextmanager
def _temporary_root() -> Iterator[Path]:
    """Yield a directory for all studies; clones in the user's cache are in the study, too, so that each is fresh."""
    with tempfile.TemporaryDirectory(
        prefix="campaign-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    ) as temporary:
        directories = {"XDG_CACHE_HOME": f"{temporary}/study/cache", "XDG_STATE_HOME": f"{temporary}/state"}
        with mock.patch.dict(os.environ, directories):
            yield Path(temporary)


def _prepared(scenario: Scenario, root: Path, plan: Plan) -> Prepared:
    """Prepare a scenario at the path of the trials, which builds and stores contain."""
    study, before, after = root / "study", root / f"{scenario.name}-before", root / f"{scenario.name}-after"
    prepare(scenario, root / "template", study)
    shutil.copytree(study, before, symlinks=True)
    found, ended = command_line.calls(scenario.command, study, plan.names)
    if ended.code:
        raise RuntimeError(f"{scenario.name}: exit {ended.code}: {ended.stderr}")
    study.rename(after)
    calls = tuple(call for call in found if plan.is_wanted(call))
    logger.info("%s: %d calls", scenario.name, len(calls))
    return Prepared(scenario=scenario, before=before, after=after, calls=calls)


def spread(calls: Sequence[Call], seed: int) -> list[Call]:
    """Return the calls in an order that visits all of the run evenly."""
    offset = random.Random(seed).random()
    order = sorted(range(len(calls)), key=lambda number: (number * GOLDEN + offset) % 1.0)
    return [calls[number] for number in order]


NOT_REACHED = "the call was not reached"


def _trial(prepared: Prepared, call: Call, injection: str, study: Path) -> Iterator[str]:
    """Yield what was lost in one trial, or `NOT_REACHED`."""
    scenario = prepared.scenario
    copy_study(prepared.before, study)
    try:
        yield from _interrupted(prepared, call, injection, study)
    except Exception as error:  # any error is a loss that is named
        yield f"{scenario.name}, {injection} ({call.text}): {type(error).__name__}: {error}"
    finally:
        shutil.rmtree(study)


def _interrupted(prepared: Prepared, call: Call, injection: str, study: Path) -> Iterator[str]:
    scenario = prepared.scenario
    where = f"{scenario.name}, {injection} ({call.text})"
    log = study.with_name("trace")
    first = command_line.run(
        scenario.command, study, strace=("-o", str(log), "-e", f"trace={call.name}", "-e", injection)
    )
    is_kill = "signal=KILL" in injection
    if first.code != -signal.SIGKILL if is_kill else "INJECTED" not in log.read_text():
        yield NOT_REACHED
        return
    store = study / scenario.store
    kept = dict(invocations(store))
    second = command_line.run(scenario.command, study)
    for ended in (first, second):
        if "Traceback" in ended.stderr:
            yield f"{where}: traceback: {ended.stderr.strip().splitlines()[-1]}"
    if second.code and not (scenario.once and store.exists()):
        yield f"{where}: the second command exits with {second.code}: {second.stderr.strip()[-200:]}"
        return
    stored = invocations(store)
    if lost := [key for key, values in kept.items() if stored.get(key) != values]:
        yield f"{where}: {len(lost)} stored invocations are lost"
    for wrong in scenario.finished(study, second, prepared.after):
        yield f"{where}: {wrong}"
