"""Profile both ends of a search, if that costs less than it saves: the culprit usually touches a function that moved.

For times and instructions, that is a profile of instructions or seconds; for memory, also one of allocations, because a
change of memory often moves the one and not the other.

The profile is a prior only (`priors.profile_priors`). It costs two or more slow invocations. So perftrail first
measures one plain invocation, for `LONGEST_SECONDS` at most, and profiles only if the forecast cost is below the
forecast saving: a quarter of the builds of a bisection, as measured on 30 known culprits of 8 projects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from perftrail.find.priors import ProfiledFunctions
from perftrail.measure.events import Profiling, TooLongForBudget
from perftrail.measure.function_profilers import (
    AllocationProfiler,
    CallgrindProfiler,
    PythonProfiler,
    applicable,
    profile_pairs,
    program_functions,
)
from perftrail.measure.instructions import SLOWDOWN
from perftrail.model.build import Failure
from perftrail.model.expression import references
from perftrail.model.plan import Cell
from perftrail.model.profile import averaged
from perftrail.model.subject import Subject
from perftrail.stats.call_graph import differences, folded, moved

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from perftrail.find.journal import Ledger
    from perftrail.measure.events import Event
    from perftrail.measure.function_profilers import FunctionProfiler, FunctionProfiles
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.metrics import Counter
    from perftrail.model.process import Command
    from perftrail.model.profile import FunctionKey
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target

Cause = Literal["time", "memory"]
"""What a metric depends on: the work of functions, or their allocations too."""

MEMORY = frozenset({"peak_memory", "peak_memory_tree"})
"""Metrics of memory that perftrail measures in every invocation."""

SAVED_SHARE = 0.25
"""Share of the builds of a bisection that a profile saves."""

INVOCATIONS_OF_A_BUILD = 20
"""Typical number of invocations of each build that a search measures."""

PROFILER_START_SECONDS = 1.5
"""Time that a profiler needs for a program that does nothing."""

LEAST_MOVED = {"callgrind": 0.01, "cprofile": 0.1, "preload": 0.02}
"""Smallest sum of all absolute differences, relative to the program's cost, with which anything moved."""

LONGEST_SECONDS = 10.0
"""Longest plain invocation of a benchmark that is profiled. Only a profile shows whether a program is Python, so others
also run twice for that."""

COUNTING_SLOWDOWN: Mapping[Counter, float] = {
    "instructions": SLOWDOWN["valgrind"],
    "allocations": 1.0,
    "locks": 1.0,
    "hardware": 1.0,
}
"""Typical slowdown of a benchmark by its counter. One invocation of each build is enough, because counts repeat."""

NOTHING = ProfiledFunctions(moved=(), runs=())


def profile_ends(
    session: Session,
    targets: Sequence[Target],
    revisions: Sequence[Revision],
    ledger: Ledger,
    *,
    benchmarks: int = 1,
    limit: float | None = None,
) -> Generator[Event, None, ProfiledFunctions]:
    """Build and profile the ends of a range; return the functions whose cost moved, none without a useful profile.

    The targets are those of one benchmark, and `benchmarks` the number of those that share the search and its builds.
    No profile takes more than `limit` seconds by its forecast.
    """
    benchmark = session.study.benchmarks[targets[0].benchmark]
    found = next(
        ((each, cause) for each in targets if (cause := _explained_by(each, benchmark)) is not None),
        None,
    )
    if found is None:
        return NOTHING
    target, cause = found
    ends = yield from built_ends(target, revisions, ledger)
    if ends is None:
        return NOTHING
    counter = benchmark.counted_alone
    worth = _Worth(
        builds=SAVED_SHARE * math.log2(len(revisions)),
        build_seconds=max(each.prepared.built.seconds for each in ends) / benchmarks,
        invocations=INVOCATIONS_OF_A_BUILD if counter is None else COUNTING_SLOWDOWN[counter],
    )
    return (yield from _profile(session.runner.invoker, *ends, worth, cause, limit))


def built_ends(
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
    invoker: Invoker, before: Ready, after: Ready, worth: _Worth, cause: Cause, limit: float | None
) -> Generator[Event, None, ProfiledFunctions]:
    """Profile both builds with the first profiler that applies and is worth its time; for memory, also allocations."""
    profilers: tuple[FunctionProfiler, ...] = (
        PythonProfiler(invoker, pairs=2),
        CallgrindProfiler(invoker, pairs=1, simulated=False),
    )
    allocations: tuple[FunctionProfiler, ...] = (
        (AllocationProfiler(invoker, pairs=1),) if cause == "memory" else ()
    )
    longest = min(max(map(worth.longest_seconds, profilers)), LONGEST_SECONDS)
    if longest <= 0.0:
        return NOTHING
    most, phase = math.inf if limit is None else limit, f"profile of {after.cell.benchmark} at both ends"
    plain = invoker.observe(after, "plain", lambda command: limited(command, min(longest, most)))
    seconds = plain.ran.wall_seconds
    if limit is not None and isinstance(plain.result, Failure) and limit <= seconds:
        yield TooLongForBudget(phase=phase, seconds=None, limit=limit)
    if isinstance(plain.result, Failure):
        return NOTHING
    found = NOTHING
    for alternatives in (profilers, allocations):
        possible = [
            each for each in alternatives if worth.pays(each, seconds) and not each.unsupported_reason()
        ]
        if limit is not None and possible:
            quickest = min(_cost(each, seconds) for each in possible)
            if quickest > most:
                yield TooLongForBudget(phase=phase, seconds=quickest, limit=limit)
            possible = [each for each in possible if _cost(each, seconds) <= most]
            most -= quickest
        for profiler in applicable(possible, invoker, after):
            yield Profiling(
                benchmark=after.cell.benchmark, profiler=profiler.name, seconds=_cost(profiler, seconds)
            )
            profiles = profile_pairs(profiler, before, after)
            if not isinstance(profiles, Failure) and profiles.before:
                found = _joined(found, moved_functions(profiles, before, after))
                break
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worth:
    """What a profile saves: this number of builds, each with its part of the seconds and its invocations."""

    builds: float
    build_seconds: float
    invocations: float

    def pays(self, profiler: FunctionProfiler, seconds: float) -> bool:
        """Return whether a profile costs less than it saves, if a plain invocation takes `seconds`."""
        saved = self.builds * (self.build_seconds + self.invocations * seconds)
        return _cost(profiler, seconds) <= saved

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


def limited(command: Command, seconds: float) -> Command:
    """Return a command that ends after `seconds`, or after its own shorter timeout."""
    return replace(command, timeout_seconds=min(command.timeout_seconds or math.inf, seconds))


def _explained_by(target: Target, benchmark: Benchmark) -> Cause | None:
    """Return which profiles explain a metric: times and counted instructions, or memory; `None` for others."""
    if target.unit == "s" or benchmark.counted_alone == "instructions":
        return "time"
    if benchmark.counted_alone == "allocations":
        return "memory"
    names = {each.name for each in references(target.expression)}
    return "memory" if names and names <= MEMORY else None


def _joined(one: ProfiledFunctions, other: ProfiledFunctions) -> ProfiledFunctions:
    """Return the functions that moved in one of two profiles; all others ran."""
    moved = {*one.moved, *other.moved}
    return ProfiledFunctions(moved=tuple(sorted(moved)), runs=tuple(sorted({*one.runs, *other.runs} - moved)))


def moved_functions(profiles: FunctionProfiles, before: Ready, after: Ready) -> ProfiledFunctions:
    """Return the program's functions whose cost, or whose calls' cost, moved; none if the whole hardly moved."""
    inside = program_functions(before, after)
    sides = [averaged(each) for each in (profiles.before, profiles.after)]
    events = sides[0].events
    found = NOTHING
    for counted in [(each,) for each in events] if profiles.method == "preload" else [events]:
        one, other = (folded(each, inside, events=counted) for each in sides)
        of_one = moved(one, other)
        functions = _pairs(of_one.own | of_one.path)
        whole = sum(map(abs, differences(one.own, other.own).values()))
        if whole < LEAST_MOVED[profiles.method] * max(one.total, other.total):
            functions = ()
        ran = _pairs(of_one.own | of_one.path | of_one.runs)
        found = _joined(found, ProfiledFunctions(moved=functions, runs=ran))
    return found


def _pairs(keys: Iterable[FunctionKey]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((each.name, each.file) for each in keys))
