"""``results.json`` of a site that ``perftrail publish`` writes: what one publication added.

The document has one line for each metric, so that a version control system stores and shows it well.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.model.exchange import Series
from perftrail.model.json_data import from_plain, to_plain
from perftrail.model.published import Publication
from perftrail.model.recipe import PLAIN
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import FileContext
    from perftrail.model.json_data import Json
    from perftrail.model.published import PublishedRevision

VERSION_KEY, VERSION = "perftrail_publication", 1
"""The first member of a document, and its present value. A document with a higher one is refused."""


def recognises(head: bytes, _name: str) -> bool:
    """Return whether a document is a publication."""
    return begins_with(head, rb'\{\s*"perftrail_publication"\s*:')


def encode(publication: Publication) -> bytes:
    """Return the document of a publication."""
    plain: dict[str, Json] = {VERSION_KEY: VERSION, **to_plain(publication)}
    members = (f"{json.dumps(name)}: {_lines(value)}" for name, value in plain.items())
    return ("{" + ",\n".join(members) + "}\n").encode()


def _lines(value: Json) -> str:
    """Return a value; each element of a list is on its own line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(_compact(each) for each in value) + "\n]"
    return _compact(value)


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def decode(content: bytes) -> Publication:
    """Return the publication of a document. Raises `FormatError`."""
    document = parse(content)
    version = document[VERSION_KEY].number()
    if version > VERSION:
        raise FormatError(f"a newer perftrail wrote it (version {version:g}); update perftrail")
    assert isinstance(document.value, dict)
    plain = {name: value for name, value in document.value.items() if name != VERSION_KEY}
    try:
        publication = from_plain(Publication, plain)
    except ValueError as error:
        raise FormatError("is not a whole publication of perftrail") from error
    count = len(publication.revisions)
    for metric in publication.metrics:
        if not metric.metric or not metric.measured or not all(each.values for each in metric.measured):
            raise FormatError(f"has no name or no values for a metric of {quoted(metric.benchmark)}")
        for each in metric.measured:
            if not 0 <= each.revision < count:
                raise FormatError(f"names revision {each.revision} of {count}")
    return publication


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the values of each metric at each revision."""
    return tuple(_series(decode(content)))


def _series(publication: Publication) -> Iterator[Series]:
    for metric in publication.metrics:
        point = tuple((name, _text(value)) for name, value in metric.point.items())
        for each in metric.measured:
            revision = publication.revisions[each.revision]
            variant = "" if metric.variant == PLAIN else f" ({metric.variant})"
            yield Series(
                benchmark=metric.benchmark,
                point=point,
                subject=f"{revision.id}{variant}",
                metric=metric.metric,
                unit=metric.unit,
                better=metric.better,
                values=each.values,
                when=_time(revision),
                machine=publication.machine.id,
            )


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _time(revision: PublishedRevision) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(revision.time) if revision.time else None
    return None
