"""JSON output of commands, and its types, from which the schemas in docs/reference/json are generated."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import click

from perftrail.model.json_data import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def print_json(
    command: str, data: Mapping[str, object] | Sequence[object], *, one_line: bool = False
) -> None:
    """Print a command's JSON: a value of its type in `json_types`."""
    click.echo(encoded(command, data, one_line=one_line))


ROWS_AT_ONCE = 100
"""Number of rows that are in memory at a time when a command prints many."""


def print_json_rows(command: str, rows: Iterator[object]) -> None:
    """Print what `print_json` prints for a list, in little memory: a command can have hundreds of thousands of rows."""
    separator = "["
    while part := [*islice(rows, ROWS_AT_ONCE)]:
        click.echo(separator + encoded(command, part).removeprefix("[").removesuffix("\n]"), nl=False)
        separator = ","
    click.echo("\n]" if separator == "," else "[]")


def encoded(command: str, data: Mapping[str, object] | Sequence[object], *, one_line: bool = False) -> str:
    """Return the JSON of a command, with null for an infinite end of an interval.

    Raises `ValueError` for a command that is not in `COMMANDS_WITH_JSON`.
    """
    if command not in COMMANDS_WITH_JSON:
        raise ValueError(f"{command}: its JSON has no type in json_types")
    return json.dumps(finite(data), indent=None if one_line else 1, allow_nan=False)


COMMANDS_WITH_JSON = (
    "backport",
    "build",
    "check",
    "check --try",
    "compare",
    "doctor",
    "explain",
    "export",
    "find",
    "import",
    "init",
    "measure",
    "publish",
    "report",
    "revert",
    "run",
    "show",
    "show --claims",
    "show --comparisons",
    "show --failures",
    "show --search",
    "store backup",
    "store compact",
    "store copy",
    "store forget",
    "store restore",
    "store stats",
    "watch",
)


def json_types() -> Mapping[str, object]:
    """Return the type of each command's JSON, in the order of `COMMANDS_WITH_JSON`."""
    from perftrail.measure.session import MissingJson
    from perftrail.present.export import ExportedJson
    from perftrail.present.html_page import ReportJson
    from perftrail.present.site.directory import PublishJson
    from perftrail.present.trial_files import TrialJson
    from perftrail.results.claims import JudgementJson
    from perftrail.results.gate import GateJson
    from perftrail.results.show import ShownRowJson
    from perftrail.store.backup import BackupContentJson, BackupJson
    from perftrail.store.copying import CopyJson
    from perftrail.store.upkeep import Compacted, Forgetting, Statistics
    from perftrail.verbs.after_find import FindAnswerThenJson, FindTableThenJson
    from perftrail.verbs.attempt import AttemptReportJson
    from perftrail.verbs.backport.result import BackportConflictJson, BackportReportJson
    from perftrail.verbs.backport.revert import RevertJson
    from perftrail.verbs.build import BuildReportJson
    from perftrail.verbs.check import StudyPlanJson
    from perftrail.verbs.doctor import DoctorReportJson
    from perftrail.verbs.explain.explain import ExplainReportJson
    from perftrail.verbs.explained_search import ExplainedSearchJson
    from perftrail.verbs.import_ import ImportedJson
    from perftrail.verbs.init.start import FirstStudyJson
    from perftrail.verbs.run import RunReportJson
    from perftrail.verbs.watch.watch import WatchedJson

    types = (
        BackportReportJson | BackportConflictJson,
        BuildReportJson,
        StudyPlanJson | ImportedJson,
        AttemptReportJson,
        GateJson,
        DoctorReportJson,
        ExplainReportJson,
        ExportedJson,
        FindAnswerThenJson | FindTableThenJson,
        ImportedJson,
        FirstStudyJson,
        TrialJson,
        PublishJson,
        ReportJson,
        RevertJson,
        RunReportJson,
        list[ShownRowJson],
        list[JudgementJson],
        list[GateJson],
        MissingJson,
        ExplainedSearchJson,
        BackupContentJson,
        Compacted,
        CopyJson,
        Forgetting,
        BackupJson,
        Statistics,
        WatchedJson,
    )
    return dict(zip(COMMANDS_WITH_JSON, types, strict=True))
