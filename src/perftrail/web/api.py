"""The API: the content of the pages, for programs, described as data.

The types of the answers are also their schemas in the OpenAPI document.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypedDict

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from perftrail.model.benchmark import Value
from perftrail.model.build import Failure
from perftrail.model.metrics import Better
from perftrail.model.store_records import Status
from perftrail.present.dashboard.regressions import RegressionJson, status_of
from perftrail.present.dashboard.subjects import (
    ComparedMetricJson,
    InvocationJson,
    compare_two,
    invocations_of,
    outcome_json,
)
from perftrail.present.html_page import Tone
from perftrail.results.rows import RowJson, ValueWithIntervalJson
from perftrail.web.pages import LONGEST_AUTHOR, LONGEST_NOTE, build_log_address, log_address, store_note
from perftrail.web.request_arguments import (
    part_of,
    requested_subjects,
    revision_of,
    series_of,
    served_study_of,
    snapshot_of,
    web,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from perftrail.model.store_records import RegressionNote, SearchRecord
    from perftrail.model.subject import Subject
    from perftrail.present.dashboard.metric_history import MetricHistory
    from perftrail.present.dashboard.regressions import Regression


MOST_POINTS = 5000


class StudyJson(TypedDict):
    """One study of this server."""

    name: str
    title: str
    running: bool


class FactJson(TypedDict):
    """One fact about an answer."""

    label: str
    text: str


class VerdictJson(TypedDict):
    """The answer in a sentence, with its evidence."""

    sentence: str
    tone: Tone
    facts: list[FactJson]
    notes: list[str]


class ClaimJson(TypedDict):
    """One claim of the study file."""

    claim: str
    verdict: str
    found: str


class OverviewJson(TypedDict):
    """A study's answer."""

    name: str
    title: str
    taken: Annotated[str, "when the snapshot was taken"]
    reading: Annotated[bool, "whether a newer snapshot is being taken"]
    stored: Annotated[dict[str, int], "number of rows of each kind"]
    verdict: VerdictJson | None
    answer: Annotated[Mapping[str, object] | None, "what `find --json` printed; null: no search has ended"]
    claims: list[ClaimJson]


class MetricJson(TypedDict):
    """A metric that was measured along the history."""

    name: str
    benchmark: str
    metric: str
    point: dict[str, Value]
    unit: str
    better: Better
    measured: Annotated[int, "number of measured revisions"]


class PointJson(TypedDict):
    """The median of one revision, or of several neighbours."""

    position: int
    last: Annotated[int, "position of the last combined revision"]
    revisions: Annotated[int, "number of combined revisions"]
    subject: str
    revision: str
    value: float
    low: float
    high: float
    count: Annotated[int, "number of samples"]


class ChangeJson(TypedDict):
    """A change along the history."""

    revision: str
    position: int
    variant: str
    effect: Annotated[ValueWithIntervalJson, "the ratio after/before"]


class HistoryJson(TypedDict):
    """A metric along a part of the history."""

    metric: MetricJson
    length: int
    first: int
    last: int
    points: list[PointJson]
    changes: list[ChangeJson]


class RevisionBuildJson(TypedDict):
    """One build of a revision."""

    key: str
    variant: str
    benchmark: str
    finished: str
    succeeded: bool
    log: str | None


class RevisionRowJson(RowJson):
    """One metric of a revision, with the keys of its runnables; /samples/{key} has their invocations."""

    runnables: list[str]


class RevisionJson(TypedDict):
    """One revision: its builds and all its metrics."""

    id: str
    position: int
    label: str
    time: str
    message: str
    builds: list[RevisionBuildJson]
    metrics: list[RevisionRowJson]


class LoggedInvocationJson(InvocationJson):
    """One invocation, with the address of its log."""

    log: str | None


class InvocationsJson(TypedDict):
    """The invocations of a runnable on one machine."""

    machine: str
    facts: dict[str, str]
    invocations: list[LoggedInvocationJson]


class SubjectJson(TypedDict):
    """A revision and a variant."""

    revision: str
    variant: str


class ComparisonJson(TypedDict):
    """Two subjects, compared in each metric."""

    a: SubjectJson | None
    b: SubjectJson | None
    metrics: list[ComparedMetricJson]


class NoteJson(TypedDict):
    """A note about a regression."""

    status: Status
    text: str
    author: str
    written: str


class NewNoteTextJson(TypedDict, total=False):
    """Text and author of a new note."""

    text: Annotated[str, {"maxLength": LONGEST_NOTE}]
    author: Annotated[str, {"maxLength": LONGEST_AUTHOR}]


class NewNoteJson(NewNoteTextJson):
    """A new note about a regression."""

    status: Status


class NotedRegressionJson(RegressionJson):
    """A change for the worse, with its notes."""

    status: Status
    notes: list[NoteJson]


class SearchJson(TypedDict):
    """A search of a study on this machine."""

    key: str
    question: Mapping[str, object]
    started: str
    answer: Annotated[Mapping[str, object] | None, "what `find --json` printed; null: it has not ended"]


class StepJson(TypedDict):
    """One step of a search: its action, the result, and the belief after it."""

    number: int
    action: Mapping[str, object]
    observation: Mapping[str, object]
    belief: Mapping[str, object]
    words: str


class SearchWithStepsJson(SearchJson):
    """One search with all its steps."""

    steps: list[StepJson]


async def studies(request: Request) -> Response:
    """Every study of this server."""
    found = [
        (served_study, await asyncio.to_thread(served_study.about))
        for served_study in web(request).served_studies.values()
    ]
    answer: list[StudyJson] = [
        {"name": served_study.name, "title": about.title, "running": about.running}
        for served_study, about in found
    ]
    return JSONResponse(answer)


async def overview(request: Request) -> Response:
    """A study's answer."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    page = snapshot.page
    sections = () if page is None else page.sections
    tables = [table for section in sections if section.name == "claims" for table in section.tables]
    answer: OverviewJson = {
        "name": served_study.name,
        "title": snapshot.report_data.view.study.title,
        "taken": snapshot.time,
        "reading": served_study.reading,
        "stored": dict(snapshot.stored),
        "verdict": None
        if page is None
        else {
            "sentence": page.verdict.sentence,
            "tone": page.verdict.tone,
            "facts": [{"label": each.label, "text": each.text} for each in page.verdict.facts],
            "notes": list(page.verdict.notes),
        },
        "answer": None if page is None or page.answer is None else dict(page.answer),
        "claims": [
            {"claim": claim, "verdict": verdict, "found": found}
            for table in tables
            for claim, verdict, found in table.rows
        ],
    }
    return JSONResponse(answer)


async def metrics(request: Request) -> Response:
    """Every metric that was measured along the history."""
    snapshot = await snapshot_of(request)
    return JSONResponse([_metric(name, series) for name, series in snapshot.histories.items()])


def _metric(name: str, series: MetricHistory) -> MetricJson:
    history_metric = series.history_metric
    return {
        "name": name,
        "benchmark": history_metric.benchmark,
        "metric": history_metric.metric,
        "point": dict(history_metric.point.values),
        "unit": history_metric.unit,
        "better": history_metric.better,
        "measured": len(series.points),
    }


async def history(request: Request) -> Response:
    """A metric along a part of the history."""
    snapshot, name = await snapshot_of(request), request.path_params["metric"]
    series = series_of(snapshot, name)
    part = part_of(request, series)
    most = max(1, min(MOST_POINTS, whole_number(request, "points", 400)))
    answer: HistoryJson = {
        "metric": _metric(name, series),
        "length": part.length,
        "first": part.first,
        "last": part.last,
        "points": [
            {
                "position": each.position,
                "last": each.last,
                "revisions": each.of,
                "subject": each.subject,
                "revision": each.revision,
                "value": each.value,
                "low": each.low,
                "high": each.high,
                "count": each.count,
            }
            for each in series.within(part.first, part.last, most=most)
        ],
        "changes": [
            {
                "revision": each.row.subject.revision.id,
                "position": each.point.position,
                "variant": each.row.subject.variant,
                "effect": {"value": each.point.effect, "low": each.point.low, "high": each.point.high},
            }
            for each in series.changes_between(part.first, part.last)
        ],
    }
    return JSONResponse(answer)


async def revision(request: Request) -> Response:
    """One revision: its builds and all its metrics."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    found = revision_of(request, snapshot)
    answer: RevisionJson = {
        "id": found.id,
        "position": snapshot.report_data.positions[found.id],
        "label": found.label,
        "time": found.time,
        "message": found.summary,
        "builds": [
            {
                "key": each.key,
                "variant": each.variant,
                "benchmark": each.benchmark,
                "finished": each.finished,
                "succeeded": not isinstance(each.outcome, Failure),
                "log": build_log_address(served_study.name, each),
            }
            for each in snapshot.builds.get(found.id, ())
        ],
        "metrics": [
            {**row.as_json(), "runnables": sorted(row.runnables)}
            for row in snapshot.rows_of.get(found.id, ())
        ],
    }
    return JSONResponse(answer)


async def samples(request: Request) -> Response:
    """Every invocation of a runnable, by machine."""
    served_study, key = served_study_of(request), request.path_params["key"]
    found = await served_study.query(lambda store: invocations_of(store, key))
    if not found:
        raise HTTPException(404, "no invocation has this key")
    answer: list[InvocationsJson] = [
        {
            "machine": each.machine.id,
            "facts": dict(each.machine.facts),
            "invocations": [
                {**outcome_json(outcome), "log": log_address(served_study.name, outcome)}
                for outcome in each.outcomes
            ],
        }
        for each in found
    ]
    return JSONResponse(answer)


async def compare(request: Request) -> Response:
    """Compare any two subjects."""
    snapshot = await snapshot_of(request)
    subjects = requested_subjects(request, snapshot)
    if subjects is None:
        return JSONResponse({"a": None, "b": None, "metrics": []})
    found = await asyncio.to_thread(compare_two, snapshot.report_data, snapshot.rows_of, *subjects)
    first, second = (_subject(each) for each in subjects)
    answer: ComparisonJson = {"a": first, "b": second, "metrics": [each.as_json() for each in found]}
    return JSONResponse(answer)


def _subject(subject: Subject) -> SubjectJson:
    return {"revision": subject.revision.id, "variant": subject.variant}


async def regressions(request: Request) -> Response:
    """Regressions, the newest first."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    notes = await served_study.query(lambda store: store.notes())
    return JSONResponse([_regression(each, notes) for each in snapshot.regressions])


def _regression(found: Regression, notes: Sequence[RegressionNote]) -> NotedRegressionJson:
    own = [note for note in notes if note.regression == found.key]
    return {**found.as_json(), "status": status_of(notes, found.key), "notes": [_note(note) for note in own]}


def _note(note: RegressionNote) -> NoteJson:
    return {"status": note.status, "text": note.text, "author": note.author, "written": note.written}


async def add_note(request: Request) -> Response:
    """Store a note about a regression."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":  # a form of another site cannot send this type
        raise HTTPException(415, "send JSON")
    try:
        fields = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise HTTPException(422, "the body is not valid JSON") from error
    known = {"status", "text", "author"}
    if (
        not isinstance(fields, dict)
        or not fields.keys() <= known
        or not all(isinstance(each, str) for each in fields.values())
    ):
        raise HTTPException(422, "send an object with status, text and author, all strings")
    return JSONResponse(_note(await store_note(request, served_study_of(request), fields)), 201)


async def searches(request: Request) -> Response:
    """Every search of a study on this machine, the latest first."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    here = snapshot.report_data.view.machine.id
    return JSONResponse(
        [
            _search(each)
            for each in reversed(await served_study.query(lambda store: store.searches()))
            if each.machine == here
        ]
    )


async def search(request: Request) -> Response:
    """One search, running or ended: each step with its belief."""
    served_study, snapshot = served_study_of(request), await snapshot_of(request)
    here, key = snapshot.report_data.view.machine.id, request.path_params["key"]
    known = await served_study.query(lambda store: store.searches())
    found = next((each for each in known if (each.key, each.machine) == (key, here)), None)
    if found is None:
        raise HTTPException(404, "no search has this key")
    steps = await served_study.query(lambda store: store.steps(key, here))
    parts: list[StepJson] = [
        {
            "number": each.number,
            "action": dict(each.action),
            "observation": dict(each.observation),
            "belief": dict(each.belief),
            "words": each.words,
        }
        for each in steps
    ]
    answer: SearchWithStepsJson = {**_search(found), "steps": parts}
    return JSONResponse(answer)


def _search(found: SearchRecord) -> SearchJson:
    return {
        "key": found.key,
        "question": dict(found.question),
        "started": found.started,
        "answer": None if found.answer is None else dict(found.answer),
    }


async def live(request: Request) -> Response:
    """What runs on a study right now."""
    await snapshot_of(request)
    found = await served_study_of(request).live()
    assert found is not None
    return JSONResponse(found.as_json())
