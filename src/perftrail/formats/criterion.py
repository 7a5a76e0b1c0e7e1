"""criterion.rs's files (``target/criterion/…/new/sample.json``) and cargo-criterion's messages."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from perftrail.formats.document import FileContext, Node


def recognises(head: bytes, name: str) -> bool:
    """Return whether this is a sample of criterion, or its messages."""
    is_sample = PurePosixPath(name).name == "sample.json" and begins_with(
        head, rb'\{\s*"(sampling_mode|iters)"'
    )
    return is_sample or begins_with(head, rb'\{\s*"reason"\s*:\s*"(benchmark|group)-complete"')


def read(content: bytes, context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read a sample, or every benchmark of messages: the time of one iteration in each of criterion's samples.

    A sample needs ``benchmark.json`` in the same directory for its name. The subject is a run: the sample's tree, and
    the baseline (``new``, or its saved name).
    """
    if begins_with(content, rb'\{\s*"reason"'):
        lines = content.splitlines()
        messages = [parse(line, line=number) for number, line in enumerate(lines, start=1) if line.strip()]
        return tuple(_message(each) for each in messages if each["reason"].text() == "benchmark-complete")
    sample = parse(content)
    about = context.read_relative("benchmark.json")
    if about is None:
        raise sample.error(
            "benchmark.json, which has the benchmark's name, is not in its directory; keep criterion's tree"
        )
    known = parse(about)
    return (
        _series(
            _name(known),
            _point(known),
            subject=_run(known, context.path),
            times=sample["times"],
            iterations=sample["iters"],
            time_unit="ns",
        ),
    )


def _run(known: Node, path: PurePath) -> str | None:
    """Return the run of a sample: ``target/criterion/g/f/new/sample.json`` is of ``target/criterion/new``."""
    *tree, baseline = path.parent.parts or ("",)
    directory = known.get("directory_name")
    inside = () if directory is None else PurePosixPath(directory.text()).parts
    if inside and tuple(tree[-len(inside) :]) == inside:
        tree = tree[: -len(inside)]
    return str(PurePath(*tree, baseline)) if baseline else None


def _name(known: Node) -> str:
    words = [known["group_id"].text()]
    function = known.get("function_id")
    if function is not None:
        words.append(function.text())
    return "/".join(words)


def _point(known: Node) -> tuple[tuple[str, str], ...]:
    value = known.get("value_str")
    return () if value is None else (("parameter", value.text()),)


def _message(message: Node) -> Series:
    return _series(
        message["id"].text(),
        (),
        subject=None,
        times=message["measured_values"],
        iterations=message["iteration_count"],
        time_unit=message["unit"].text(),
    )


def _series(
    name: str,
    point: tuple[tuple[str, str], ...],
    *,
    subject: str | None,
    times: Node,
    iterations: Node,
    time_unit: str,
) -> Series:
    """Divide the time of each sample by its iterations."""
    totals, counts = times.numbers(), iterations.numbers()
    if len(totals) != len(counts) or not totals or min(counts) <= 0:
        raise times.error("must have one time for each number of iterations, and these must be above 0")
    known = unit(time_unit)
    return Series(
        benchmark=name,
        point=point,
        subject=subject,
        metric="wall",
        unit=known.name,
        values=known.scaled(total / count for total, count in zip(totals, counts, strict=True)),
    )
