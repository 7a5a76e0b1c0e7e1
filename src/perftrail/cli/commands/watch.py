"""`perftrail watch`: measure new revisions of a branch, and notify receivers of changes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    json_option,
    repeated_options,
    session_options,
    source_options,
    stopped_like_ctrl_c,
    study_argument,
)
from perftrail.errors import PerftrailError, SourceError, StudyError, UsageError
from perftrail.file_tree import exclusive_lock
from perftrail.model.wording import counted, duration, escaped, percent, quoted
from perftrail.present.output_settings import next_line, settings
from perftrail.present.shared_sentences import shell_words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from perftrail.cli.options import SessionOptions, SourceOptions, Stop
    from perftrail.model.study import Receivers, Study, WatchPolicy
    from perftrail.verbs.watch.watch import Watched


LONGEST_ERROR = 400
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class WatchOptions(TypedDict):
    """Options that override the study's `[watch]`, by name."""

    branch: str | None
    every: str | None
    notify: tuple[str, ...]


@click.command("watch", cls=Command)
@study_argument
@click.option("--once", is_flag=True, help="Check once and exit, for example from cron.")
@click.option("--every", metavar="DURATION", help="Time between two checks. [default: the study's, or 5min]")
@click.option("--branch", metavar="NAME", help="Branch to follow. [default: the end of the study's range]")
@click.option(
    "--notify",
    multiple=True,
    metavar="RECEIVER",
    help="Receiver of messages, in addition to the study's: https://…, mailto:NAME@HOST, or a command "
    "that reads JSON from its standard input. May be repeated.",
)
@source_options
@session_options
@json_option
def command(
    study: str | None,
    once: bool,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
    **overrides: Unpack[WatchOptions],
) -> None:
    """Measure each new revision of a branch, find changes, and notify receivers.

    The first check only records the branch. Later, perftrail measures each new revision in interleaved pairs with a
    reference revision. If a metric seems to have changed by the study's threshold, a search starts. Each confirmed
    change is sent once, by webhook, command or mail; a message that was not delivered is sent again.

    The command ends at Ctrl-C or SIGTERM, and resumes when you start it again. --json prints one line for each check.
    """
    loaded = options.with_suites(
        options.apply_to(sources.load(study)), lambda session: session.source.history()[-1:]
    )
    policy = _policy(loaded, **overrides)
    shared_options = repeated_options(study, sources, options)
    first = True
    with stopped_like_ctrl_c() as stop:
        while True:
            stop.raise_if_requested()
            began = time.monotonic()
            try:
                watched = _check(loaded, policy, options)
                _print(watched, as_json=as_json, shared_options=shared_options)
                if not as_json:
                    _print_status(watched, loaded, policy, once=once, first=first)
                first = False
            except (UsageError, StudyError):
                raise
            except PerftrailError as error:
                first_check = not _state_file(loaded, policy, options).exists()
                if first_check and isinstance(error, SourceError) and error.range and policy.branch:
                    option = "watch.branch" if overrides["branch"] is None else "--branch"
                    why = str(error).removeprefix(f"{loaded.searched_source.location}: ")
                    raise UsageError(f"{option} {quoted(policy.branch)}: {why}") from error
                if once or first_check:
                    raise
                click.echo(
                    f"{escaped(str(error), longest=LONGEST_ERROR)}; perftrail will check again later",
                    err=True,
                )
            _deliver(loaded, policy, options, once=once, stop=stop)
            if once:
                return
            stop.raise_if_requested()
            time.sleep(max(0.0, policy.every_seconds - (time.monotonic() - began)))


def _check(study: Study, policy: WatchPolicy, options: SessionOptions) -> Watched:
    """Check the branch once."""
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.answer_sentence import change_words
    from perftrail.verbs.watch.messages import receivers_of
    from perftrail.verbs.watch.state import read_state, write_state
    from perftrail.verbs.watch.watch import BranchCheck

    file = _state_file(study, policy, options)
    with exclusive_lock(file.with_suffix(".lock")):
        return options.run(
            study,
            lambda session: retry_stale_builds(
                session.subject_builder,
                lambda: BranchCheck(
                    session,
                    read_state(file),
                    branch=policy.branch,
                    receivers=receivers_of(policy.notify),
                    describe=change_words,
                    save=lambda state: write_state(file, state),
                ).events(),
            ),
        )


def _deliver(study: Study, policy: WatchPolicy, options: SessionOptions, *, once: bool, stop: Stop) -> None:
    """Send all pending messages; a failed receiver does not end a continuous watch."""
    from perftrail.verbs.watch.messages import Sender, deliver, delivered, receivers_of, shown
    from perftrail.verbs.watch.state import read_state, write_state

    file, receivers = _state_file(study, policy, options), receivers_of(policy.notify)
    try:
        # Accepted messages are recorded before a stop, so that they are not sent again.
        with exclusive_lock(file.with_suffix(".lock")), stop.after_block():
            before = read_state(file)
            state = deliver(
                before,
                Sender.of(policy.notify, directory=study.directory).send,
                receivers=receivers,
                save=lambda state: write_state(file, state),
            )
    except PerftrailError as error:
        if once:
            raise
        click.echo(
            f"{escaped(str(error), longest=LONGEST_ERROR)}; perftrail will send the messages later", err=True
        )
        return
    for subject, receiver in delivered(before, state, receivers=receivers):
        click.echo(f"sent to {escaped(shown(receiver))}: {escaped(subject)}", err=True)
    for pending in state.pending:
        left = ", ".join(escaped(shown(each)) for each in pending.left)
        reason = escaped(
            pending.failed or "the receiver did not accept another message", longest=LONGEST_ERROR
        )
        click.echo(f"not sent yet: {left}: {reason}; perftrail will try again", err=True)


def _print(watched: Watched, *, as_json: bool, shared_options: tuple[str, ...]) -> None:
    from perftrail.present.answer_details import headline

    if as_json:
        print_json("watch", watched.as_json(), one_line=True)
        return
    for answer in watched.answers:
        click.echo(headline(answer))
    if watched.answers:
        click.echo(next_line(f"perftrail show{shell_words(shared_options)} --search    how the search went"))


def _print_status(watched: Watched, study: Study, policy: WatchPolicy, *, once: bool, first: bool) -> None:
    """Print for people what a check without an answer found; after the first one, also the time between checks."""
    from perftrail.model.study import THRESHOLD

    if settings.quiet:
        return
    lines = []
    if watched.compared and not watched.answers:
        which = counted(len(watched.compared), "new revision")
        threshold = percent(study.find.threshold_for([None]) or THRESHOLD)
        lines.append(f"no metric seems to have changed by {threshold} or more in {which}")
    elif not watched.fresh and not watched.began and (once or first):
        lines.append(f"no new revision since {watched.state.last[:10]}")
    if first and not once:
        lines.append(
            f"perftrail checks the branch every {duration(policy.every_seconds)}; Ctrl-C ends the watch"
        )
    for line in lines:
        click.echo(click.style(line, dim=True), err=True)


def _state_file(study: Study, policy: WatchPolicy, options: SessionOptions) -> Path:
    """Return the file with the state of a branch, in the study's results directory, which is created."""
    from urllib.parse import quote

    from perftrail.opening import results_directory
    from perftrail.results_directory import create

    suffix = "" if policy.branch is None else f"-{quote(policy.branch, safe='')}"
    results = results_directory(study, options.store)
    create(results)
    return results / f"watch{suffix}.json"


def _policy(study: Study, **overrides: Unpack[WatchOptions]) -> WatchPolicy:
    """Return the policy from options and study file. Raises `UsageError` for invalid values."""
    from dataclasses import replace

    from perftrail.model.notation import parse_duration
    from perftrail.studyfile.rules.texts import revision_wrong

    policy = study.watch
    try:
        every = policy.every_seconds if overrides["every"] is None else parse_duration(overrides["every"])
    except ValueError as error:
        raise UsageError(f"--every {quoted(str(overrides['every']))}: {error}") from error
    if every <= 0.0:
        raise UsageError(f"--every {overrides['every']}: must be above 0")
    branch = overrides["branch"] if overrides["branch"] is not None else policy.branch
    if branch is not None and (wrong := revision_wrong(branch)):
        raise UsageError(f"--branch {escaped(branch)}: {wrong}")
    return replace(
        policy, branch=branch, every_seconds=every, notify=_with_receivers(policy.notify, overrides["notify"])
    )


def _with_receivers(notify: Receivers, added: Sequence[str]) -> Receivers:
    """Add receivers of the command line. Raises `UsageError`, which quotes no address, because it may be a secret."""
    from dataclasses import replace

    from perftrail.studyfile.rules.texts import receiver_wrong
    from perftrail.verbs.watch.messages import shown

    kinds: dict[str, list[str]] = {"webhook": [], "command": [], "mail": []}
    for text in added:
        kind = "mail" if text.startswith("mailto:") else "webhook" if _ADDRESS.match(text) else "command"
        address = text.removeprefix("mailto:")
        if wrong := receiver_wrong(kind, address):
            raise UsageError(f"--notify {escaped(shown(f'{kind} {address}'))}: {wrong}")
        kinds[kind].append(address)
    return replace(
        notify,
        webhook=(*notify.webhook, *kinds["webhook"]),
        command=(*notify.command, *kinds["command"]),
        mail=(*notify.mail, *kinds["mail"]),
    )
