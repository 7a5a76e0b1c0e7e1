"""`perftrail watch`: measure new revisions of a branch, and notify receivers of changes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, TypedDict

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    again,
    json_option,
    stopped_like_ctrl_c,
    study_argument,
    walking_options,
    writing_options,
)
from perftrail.errors import PerftrailError, StudyError, UsageError
from perftrail.file_tree import alone
from perftrail.model.wording import escaped
from perftrail.present.speech import after

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from perftrail.cli.options import Stop, Walking, Writing
    from perftrail.model.study import Receivers, Study, WatchPolicy
    from perftrail.verbs.watch.watch import Watched


LONGEST = 400
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class WatchOptions(TypedDict):
    """The options that override the study's `[watch]`, by name."""

    branch: str | None
    every: str | None
    notify: tuple[str, ...]


@click.command("watch", cls=Command)
@study_argument
@click.option("--once", is_flag=True, help="Check once and end.")
@click.option("--every", metavar="DURATION", help="Time between two checks. [default: 5min]")
@click.option("--branch", metavar="NAME", help="Branch to follow. [default: the end of the study's range]")
@click.option(
    "--notify",
    multiple=True,
    metavar="RECEIVER",
    help="Receiver of messages, in addition to the study's: https://…, mailto:NAME@HOST, or a command "
    "that reads JSON from its standard input. May be repeated.",
)
@walking_options
@writing_options
@json_option
def command(
    study: str | None,
    once: bool,
    walking: Walking,
    writing: Writing,
    as_json: bool,
    **asked: Unpack[WatchOptions],
) -> None:
    """Measure new revisions of a branch as they come, find changes, and notify receivers.

    The first check only records the branch. Later, perftrail measures each new revision in interleaved pairs with a
    reference revision. If a metric seems to have changed by the study's threshold, a search starts. Each confirmed
    change is sent once, by webhook, command or mail; a message that was not delivered is sent again.

    Ends at Ctrl-C or SIGTERM, and resumes when it is started again. --json prints one line for each check.
    """
    loaded = writing.contained(walking.load(study))
    policy = _policy(loaded, **asked)
    repeat = again(study, walking, writing)
    with stopped_like_ctrl_c() as stop:
        while True:
            stop.heed()
            began = time.monotonic()
            try:
                _print(_look(loaded, policy, writing), as_json=as_json, repeat=repeat)
            except (UsageError, StudyError):
                raise
            except PerftrailError as error:
                never_seen = not _file(loaded, policy, writing).exists()  # and may be misspelt
                if once or never_seen:
                    raise
                click.echo(f"{escaped(str(error), longest=LONGEST)}; looked at again later", err=True)
            _tell(loaded, policy, writing, once=once, stop=stop)
            if once:
                return
            stop.heed()
            time.sleep(max(0.0, policy.every_seconds - (time.monotonic() - began)))


def _look(study: Study, policy: WatchPolicy, writing: Writing) -> Watched:
    """Check the branch once."""
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.sentence import change_words
    from perftrail.verbs.watch.batch import read_state, write_state
    from perftrail.verbs.watch.delivery import receivers_of
    from perftrail.verbs.watch.watch import BranchCheck

    file = _file(study, policy, writing)
    with alone(file.with_suffix(".lock")):
        return writing.follow(
            study,
            lambda session: retry_stale_builds(
                session.subject_builder,
                lambda: BranchCheck(
                    session,
                    read_state(file),
                    branch=policy.branch,
                    receivers=receivers_of(policy.notify),
                    say=change_words,
                    save=lambda state: write_state(file, state),
                ).events(),
            ),
        )


def _tell(study: Study, policy: WatchPolicy, writing: Writing, *, once: bool, stop: Stop) -> None:
    """Send all pending messages; a failed receiver does not end a continuous watch."""
    from perftrail.verbs.watch.batch import read_state, write_state
    from perftrail.verbs.watch.delivery import Post, deliver, receivers_of, shown

    file = _file(study, policy, writing)
    try:
        # What was taken is noted, so that it is not sent again.
        with alone(file.with_suffix(".lock")), stop.soon():
            state = deliver(
                read_state(file),
                Post.of(policy.notify, directory=study.directory).send,
                receivers=receivers_of(policy.notify),
                save=lambda state: write_state(file, state),
            )
    except PerftrailError as error:
        if once:
            raise
        click.echo(f"{escaped(str(error), longest=LONGEST)}; sent later", err=True)
        return
    for pending in state.pending:
        who = ", ".join(escaped(shown(each)) for each in pending.left)
        why = escaped(pending.failed or "another message was not taken", longest=LONGEST)
        click.echo(f"not sent yet: {who}: {why}; perftrail will try again", err=True)


def _print(seen: Watched, *, as_json: bool, repeat: tuple[str, ...]) -> None:
    from perftrail.present.finding import headline

    if as_json:
        print_json("watch", seen.as_json(), one_line=True)
        return
    for answer in seen.answers:
        click.echo(headline(answer))
    if seen.answers:
        click.echo(f"Next: perftrail show{after(repeat)} --search    how the search went")


def _file(study: Study, policy: WatchPolicy, writing: Writing) -> Path:
    """Return the file with the state of a branch."""
    from urllib.parse import quote

    from perftrail.opening import results_directory

    of = "" if policy.branch is None else f"-{quote(policy.branch, safe='')}"
    return results_directory(study, writing.store) / f"watch{of}.json"


def _policy(study: Study, **asked: Unpack[WatchOptions]) -> WatchPolicy:
    """Return the policy from options and study file. Raises `UsageError` for invalid values."""
    from dataclasses import replace

    from perftrail.model.wording import parse_duration
    from perftrail.studyfile.rules.texts import revision_wrong

    policy = study.watch
    try:
        every = policy.every_seconds if asked["every"] is None else parse_duration(asked["every"])
    except ValueError as error:
        raise UsageError(f"--every {asked['every']}: {error}") from error
    if every <= 0.0:
        raise UsageError(f"--every {asked['every']}: must be above 0")
    branch = asked["branch"] if asked["branch"] is not None else policy.branch
    if branch is not None and (wrong := revision_wrong(branch)):
        raise UsageError(f"--branch {escaped(branch)}: {wrong}")
    return replace(
        policy, branch=branch, every_seconds=every, notify=_with_receivers(policy.notify, asked["notify"])
    )


def _with_receivers(notify: Receivers, added: Sequence[str]) -> Receivers:
    """Add receivers of the command line. Raises `UsageError`, which quotes no address, because it may be a secret."""
    from dataclasses import replace

    from perftrail.studyfile.rules.texts import receiver_wrong
    from perftrail.verbs.watch.delivery import shown

    kinds: dict[str, list[str]] = {"webhook": [], "command": [], "mail": []}
    for text in added:
        kind = "mail" if text.startswith("mailto:") else "webhook" if _ADDRESS.match(text) else "command"
        where = text.removeprefix("mailto:")
        if wrong := receiver_wrong(kind, where):
            raise UsageError(f"--notify {escaped(shown(f'{kind} {where}'))}: {wrong}")
        kinds[kind].append(where)
    return replace(
        notify,
        webhook=(*notify.webhook, *kinds["webhook"]),
        command=(*notify.command, *kinds["command"]),
        mail=(*notify.mail, *kinds["mail"]),
    )
