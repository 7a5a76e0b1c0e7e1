"""Profile both ends of a search, if that costs less than it saves: the culprit usually touches a function that moved.

The profile is a prior only (`priors.profile_priors`). It costs two or more slow invocations. So perftrail first
measures one plain invocation, for `LONGEST_SECONDS` at most, and profiles only if the forecast cost is below the
forecast saving: a quarter of the builds of a bisection, as measured on 30 known culprits of 8 projects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.find.priors import ProfiledFunctions
from perftrail.measure.events import Profiling
from perftrail.measure.function_profilers import (
    CallgrindProfiler,
    PythonProfiler,
    profile_pairs,
    program_functions,
)
from perftrail.model.build import Failure
from perftrail.model.plan import Cell
from perftrail.model.profile import averaged
from perftrail.model.subject import Subject
from perftrail.stats.call_graph import differences, folded, moved

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from perftrail.find.journal import Ledger
    from perftrail.measure.events import Event
    from perftrail.measure.function_profilers import FunctionProfiler, FunctionProfiles
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.process import Command
    from perftrail.model.profile import FunctionKey
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target

SAVED_SHARE = 0.25
"""Share of the builds of a bisection that a profile saves."""

INVOCATIONS_OF_A_BUILD = 20
"""Typical number of invocations of each build that a search measures."""

PROFILER_START_SECONDS = 1.5
"""Time that a profiler needs for a program that does nothing."""

LEAST_MOVED = {"callgrind": 0.01, "cprofile": 0.1}
"""Smallest sum of all absolute differences, relative to the program's cost, with which anything moved."""

LONGEST_SECONDS = 10.0
"""Longest plain invocation of a benchmark that is profiled. Only a profile shows whether a program is Python, so others
also run twice for that."""

INSTRUCTIONS_SLOWDOWN = 50.0
"""Typical slowdown of a benchmark whose instructions are counted."""

NOTHING = ProfiledFunctions(moved=(), runs=())


def profile_ends(
    session: Session, targets: Sequence[Target], revisions: Sequence[Revision], ledger: Ledger
) -> Generator[Event, None, ProfiledFunctions]:
    """Build and profile the ends of a range; return the functions whose cost moved, none without a useful profile."""
    benchmarks = session.study.benchmarks
    target = next((each for each in targets if _is_time(each, benchmarks[each.benchmark])), None)
    if target is None:
        return NOTHING
    ends = yield from _built_ends(target, revisions, ledger)
    if ends is None:
        return NOTHING
    counted = benchmarks[target.benchmark].counted_alone is not None
    worth = _Worth(
        builds=SAVED_SHARE * math.log2(len(revisions)),
        build_seconds=max(each.prepared.built.seconds for each in ends),
        invocations=INSTRUCTIONS_SLOWDOWN if counted else INVOCATIONS_OF_A_BUILD,
    )
    return (yield from _profile(session.runner.invoker, *ends, worth))


def _built_ends(
    target: Target, revisions: Sequence[Revision], ledger: Ledger
) -> Generator[Event, None, tuple[Ready, Ready] | None]:
    """Build both ends; `None` if one fails, or if they are equal."""
    ends: list[Ready] = []
    for revision in (revisions[0], revisions[-1]):
        subject = Subject(revision=revision, variant=target.variant)
        cell = Cell(subject=subject, benchmark=target.benchmark, point=target.points[-1])
        ready = yield from ledger.ready(cell)
        if isinstance(ready, Failure):
            return None
        ends.append(ready)
    before, after = ends
    return None if before.runnable.key == after.runnable.key else (before, after)


def _profile(
    invoker: Invoker, before: Ready, after: Ready, worth: _Worth
) -> Generator[Event, None, ProfiledFunctions]:
    """Profile both builds with the first profiler that applies and is worth its time."""
    profilers: tuple[FunctionProfiler, ...] = (
        PythonProfiler(invoker, pairs=2),
        CallgrindProfiler(invoker, pairs=1, simulated=False),
    )
    longest = min(max(map(worth.longest_seconds, profilers)), LONGEST_SECONDS)
    if longest <= 0.0:
        return NOTHING
    plain = invoker.observe(after, "plain", lambda command: _limited(command, longest))
    if isinstance(plain.result, Failure):
        return NOTHING
    seconds = plain.ran.wall_seconds
    for profiler in profilers:
        if seconds > worth.longest_seconds(profiler) or profiler.unsupported_reason():
            continue
        yield Profiling(benchmark=after.cell.benchmark, seconds=_cost(profiler, seconds))
        profiles = profile_pairs(profiler, before, after)
        if not isinstance(profiles, Failure) and profiles.before:
            return moved_functions(profiles, before, after)
    return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worth:
    """What a profile saves: this number of builds, each with its seconds and invocations."""

    builds: float
    build_seconds: float
    invocations: float

    def longest_seconds(self, profiler: FunctionProfiler) -> float:
        """Return the longest invocation for which a profile costs less than it saves; 0 if it never does."""
        saved = self.builds * self.build_seconds - _cost(profiler, 0.0)
        added = 2 * profiler.pairs * profiler.slowdown - self.builds * self.invocations
        if added <= 0.0:
            return math.inf
        return max(saved, 0.0) / added


def _cost(profiler: FunctionProfiler, seconds: float) -> float:
    """Return the seconds of all profiled invocations, if a plain one takes `seconds`."""
    return 2 * profiler.pairs * (PROFILER_START_SECONDS + profiler.slowdown * seconds)


def _limited(command: Command, seconds: float) -> Command:
    """Return a command that ends after `seconds`, or after its own shorter timeout."""
    return replace(command, timeout_seconds=min(command.timeout_seconds or math.inf, seconds))


def _is_time(target: Target, benchmark: Benchmark) -> bool:
    """Return whether a profile of instructions or seconds explains a metric: times, and counted instructions."""
    return target.unit == "s" or benchmark.counted_alone == "instructions"


def moved_functions(profiles: FunctionProfiles, before: Ready, after: Ready) -> ProfiledFunctions:
    """Return the program's functions whose cost, or whose calls' cost, moved; none if the whole hardly moved."""
    inside = program_functions(before, after)
    one, other = (folded(averaged(each), inside) for each in (profiles.before, profiles.after))
    whole = sum(map(abs, differences(one.own, other.own).values()))
    if whole < LEAST_MOVED[profiles.method] * max(one.total, other.total):
        return NOTHING
    found = moved(one, other)
    return ProfiledFunctions(moved=_pairs(found.own | found.path), runs=_pairs(found.runs))


def _pairs(keys: Iterable[FunctionKey]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((each.name, each.file) for each in keys))
