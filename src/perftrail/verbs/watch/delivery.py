"""Write messages about confirmed changes, in words and as data, and send each once to every receiver."""

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
from perftrail.model.wording import change as relative
from perftrail.model.wording import counted, quoted
from perftrail.notices import MailServer, Message, post, send_mail, send_within
from perftrail.process.launcher import Launcher
from perftrail.verbs.watch.batch import Pending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.find.answer import FindAnswer
    from perftrail.model.study import Receivers, Study
    from perftrail.model.target import Target
    from perftrail.verbs.watch.batch import Alarm, WatchState


TAKING_SECONDS = 60.0
"""Timeout of a receiver, in seconds."""

LONGEST_SAID_BYTES = 1 << 16

SECRET, PASSWORD = "PERFTRAIL_WEBHOOK_SECRET", "PERFTRAIL_SMTP_PASSWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Sends messages, with the mail server, the secrets, and the directory and environment of commands.

    A receiver that does not accept a message within `seconds` does not get it this time.
    """

    server: MailServer
    secret: str
    directory: str
    environment: Mapping[str, str]
    seconds: float = TAKING_SECONDS

    @classmethod
    def of(cls, receivers: Receivers, *, directory: str) -> Post:
        """Return the study's settings with secrets of perftrail's environment; commands receive none of them."""
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
        """Send a message to a receiver, ``KIND WHERE``. Raises `NoticeFailed`."""
        kind, _, where = receiver.partition(" ")
        try:
            if kind == "webhook":
                send_within(self.seconds, lambda: post(message, where, secret=self.secret))
            elif kind == "mail":
                send_within(self.seconds, lambda: send_mail(message, where, self.server))
            else:
                self._run(message, where)
        except (LauncherError, OSError) as error:
            # a full disk or no process: a temporary failure of this machine
            raise NoticeFailed(f"{kind}: {quoted(str(error))}") from error

    def _run(self, message: Message, line: str) -> None:
        with tempfile.TemporaryDirectory(prefix="perftrail-notice-") as scratch, Launcher() as starter:
            result, said = Path(scratch, "message.json"), Path(scratch, "said")
            result.write_bytes(message.body())
            ran = starter.run(
                Command(
                    arguments=tuple(shlex.split(line)),
                    environment=self.environment,
                    directory=self.directory,
                    stdin=str(result),
                    stderr=str(said),
                    output_cap_bytes=LONGEST_SAID_BYTES,
                    timeout_seconds=self.seconds,
                    tree_memory="off",
                )
            )
            if ran.ended != Exited(code=0):
                raise NoticeFailed(
                    f"command: {describe_end(ran.ended, timeout_seconds=self.seconds)}{_last_words(said)}"
                )


def receivers_of(receivers: Receivers) -> tuple[str, ...]:
    """Return every receiver as ``KIND WHERE``."""
    kinds = {"webhook": receivers.webhook, "command": receivers.command, "mail": receivers.mail}
    return tuple(f"{kind} {where}" for kind, every in kinds.items() for where in every)


def shown(receiver: str) -> str:
    """Return a receiver's name without secrets: anyone with a webhook's whole address can post to it.

    >>> shown("webhook https://chat.example.org/hooks/s3cret"), shown("command notify --token s3cret")
    ('webhook https://chat.example.org/…', 'command notify …')
    """
    kind, _, where = receiver.partition(" ")
    if kind == "webhook":
        scheme, _, rest = where.partition("://")
        host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
        text = f"{scheme}://{host}/…"
    elif kind == "command":
        first, more, _ = where.partition(" ")
        text = f"{first} …" if more else first
    else:
        text = where
    return f"{kind} {text}"


def deliver(
    state: WatchState,
    send: Callable[[Message, str], None],
    *,
    receivers: Sequence[str],
    save: Callable[[WatchState], None],
) -> WatchState:
    """Try to send everything pending once with `send`, a method of `Post`.

    `save` is called after each try, before the next: messages that arrived are not sent again. The others are
    tried at the next call. A receiver that refused one message gets no other in this call, and that one comes
    last in the next: one receiver, or one message, cannot block all others. Former receivers get nothing
    more. A message that all receivers have is forgotten, but not that it was sent.
    """
    down: set[str] = set()
    for pending in state.pending:
        left = pending
        for receiver in pending.left:
            if receiver in down:
                continue
            failed = _tried(pending, receiver, send) if receiver in receivers else ""
            if failed:
                down.add(receiver)
            others = tuple(each for each in left.left if failed or each != receiver)
            left = replace(left, left=others, failed=failed or left.failed)
            state = _with(state, left, last=bool(failed))
            save(state)
    return state


def _tried(pending: Pending, receiver: str, send: Callable[[Message, str], None]) -> str:
    """Send a message; return why it did not arrive, empty if it did."""
    message = Message(id=pending.id, subject=pending.subject, text=pending.text, data=pending.data)
    try:
        send(message, receiver)
    except NoticeFailed as failure:
        return str(failure)
    return ""


def _with(state: WatchState, changed: Pending, *, last: bool) -> WatchState:
    """Replace a message at its position or at the end, or remove it if everybody has it."""
    every = [changed if each.id == changed.id else each for each in state.pending]
    every.sort(key=lambda each: last and each.id == changed.id)
    return replace(state, pending=tuple(each for each in every if each.left))


def _last_words(said: Path) -> str:
    """Return the last line of a command's error output, quoted, if there is one."""
    result = said.read_text(encoding="utf-8", errors="replace").strip() if said.is_file() else ""
    return f": {quoted(result.splitlines()[-1])}" if result else ""


MOST_NAMED = 10
"""Maximum number of candidate revisions in a message."""


def message(
    study: Study,
    alarm: Alarm,
    answer: FindAnswer,
    number: int,
    *,
    say: Callable[[FindAnswer, int], str],
    receivers: Sequence[str],
) -> Pending:
    """Return the message about one change of a search's answer, for all receivers; `say` words the change."""
    change = answer.answer.changes[number]
    culprits = answer.candidates(change)
    what = "" if change.effect is None else f" {relative(change.effect.value)}"
    lower = alarm.target.better == "lower"
    good = change.effect is not None and (change.effect.value < 1.0) == lower
    word = "better" if good else "worse"
    lines = [
        f"{say(answer, number)}.",
        *(f"  {each.short}  {each.time[:10]}  {each.summary}" for each in culprits[:MOST_NAMED]),
        f"{counted(answer.invocations, 'invocation')} on {answer.machine}.",
        f"{answer.answer.reason}",
    ]
    return Pending(
        id=change_id(figure(alarm.target), culprits[-1].id),
        subject=f"{study.title}: {answer.name}{what} ({word})",
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


def figure(target: Target) -> str:
    """Return a metric's name with its variant, without blanks."""
    return f"{target.name}@{target.variant}".replace(" ", "_")


def change_id(name: str, revision: str) -> str:
    """Return the id of a metric's change at a revision: the same for every search that finds it."""
    return content_key("watch", name, revision)[:32]
