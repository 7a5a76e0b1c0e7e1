"""Write messages about confirmed changes, and send each once to every receiver."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import LauncherError, NoticeFailed
from perftrail.model.build import content_key
from perftrail.model.json_data import json_of
from perftrail.model.process import Command, Exited, describe_end
from perftrail.model.wording import counted, quoted
from perftrail.process.launcher import Launcher
from perftrail.search.words import moved
from perftrail.verbs.watch.state import PendingMessage
from perftrail.webhook_and_mail import MailServer, Message, post, send_mail, send_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.find.answer import FindAnswer
    from perftrail.model.study import Receivers, Study
    from perftrail.model.target import Target
    from perftrail.verbs.watch.alarms import Alarm
    from perftrail.verbs.watch.state import WatchState


RECEIVER_TIMEOUT_SECONDS = 60.0
MOST_OUTPUT_BYTES = 1 << 16

SECRET, PASSWORD = "PERFTRAIL_WEBHOOK_SECRET", "PERFTRAIL_SMTP_PASSWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Sends messages, with the mail server, the secrets, and the directory and environment of commands.

    `seconds` is the timeout of each receiver.
    """

    server: MailServer
    secret: str
    directory: str
    environment: Mapping[str, str]
    seconds: float = RECEIVER_TIMEOUT_SECONDS

    @classmethod
    def of(cls, receivers: Receivers, *, directory: str) -> Sender:
        """Return a sender with the study's settings, and secrets of the environment, which commands do not receive."""
        host, _, port = receivers.smtp.rpartition(":")
        return cls(
            server=MailServer(
                host=host.strip("[]"),
                port=int(port),
                sender=receivers.sender,
                user=receivers.user,
                password=os.environ.get(PASSWORD, ""),
            ),
            secret=os.environ.get(SECRET, ""),
            directory=directory,
            environment={name: value for name, value in os.environ.items() if name not in (SECRET, PASSWORD)},
        )

    def send(self, message: Message, receiver: str) -> None:
        """Send a message to a receiver, ``KIND ADDRESS``. Raises `NoticeFailed`."""
        kind, _, address = receiver.partition(" ")
        try:
            if kind == "webhook":
                send_within(self.seconds, lambda: post(message, address, secret=self.secret))
            elif kind == "mail":
                send_within(self.seconds, lambda: send_mail(message, address, self.server))
            else:
                self._run(message, address)
        except (LauncherError, OSError) as error:
            # for example a full disk: a temporary failure of this machine
            raise NoticeFailed(f"{kind}: {quoted(str(error))}") from error

    def _run(self, message: Message, line: str) -> None:
        with tempfile.TemporaryDirectory(prefix="perftrail-notice-") as scratch, Launcher() as starter:
            body, errors = Path(scratch, "message.json"), Path(scratch, "stderr")
            body.write_bytes(message.body())
            ran = starter.run(
                Command(
                    arguments=tuple(shlex.split(line)),
                    environment=self.environment,
                    directory=self.directory,
                    stdin=str(body),
                    stderr=str(errors),
                    output_cap_bytes=MOST_OUTPUT_BYTES,
                    timeout_seconds=self.seconds,
                    tree_memory="off",
                )
            )
            if ran.ended != Exited(code=0):
                raise NoticeFailed(
                    f"command: {describe_end(ran.ended, timeout_seconds=self.seconds)}{_last_line(errors)}"
                )


def receivers_of(receivers: Receivers) -> tuple[str, ...]:
    """Return every receiver as ``KIND ADDRESS``."""
    kinds = {"webhook": receivers.webhook, "command": receivers.command, "mail": receivers.mail}
    return tuple(f"{kind} {address}" for kind, addresses in kinds.items() for address in addresses)


def shown(receiver: str) -> str:
    """Return a receiver's name without secrets: anyone with a webhook's whole address can post to it.

    >>> shown("webhook https://chat.example.org/hooks/s3cret"), shown("command notify --token s3cret")
    ('webhook https://chat.example.org/…', 'command notify …')
    """
    kind, _, address = receiver.partition(" ")
    if kind == "webhook":
        scheme, _, rest = address.partition("://")
        host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
        text = f"{scheme}://{host}/…"
    elif kind == "command":
        first, more, _ = address.partition(" ")
        text = f"{first} …" if more else first
    else:
        text = address
    return f"{kind} {text}"


def deliver(
    state: WatchState,
    send: Callable[[Message, str], None],
    *,
    receivers: Sequence[str],
    save: Callable[[WatchState], None],
) -> WatchState:
    """Try once to send every pending message with `send`, a method of `Sender`.

    `save` is called after each attempt, so that a message that arrived is not sent again. The next call repeats failed
    attempts. A receiver that refused a message gets no other message in this call, and in the next call this message is
    the last: so neither a receiver nor a message can block the others. Receivers that the study no longer names get
    nothing. A message that all receivers have is removed from the state, but its id stays in `reported`.
    """
    refusing: set[str] = set()
    for pending in state.pending:
        current = pending
        for receiver in pending.left:
            if receiver in refusing:
                continue
            failed = _attempt(pending, receiver, send) if receiver in receivers else ""
            if failed:
                refusing.add(receiver)
            others = tuple(each for each in current.left if failed or each != receiver)
            current = replace(current, left=others, failed=failed or current.failed)
            state = _with(state, current, last=bool(failed))
            save(state)
    return state


def delivered(
    before: WatchState, now: WatchState, *, receivers: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the subject and the receiver of each message that was delivered between two states."""
    left = {each.id: each.left for each in now.pending}
    return tuple(
        (each.subject, receiver)
        for each in before.pending
        for receiver in each.left
        if receiver in receivers and receiver not in left.get(each.id, ())
    )


def _attempt(pending: PendingMessage, receiver: str, send: Callable[[Message, str], None]) -> str:
    """Send a message; return the reason of a failure, empty after success."""
    message = Message(id=pending.id, subject=pending.subject, text=pending.text, data=pending.data)
    try:
        send(message, receiver)
    except NoticeFailed as failure:
        return str(failure)
    return ""


def _with(state: WatchState, changed: PendingMessage, *, last: bool) -> WatchState:
    """Replace a message, at its position or at the end, or remove it if all receivers have it."""
    every = [changed if each.id == changed.id else each for each in state.pending]
    every.sort(key=lambda each: last and each.id == changed.id)
    return replace(state, pending=tuple(each for each in every if each.left))


def _last_line(errors: Path) -> str:
    """Return the last line of a command's error output, quoted, if there is one."""
    text = errors.read_text(encoding="utf-8", errors="replace").strip() if errors.is_file() else ""
    return f": {quoted(text.splitlines()[-1])}" if text else ""


MOST_NAMED = 10
"""Maximum number of candidate revisions in a message."""


def message(
    study: Study,
    alarm: Alarm,
    answer: FindAnswer,
    number: int,
    *,
    describe: Callable[[FindAnswer, int], str],
    receivers: Sequence[str],
) -> PendingMessage:
    """Return the message about one change of a search's answer, for all receivers; `describe` words the change."""
    change = answer.answer.changes[number]
    culprits = answer.candidates(change)
    effect = "" if change.effect is None else f" {moved(change.effect, answer.unit_of_differences)}"
    good = change.effect is not None and change.effect.improves(alarm.target.better)
    word = "better" if good else "worse"
    lines = [
        f"{describe(answer, number)}.",
        *(f"  {each.short}  {each.time[:10]}  {each.summary}" for each in culprits[:MOST_NAMED]),
        f"{counted(answer.invocations, 'invocation')} on {answer.machine}.",
        f"{answer.answer.reason}",
    ]
    return PendingMessage(
        id=change_id(metric_key(alarm.target), culprits[-1].id),
        subject=f"{study.title}: {answer.name}{effect} ({word})",
        text="\n".join(lines) + "\n",
        data={
            "study": study.title,
            "metric": alarm.target.name,
            "variant": alarm.target.variant,
            "better": good,
            "at": alarm.at,
            "revisions": [each.id for each in culprits],
            "answer": json_of(answer.as_json()),
        },
        left=tuple(receivers),
    )


def metric_key(target: Target) -> str:
    """Return a metric's name with its variant, without blanks."""
    return f"{target.name}@{target.variant}".replace(" ", "_")


def change_id(name: str, revision: str) -> str:
    """Return the id of a metric's change at a revision: the same for every search that finds it."""
    return content_key("watch", name, revision)[:32]
