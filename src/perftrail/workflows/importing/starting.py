"""`import`: makes a study of result files of other tools, or adds some to one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail import studyfile
from perftrail.errors import UsageError
from perftrail.model.measurement import Measurement
from perftrail.readers.formats import files_in
from perftrail.studyfile.reading import shown_name
from perftrail.workflows.importing.arranging import SUMMARY
from perftrail.workflows.importing.reading import is_result, refuse_unknown, sample_file
from perftrail.workflows.importing.view import samples_view
from perftrail.workflows.initial.writing import toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.study import Study
    from perftrail.model.trail import Json

SAMPLES = "samples"
"""The directory of a study that holds the files it was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A study that was made of files, or that got some more: what all of its files hold."""

    file: str
    added: tuple[str, ...]
    revisions: tuple[str, ...]
    benchmarks: tuple[str, ...]
    metrics: tuple[str, ...]
    values: int
    summaries: int
    machine: Mapping[str, str]

    def as_json(self) -> dict[str, Json]:
        """What was imported, as `import --json` prints it."""
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
        """Say it for people."""
        if self.added:
            yield f"{self.file}: {_count(len(self.added), 'file')} added"
        yield (
            f"{_count(len(self.revisions), 'revision')}, {_count(len(self.benchmarks), 'benchmark')}, "
            f"{_count(self.values, 'value')} of {', '.join(self.metrics[:6])}{'…' if len(self.metrics) > 6 else ''}"
        )
        if self.summaries:
            yield f"{_count(self.summaries, 'value')} of these are summaries: no samples, so no interval"


def import_files(
    files: Sequence[Path], directory: Path, *, format: str | None = None, title: str | None = None
) -> Imported:
    """Copy result files into a study's directory, make the study there if there is none, and read all of it.

    What lies beside the results of a directory and says what they are comes along. Raises `UsageError` for files that
    cannot be had or would replace others, and for a directory with a study of another kind; `SourceError` for a file
    in no known format.
    """
    refuse_unknown(format)
    chosen = _chosen(files, format)
    study_file = directory / studyfile.FILE_NAME
    if study_file.exists() and studyfile.load(str(directory)).walked.kind != "samples":
        raise UsageError(f"{study_file}: is a study of another kind; name another directory with -o")
    contents = {name: path.read_bytes() for name, path in chosen.items()}
    _refuse_other(contents, directory / SAMPLES)
    for name, content in contents.items():
        place = directory / SAMPLES / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    if not study_file.exists():
        study_file.write_text(
            _study_text(title or f"What {directory.absolute().name} holds", format), "utf-8"
        )
    return held(studyfile.load(str(directory)), added=tuple(contents))


def held(study: Study, *, added: tuple[str, ...] = ()) -> Imported:
    """Say what a study of samples holds, after files were `added`."""
    view = samples_view(study)
    keys = tuple({each.key for each in view.store.runnables()})
    outcomes = view.store.outcomes(keys, view.machine.id).values()
    taken = [each for those in outcomes for each in those if isinstance(each, Measurement)]
    return Imported(
        file=shown_name(Path(study.file)),
        added=added,
        revisions=tuple(revision.id for revision in view.source.history()),
        benchmarks=tuple(view.study.benchmarks),
        metrics=tuple(dict.fromkeys(name for each in taken for name in each.values)),
        values=sum(len(each.values) for each in taken),
        summaries=sum(len(each.values) for each in taken if SUMMARY in each.flags),
        machine=view.machine.facts,
    )


def _chosen(files: Sequence[Path], format: str | None) -> dict[str, Path]:
    """Give the files that are meant, each by its name in the study. Reads each, so that none is copied in vain."""
    results = [path for file in files for path in (_inside(file) if file.is_dir() else (file,))]
    for path in results:
        sample_file(path, format, name=str(path))
    beside = [path for file in files if file.is_dir() for path in _companions(results, below=file)]
    absolute = list(dict.fromkeys(path.absolute() for path in (*results, *beside)))
    if len({path.name for path in absolute}) == len(absolute) and not beside:
        return {path.name: path for path in absolute}
    root = Path(os.path.commonpath([str(path.parent) for path in absolute]))
    return {str(path.relative_to(root)): path for path in absolute}


def _inside(directory: Path) -> tuple[Path, ...]:
    found = tuple(path for path in files_in(directory) if is_result(path))
    if not found:
        raise UsageError(f"{directory}: holds no result file of a known tool; name the files, and --format")
    return found


def _companions(results: Sequence[Path], *, below: Path) -> list[Path]:
    """Give what some tools say of their results in files beside them: asv in benchmarks.json, for instance."""
    places = {place for path in results for place in (path.parent, path.parent.parent)}
    inside = sorted(place for place in places if place.is_relative_to(below))
    return [path for place in inside for path in sorted(place.glob("*.json")) if path not in results]


def _refuse_other(contents: Mapping[str, bytes], samples: Path) -> None:
    for name, content in contents.items():
        place = samples / name
        if place.exists() and place.read_bytes() != content:
            raise UsageError(
                f"{place}: is there already with other content; rename the new file, or remove the old one"
            )


def _study_text(title: str, format: str | None) -> str:
    lines = [
        "# What other tools measured. Its files are read anew each time: add some, or name others.",
        "[study]",
        f"title = {toml(title)}",
        "",
        "[source]",
        'kind = "samples"',
        f'location = "{SAMPLES}/**"',
        *([f"format = {toml(format)}"] if format else []),
    ]
    return "".join(f"{line}\n" for line in lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
