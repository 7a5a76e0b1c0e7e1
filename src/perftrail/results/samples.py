"""Studies of samples that other tools measured: read their files, and open them as a read-only study."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import math
import re
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from perftrail.errors import SourceError, StudyError, UsageError
from perftrail.file_tree import open_to_read
from perftrail.formats import FORMATS, read_file, recognise
from perftrail.measure.session import View
from perftrail.model.benchmark import MOST_POINTS, Benchmark, Point
from perftrail.model.build import content_key
from perftrail.model.exchange import SUMMARY
from perftrail.model.field import LONGEST_NAME
from perftrail.model.measurement import InvocationKey, Machine, Measurement, Runnable, Samples
from perftrail.model.metrics import MEASURED, Metric
from perftrail.model.plan import Cell
from perftrail.model.recipe import PLAIN, Variant
from perftrail.model.subject import Revision, Subject
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.sources.directory import ListedSource
from perftrail.store.empty import EmptyStore
from perftrail.studyfile import mistake

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Value
    from perftrail.model.exchange import Series
    from perftrail.model.measurement import Outcome
    from perftrail.model.study import Study


MOST_REMEMBERED = 1 << 14
"""Cache size: the same few names and values occur in very many rows."""


@lru_cache(maxsize=MOST_REMEMBERED)
def named(text: str) -> str:
    r"""Return a printable name from untrusted text; unprintable characters are replaced, long text is cut, uniquely.

    A backslash becomes a slash, because the expression language would read it as an escape.

    >>> named("C:\\bench"), ascii(named("a" + chr(27) + "[31m"))
    ('C:/bench', "'a\\ufffd[31m\\u2026 f4ff40a8'")
    """
    marked = (letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.strip())
    safe = "".join(marked).replace("\\", "/") or "-"
    if len(safe) <= LONGEST_NAME and (safe == text or "\N{REPLACEMENT CHARACTER}" not in safe):
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{safe[: LONGEST_NAME - 10]}… {digest}"


@lru_cache(maxsize=MOST_REMEMBERED)
def typed(text: str) -> Value:
    """Parse a parameter's value: a number if it is written as one, else the text.

    >>> [typed(text) for text in ("8", "0.5", "1e3", "08", "inf")]
    [8, 0.5, '1e3', '08', 'inf']
    """
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,17}\.\d{1,17}", text) and repr(float(text)) == text:
        return float(text)
    return named(text) if text else ""


MACHINE = "imported machine"
"""The fact of an imported machine with the machine's name in the files."""

UNKNOWN = "unknown"
"""The machine of files without a machine name, if other files have one."""


OF_COMMANDS = frozenset({"hyperfine"})
"""Formats whose subjects are commands: alternatives that were measured at the time of the file."""

TABLES = frozenset({"csv", "jsonl", "parquet", "publication"})
"""Formats of perftrail's own samples, whose subjects are written as revision and variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFile:
    """A file of another tool: its unique name, its format, and its content."""

    name: str
    format: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileValues:
    """Values of one file from the same invocations, by metric; `methods` are their origins.

    The first values of all metrics belong to one invocation, and so on; a metric may have fewer than others.
    """

    started: str
    values: Mapping[str, Sequence[float]]
    methods: Mapping[str, str]
    flags: tuple[str, ...] = ()

    def __len__(self) -> int:
        return max(map(len, self.values.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """The content of other tools' files as a study; `machines` are the machines that the files name."""

    revisions: tuple[Revision, ...]
    variants: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    values_by_cell: Mapping[Cell, tuple[FileValues, ...]]
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StudySeries:
    """A series with its names in the study."""

    file: SampleFile
    series: Series
    revision: str
    variant: str
    machine: str
    benchmark: str
    parameters: Mapping[str, str]
    metric: str


@dataclass(slots=True)
class _Axes:
    """The parameters of a benchmark with their values, and its metrics, in the order of the files."""

    values: dict[str, dict[Value, None]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)


def arrange(files: Sequence[SampleFile]) -> Arranged:
    """Merge the content of files: values of one subject, benchmark, point and machine form one series.

    A revision is a subject as the files name it, or a file without subjects. Revisions are in the order of
    time, or of the files' names if some have no time. Commands are variants, and so are machines if there are
    several, so that samples of different machines are not pooled. Raises `SourceError` for files without
    samples.
    """
    labels = _labels(files)
    all_series = [_study_series(file, series, labels[file.name]) for file in files for series in file.series]
    if not all_series:
        raise SourceError("no file has a sample; are these results, not settings?")
    axes = _axes(all_series)
    revisions = _revisions(all_series)
    machines = tuple(dict.fromkeys(each.machine for each in all_series))
    by_cell: dict[Cell, dict[str, list[_StudySeries]]] = {}
    for each in all_series:
        subject = Subject(
            revision=revisions[each.revision], variant=_variant(each, several=len(machines) > 1)
        )
        cell = Cell(
            subject=subject,
            benchmark=each.benchmark,
            point=_point(axes[each.benchmark], each.parameters),
        )
        by_cell.setdefault(cell, {}).setdefault(each.file.name, []).append(each)
    return Arranged(
        revisions=tuple(revisions.values()),
        variants=tuple(dict.fromkeys(cell.subject.variant for cell in by_cell)),
        benchmarks={name: _benchmark(name, known) for name, known in axes.items()},
        values_by_cell={
            cell: tuple(each for group in by_file.values() for each in _file_values(group))
            for cell, by_file in by_cell.items()
        },
        machines=machines,
    )


def _labels(files: Sequence[SampleFile]) -> dict[str, str]:
    """Return a short name for each file: without directory and suffix if these are unique, else the whole name."""
    names = [file.name for file in files]
    short = [PurePath(name).name.partition(".")[0] or name for name in names]
    return dict(zip(names, short if len(set(short)) == len(short) else names, strict=True))


def _study_series(file: SampleFile, series: Series, label: str) -> _StudySeries:
    subject, variant = series.subject or label, ""
    if file.format in OF_COMMANDS:
        subject, variant = label, series.subject or ""
    elif file.format in TABLES and (found := re.fullmatch(r"(.+) \((.+)\)", subject)):
        subject, variant = found[1], found[2]
    return _StudySeries(
        file=file,
        series=series,
        revision=named(subject),
        variant=named(variant) if variant else "",
        machine=named(series.machine or UNKNOWN),
        benchmark=named(series.benchmark),
        parameters={named(name): value for name, value in series.point},
        metric=named(series.metric),
    )


def _variant(series: _StudySeries, *, several: bool) -> str:
    """Return a variant's name; with its machine, if there are `several`."""
    return " on ".join(part for part in (series.variant, series.machine if several else "") if part) or PLAIN


def _axes(series: Iterable[_StudySeries]) -> dict[str, _Axes]:
    """Return each benchmark's parameters and metrics. A parameter that a point lacks is empty there."""
    found: dict[str, _Axes] = {}
    lists = list(series)
    for each in lists:
        known = found.setdefault(each.benchmark, _Axes())
        for name in each.parameters:
            known.values.setdefault(name, {})
        unit = each.series.unit or ""
        if each.metric not in known.metrics:
            known.metrics[each.metric] = Metric(pattern="", unit=unit, better=each.series.better)
        if known.metrics[each.metric].unit != unit:
            units = f"{known.metrics[each.metric].unit!r} and {unit!r}"
            raise SourceError(
                f"{each.file.name}: {quoted(each.benchmark)} has {each.metric} in two units, {units}; "
                "import such files separately"
            )
    for each in lists:
        for name, values in found[each.benchmark].values.items():
            values.setdefault(typed(each.parameters.get(name, "")))
    for benchmark, known in found.items():
        if math.prod(len(values) for values in known.values.values()) > MOST_POINTS:
            raise SourceError(
                f"{quoted(benchmark)}: its {len(known.values)} parameters have more than {MOST_POINTS} "
                "combinations; import the files separately"
            )
    return found


def _point(axes: _Axes, parameters: Mapping[str, str]) -> Point:
    return Point(tuple((name, typed(parameters.get(name, ""))) for name in axes.values))


def _benchmark(name: str, known: _Axes) -> Benchmark:
    """Return the benchmark of the metrics. Its command never runs; it is only part of the samples' key."""
    return Benchmark(
        command=content_key(name),
        parameters={axis: _ascending(values) for axis, values in known.values.items()},
        metrics=_declared(known.metrics),
    )


def _declared(metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """Omit metrics that perftrail knows besides time, for example memory, which it reports on request."""
    own = {
        name for name, metric in metrics.items() if name in MEASURED and metric.unit == MEASURED[name].unit
    }
    other_metrics = own - {"wall"}
    leading = {name: metric for name, metric in metrics.items() if name not in other_metrics}
    return leading or metrics


def _ascending(values: Iterable[Value]) -> tuple[Value, ...]:
    """Sort numbers; texts keep their order."""
    listed = tuple(values)
    numbers = [value for value in listed if not isinstance(value, str)]
    return tuple(sorted(numbers)) if len(numbers) == len(listed) else listed


def _revisions(series: Sequence[_StudySeries]) -> dict[str, Revision]:
    """Return the revisions by name: in the order of time if every one has a time, else of the files."""
    times: dict[str, list[datetime]] = {}
    files: dict[str, dict[str, None]] = {}
    for each in series:
        known = times.setdefault(each.revision, [])
        if each.series.when is not None:
            known.append(each.series.when)
        files.setdefault(each.revision, {}).setdefault(each.file.name)
    firsts = {name: min(known, key=datetime.timestamp) for name, known in times.items() if known}
    listed = list(times)
    if len(firsts) == len(listed):
        listed.sort(key=lambda name: firsts[name].timestamp())
    return {
        name: Revision(
            id=name,
            time=firsts[name].isoformat() if name in firsts else "",
            parents=(listed[index - 1],) if index else (),
            summary=f"imported from {', '.join(map(named, list(files[name])[:3]))}",
        )
        for index, name in enumerate(listed)
    }


def _file_values(group: Sequence[_StudySeries]) -> Iterator[FileValues]:
    """Group the values of one file: first single samples, then means and medians of other tools."""
    for summary in (False, True):
        alike = [each for each in group if each.series.summary == summary]
        if alike:
            yield _aligned(alike, (SUMMARY,) if summary else ())


def _aligned(group: Sequence[_StudySeries], flags: tuple[str, ...]) -> FileValues:
    values: dict[str, list[float]] = {}
    methods: dict[str, str] = {}
    for each in group:
        values.setdefault(each.metric, []).extend(each.series.values)
        text = f" ({named(each.series.note)})" if each.series.note else ""
        methods[each.metric] = f"imported from {named(each.file.name)}, {each.file.format}{text}"
    return FileValues(
        started=min((each.series.when.isoformat() for each in group if each.series.when), default=""),
        values=values,
        methods=methods,
        flags=flags,
    )


MOST_FILES = 100_000
HEAD_BYTES = 1 << 16
"""Number of bytes that show whether a file is a result file."""

_PACKED = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The content of a study's files, and the names of files of no known tool."""

    files: tuple[SampleFile, ...]
    ignored_files: tuple[str, ...]


def read_samples(study: Study) -> Read:
    """Read every file of a study of samples.

    Without a format in the study, unknown files are ignored, because some tools write results next to other
    files. Raises `SourceError` for unreadable files, `StudyError` for an unknown format.
    """
    table = study.searched_source
    if wrong := format_wrong(table.format):
        raise StudyError([mistake(study.file, ("source", "format"), wrong)])
    found = sample_files(table.location)
    named = {path: _shown(path, Path(study.directory)) for path in found}
    results = [path for path in found if table.format is not None or is_result(path)]
    if not results:
        known = f"; known are {listed(FORMATS)}" if found else ""
        what = "no file is a result of a known tool" if found else "no such file"
        raise SourceError(
            f"{table.location}: {what}; set source.location to the files with the samples{known}"
        )
    return Read(
        files=tuple(sample_file(path, table.format, name=named[path]) for path in results),
        ignored_files=tuple(named[path] for path in found if path not in results),
    )


def format_wrong(format: str | None) -> str | None:
    """Return what is wrong with the name of a format; `None` if it is valid or missing."""
    if format is None or format in FORMATS:
        return None
    return f"no format {quoted(format)}{suggestion(format, FORMATS)}; choose from {listed(FORMATS)}"


def sample_files(location: str) -> list[Path]:
    """Return the files that a location matches, by name; numbers in names in numeric order, 9 before 10."""
    found = [path for name in glob.glob(location, recursive=True) if (path := Path(name)).is_file()]  # noqa: PTH207 - the whole path is a pattern
    if len(found) > MOST_FILES:
        raise SourceError(f"{location}: matches {len(found)} files; at most {MOST_FILES} can be read at once")
    return sorted(found, key=lambda path: _natural(str(path)))


def is_result(path: Path) -> bool:
    """Whether a file is a result file of a known tool, from its first bytes."""
    try:
        with open_to_read(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    if head.startswith(_PACKED):
        with contextlib.suppress(zlib.error):  # a file that cannot be unpacked is not a result
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
    return recognise(head, path.name.removesuffix(".gz")) is not None


def sample_file(path: Path, format: str | None, *, name: str) -> SampleFile:
    """Read one file in a format, or in its detected format. Raises `FormatError`."""
    read = read_file(path, name=name, format=format)
    return SampleFile(name=name, format=read.format, series=read.series)


def refuse_unknown(format: str | None) -> None:
    """Raise `UsageError` for an unknown format."""
    if wrong := format_wrong(format):
        raise UsageError(f"--format {format}: {wrong}")


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d{1,18})", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


NO_RANGES = "imported revisions have no ranges; omit the range"


class ArrangedStore(EmptyStore):
    """A `perftrail.ports.Store` in memory. All its samples were measured on one other `machine`."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(refusal="imported samples are read only")
        self._machine = machine
        self._imported: list[Runnable] = []
        self._file_values: dict[str, tuple[FileValues, ...]] = {}

    def add_samples(self, runnable: Runnable, file_values: tuple[FileValues, ...]) -> None:
        """Add the samples of a runnable, once."""
        self._imported.append(runnable)
        self._file_values[runnable.key] = file_values

    def machines(self) -> Mapping[str, Machine]:
        """Return the one machine."""
        return {self._machine.id: self._machine}

    def runnables(self, benchmark: str | None = None) -> Sequence[Runnable]:
        """Return every runnable in the store, or those of one benchmark."""
        return [each for each in self._imported if benchmark in (None, each.benchmark)]

    def ran(self, runnables: Collection[str], machine: str) -> frozenset[str]:
        """Return the runnables, among these, that have samples."""
        return frozenset(key for key in runnables if self._values_of(key, machine))

    def sampled_machines(self) -> frozenset[str]:
        """Return the one machine."""
        return frozenset({self._machine.id})

    def revisions(self) -> frozenset[str]:
        """Return the ids of the runnables' revisions."""
        return frozenset(each.revision for each in self._imported)

    def outcomes(self, runnables: Collection[str], machine: str) -> Mapping[str, tuple[Outcome, ...]]:
        """Return the samples of runnables as invocations, by ordinal."""
        return {key: tuple(self._measurements(key, machine)) for key in runnables}

    def samples(
        self, runnables: Collection[str], machine: str, metrics: Collection[str]
    ) -> Mapping[str, Samples]:
        """Return the samples of runnables for some metrics; unknown runnables are missing."""
        return {
            key: _samples(self._values_of(key, machine), metrics)
            for key in runnables
            if self._values_of(key, machine)
        }

    def _values_of(self, runnable: str, machine: str) -> tuple[FileValues, ...]:
        return self._file_values.get(runnable, ()) if machine == self._machine.id else ()

    def _measurements(self, runnable: str, machine: str) -> Iterator[Measurement]:
        ordinal = 0
        for each in self._values_of(runnable, machine):
            for index in range(len(each)):
                values = {name: column[index] for name, column in each.values.items() if index < len(column)}
                yield Measurement(
                    key=InvocationKey(runnable=runnable, machine=machine, phase="sample", ordinal=ordinal),
                    started=each.started,
                    seconds=0.0,
                    values=values,
                    methods={name: each.methods[name] for name in values},
                    flags=each.flags,
                )
                ordinal += 1


def _samples(file_values: Sequence[FileValues], metrics: Collection[str]) -> Samples:
    values: dict[str, dict[int, float]] = {}
    flags: dict[int, tuple[str, ...]] = {}
    first = 0
    for each in file_values:
        for name in metrics:
            if name in each.values:
                values.setdefault(name, {}).update(enumerate(each.values[name], first))
        if each.flags:
            flags.update(dict.fromkeys(range(first, first + len(each)), each.flags))
        first += len(each)
    return Samples(values=values, flags=flags)


def samples_view(study: Study) -> View:
    """Read a study's files and arrange them as a view, so that every reading command can use them.

    Its benchmarks and variants are those of the files; its store has their samples and is in memory. Raises
    `SourceError` for unreadable files, or for files without samples.
    """
    read = read_samples(study)
    arranged = arrange(read.files)
    known = replace(
        study, benchmarks=arranged.benchmarks, variants={name: Variant() for name in arranged.variants}
    )
    machine = machine_of(arranged, read)
    source, store = ListedSource(arranged.revisions, no_range=NO_RANGES), ArrangedStore(machine)
    for cell, file_values in arranged.values_by_cell.items():
        store.add_samples(_runnable(cell), file_values)
    return View(study=known, machine=machine, source=source, store=store)


def _runnable(cell: Cell) -> Runnable:
    """Return a cell's runnable. Each subject is a separate artefact: equality of imported builds is never known."""
    subject, point = cell.subject, cell.point.as_dict()
    artefact = content_key("imported", subject.revision.id, subject.variant)
    return Runnable(
        key=content_key("imported cell", artefact, cell.benchmark, point),
        revision=subject.revision.id,
        variant=subject.variant,
        benchmark=cell.benchmark,
        point=cell.point,
        artefact=artefact,
    )


def machine_of(arranged: Arranged, read: Read) -> Machine:
    """Return a machine that never equals this one; its facts come from the files."""
    formats = ", ".join(dict.fromkeys(file.format for file in read.files))
    ignored_files = {"left out": ", ".join(read.ignored_files)} if read.ignored_files else {}
    return Machine(
        id=f"imported-{content_key(*arranged.machines)[:16]}",
        facts={
            MACHINE: ", ".join(arranged.machines),
            "imported from": f"{len(read.files)} files ({formats})",
            **ignored_files,
        },
    )
