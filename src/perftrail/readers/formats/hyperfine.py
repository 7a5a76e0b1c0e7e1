"""hyperfine's JSON (``--export-json``)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from perftrail.model.exchange import Series
from perftrail.readers.formats.document import parse
from perftrail.readers.formats.surroundings import NOWHERE, begins_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.readers.formats.document import Node
    from perftrail.readers.formats.surroundings import Place


UNTRUSTWORTHY = "hyperfine's: a command's peak memory is never below that of one before it"

_OTHERS = ("user", "system")


def knows(head: bytes, _name: str) -> bool:
    """Whether this is what hyperfine writes."""
    return begins_with(head, rb'\{\s*"results"\s*:\s*\[\s*(\]|\{\s*"command"\s*:)')


def read(content: bytes, _place: Place = NOWHERE) -> tuple[Series, ...]:
    """Read the times of every command. Its subject is the command, parameters put back where all of them agree."""
    results = parse(content)["results"].elements()
    subjects = _subjects(results)
    return tuple(
        each for result, subject in zip(results, subjects, strict=True) for each in _series(result, subject)
    )


def _series(result: Node, subject: str) -> Iterator[Series]:
    point = _point(result)
    times = result.get("times")
    raw = times is not None and bool(times.elements())

    def series(
        metric: str,
        values: tuple[float, ...],
        *,
        unit: str = "s",
        summary: bool = False,
        note: str | None = None,
    ) -> Series:
        return Series(
            benchmark="command",
            point=point,
            subject=subject,
            metric=metric,
            unit=unit,
            values=values,
            summary=summary,
            note=note,
        )

    if raw and times is not None:
        yield series("wall", times.numbers())
    else:
        yield series("wall", (result["mean"].number(),), summary=True, note="mean")
    for name in _OTHERS:
        if (mean := result.get(name)) is not None:
            yield series(name, (mean.number(),), summary=True, note="mean")
    memory = result.get("memory_usage_byte")
    if memory is not None and memory.elements():
        yield series("peak_memory", memory.numbers(), unit="B", note=UNTRUSTWORTHY)


def _point(result: Node) -> tuple[tuple[str, str], ...]:
    parameters = result.get("parameters")
    return () if parameters is None else tuple((name, each.scalar()) for name, each in parameters.members())


def _subjects(results: tuple[Node, ...]) -> list[str]:
    """Give the commands as they were before their parameters' values were put in, where several show the same."""
    commands = [result["command"].text() for result in results]
    patterns = [_pattern(command, _point(result)) for command, result in zip(commands, results, strict=True)]
    shared = Counter(patterns)
    return [
        pattern if shared[pattern] > 1 else command
        for pattern, command in zip(patterns, commands, strict=True)
    ]


def _pattern(command: str, point: tuple[tuple[str, str], ...]) -> str:
    names = {value: name for name, value in point if value}
    if not names:
        return command
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: f"{{{names[found[0]]}}}", command)
