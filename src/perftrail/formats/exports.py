"""Exports to other tools' formats, one module for each.

``write(samples, study)`` returns the files by their names, relative to the destination: one, or one for each subject.
If a format cannot contain every metric, ``missing_metrics(samples)`` returns the names of those that are missing in
the files.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from perftrail.model.exchange import Exported
    from perftrail.model.study import Study

MetricSelection = Literal["everything", "shown"]
"""The metrics of a format: all that were measured, or those that `perftrail show` prints."""


@dataclass(frozen=True, slots=True)
class Format:
    """An export: its module, its metrics, and a description."""

    module: str
    metrics: MetricSelection
    doc: str


FORMATS: Mapping[str, Format] = {
    "csv": Format("tidy_csv", "everything", "A table, one row for each value."),
    "jsonl": Format("json_lines", "everything", "The same, one JSON object for each value."),
    "parquet": Format("parquet", "everything", "The same as a Parquet file (needs the extra notebook)."),
    "hyperfine": Format("hyperfine", "everything", "hyperfine's JSON, one file for each revision."),
    "asv": Format("asv", "shown", "A directory of asv results, for asv publish."),
    "bmf": Format("bencher", "shown", "Bencher Metric Format, one file for each revision."),
    "github-action-benchmark": Format(
        "github_action", "shown", "customSmallerIsBetter and customBiggerIsBetter, for each revision."
    ),
    "lnt": Format(
        "lnt", "everything", "LNT's report, version 2: time and memory, one file for each revision."
    ),
    "otava": Format("otava", "shown", "A CSV for each benchmark and otava.yaml, for Otava."),
}
"""Every format by its name on the command line."""


def write(format: str, samples: Sequence[Exported], study: Study) -> Mapping[str, bytes]:
    """Return the samples of a study in a format. Raises `UsageError` if a library is missing."""
    files = _module(format).write(samples, study)
    assert isinstance(files, dict)
    return files


def missing_metrics(format: str, samples: Sequence[Exported]) -> tuple[str, ...]:
    """Return the metrics of samples that are missing in the files of a format, in the order of the samples."""
    module = _module(format)
    missing = module.missing_metrics(samples) if hasattr(module, "missing_metrics") else ()
    return tuple(dict.fromkeys(each.metric for each in samples if each.metric in missing))


def _module(format: str) -> ModuleType:
    return importlib.import_module(f"perftrail.formats.{FORMATS[format].module}")
