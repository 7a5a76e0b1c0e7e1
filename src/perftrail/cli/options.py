"""Options that several commands share, with the same name and meaning everywhere.

`SourceOptions` selects one of several sources, `SessionOptions` configures how commands build and measure. `Stop` ends
long commands at SIGTERM and SIGHUP as at Ctrl-C, with all samples stored.
"""

from __future__ import annotations

import functools
import math
import os
import re
import signal
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from perftrail.cli.help import quiet_options
from perftrail.errors import MachineLeft, NoAnswer, UsageError
from perftrail.model.source import MAIN
from perftrail.model.wording import counted, listed, quoted, suggestion
from perftrail.store.location import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from types import FrameType

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target, Working

    Handler = Callable[[int, FrameType | None], None]
    _Type = click.ParamType[float]
else:
    _Type = click.ParamType

Function = TypeVar("Function", bound="Callable[..., object]")


class _Fraction(_Type):
    """A fraction between 0 and 1: ``2%`` or ``0.02``."""

    name = "FRACTION|PERCENT"
    may_have_unit = False

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the fraction. Fails for invalid text, for 0, and for 1 and more unless it may have a unit."""
        text = str(value).strip()
        try:
            fraction = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            fraction = math.nan
        most = math.inf if self.may_have_unit and not text.endswith("%") else 1.0
        if not 0.0 < fraction < most:
            example = "99% or 0.99" if param is not None and param.name == "confidence" else "2% or 0.02"
            self.fail(
                f"{quoted(text)} is not a fraction above 0 and below 1; write for example {example}",
                param,
                ctx,
            )
        return fraction


class _Threshold(_Fraction):
    """A fraction, or a difference in the unit of a metric."""

    may_have_unit = True


FRACTION = _Fraction()
THRESHOLD = _Threshold()

MOST_JOBS = 64
"""Maximum number of parallel builds: each needs a launcher, and a tree if builds are incremental."""


def study_argument(function: Function) -> Function:
    """Add STUDY: a directory or a file."""
    return click.argument("study", required=False, type=click.Path())(function)


def store_option(function: Function) -> Function:
    """Add --store: the location of the results."""
    return click.option(
        "--store",
        metavar="DIRECTORY|FILE|URL",
        help="Directory of results, its database file, or postgresql://USER@HOST/DATABASE, in which several "
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
        help="Use only a matching part of the plan. NAME is revision, variant, benchmark or a parameter; PATTERN has "
        "* and ?, or several patterns with commas. May be repeated: every NAME must match.",
    )(function)


def sandbox_option(function: Function) -> Function:
    """Add --sandbox and --no-sandbox, which override the study."""
    return click.option(
        "--sandbox/--no-sandbox",
        default=None,
        help="Build and run in a sandbox (bubblewrap): no network, no home directory; only the build and $TMPDIR "
        "are writable. [default: the study's]",
    )(function)


def jobs_option(function: Function) -> Function:
    """Add --jobs: the number of parallel builds."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=1, max=MOST_JOBS),
        default=1,
        metavar="N",
        help="Number of parallel builds. They share the CPUs and end before measurements start. [default: 1]",
    )(function)


def keep_going_option(function: Function) -> Function:
    """Add --keep-going: continue after failures for one reason."""
    return click.option(
        "--keep-going",
        is_flag=True,
        help="Continue even if the first revisions all fail for one reason.",
    )(function)


def engine_option(function: Function) -> Function:
    """Add --engine: other machines build and measure."""
    return click.option(
        "--engine",
        metavar="URL",
        help="Build and measure on the workers of a Dask scheduler: dask://HOST:PORT or dask+tls://HOST:PORT (run "
        "perftrail worker on each machine), or dask:local:N for N build workers on this machine.",
    )(function)


def patch_path_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --paths and --exclude: the files of a change to apply, combined as `paths`."""

    @click.option(
        "--paths",
        "only",
        multiple=True,
        metavar="GLOB",
        help="Use only the files of the change that match, with *, ? and **; a directory includes all its files. May "
        "be repeated.",
    )
    @click.option(
        "--exclude",
        multiple=True,
        metavar="GLOB",
        help="Leave out the files of the change that match, for example ChangeLog or docs. May be repeated. Files "
        "that match build.unaffected_by are left out if they conflict.",
    )
    @functools.wraps(function)
    def command(
        *arguments: object, only: tuple[str, ...], exclude: tuple[str, ...], **others: object
    ) -> None:
        from perftrail.model.patch import PatchPaths

        function(*arguments, paths=PatchPaths(only=only, excluded=exclude), **others)

    return command


def as_linked_option(function: Function) -> Function:
    """Add --as-linked, which overrides the study."""
    return click.option(
        "--as-linked",
        is_flag=True,
        help="Measure builds as they are linked: do not place their code alike in several memory layouts. "
        "[default: the study's build.pin]",
    )(function)


def with_links(study: Study, *, as_linked: bool) -> Study:
    """Return a study with the option --as-linked of the command line."""
    return replace(study, build=replace(study.build, pin=False)) if as_linked else study


def check_threshold(threshold: float | None, targets: Iterable[Target | Working]) -> None:
    """Raise `UsageError` for a threshold of 1 and more, unless all metrics are compared by differences in a unit."""
    if threshold is not None and threshold >= 1.0:
        wrong = next((each for each in targets if each.scale != "difference"), None)
        if wrong is not None:
            raise UsageError(
                f"--threshold {threshold:g}: is not a fraction above 0 and below 1, as 2% or 0.02; a threshold in the "
                f'unit of {wrong.text} needs scale = "difference" in the study\'s table of this metric'
            )


def timeout_option(function: Function) -> Function:
    """Add --timeout, which overrides the study."""
    return click.option(
        "--timeout",
        metavar="DURATION",
        callback=_seconds,
        help="Longest time of one invocation, for example 30s. [default: the study's]",
    )(function)


def _seconds(_context: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    from perftrail.model.notation import parse_duration

    try:
        seconds = None if text is None else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--timeout {quoted(str(text))}: {error}") from error
    if seconds is not None and not seconds > 0.0:
        raise UsageError(f"--timeout {quoted(str(text))}: must be above zero")
    return seconds


def with_timeout(study: Study, seconds: float | None) -> Study:
    """Return a study with the option --timeout of the command line, for each of its benchmarks."""
    if seconds is None:
        return study
    benchmarks = {name: replace(each, timeout_seconds=seconds) for name, each in study.benchmarks.items()}
    return replace(study, benchmarks=benchmarks)


def timeout_words(seconds: float | None) -> list[str]:
    """Return the words that repeat the option --timeout."""
    return [] if seconds is None else ["--timeout", f"{seconds:g}s"]


def with_sandbox(study: Study, sandbox: bool | None) -> Study:
    """Return a study with the sandbox option of the command line."""
    return study if sandbox is None else replace(study, sandbox=replace(study.sandbox, always=sandbox))


def load_study(path: str | None, *, to_read: bool = False, searched: bool = True) -> Study:
    """Load a study, by default the nearest one. With `to_read`, only its stored samples are needed.

    Without `searched`, a wrong metric of its searches is no mistake.
    """
    from perftrail import studyfile

    return studyfile.load(study_path(path, to_read=to_read), to_read=to_read, searched=searched)


def study_path(path: str | None, *, to_read: bool = False) -> str:
    """Return the path of a study, by default of the nearest one.

    In a repository without one, it is the study of the last command line, or one of the detected build and benchmark.
    With `to_read`, nothing is detected. Raises `UsageError` if there is no study.
    """
    from perftrail import studyfile

    if path is not None:
        return path
    found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - study files contain paths as text, too
    if found is None and to_read:
        raise studyfile.no_study(Path.cwd())
    if found is None:
        from perftrail.cli.command_words import print_written
        from perftrail.verbs.command_study import write_detected_study

        written = write_detected_study(Path.cwd())
        print_written(written)
        return str(written.file)
    if Path(found).match(studyfile.COMMAND_STUDY):
        from perftrail.results_directory import verify

        verify(Path(found).parent)
    if not to_read and Path(found).match(studyfile.COMMAND_STUDY):
        from perftrail.cli.command_words import print_about_study

        print_about_study(f"no study file: using the study of the last command line, {found}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options about a study's parts: the source whose history is used, ``SOURCE=REVISION`` for pinned ones, benchmarks.

    `bench` is a regular expression of the benchmarks to use; `None` for all.
    """

    along: str | None
    at: tuple[str, ...]
    bench: str | None = None

    def load(self, path: str | None, *, to_read: bool = False, searched: bool = True) -> Study:
        """Load a study and apply these options to its sources. Raises `UsageError` for unknown sources."""
        study = load_study(path, to_read=to_read, searched=searched)
        if self.along is not None:
            _check_source_name(f"--along {self.along}", self.along, study)
            study = replace(study, along=self.along)
        for text in self.at:
            study = _with_pinned_revision(study, text)
        return study if self.bench is None else _with_selected(study, self.bench)


def _complete_benchmark(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the benchmarks that the study file names and that begin with this text; suites are not listed."""
    import tomllib

    from perftrail.studyfile.reading import find_upwards

    named = context.params.get("study") or "."
    file = named if Path(named).is_file() else find_upwards(named)
    try:
        tables = tomllib.loads(Path(file or "").read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in tables.get("benchmark", {}) if name.startswith(incomplete)]


def source_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --along, --at and --bench, combined as `sources`."""

    @click.option(
        "--bench",
        metavar="REGEX",
        shell_complete=_complete_benchmark,
        help="Use only benchmarks whose name this regular expression matches somewhere.",
    )
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
    def command(
        *arguments: object, along: str | None, at: tuple[str, ...], bench: str | None, **others: object
    ) -> None:
        function(*arguments, sources=SourceOptions(along=along, at=at, bench=bench), **others)

    return command


def _with_selected(study: Study, bench: str) -> Study:
    """Return a study with matching benchmarks only; those of suites are chosen when they are listed."""
    try:
        wanted = re.compile(bench)
    except re.error as error:
        raise UsageError(f"--bench {quoted(bench)}: is not a regular expression: {error}") from error
    benchmarks = {name: each for name, each in study.benchmarks.items() if wanted.search(name)}
    if not benchmarks and not study.suites:
        raise UsageError(
            f"--bench {quoted(bench)}: matches none of the benchmarks {listed(study.benchmarks, 'and')}; "
            "select points with --metric 'NAME[parameter=value]' (compare, explain, find) or with --only "
            "parameter=value (check, explain, export, run)"
        )
    return replace(
        study,
        benchmarks=benchmarks,
        derived={name: each for name, each in study.derived.items() if each.benchmark in benchmarks},
        claims={},
        find=replace(study.find, metric=()),
        selected=bench,
    )


def _with_pinned_revision(study: Study, text: str) -> Study:
    name, equals, revision = text.partition("=")
    if not equals or not revision:
        raise UsageError(f"--at {text}: write SOURCE=REVISION, for example --at {MAIN}=v1.2")
    _check_source_name(f"--at {text}", name, study)
    source = study.every_source[name]
    if name == study.along:
        raise UsageError(
            f"--at {text}: the history of {name} is used, so it cannot be pinned; choose its part with --range"
        )
    if source.kind == "directory":
        raise UsageError(f"--at {text}: {name} is a directory, which has only one revision; omit the option")
    if revision.startswith("-") or ".." in revision:
        raise UsageError(f"--at {text}: {quoted(revision)} is not a revision; name one revision")
    pinned = replace(source, at=revision)
    if name == MAIN:
        return replace(study, source=pinned)
    return replace(study, sources={**study.sources, name: pinned})


def _check_source_name(option: str, name: str, study: Study) -> None:
    if name not in study.every_source:
        end = "" if study.sources else "; the study has no [sources.NAME]"
        raise UsageError(f"{option}: no source {quoted(name)}{suggestion(name, study.every_source)}{end}")


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Options of a command that builds and measures: location of results, waiting for the lock, retries.

    `sandbox` overrides the study unless it is `None`.
    """

    store: str | None
    wait: bool
    retry_failed: bool
    sandbox: bool | None

    def apply_to(self, study: Study) -> Study:
        """Return the study with the sandbox option."""
        return with_sandbox(study, self.sandbox)

    def with_suites(
        self,
        study: Study,
        revisions: Callable[[Session], Sequence[Revision]],
        *,
        jobs: int = 1,
    ) -> Study:
        """Return a study with the benchmarks that its suites have in some revisions; build and list these if necessary.

        Raises `NoAnswer` if no suite could be listed, and the study itself has no benchmark.
        """
        if not study.suites:
            return study
        from perftrail.measure.listing import list_suites, listing_study
        from perftrail.opening import open_results, with_listed_benchmarks

        lists = self.run(
            listing_study(study), lambda session: list_suites(session, revisions(session)), jobs=jobs
        )
        with open_results(study, store=self.store) as results:
            found = with_listed_benchmarks(study, results)
            every = with_listed_benchmarks(replace(study, selected=""), results).benchmarks
        if lists.uncalibrated:
            missing = counted(lists.uncalibrated, "benchmark")
            raise NoAnswer(
                f"{study.file}: the iterations of {missing} are not chosen yet; the same command continues, or choose "
                "fewer benchmarks with --bench, or with select in the suite's table"
            )
        if found.benchmarks:
            return found
        if not lists.builds:
            raise NoAnswer(
                f"{study.file}: no revision was built, so its suite has no list yet; after a correction outside the "
                "study, add --retry-failed"
            )
        if not lists.lists:
            raise NoAnswer(f"{study.file}: no suite was listed")
        if every:
            raise NoAnswer(
                f"{study.file}: --bench {quoted(study.selected)} matches none of "
                f"{counted(len(every), 'benchmark')}, for example {next(iter(every))}"
            )
        raise NoAnswer(f"{study.file}: select matches no benchmark of a suite")

    def run(
        self,
        study: Study,
        work: Callable[[Session], Generator[Event, None, Result]],
        *,
        patched: Patched | None = None,
        jobs: int = 1,
        engine: str | None = None,
    ) -> Result:
        """Open a session of the study, do the work with visible progress, and return its result.

        `patched` is a revision in addition to the source's. `jobs` is the number of parallel builds; with an
        `engine`, its machines set it. If the measuring machine leaves, another one starts the work again.
        """
        from perftrail.cli.commands.doctor import print_at_first_run
        from perftrail.opening import open_session
        from perftrail.present.console import Watcher

        if engine is None:
            print_at_first_run()
        with terminated_like_ctrl_c(), Watcher() as watcher:
            while True:
                opened = open_session(
                    self.apply_to(study),
                    store=self.store,
                    wait=self.wait,
                    on_wait=watcher.waiting,
                    on_noise=watcher.noisy,
                    on_fleet=watcher.fleet,
                    retry_failed=self.retry_failed,
                    patched=patched,
                    jobs=jobs,
                    engine=engine,
                )
                try:
                    with ExitStack() as stack:
                        with watcher.doing(f"connecting to {engine}") if engine else nullcontext():
                            session = stack.enter_context(opened)
                        return watcher.follow(work(session))
                except MachineLeft as left:
                    watcher.machine_left(left)


def session_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all commands that build and measure, combined as `options`."""

    @click.option(
        "--retry-failed",
        is_flag=True,
        help="Repeat builds that failed before; perftrail run also repeats failed invocations.",
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
            options=SessionOptions(store=store, wait=not no_wait, retry_failed=retry_failed, sandbox=sandbox),
            **others,
        )

    return command


def ends(history: Sequence[Revision]) -> Sequence[Revision]:
    """Return the first and the last revision of a history."""
    return tuple(dict.fromkeys((*history[:1], *history[-1:])))


def revisions_named(*names: str | None) -> Callable[[Session], Sequence[Revision]]:
    """Return a function that finds the revisions of these names in a session; it leaves out `None`."""

    def find(session: Session) -> Sequence[Revision]:
        from perftrail.verbs.backport.patch import find_revision

        return [
            find_revision(session.study, session.source, name)
            for name in dict.fromkeys(names)
            if name is not None
        ]

    return find


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

GRACE_SECONDS = 2.0
"""Seconds for a started operation to end after a request to stop."""


class Stop:
    """A request to stop. It remains valid even if Python loses the signal's exception in a callback."""

    def __init__(self) -> None:
        self._requested = False

    def raise_if_requested(self) -> None:
        """Raise `KeyboardInterrupt` if a stop was requested."""
        if self._requested:
            raise KeyboardInterrupt

    @contextmanager
    def after_block(self) -> Iterator[None]:
        """Delay a stop until the block ends, at most `GRACE_SECONDS`; a second request interrupts the block."""
        with _signal_handlers(
            {**dict.fromkeys(STOP_SIGNALS, self._handle_in_block), signal.SIGALRM: self.handle}
        ):
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.raise_if_requested()

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: stop at once."""
        _ignore_again(number)
        self._requested = True
        raise KeyboardInterrupt

    def _handle_in_block(self, number: int, _frame: FrameType | None) -> None:
        _ignore_again(number)
        self.raise_if_requested()
        self._requested = True
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)


def _ignore_again(number: int) -> None:
    """Ignore a signal that a closed terminal sends several times: a second one would interrupt the cleanup."""
    if number == signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Treat SIGTERM and SIGHUP as Ctrl-C in the block; yield the `Stop` that the block checks between its steps."""
    stop = Stop()
    with _signal_handlers(dict.fromkeys(STOP_SIGNALS, stop.handle)):
        yield stop


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C in the block, so that it removes its links and files.

    A command's own handlers stay.
    """
    ctrl_c = signal.getsignal(signal.SIGINT)
    handler = ctrl_c if callable(ctrl_c) else signal.default_int_handler
    usual = [each for each in STOP_SIGNALS if signal.getsignal(each) is signal.SIG_DFL]
    with _signal_handlers(dict.fromkeys(usual, handler)):
        yield


@contextmanager
def _signal_handlers(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Install signal handlers for the block; SIGHUP stays ignored, as nohup has set it."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def repeated_options(path: str | None, sources: SourceOptions, options: SessionOptions) -> tuple[str, ...]:
    """Return the study and options of a command, for the next command that it suggests."""
    return repeated_view_options(path, sources, options.sandbox, options.store)


def repeated_view_options(
    path: str | None, sources: SourceOptions, sandbox: bool | None, store: str | None
) -> tuple[str, ...]:
    """Return the study and options of a command that only reads, for the next command that it suggests."""
    words = [] if path is None or _is_found_without_name(path) else [path]
    if sources.along is not None:
        words += ["--along", sources.along]
    for pin in sources.at:
        words += ["--at", pin]
    if sources.bench is not None:
        words += ["--bench", sources.bench]
    if sandbox is not None:
        words.append("--sandbox" if sandbox else "--no-sandbox")
    if store is not None:
        words += ["--store", shown(store)]
    return tuple(words)


def _is_found_without_name(path: str) -> bool:
    """Whether a path names the study of a command line, and a command finds this study also without the path."""
    from perftrail import studyfile

    file = Path(path)
    return file.match(studyfile.COMMAND_STUDY) and studyfile.find_upwards(str(Path.cwd())) == str(file)
