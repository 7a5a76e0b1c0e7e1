"""Sending a message by mail, in a connection that nobody else reads."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING

from perftrail.errors import NoticeFailed
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from perftrail.notices.message import Message

TIMEOUT_SECONDS = 30.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
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

    Elsewhere than on this machine, and wherever a password is given, the server must offer STARTTLS and be who its
    certificate says.
    """
    try:
        mail = _mail(message, receiver, server)
        with smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS) as smtp:
            smtp.ehlo()
            if smtp.has_extn("starttls"):
                smtp.starttls(context=ssl.create_default_context())
                smtp.ehlo()
            elif server.user or server.host not in LOOPBACK:
                raise NoticeFailed(f"mail: {server.host} offers no STARTTLS; nothing was sent in the clear")
            if server.user:
                smtp.login(server.user, server.password)
            smtp.send_message(mail)
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise NoticeFailed(f"mail: {quoted(str(error))}") from error


def _mail(message: Message, receiver: str, server: MailServer) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = _flat(message.subject)[:LONGEST_SUBJECT]
    mail["From"] = server.sender
    mail["To"] = receiver
    mail["Message-ID"] = f"<{message.id}@perftrail.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(
        "".join(letter if letter == "\n" or letter.isprintable() else "?" for letter in message.text)
    )
    return mail


def _flat(text: str) -> str:
    """One line, which a header must be."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
