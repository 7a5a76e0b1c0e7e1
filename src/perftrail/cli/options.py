"""Options that several commands share, with the same name and meaning everywhere.

`Walking` selects one of several sources, `Writing` says how commands build and measure. `Stop` ends long commands at
SIGTERM as at Ctrl-C, with all samples stored.
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
    """A fraction between 0 and 1: ``2%`` or ``0.02``."""

    name = "FRACTION|PERCENT"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the fraction. Fails for invalid text, for 0, and for 1 and more."""
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
"""Each parallel build needs a launcher, and a tree if builds are incremental."""


def study_argument(function: Function) -> Function:
    """Add STUDY: a directory or a file."""
    return click.argument("study", required=False, type=click.Path())(function)


def store_option(function: Function) -> Function:
    """Add --store: the location of the results."""
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


def keep_going_option(function: Function) -> Function:
    """Add --keep-going: do not stop after failures for one reason."""
    return click.option(
        "--keep-going",
        is_flag=True,
        help="Continue although the first revisions all failed for one reason.",
    )(function)


def engine_option(function: Function) -> Function:
    """Add --engine: other machines build and measure."""
    return click.option(
        "--engine",
        metavar="URL",
        help="Build and measure on other machines: dask://HOST:PORT or dask+tls://HOST:PORT (start perftrail "
        "worker there), or dask:local:N for N build workers here.",
    )(function)


def contained(study: Study, sandbox: bool | None) -> Study:
    """Return a study with the sandbox option of the command line."""
    return study if sandbox is None else replace(study, sandbox=replace(study.sandbox, always=sandbox))


def load_study(named: str | None, *, to_read: bool = False) -> Study:
    """Load the study that a command names, or the nearest one; `to_read`: only stored samples are needed."""
    from perftrail import studyfile

    if named is not None:
        return studyfile.load(named, to_read=to_read)
    found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
    if found is None:
        raise UsageError('no perftrail.toml here or above; name a study, or have "perftrail init" write one')
    return studyfile.load(found, to_read=to_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walking:
    """Options about sources: the one to search, and ``NAME=REV`` for pinned ones."""

    along: str | None
    at: tuple[str, ...]

    def load(self, named: str | None, *, to_read: bool = False) -> Study:
        """Load the study that a command names, with its sources. Raises `UsageError` for unknown names."""
        study = load_study(named, to_read=to_read)
        if self.along is not None:
            _check(f"--along {self.along}", self.along, study)
            study = replace(study, along=self.along)
        for text in self.at:
            study = _held(study, text)
        return study


def walking_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --along and --at, combined as `walking`."""

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
        raise UsageError(f"--at {text}: {quoted(revision)} is not a revision; name one of them")
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
    """How a command builds and measures: location of results, waiting for the lock, and what to retry.

    `sandbox` overrides the study; `None` does not.
    """

    store: str | None
    wait: bool
    retry_failed: bool
    sandbox: bool | None

    def contained(self, study: Study) -> Study:
        """Return the study with the sandbox option of the command line."""
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
        """Open the study, do the work with visible progress, and return its result.

        `own` is a patched revision in addition to the source's. `jobs` builds run in parallel, by default as many as
        an `engine` has machines. If the measuring machine leaves, another one starts again.
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
    """Add the options of all commands that build and measure, combined as `writing`."""

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
"""Seconds for a started operation to end after a request to stop."""


class Stop:
    """A request to stop, which survives even if Python loses the signal's exception in a callback."""

    def __init__(self) -> None:
        self._asked = False

    def heed(self) -> None:
        """Raise `KeyboardInterrupt` if a stop was requested."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def soon(self) -> Iterator[None]:
        """Let the block end before a stop, in a short time; a second request interrupts it."""
        with _handled({**dict.fromkeys(STOPS, self._ask_soon), signal.SIGALRM: self.ask}):
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.heed()

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: stop now."""
        self._asked = True
        raise KeyboardInterrupt

    def _ask_soon(self, _number: int, _frame: FrameType | None) -> None:
        self.heed()
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_END)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Treat SIGTERM as Ctrl-C in the block, which checks between its steps whether to stop."""
    stop = Stop()
    with _handled(dict.fromkeys(STOPS, stop.ask)):
        yield stop


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals in the block."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def again(named: str | None, walking: Walking, writing: Writing) -> tuple[str, ...]:
    """Return the words that name a study as the last command did: sources, sandbox, results."""
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
