"""Receivers of notices on this machine: a real HTTP server and a real mail server that keep what they get."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from aiosmtpd.controller import Controller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from pathlib import Path

    from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class Posted:
    """What was posted: each body with its headers. `code` is what the server answers."""

    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    code: int = 204
    address: str = ""


@contextmanager
def web_server(port: int = 0) -> Iterator[Posted]:
    """Listen on this machine's own address."""
    posted = Posted()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if 200 <= posted.code < 300:
                posted.bodies.append(body)
                posted.headers.append(dict(self.headers))
            else:
                posted.refused += 1
            self.send_response(posted.code)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        posted.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield posted
        server.shutdown()
        thread.join()


@dataclass
class Mails:
    """The mails that came, whether each came through TLS, and where the server listens."""

    mails: list[Message] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - its name
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content))
        self.encrypted.append(session.ssl is not None)
        return "250 OK"


@contextmanager
def mail_server(certificate: Path | None = None) -> Iterator[Mails]:
    """Listen on this machine's own address; with a certificate, nothing is taken but after STARTTLS."""
    mails = Mails(port=free_port())
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    controller = Controller(
        mails, hostname="127.0.0.1", port=mails.port, tls_context=tls, require_starttls=tls is not None
    )
    controller.start()
    try:
        yield mails
    finally:
        controller.stop()


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def certificate(directory: Path) -> Path:
    """Make a certificate for this machine's own address, signed by itself, with its key."""
    key, made, both = (directory / name for name in ("key.pem", "cert.pem", "both.pem"))
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", key, "-out", made),
        ],
        check=True,
        capture_output=True,
    )
    both.write_text(made.read_text() + key.read_text())
    return both
