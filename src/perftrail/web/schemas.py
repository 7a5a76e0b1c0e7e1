"""What the API gives and takes, as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.search_record import STATUSES, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """What may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": schema}


def record(**fields: Schema) -> Schema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": {**fields},
        "required": [*fields],
        "additionalProperties": False,
    }


def by_name(schema: Schema) -> Schema:
    """An object whose fields are named by what is measured."""
    return {"type": "object", "additionalProperties": schema}


INTERVAL = record(value=NUMBER, low=NUMBER, high=NUMBER)

SEARCH: Mapping[str, Schema] = {
    "key": TEXT,
    "question": {"type": "object"},
    "started": TEXT,
    "answer": maybe({"type": "object"}),
}
STEP = record(
    number=WHOLE,
    action={"type": "object"},
    news={"type": "object"},
    belief={"type": "object"},
    words=TEXT,
)

SCHEMAS: Mapping[str, Schema] = {
    "Error": record(error=TEXT),
    "Study": record(name=TEXT, title=TEXT, running=FLAG),
    "Verdict": record(
        sentence=TEXT,
        tone={"type": "string", "enum": ["better", "worse", "plain", "unclear"]},
        facts=several(record(label=TEXT, text=TEXT)),
        notes=several(TEXT),
    ),
    "Overview": record(
        name=TEXT,
        title=TEXT,
        taken=TEXT,
        reading=FLAG,
        stored=by_name(WHOLE),
        verdict=maybe({"$ref": "#/components/schemas/Verdict"}),
        answer=maybe({"type": "object"}),
        claims=several(record(claim=TEXT, verdict=TEXT, found=TEXT)),
    ),
    "Figure": record(
        name=TEXT,
        benchmark=TEXT,
        metric=TEXT,
        point={"type": "object"},
        unit=TEXT,
        better={"type": "string", "enum": ["lower", "higher"]},
        measured=WHOLE,
    ),
    "Point": record(
        position=WHOLE,
        last=WHOLE,
        of=WHOLE,
        subject=TEXT,
        revision=TEXT,
        value=NUMBER,
        low=NUMBER,
        high=NUMBER,
        count=WHOLE,
    ),
    "Change": record(revision=TEXT, position=WHOLE, variant=TEXT, effect=INTERVAL),
    "History": record(
        figure={"$ref": "#/components/schemas/Figure"},
        length=WHOLE,
        first=WHOLE,
        last=WHOLE,
        points=several({"$ref": "#/components/schemas/Point"}),
        changes=several({"$ref": "#/components/schemas/Change"}),
    ),
    "Row": record(
        revision=TEXT,
        label=TEXT,
        variant=TEXT,
        benchmark=TEXT,
        point={"type": "object"},
        metric=TEXT,
        unit=TEXT,
        count=WHOLE,
        failures=WHOLE,
        flags=several(TEXT),
        noise=TEXT,
        estimate=maybe({"type": "object"}),
        runnables=several(TEXT),
    ),
    "Revision": record(
        id=TEXT,
        position=WHOLE,
        label=TEXT,
        time=TEXT,
        message=TEXT,
        builds=several(
            record(key=TEXT, variant=TEXT, benchmark=TEXT, finished=TEXT, succeeded=FLAG, log=maybe(TEXT))
        ),
        figures=several({"$ref": "#/components/schemas/Row"}),
    ),
    "Start": record(
        phase={"type": "string", "enum": ["warmup", "sample"]},
        ordinal=WHOLE,
        started=TEXT,
        seconds=NUMBER,
        values=by_name(NUMBER),
        flags=several(TEXT),
        failure=maybe(record(stage=TEXT, message=TEXT)),
        log=maybe(TEXT),
    ),
    "Starts": record(
        machine=TEXT, facts=by_name(TEXT), starts=several({"$ref": "#/components/schemas/Start"})
    ),
    "Comparison": record(
        figure=TEXT,
        first=TEXT,
        second=TEXT,
        reason=TEXT,
        comparison=maybe(
            record(
                effect=INTERVAL,
                confidence=NUMBER,
                count=WHOLE,
                in_turns=FLAG,
                verdict={"type": "string", "enum": ["faster", "slower", "same", "unclear"]},
                words=TEXT,
            )
        ),
    ),
    "Compared": record(
        a=maybe(record(revision=TEXT, variant=TEXT)),
        b=maybe(record(revision=TEXT, variant=TEXT)),
        figures=several({"$ref": "#/components/schemas/Comparison"}),
    ),
    "Note": record(status={"type": "string", "enum": [*STATUSES]}, text=TEXT, author=TEXT, written=TEXT),
    "Regression": record(
        id=TEXT,
        figure=TEXT,
        benchmark=TEXT,
        metric=TEXT,
        variant=TEXT,
        position=WHOLE,
        revisions=several(TEXT),
        ratio=NUMBER,
        effect=TEXT,
        levels=TEXT,
        certainty=TEXT,
        found_by={"type": "string", "enum": ["search", "history"]},
        better_since=maybe(TEXT),
        status={"type": "string", "enum": [*STATUSES]},
        notes=several({"$ref": "#/components/schemas/Note"}),
    ),
    "Search": record(**SEARCH),
    "SearchSteps": record(**SEARCH, steps=several(STEP)),
    "Live": record(
        running=maybe(TEXT),
        since=maybe(TEXT),
        invocations=WHOLE,
        latest=several(record(of=TEXT, runnable=TEXT, gave=TEXT, failed=FLAG)),
        progress=maybe(
            record(
                done=WHOLE,
                left_least=WHOLE,
                left_most=WHOLE,
                builds=WHOLE,
                seconds_least=maybe(NUMBER),
                seconds_most=maybe(NUMBER),
            )
        ),
        search=maybe(record(metric=TEXT, steps=WHOLE, last=TEXT, believed=TEXT)),
    ),
    "NewNote": {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": [*STATUSES]},
            "text": {"type": "string", "maxLength": 2000},
            "author": {"type": "string", "maxLength": 80},
        },
        "required": ["status"],
        "additionalProperties": False,
    },
}
