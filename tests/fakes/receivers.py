"""Receivers of notices on this machine: a real HTTP server and a real mail server that record what they receive."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
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
    """Received requests: each body with its headers. `code` is the server's answer, after so many seconds."""

    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    code: int = 204
    seconds: float = 0.0
    address: str = ""


@contextmanager
def web_server(port: int = 0) -> Iterator[Posted]:
    """Listen on the loopback address."""
    posted, stopped = Posted(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if 200 <= posted.code < 300:
                posted.bodies.append(body)
                posted.headers.append(dict(self.headers))
            else:
                posted.refused += 1
            stopped.wait(posted.seconds)
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
        stopped.set()
        server.shutdown()
        thread.join()


@dataclass
class Mails:
    """Received mails, whether each came through TLS, the server's port, and its answer to QUIT."""

    mails: list[Message] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0
    parting: str = "221 Bye"

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - its name
        return self.parting

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - its name
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content))
        assert server.transport is not None
        self.encrypted.append(server.transport.get_extra_info("ssl_object") is not None)
        return "250 OK"


@contextmanager
def mail_server(certificate: Path | None = None, *, at_once: bool = False) -> Iterator[Mails]:
    """Listen on the loopback address; with a certificate, only after STARTTLS, or in TLS `at_once`."""
    mails = Mails(port=free_port())
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    how = {"ssl_context": tls} if at_once else {"tls_context": tls, "require_starttls": tls is not None}
    controller = Controller(mails, hostname="127.0.0.1", port=mails.port, **how)
    controller.start()
    try:
        yield mails
    finally:
        controller.stop()


@contextmanager
def dripping_server() -> Iterator[str]:
    """Listen on the loopback address, and send one character of a header every tenth of a second, without end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
            with suppress(OSError):
                while not over.wait(0.1):
                    self.wfile.write(b"x")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
        over.set()
        server.shutdown()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def certificate(directory: Path) -> Path:
    """Make a self-signed certificate for the loopback address, with its key."""
    key, signed, both = (directory / name for name in ("key.pem", "cert.pem", "both.pem"))
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", key, "-out", signed),
        ],
        check=True,
        capture_output=True,
    )
    both.write_text(signed.read_text() + key.read_text())
    return both
