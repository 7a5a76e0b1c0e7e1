"""Delivering messages to who is to be told: each once, and again only where it did not arrive."""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoticeFailed
from perftrail.launcher import Launcher
from perftrail.model.process import Command, Exited, NotStarted, TimedOut
from perftrail.notices import MailServer, Message, post, send_mail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.process import Ended
    from perftrail.model.watching import Receivers
    from perftrail.workflows.watching.state import Pending, WatchState

COMMAND_SECONDS = 60.0
SECRET, PASSWORD = "PERFTRAIL_WEBHOOK_SECRET", "PERFTRAIL_SMTP_PASSWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """How messages go out: the mail server, the secrets, and where commands run with which environment."""

    server: MailServer
    secret: str
    directory: str
    environment: Mapping[str, str]

    @classmethod
    def of(cls, receivers: Receivers, *, directory: str) -> Post:
        """Give what the study says, with the secrets of our own environment; commands see none of them."""
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
        if kind == "webhook":
            post(message, where, secret=self.secret)
        elif kind == "mail":
            send_mail(message, where, self.server)
        else:
            self._run(message, where)

    def _run(self, message: Message, line: str) -> None:
        with tempfile.TemporaryDirectory(prefix="perftrail-notice-") as scratch, Launcher() as starter:
            told = Path(scratch, "message.json")
            told.write_bytes(message.body())
            ran = starter.run(
                Command(
                    arguments=tuple(shlex.split(line)),
                    environment=self.environment,
                    directory=self.directory,
                    stdin=str(told),
                    timeout_seconds=COMMAND_SECONDS,
                    tree_memory="off",
                )
            )
        if ran.ended != Exited(code=0):
            raise NoticeFailed(f"command {_ended(ran.ended)}")


def receivers_of(receivers: Receivers) -> tuple[str, ...]:
    """Name every receiver as ``KIND WHERE``."""
    kinds = {"webhook": receivers.webhook, "command": receivers.command, "mail": receivers.mail}
    return tuple(f"{kind} {where}" for kind, every in kinds.items() for where in every)


def deliver(
    state: WatchState,
    send: Callable[[Message, str], None],
    *,
    receivers: Sequence[str],
    save: Callable[[WatchState], None],
) -> WatchState:
    """Try everything that is pending once by `send`, which is a `Post`'s.

    `save` is called after each try, before the next: what arrived is not sent again. What is left is tried at the next
    call. Who is no receiver any more is told nothing, and a message that everybody has is forgotten; that there was
    one is not.
    """
    for pending in state.pending:
        left = pending
        for receiver in pending.left:
            failed = _tried(pending, receiver, send) if receiver in receivers else ""
            others = tuple(each for each in left.left if failed or each != receiver)
            left = replace(left, left=others, failed=failed or left.failed)
            state = _with(state, left)
            save(state)
    return state


def _tried(pending: Pending, receiver: str, send: Callable[[Message, str], None]) -> str:
    """Send a message; say why it did not arrive, nothing when it did."""
    message = Message(id=pending.id, subject=pending.subject, text=pending.text, data=pending.data)
    try:
        send(message, receiver)
    except NoticeFailed as failure:
        return str(failure)
    return ""


def _with(state: WatchState, changed: Pending) -> WatchState:
    """Put a message in its own place, or away when everybody has it."""
    every = (changed if each.id == changed.id else each for each in state.pending)
    return replace(state, pending=tuple(each for each in every if each.left))


def _ended(ended: Ended) -> str:
    match ended:
        case Exited(code=code):
            return f"ended with exit code {code}"
        case TimedOut():
            return f"did not end within {COMMAND_SECONDS:.0f} s"
        case NotStarted(message=message):
            return f"cannot be started: {message}"
        case _:
            return "was killed"
