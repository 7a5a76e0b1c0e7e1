"""Sending a message by mail, in a connection that nobody else reads."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime
from typing import TYPE_CHECKING

from perftrail.errors import NoticeFailed
from perftrail.model.wording import quoted
from perftrail.notices.message import line, lines

if TYPE_CHECKING:
    from perftrail.notices.message import Message

TIMEOUT_SECONDS = 30.0
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
        return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_SECONDS, context=secured)
    smtp = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
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
    mail["Subject"] = line(message.subject)[:LONGEST_SUBJECT]
    mail["From"] = server.sender
    mail["To"] = receiver
    mail["Date"] = localtime()
    mail["Message-ID"] = f"<{message.id}@perftrail.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(lines(message.text))
    return mail
