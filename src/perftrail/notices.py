"""Send messages by webhook or mail. A failure raises `NoticeFailed`; the message may be sent again.

A time by which a receiver has taken a message: one that answers a byte at a time holds nobody up.

What is told: once in words, once as data.

Sending a message by mail, in a connection that nobody else reads.

Posting a message to an address, signed where there is a secret.
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

    from perftrail.model.search_record import Json


def within(seconds: float, send: Callable[[], None]) -> None:
    """Send in so many seconds at most. Raises what sending raises, and `NoticeFailed` when it takes longer.

    A connection's own timeout counts from each byte to the next. One that is given up is left to a thread that ends
    with the process, so its message may arrive yet.
    """
    ended: list[Exception | None] = []

    def work() -> None:
        try:
            send()
        except Exception as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = Thread(target=work, name="perftrail-notice", daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise NoticeFailed(f"did not take it within {seconds:g} s")
    if ended[0] is not None:
        raise ended[0]


_CALLS = re.compile(r"[@<]")
"""What begins a call to somebody, a group or a link in the chats that take such posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message; `id` is the same each time that it is sent, so that a receiver can tell a second one."""

    id: str
    subject: str
    text: str
    data: Mapping[str, Json]

    def body(self) -> bytes:
        """Give all of it as JSON. What a chat would show calls nobody; in `data` everything is as it was."""
        words = {
            "subject": _quiet(escaped(self.subject, longest=None)),
            "text": _quiet(escaped(self.text, longest=None, kept="\n")),
        }
        return json.dumps({"id": self.id, **words, **self.data}, sort_keys=True).encode()


def _quiet(text: str) -> str:
    r"""Write text so that no chat reads a call in it.

    >>> ascii(_quiet("<!channel> @all"))
    "'<\\u200b!channel> @\\u200ball'"
    """
    return _CALLS.sub(lambda found: f"{found[0]}\u200b", text)


MAIL_TIMEOUT_SECONDS = 30.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TLS_PORT = 465
"""A server there speaks TLS from its first byte (RFC 8314); elsewhere it is asked for it."""

LONGEST_SUBJECT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A mail server and who sends through it; `password` only with `user`."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""


def send_mail(message: Message, receiver: str, server: MailServer) -> None:
    """Send a message to one address. Raises `NoticeFailed`.

    Elsewhere than on this machine, and wherever a password is given, the server must speak TLS, from the first byte
    on port 465 and by STARTTLS on others, and be who its certificate says.
    """
    try:
        mail = _mail(message, receiver, server)
        with closing(_connected(server)) as smtp:
            if server.user:
                smtp.login(server.user, server.password)
            smtp.send_message(mail)
            with suppress(smtplib.SMTPException, OSError):  # it has the mail by now, however it says good-bye
                smtp.quit()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise NoticeFailed(f"mail: {quoted(str(error))}") from error


def _connected(server: MailServer) -> smtplib.SMTP:
    """Connect in a way that nobody else reads, or to this machine."""
    secured = ssl.create_default_context()
    if server.port == TLS_PORT:
        return smtplib.SMTP_SSL(server.host, server.port, timeout=MAIL_TIMEOUT_SECONDS, context=secured)
    smtp = smtplib.SMTP(server.host, server.port, timeout=MAIL_TIMEOUT_SECONDS)
    try:
        smtp.ehlo()
        if smtp.has_extn("starttls"):
            smtp.starttls(context=secured)
            smtp.ehlo()
        elif server.user or server.host not in LOOPBACK:
            raise NoticeFailed(f"mail: {server.host} offers no STARTTLS; nothing was sent in the clear")
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
    mail.set_content(escaped(message.text, longest=None, kept="\n"))
    return mail


WEBHOOK_TIMEOUT_SECONDS = (10.0, 30.0)
"""To connect, and to answer."""


def post(message: Message, address: str, *, secret: str = "") -> None:
    """Post a message as JSON; only an answer of 200 to 299 counts. Raises `NoticeFailed`.

    With a secret, ``X-Perftrail-Signature`` is ``sha256=`` and the HMAC of the body in hexadecimal digits. Nobody is
    followed elsewhere.
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
        raise NoticeFailed(f"webhook: {type(error).__name__}: it cannot be reached") from error
    if not 200 <= code < 300:
        raise NoticeFailed(f"webhook: answered {code} {quoted(answer.reason or '')}")


def signature(body: bytes, secret: str) -> str:
    """Give the HMAC of a body, SHA-256 in hexadecimal digits."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


__all__ = ["MailServer", "Message", "post", "send_mail", "within"]
