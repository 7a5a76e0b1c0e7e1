"""Options that several commands share: the same name and meaning everywhere.

Options of studies with several sources: which one is walked, and where the others are held.

Commands that make and measure: the options they share, and following what they do.

A command that runs until it is stopped ends at SIGTERM as it does at Ctrl-C: cleanly, with what it has kept.
"""

from __future__ import annotations

import functools
import math
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import click

from perftrail.cli.help import quiet_options
from perftrail.errors import MachineLeft, UsageError
from perftrail.model.source import MAIN
from perftrail.model.wording import quoted, suggestion
from perftrail.store.location import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from types import FrameType

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study

    Handler = Callable[[int, FrameType | None], None]
    _Type = click.ParamType[float]
else:
    _Type = click.ParamType

Function = TypeVar("Function", bound="Callable[..., object]")


class _Fraction(_Type):
    """A share between 0 and 1: ``2%`` or ``0.02``."""

    name = "FRACTION|PERCENT"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the share. Fails for what is neither, for 0 and for 1 and more."""
        text = str(value).strip()
        try:
            found = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            found = math.nan
        if not 0.0 < found < 1.0:
            self.fail(f"{quoted(text)}: write a share above 0 and below 1 as 2% or 0.02", param, ctx)
        return found


FRACTION = _Fraction()

MOST_JOBS = 64
"""Each takes a launcher, and a tree where builds are incremental."""


def study_argument(function: Function) -> Function:
    """Add STUDY: a directory or a file."""
    return click.argument("study", required=False, type=click.Path())(function)


def store_option(function: Function) -> Function:
    """Add --store: where the results are."""
    return click.option(
        "--store",
        metavar="DIRECTORY|FILE|URL",
        help="Directory of results, its database file, or postgresql://USER@HOST/DATABASE, where several "
        "machines share samples. [default: .perftrail in the study's directory]",
    )(function)


def json_option(function: Function) -> Function:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def only_option(function: Function) -> Function:
    """Add --only: a part of the plan."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME=PATTERN",
        help="Only matching cells. NAME is revision, variant, benchmark or a parameter; PATTERN has * and ?, "
        "or several patterns with commas. May be repeated: every NAME must match.",
    )(function)


def sandbox_option(function: Function) -> Function:
    """Add --sandbox and --no-sandbox, which override the study."""
    return click.option(
        "--sandbox/--no-sandbox",
        default=None,
        help="Build and run in a sandbox (bubblewrap): no network, no home, nothing else writable. [default: "
        "the study's]",
    )(function)


def jobs_option(function: Function) -> Function:
    """Add --jobs: the number of parallel builds."""
    many = click.IntRange(min=1, max=MOST_JOBS)
    return click.option(
        "--jobs",
        type=many,
        default=1,
        metavar="N",
        help="Number of parallel builds. They share the CPUs and end before measurements start. [default: 1]",
    )(function)


def engine_option(function: Function) -> Function:
    """Add --engine: other machines do the work."""
    return click.option(
        "--engine",
        metavar="URL",
        help="Build and measure on other machines: dask://HOST:PORT or dask+tls://HOST:PORT (start perftrail "
        "worker there), or dask:local:N for N build workers here.",
    )(function)


def contained(study: Study, sandbox: bool | None) -> Study:
    """Give a study with what the command line says of its sandbox, if anything."""
    return study if sandbox is None else replace(study, sandbox=replace(study.sandbox, always=sandbox))


def load_study(named: str | None, *, to_read: bool = False) -> Study:
    """Load the study that a command names, or the nearest one upwards; `to_read` stored samples only."""
    from perftrail import studyfile

    if named is not None:
        return studyfile.load(named, to_read=to_read)
    found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
    if found is None:
        raise UsageError('no perftrail.toml here or above; name a study, or have "perftrail init" write one')
    return studyfile.load(found, to_read=to_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walking:
    """What the command line says of sources over the study: the one to walk, and ``NAME=REV`` for others."""

    along: str | None
    at: tuple[str, ...]

    def load(self, named: str | None, *, to_read: bool = False) -> Study:
        """Load the study that a command names, walked as it says. Raises `UsageError` for unknown names."""
        study = load_study(named, to_read=to_read)
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
        help="Source whose history is used. The other sources stay pinned.",
    )
    @click.option(
        "--at",
        multiple=True,
        metavar="SOURCE=REVISION",
        help="Revision of a pinned source. May be repeated.",
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


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a command makes and measures: where results go, whether it waits for them, what it tries once more.

    `sandbox` says whether it does so in a sandbox, `None` to do as the study says.
    """

    store: str | None
    wait: bool
    retry_failed: bool
    sandbox: bool | None

    def contained(self, study: Study) -> Study:
        """Give the study with what the command line says of its sandbox, if anything."""
        return contained(study, self.sandbox)

    def follow(
        self,
        study: Study,
        work: Callable[[Session], Generator[Event, None, Result]],
        *,
        own: Patched | None = None,
        jobs: int = 1,
        engine: str | None = None,
    ) -> Result:
        """Open the study, do the work while showing its progress, and give what it returns.

        `own` is a patched revision that the source is to know beside its own. So many `jobs` are built at once, or as
        many as the machines of an `engine` offer; when the one that measures leaves, another one does it anew.
        """
        from perftrail.opening import open_session
        from perftrail.present.console import Watcher

        with Watcher() as watcher:
            while True:
                opened = open_session(
                    self.contained(study),
                    store=self.store,
                    wait=self.wait,
                    on_wait=watcher.waiting,
                    on_noise=watcher.noisy,
                    retry_failed=self.retry_failed,
                    own=own,
                    jobs=jobs,
                    engine=engine,
                )
                try:
                    with opened as session:
                        return watcher.follow(work(session))
                except MachineLeft as left:
                    watcher.left(left)


def writing_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all that make and measure, put together as its `writing`."""

    @click.option(
        "--retry-failed",
        is_flag=True,
        help="Repeat builds that failed before. run: invocations, too.",
    )
    @click.option("--no-wait", is_flag=True, help="Fail at once if another perftrail writes to the results.")
    @sandbox_option
    @store_option
    @quiet_options
    @functools.wraps(function)
    def command(
        *arguments: object,
        retry_failed: bool,
        no_wait: bool,
        sandbox: bool | None,
        store: str | None,
        **others: object,
    ) -> None:
        function(
            *arguments,
            writing=Writing(store=store, wait=not no_wait, retry_failed=retry_failed, sandbox=sandbox),
            **others,
        )

    return command


STOPS = (signal.SIGINT, signal.SIGTERM)

SECONDS_TO_END = 2.0
"""How long what has begun may go on once a stop was asked for."""


class Stop:
    """Whether a stop was asked for: what a signal raises is lost where Python happens to be in a callback."""

    def __init__(self) -> None:
        self._asked = False

    def heed(self) -> None:
        """Stop if it was asked for. Raises `KeyboardInterrupt`."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def soon(self) -> Iterator[None]:
        """Let the block come to its end before a stop, in a short time; a second one breaks it off."""
        with _handled({**dict.fromkeys(STOPS, self._ask_soon), signal.SIGALRM: self.ask}):
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.heed()

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: stop at once."""
        self._asked = True
        raise KeyboardInterrupt

    def _ask_soon(self, _number: int, _frame: FrameType | None) -> None:
        self.heed()
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_END)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Take SIGTERM for Ctrl-C while the block runs, which looks between its steps whether it is to stop."""
    stop = Stop()
    with _handled(dict.fromkeys(STOPS, stop.ask)):
        yield stop


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals so while the block runs."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def again(named: str | None, walking: Walking, writing: Writing) -> tuple[str, ...]:
    """Give the words that name a study as the last command took it: its sources, its sandbox, its results."""
    words = [] if named is None else [named]
    if walking.along is not None:
        words += ["--along", walking.along]
    for held in walking.at:
        words += ["--at", held]
    if writing.sandbox is not None:
        words.append("--sandbox" if writing.sandbox else "--no-sandbox")
    if writing.store is not None:
        words += ["--store", shown(writing.store)]
    return tuple(words)
