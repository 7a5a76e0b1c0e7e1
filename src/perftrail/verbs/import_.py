"""Create a study from result files of other tools, or add files to one."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail import studyfile
from perftrail.errors import UsageError
from perftrail.file_tree import (
    claimed_directory,
    open_to_read,
    refuse_link,
    remove_left_over,
    sync_file_system,
)
from perftrail.formats import companions as companions_of
from perftrail.formats import files_in
from perftrail.model.exchange import SUMMARY
from perftrail.model.wording import counted
from perftrail.results.samples import (
    arrange,
    is_result,
    machine_of,
    read_samples,
    refuse_unknown,
    sample_file,
)
from perftrail.studyfile.reading import shown_name
from perftrail.studyfile.writing import toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.study import Study

SAMPLES = "samples"
"""Name of a study's directory for result files."""

UNFINISHED = ".import-"
"""Prefix of the directory of files that are being written."""


class ImportedJson(TypedDict):
    """Content of imported files."""

    file: str
    added: Annotated[list[str], "names of the files that were new"]
    revisions: list[str]
    benchmarks: list[str]
    metrics: list[str]
    values: Annotated[int, "single values"]
    summaries: Annotated[int, "summaries of several values"]
    machine: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A study after an import, with the content of all its files."""

    file: str
    added: tuple[str, ...]
    revisions: tuple[str, ...]
    benchmarks: tuple[str, ...]
    metrics: tuple[str, ...]
    values: int
    summaries: int
    machine: Mapping[str, str]

    def as_json(self) -> ImportedJson:
        """Return the imported files as `import --json` prints them."""
        return {
            "file": self.file,
            "added": list(self.added),
            "revisions": list(self.revisions),
            "benchmarks": list(self.benchmarks),
            "metrics": list(self.metrics),
            "values": self.values,
            "summaries": self.summaries,
            "machine": dict(self.machine),
        }

    def words(self) -> Iterator[str]:
        """Yield the result in sentences."""
        if self.added:
            yield f"{self.file}: {counted(len(self.added), 'file')} added"
        yield (
            f"{counted(len(self.revisions), 'revision')}, {counted(len(self.benchmarks), 'benchmark')}, "
            f"{counted(self.values, 'value')} of {', '.join(self.metrics[:6])}{'…' if len(self.metrics) > 6 else ''}"
        )
        if self.summaries:
            yield f"{counted(self.summaries, 'summary value')} among these: no samples, so no interval"


def import_files(
    files: Sequence[Path], directory: Path, *, format: str | None = None, title: str | None = None
) -> Imported:
    """Copy result files into a study's directory, create the study if necessary, and read all of it.

    Companion files that describe the results of a directory are copied too. Raises `UsageError` for files
    that are missing or would replace others, and for a directory with a study of another kind; `SourceError`
    for a file in an unknown format. A failed import leaves nothing behind.
    """
    refuse_unknown(format)
    chosen = _chosen(files, format)
    study_file = directory / studyfile.FILE_NAME
    if study_file.exists() and studyfile.load(str(directory)).searched_source.kind != "samples":
        raise UsageError(
            f"{study_file} is a study with another kind of source; choose another directory with -o"
        )
    contents = {name: _content(path) for name, path in chosen.items()}
    _refuse_replacing(contents, directory / SAMPLES)
    text = _study_text(title or f"Samples in {directory.absolute().name}", format)
    new = {directory / SAMPLES / name: content for name, content in contents.items()}
    added = tuple(name for name in contents if not (directory / SAMPLES / name).exists())
    with _written({**new, study_file: text.encode()}, directory):
        return imported_content(studyfile.load(str(directory)), added=added)


@contextmanager
def _written(files: Mapping[Path, bytes], study: Path) -> Iterator[None]:
    """Write the missing files of a study; if the following code fails, remove them again with their directories.

    Each file appears at its path with all of its content, so that an interrupted import can be repeated.
    """
    missing = {path: content for path, content in files.items() if not path.exists()}
    with ExitStack() as undo:
        for directory in dict.fromkeys((study, *(path.parent for path in missing))):
            for each in (directory, *directory.parents):
                if each.is_relative_to(study):
                    refuse_link(each)
            for each in reversed([each for each in (directory, *directory.parents) if not each.exists()]):
                each.mkdir()
                undo.callback(_remove_empty, each)
        remove_left_over(UNFINISHED, below=study)
        with claimed_directory(UNFINISHED, below=study) as unfinished:
            for number, content in enumerate(missing.values()):
                (unfinished / str(number)).write_bytes(content)
            sync_file_system(unfinished)
            for number, path in enumerate(missing):
                (unfinished / str(number)).rename(path)
                undo.callback(path.unlink, missing_ok=True)
        yield
        undo.pop_all()


def _remove_empty(directory: Path) -> None:
    """Remove a directory unless it contains other files."""
    with suppress(OSError):
        directory.rmdir()


def imported_content(study: Study, *, added: tuple[str, ...] = ()) -> Imported:
    """Return the content of a study of samples, after files were `added`."""
    read = read_samples(study)
    arranged = arrange(read.files)
    samples = [each for group in arranged.values_by_cell.values() for each in group]
    counts = [(each, sum(map(len, each.values.values()))) for each in samples]
    return Imported(
        file=shown_name(Path(study.file)),
        added=added,
        revisions=tuple(revision.id for revision in arranged.revisions),
        benchmarks=tuple(arranged.benchmarks),
        metrics=tuple(dict.fromkeys(name for each in samples for name in each.values)),
        values=sum(count for _, count in counts),
        summaries=sum(count for each, count in counts if SUMMARY in each.flags),
        machine=machine_of(arranged, read).facts,
    )


def _chosen(files: Sequence[Path], format: str | None) -> dict[str, Path]:
    """Return the chosen files, by their names in the study. Raises `SourceError` for a file in an unknown format."""
    results = [path for file in files for path in (_results_in(file) if file.is_dir() else (file,))]
    for path in results:
        if format is None and not is_result(path):
            sample_file(path, format, name=str(path))  # raises an error with the reason
    companions = [path for file in files if file.is_dir() for path in _companions(results, below=file)]
    companions += [named for path in results for named in companions_of(path, format=format)]
    absolute = list(dict.fromkeys(path.absolute() for path in (*results, *companions)))
    if len({path.name for path in absolute}) == len(absolute) and not companions:
        return {path.name: path for path in absolute}
    root = Path(os.path.commonpath([str(path.parent) for path in absolute]))
    return {str(path.relative_to(root)): path for path in absolute}


def _results_in(directory: Path) -> tuple[Path, ...]:
    found = tuple(path for path in files_in(directory) if is_result(path))
    if not found:
        raise UsageError(
            f"{directory}: contains no result file of a known tool; name the files, and their format with --format"
        )
    return found


def _companions(results: Sequence[Path], *, below: Path) -> list[Path]:
    """Return files that describe the results next to them, for example asv's benchmarks.json."""
    parents = {parent for path in results for parent in (path.parent, path.parent.parent)}
    inside = sorted(parent for parent in parents if parent.is_relative_to(below))
    return [path for parent in inside for path in sorted(parent.glob("*.json")) if path not in results]


def _content(path: Path) -> bytes:
    with open_to_read(path) as file:
        return file.read()


def _refuse_replacing(contents: Mapping[str, bytes], samples: Path) -> None:
    for name, content in contents.items():
        file = samples / name
        if file.exists() and _content(file) != content:
            raise UsageError(f"{file}: exists with other content; rename the new file, or remove the old one")


def _study_text(title: str, format: str | None) -> str:
    lines = [
        "# Samples of other tools. Each perftrail command reads the files again: you may add or replace files.",
        "[study]",
        f"title = {toml(title)}",
        "",
        "[source]",
        'kind = "samples"',
        f'location = "{SAMPLES}/**"',
        *([f"format = {toml(format)}"] if format else []),
    ]
    return "".join(f"{line}\n" for line in lines)
