"""pytest-benchmark's JSON (``--benchmark-json``, ``--benchmark-save``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from perftrail.formats.document import FileContext, Node

_NO_COMMIT = "unversioned"


def recognises(head: bytes, _name: str) -> bool:
    """Return whether pytest-benchmark wrote this."""
    return begins_with(head, rb'\{\s*"(machine_info|commit_info|benchmarks)"') and b'"machine_info"' in head


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the rounds of every test, or its median if they were not saved."""
    document = parse(content)
    return tuple(_series(each, document) for each in document["benchmarks"].elements())


def _series(entry: Node, document: Node) -> Series:
    stats, when = entry["stats"], document.get("datetime")
    parameters = entry.get("params")
    point = () if parameters is None else tuple((name, each.scalar()) for name, each in parameters.members())
    name = entry["fullname"].text()
    if point and name.endswith("]"):
        name = name.partition("[")[0]
    data = stats.get("data")
    raw = () if data is None else data.numbers()
    commit, dirty = _commit(document)
    notes = (*(() if raw else ("median",)), *(("with uncommitted changes",) if dirty else ()))
    machine = document.get("machine_info")
    node = None if machine is None else machine.get("node")
    return Series(
        benchmark=name,
        point=point,
        subject=commit,
        metric="wall",
        unit="s",
        values=raw or (stats["median"].number(),),
        when=None if when is None else when.time(),
        machine=None if node is None else node.text(),
        summary=not raw,
        note=", ".join(notes) or None,
    )


def _commit(document: Node) -> tuple[str | None, bool]:
    """Return the measured commit, and whether it had uncommitted changes."""
    info = document.get("commit_info")
    commit = None if info is None else info.get("id")
    if info is None or commit is None or commit.text() == _NO_COMMIT:
        return None, False
    dirty = info.get("dirty")
    return commit.text(), dirty is not None and dirty.value is True
