"""Options of studies with several sources: which one is walked, and where the others are held."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import load_study
from perftrail.errors import UsageError
from perftrail.model.source import MAIN
from perftrail.model.wording import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Walking:
    """What the command line says of sources over the study: the one to walk, and ``NAME=REV`` for others."""

    along: str | None
    at: tuple[str, ...]

    def load(self, named: str | None) -> Study:
        """Load the study that a command names, walked as it says. Raises `UsageError` for unknown names."""
        study = load_study(named)
        if self.along is not None:
            _check(f"--along {self.along}", self.along, study)
            study = replace(study, along=self.along)
        for text in self.at:
            study = _held(study, text)
        return study


def walking_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command --along and --at, put together as its `walking`."""

    @click.option(
        "--along",
        metavar="SOURCE",
        help="Walk the history of this source; the others stay where they are held.",
    )
    @click.option(
        "--at",
        multiple=True,
        metavar="SOURCE=REV",
        help="Hold a source that is not walked at this revision; may be repeated.",
    )
    @functools.wraps(function)
    def command(*arguments: object, along: str | None, at: tuple[str, ...], **others: object) -> None:
        function(*arguments, walking=Walking(along=along, at=at), **others)

    return command


def _held(study: Study, text: str) -> Study:
    name, equals, revision = text.partition("=")
    if not equals or not revision:
        raise UsageError(f"--at {text}: write SOURCE=REV, --at {MAIN}=v1.2 for instance")
    _check(f"--at {text}", name, study)
    asked = study.every_source[name]
    if name == study.along:
        raise UsageError(f"--at {text}: {name} is the source that is walked; --range says which part of it")
    if asked.kind == "directory":
        raise UsageError(f"--at {text}: {name} is a directory, which has one revision; leave it out")
    if revision.startswith("-") or ".." in revision:
        raise UsageError(f"--at {text}: {quoted(revision)} is no revision; name one of them")
    held = replace(asked, at=revision)
    if name == MAIN:
        return replace(study, source=held)
    return replace(study, sources={**study.sources, name: held})


def _check(option: str, name: str, study: Study) -> None:
    if name not in study.every_source:
        alone = "" if study.sources else "; the study has no [sources.NAME]"
        raise UsageError(f"{option}: no source {quoted(name)}{suggestion(name, study.every_source)}{alone}")
