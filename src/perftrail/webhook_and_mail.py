"""Send messages by webhook or mail. A failure raises `NoticeFailed`; the message may be sent again.

A slow receiver delays perftrail at most for a fixed time. Mail uses an encrypted connection. Posts are signed if
there is a secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import smtplib
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime
from threading import Thread
from typing import TYPE_CHECKING

import requests

from perftrail._version import __version__
from perftrail.errors import NoticeFailed
from perftrail.model.wording import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.model.json_data import Json


def send_within(seconds: float, send: Callable[[], None]) -> None:
    """Send within a number of seconds. Raises the sender's exceptions, and `NoticeFailed` after that time.

    A connection's own timeout applies to each byte, not to the whole message. After the time is up, a thread keeps the
    connection until the process ends, so the message may still arrive.
    """
    outcome: list[Exception | None] = []

    def work() -> None:
        try:
            send()
        except Exception as error:
            outcome.append(error)
        else:
            outcome.append(None)

    thread = Thread(target=work, name="perftrail-notice", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise NoticeFailed(f"the receiver did not accept the message within {seconds:g} s")
    if outcome[0] is not None:
        raise outcome[0]


_MENTIONS = re.compile(r"[@<]")
"""First characters of mentions and links in common chat programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message in words and as data. A repeated message has the same `id`, so that a receiver can ignore it."""

    id: str
    subject: str
    text: str
    data: Mapping[str, Json]

    def body(self) -> bytes:
        """Return the message as JSON. Its texts contain no mention of a chat user; `data` is unchanged."""
        words = {
            "subject": _without_mentions(escaped(self.subject, longest=None)),
            "text": _without_mentions(escaped(self.text, longest=None, allowed="\n")),
        }
        return json.dumps({"id": self.id, **words, **self.data}, sort_keys=True).encode()


def _without_mentions(text: str) -> str:
    r"""Return text in which no chat program recognises a mention.

    >>> ascii(_without_mentions("<!channel> @all"))
    "'<\\u200b!channel> @\\u200ball'"
    """
    return _MENTIONS.sub(lambda found: f"{found[0]}\u200b", text)


MAIL_TIMEOUT_SECONDS = 30.0
"""Timeout of each operation on the connection."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine, where mail needs no encryption."""

TLS_PORT = 465
"""Servers on this port use TLS from the first byte (RFC 8314); other servers need STARTTLS."""

LONGEST_SUBJECT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A mail server and the sender; `password` only with `user`."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""


def send_mail(message: Message, receiver: str, server: MailServer) -> None:
    """Send a message to one address. Raises `NoticeFailed`.

    The server must use TLS with a valid certificate: from the first byte on port 465, by STARTTLS on other ports. Only
    a server on this machine without a user needs no TLS.
    """
    try:
        mail = _mail(message, receiver, server)
        with closing(_connected(server)) as smtp:
            if server.user:
                smtp.login(server.user, server.password)
            smtp.send_message(mail)
            with suppress(smtplib.SMTPException, OSError):  # the server has accepted the mail already
                smtp.quit()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise NoticeFailed(f"mail: {quoted(str(error))}") from error


def _connected(server: MailServer) -> smtplib.SMTP:
    """Connect with TLS, or without it to this machine."""
    context = ssl.create_default_context()
    if server.port == TLS_PORT:
        return smtplib.SMTP_SSL(server.host, server.port, timeout=MAIL_TIMEOUT_SECONDS, context=context)
    smtp = smtplib.SMTP(server.host, server.port, timeout=MAIL_TIMEOUT_SECONDS)
    try:
        smtp.ehlo()
        if smtp.has_extn("starttls"):
            smtp.starttls(context=context)
            smtp.ehlo()
        elif server.user or server.host not in LOOPBACK:
            raise NoticeFailed(
                f"mail: {server.host} offers no STARTTLS, so perftrail sent nothing; use a server with TLS"
            )
    except BaseException:
        smtp.close()
        raise
    return smtp


def _mail(message: Message, receiver: str, server: MailServer) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = escaped(message.subject, longest=LONGEST_SUBJECT)
    mail["From"] = server.sender
    mail["To"] = receiver
    mail["Date"] = localtime()
    mail["Message-ID"] = f"<{message.id}@perftrail.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(escaped(message.text, longest=None, allowed="\n"))
    return mail


WEBHOOK_TIMEOUT_SECONDS = (10.0, 30.0)
"""Timeouts of the connection, and of the answer."""


def post(message: Message, address: str, *, secret: str = "") -> None:
    """Post a message as JSON. Raises `NoticeFailed`, also for a status other than 200 to 299.

    With a secret, ``X-Perftrail-Signature`` is ``sha256=`` and the HMAC of the body in hexadecimal digits. Redirects
    are not followed.
    """
    body = message.body()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"perftrail/{__version__}",
        "X-Perftrail-Id": message.id,
    }
    if secret:
        headers["X-Perftrail-Signature"] = f"sha256={signature(body, secret)}"
    try:
        with requests.post(
            address,
            data=body,
            headers=headers,
            timeout=WEBHOOK_TIMEOUT_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as answer:
            code = answer.status_code
    except (requests.RequestException, ValueError) as error:
        raise NoticeFailed(f"webhook: cannot be reached: {type(error).__name__}") from error
    if not 200 <= code < 300:
        raise NoticeFailed(f"webhook: answered with status {code} {quoted(answer.reason or '')}")


def signature(body: bytes, secret: str) -> str:
    """Return the HMAC of a body, SHA-256 in hexadecimal digits."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


__all__ = ["MailServer", "Message", "post", "send_mail", "send_within"]
