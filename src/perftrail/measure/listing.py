"""List the benchmarks of a study's suites in builds, once for each build, and store the lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.measure.events import SuiteListed, now
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.build import Failure, content_key
from perftrail.model.plan import Cell
from perftrail.model.store_records import ListingRecord
from perftrail.model.subject import Subject
from perftrail.model.suite import with_iterations_of
from perftrail.suites import items_of, listed_items, tool, unlisted, unlisted_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.suite import SuiteItem

LISTING_SECONDS = 1800.0
"""Time limit of a listing: some suites run each benchmark for a moment."""


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


def list_suites(session: Session, revisions: Sequence[Revision]) -> Generator[Event, None, None]:
    """Build revisions in every variant, and list the suites of each build that has no stored list.

    `session` is that of a `listing_study`. A suite that cannot be listed is reported and has no benchmarks there. The
    first list of a benchmark decides its iterations in all builds.
    """
    study = session.study
    subjects = [
        Subject(revision=revision, variant=variant) for revision in revisions for variant in study.variants
    ]
    yield from session.subject_builder.build_in_parallel(subjects)
    for subject in subjects:
        for name in study.suites:
            yield from _list(session, Cell(subject=subject, benchmark=name, point=Point()))


def _list(session: Session, cell: Cell) -> Generator[Event, None, None]:
    ready = yield from session.subject_builder.prepared(cell)
    if isinstance(ready, Failure):
        return  # the build's own event reports it
    suite, subject = session.study.suites[cell.benchmark], cell.subject
    stored = session.store.listings()
    key = content_key("listing", suite.content, ready.prepared.artefact, ready.prepared.built.artefact)
    known = next((each for each in stored if each.key == key), None)
    if known is None:
        found = _listed(session, ready)
        if isinstance(found, Failure):
            yield SuiteListed(subject=subject, suite=cell.benchmark, result=found)
            return
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
        subject=subject, suite=cell.benchmark, result=len(items_of(known)), unlisted=unlisted_of(known)
    )


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
        listing = _Listing(
            items=tool(suite.kind).read_listing(output, suite), unlisted=unlisted(suite, output)
        )
    except FormatError as error:
        return Failure(stage="metric", message=f"the list of its benchmarks: {error}", log=str(log))
    if not listing.items:
        reason = "".join(f"; {each}" for each in listing.unlisted[:1])
        return Failure(stage="metric", message=f"it lists no benchmark{reason}", log=str(log))
    return listing
