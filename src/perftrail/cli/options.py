"""Options that several commands share: the same name and meaning everywhere."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import click

from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.study import Study

Function = TypeVar("Function", bound="Callable[..., object]")

MOST_JOBS = 64
"""Each takes a launcher, and a tree where builds are incremental."""


def study_argument(function: Function) -> Function:
    """STUDY: a directory or a file."""
    return click.argument("study", required=False, type=click.Path())(function)


def store_option(function: Function) -> Function:
    """--store: where results live instead of beside the study."""
    text = (
        "Where results live, instead of .perftrail beside the study; at postgresql://USER@HOST/DATABASE, what is "
        "measured is shared between machines, and builds and logs stay beside the study."
    )
    return click.option("--store", metavar="DIR|URL", help=text)(function)


def json_option(function: Function) -> Function:
    """--json: for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(function)


def only_option(function: Function) -> Function:
    """--only: a part of the plan."""
    text = (
        "Only what matches: revision, variant, benchmark or a parameter, with * and ?, or several patterns with "
        "commas between; may be repeated: of each name, one pattern must match."
    )
    return click.option("--only", multiple=True, metavar="NAME=PATTERN", help=text)(function)


def sandbox_option(function: Function) -> Function:
    """--sandbox, --no-sandbox: instead of what the study says."""
    text = "Whether builds and runs are kept in a sandbox: no network, no home, nothing to write to (bubblewrap)."
    return click.option("--sandbox/--no-sandbox", default=None, help=text)(function)


def jobs_option(function: Function) -> Function:
    """--jobs: how many builds at once."""
    text = "Build so many revisions at once, each with its share of the CPUs; nothing is measured meanwhile."
    many = click.IntRange(min=1, max=MOST_JOBS)
    return click.option("--jobs", type=many, default=1, metavar="N", help=text)(function)


def engine_option(function: Function) -> Function:
    """--engine: other machines do the work."""
    text = (
        "Build and measure on other machines: dask://HOST:PORT, dask+tls://HOST:PORT (workers: perftrail worker), or "
        "dask:local:N for N builds at once here."
    )
    return click.option("--engine", metavar="URL", help=text)(function)


def contained(study: Study, sandbox: bool | None) -> Study:
    """Give a study with what the command line says of its sandbox, if anything."""
    return study if sandbox is None else replace(study, sandbox=replace(study.sandbox, always=sandbox))


def load_study(named: str | None) -> Study:
    """Load the study that a command names, or the nearest one upwards."""
    from perftrail import studyfile

    if named is not None:
        return studyfile.load(named)
    found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
    if found is None:
        raise UsageError('no perftrail.toml here or above; name a study, or have "perftrail init" write one')
    return studyfile.load(found)
