"""Formats of other benchmark tools: detected by content, each read and written by one module.

Formats of profiles have other modules: `callgrind` and `perf_script` read, `speedscope` and `pprof` write.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from perftrail.errors import FormatError
from perftrail.file_tree import open_to_read
from perftrail.formats.document import HEAD_BYTES, NO_FILE, FileContext
from perftrail.model.wording import listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.exchange import Series


FORMATS: Mapping[str, str] = {
    "hyperfine": "hyperfine's JSON (--export-json)",
    "pyperf": "pyperf's JSON (-o)",
    "google-benchmark": "Google Benchmark's JSON (--benchmark_format=json)",
    "jmh": "JMH's JSON (-rf json)",
    "pytest-benchmark": "pytest-benchmark's JSON (--benchmark-json)",
    "asv": "asv's results of one commit (results/MACHINE/COMMIT-ENVIRONMENT.json)",
    "criterion": "criterion.rs's sample.json, or cargo-criterion's messages (--message-format=json)",
    "benchmarkdotnet": "BenchmarkDotNet's JSON (--exporters json)",
    "nvbench": "nvbench's JSON (--json, --jsonbin)",
    "vitest": "vitest's JSON of benchmarks (vitest bench --outputJson)",
    "mitata": "mitata's JSON (format: 'json')",
    "rebench": "ReBench's data file",
    "tclbench": "printed output of tclbench's runbench.tcl (text, list or csv)",
    "go": "printed output of go test -bench",
    "criterion-text": "printed output of criterion.rs",
    "divan": "printed output of divan",
    "gungraun": "gungraun's JSON (--output-format=json) or printed output",
    "otava": "Otava's configuration (otava.yaml) with tests of the type csv",
    "publication": "results.json of a site that perftrail publish writes",
    "jsonl": 'JSON lines with "benchmark", "metric" and "value", and "point", an object',
    "parquet": "Parquet with the columns of the CSV",
    "csv": "CSV with the columns benchmark, metric and value",
}
"""Every format with its description; the first that recognises a file reads it."""

_MODULES: Mapping[str, str] = {"go": "go_text", "jsonl": "json_lines", "csv": "tidy_csv"}
"""Modules of formats that have another name."""

LARGEST_BYTES = 1 << 28
"""Maximum size of a file, unpacked."""

MOST_FILES = 100_000
"""Maximum number of result files in a directory."""

_GZIP_MAGIC = b"\x1f\x8b"
_SETTINGS = ("machine.json", "benchmarks.json", "benchmark.json", "estimates.json", "tukey.json")
"""Files of the tools without samples."""


class Format(Protocol):
    """Functions of a format's module. `read` raises `FormatError`, and `ValueError` for invalid numbers."""

    def recognises(self, head: bytes, name: str, /) -> bool:
        """Return whether a file with these first bytes and this name has the format."""

    def read(self, content: bytes, context: FileContext = NO_FILE, /) -> tuple[Series, ...]:
        """Read the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """The content of a file, and its format."""

    format: str
    series: tuple[Series, ...]


def recognise(content: bytes, name: str = "") -> str | None:
    """Return the format of content; `None` if no format recognises it."""
    head = content[:HEAD_BYTES]
    return next((each for each in FORMATS if _format(each).recognises(head, name)), None)


def read(
    content: bytes, *, name: str, format: str | None = None, context: FileContext = NO_FILE
) -> ReadResult:
    """Read content in a format, by default the recognised one.

    Raises `FormatError` that begins with `name`.
    """
    chosen = format or recognise(content, name)
    if chosen is None:
        raise FormatError(f"{name}: unknown format; name the format if it is {listed(FORMATS)}")
    if chosen not in FORMATS:
        raise FormatError(f"no format {quoted(chosen)}{suggestion(chosen, FORMATS)}")
    try:
        return ReadResult(format=chosen, series=_format(chosen).read(content, context))
    except (FormatError, ValueError, ArithmeticError) as error:
        raise FormatError(f"{name}: {error}; the expected format is {FORMATS[chosen]}") from error


def read_file(path: Path, *, name: str | None = None, format: str | None = None) -> ReadResult:
    """Read a file, unpacked if it is a gzip. Raises `FormatError` if it is not a regular file, or too large."""
    shown = name or str(path)
    try:
        content = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"{shown}: cannot be read: {why.lower()}") from error
    if len(content) > LARGEST_BYTES:
        raise FormatError(f"{shown}: is larger than {LARGEST_BYTES >> 20} MiB; split it")
    context = FileContext(path=Path(shown), read_relative=lambda other: _read_relative(path, other))
    return read(content, name=shown, format=format, context=context)


def companions(path: Path, *, format: str | None = None) -> tuple[Path, ...]:
    """Return the existing files that a result file names and its reader needs: nvbench's samples, Otava's tables.

    They are below the directory of the file. Raises `FormatError` for an invalid file.
    """
    content = _content(path)
    chosen = format or recognise(content, path.name)
    named = None if chosen is None or chosen not in FORMATS else getattr(_format(chosen), "companions", None)
    if named is None:
        return ()
    try:
        return tuple(found for name in named(content) if (found := path.parent / name).is_file())
    except (FormatError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from error


def files_in(directory: Path) -> tuple[Path, ...]:
    """Return the result files of a directory: criterion's newest samples, or all files except the tools' settings."""
    found: list[Path] = []
    for path in sorted(directory.rglob("*")):
        if path.name in _SETTINGS or not path.is_file():
            continue
        found.append(path)
        if len(found) > MOST_FILES:
            raise FormatError(f"{directory}: has more than {MOST_FILES} files; name the result files")
    samples = tuple(path for path in found if path.name == "sample.json" and path.parent.name != "base")
    return samples or tuple(found)


def _format(name: str) -> Format:
    module = _MODULES.get(name, name.replace("-", "_"))
    return cast("Format", import_module(f"{__name__}.{module}"))


def _content(path: Path) -> bytes:
    with open_to_read(path) as file:
        content = file.read(LARGEST_BYTES + 1)
    if not content.startswith(_GZIP_MAGIC):
        return content
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
        return packed.read(LARGEST_BYTES + 1)


def _read_relative(path: Path, other: str) -> bytes | None:
    try:
        return _content(path.parent / other)
    except (OSError, EOFError, zlib.error):
        return None
