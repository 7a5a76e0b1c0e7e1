"""List the benchmarks of a study's suites in builds, once for each build, and store the lists.

A list of a suite in Python is short work: it runs no benchmark. perftrail then chooses the iterations of those that
are to be measured, in the first build that has them.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.measure.events import Calibrated, Calibrating, SuiteListed, SuiteListing, now
from perftrail.measure.failed_invocation import log_text
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.build import Failure, content_key
from perftrail.model.plan import Cell
from perftrail.model.store_records import ListingRecord
from perftrail.model.subject import Subject
from perftrail.model.suite import with_iterations_of
from perftrail.suites import chosen_items, items_of, listed, listed_items, tool, unlisted, unlisted_of
from perftrail.suites.python import calibration, read_calibration

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.json_data import Json
    from perftrail.model.process import Command
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.suite import SuiteItem

LISTING_SECONDS = 600.0
"""Time limit of a listing: some suites run each benchmark for a moment."""

CALIBRATION_SECONDS = 600.0
"""Time limit of choosing iterations in one build. What is chosen by then is stored, so the same command continues."""

MOST_CHARACTERS = 60_000
"""Longest text of the benchmarks that one process calibrates; Linux accepts arguments of 128 KiB."""

MOST_CRASHES = 3
"""Number of benchmarks that may end the process of a calibration; after one more, the suite itself is at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLists:
    """Numbers of builds with a suite, of their lists, and of selected benchmarks whose iterations are not chosen."""

    builds: int
    lists: int
    uncalibrated: int


def listing_study(study: Study) -> Study:
    """Return a study whose benchmarks are the listings of its suites, for a session that lists them."""
    return replace(
        study,
        benchmarks={
            name: Benchmark(  # noqa: S604 - shell is a key of the study, not a process
                command=tool(suite.kind).listing(suite),
                shell=True,
                env=suite.env,
                timeout_seconds=max(LISTING_SECONDS, suite.timeout_seconds),
                memory_limit_bytes=suite.memory_limit_bytes,
            )
            for name, suite in study.suites.items()
        },
    )


def list_suites(session: Session, revisions: Sequence[Revision]) -> Generator[Event, None, SuiteLists]:
    """Build revisions in every variant, and list the suites of each build that has no stored list.

    `session` is that of a `listing_study`. A suite that cannot be listed is reported and has no benchmarks there. The
    first build with a benchmark decides its iterations in all builds; they are chosen only for benchmarks that the
    study selects.
    """
    study = session.study
    subjects = [
        Subject(revision=revision, variant=variant) for revision in revisions for variant in study.variants
    ]
    yield from session.subject_builder.build_in_parallel(subjects)
    builds = lists = uncalibrated = 0
    for subject in subjects:
        for name in study.suites:
            ready = yield from session.subject_builder.prepared(
                Cell(subject=subject, benchmark=name, point=Point())
            )
            if isinstance(ready, Failure):
                continue  # the build's own event reports it
            builds += 1
            record = yield from _record(session, ready)
            if record is not None:
                lists += 1
                uncalibrated += yield from _calibrate(session, ready, record)
    return SuiteLists(builds=builds, lists=lists, uncalibrated=uncalibrated)


def _record(session: Session, ready: Ready) -> Generator[Event, None, ListingRecord | None]:
    """Return the stored list of a build, or list its suite; `None` if it cannot be listed."""
    cell = ready.cell
    suite, subject = session.study.suites[cell.benchmark], cell.subject
    stored = session.store.listings()
    key = content_key("listing", suite.content, ready.prepared.artefact, ready.prepared.built.artefact)
    known = next((each for each in stored if each.key == key), None)
    began = time.monotonic()
    if known is None:
        yield SuiteListing(subject=subject, suite=cell.benchmark)
        found = _listed(session, ready)
        if isinstance(found, Failure):
            yield SuiteListed(subject=subject, suite=cell.benchmark, result=found)
            return None
        items = with_iterations_of(found.items, listed_items(suite, stored))
        known = ListingRecord(
            suite=suite.content,
            key=key,
            revision=subject.revision.id,
            variant=subject.variant,
            finished=now(),
            result={"benchmarks": [each.as_json() for each in items], "unlisted": list(found.unlisted)},
        )
        session.store.add_listing(known)
    yield SuiteListed(
        subject=subject,
        suite=cell.benchmark,
        result=len(items_of(known)),
        unlisted=unlisted_of(known),
        seconds=time.monotonic() - began,
    )
    return known


def _calibrate(session: Session, ready: Ready, record: ListingRecord) -> Generator[Event, None, int]:
    """Choose the iterations of the study's benchmarks in a build, and store them; return how many are missing."""
    name, subject = ready.cell.benchmark, ready.cell.subject
    suite = session.study.suites[name]
    items = with_iterations_of(items_of(record), listed_items(suite, session.store.listings()))
    waiting = [each for each in chosen_items(session.study, name, items) if not each.is_calibrated]
    if not waiting:
        return 0
    log = session.runner.invoker.observed_log(ready, "calibration")
    log.unlink(missing_ok=True)
    total = len(waiting)
    chosen: dict[SuiteItem, SuiteItem | None] = {}
    yield Calibrating(
        subject=subject, suite=name, benchmarks=total, done=lambda: _lines(log) + total - len(waiting)
    )
    began, failure, crashes = time.monotonic(), None, 0
    while waiting and failure is None:
        part = _part(waiting)
        left = began + CALIBRATION_SECONDS - time.monotonic()
        try:
            observed = session.runner.invoker.observe(
                ready, log.stem, _limited(max(1.0, left)), text=calibration(suite, part)
            )
        finally:  # an interrupted calibration is stored, too
            chosen |= read_calibration(log_text(log), part)
            log.unlink(missing_ok=True)
            found = [chosen.get(each, each) for each in items]
            listed: list[Json] = [each.as_json() for each in found if each is not None]
            session.store.add_listing(replace(record, result={**record.result, "benchmarks": listed}))
            waiting = [each for each in waiting if each not in chosen]
        if isinstance(observed.result, Failure):
            crashes += 1
            if not waiting or crashes > MOST_CRASHES or time.monotonic() - began >= CALIBRATION_SECONDS:
                failure = observed.result
            else:  # the benchmark that ended the process; its own invocations report the failure
                crashed = waiting.pop(0)
                chosen[crashed] = replace(crashed, is_calibrated=True)
    yield Calibrated(
        subject=subject,
        suite=name,
        benchmarks=total - len(waiting),
        seconds=time.monotonic() - began,
        failure=failure,
    )
    return len(waiting)


def _lines(log: Path) -> int:
    return log_text(log).count("\n")


def _limited(seconds: float) -> Callable[[Command], Command]:
    """Return a change of a command: it ends after this time."""
    return lambda command: replace(command, timeout_seconds=seconds)


def _part(items: Sequence[SuiteItem]) -> tuple[SuiteItem, ...]:
    """Return the first benchmarks, as many as one command line can name."""
    lengths = itertools.accumulate(len(each.selector) for each in items)
    count = sum(1 for length in lengths if length <= MOST_CHARACTERS)
    return tuple(items[: max(1, count)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The benchmarks of a build, and the files whose benchmarks the suite could not name."""

    items: tuple[SuiteItem, ...]
    unlisted: tuple[str, ...]


def _listed(session: Session, ready: Ready) -> _Listing | Failure:
    suite = session.study.suites[ready.cell.benchmark]
    observed = session.runner.invoker.observe(ready, "listing", lambda command: command)
    if isinstance(observed.result, Failure):
        return observed.result
    log = Path(observed.log)
    output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    try:
        listing = _Listing(items=listed(suite, output), unlisted=unlisted(suite, output))
    except FormatError as error:
        return Failure(stage="metric", message=f"the list of its benchmarks: {error}", log=str(log))
    if not listing.items:
        reason = "".join(f"; {each}" for each in listing.unlisted[:1])
        return Failure(stage="metric", message=f"it lists no benchmark{reason}", log=str(log))
    return listing
