"""The server itself, over real connections: it starts as asked, and a few slow clients hold nobody up."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from perftrail.web.access import Access
from perftrail.web.app import make_app
from perftrail.web.impatient import Impatient
from perftrail.web.server import HEAD_BYTES, bind, make_server
from perftrail.web.studies import desks, find_studies
from tests.starting import start
from tests.web.studies import Hostile


class Hasty(Impatient):
    """As impatient as a test."""

    seconds = 0.4


@contextmanager
def listening(root: Path) -> Iterator[int]:
    """A server in this process; gives its port."""
    with bind("127.0.0.1", 0, Access()) as bound, desks(find_studies(str(root)), store=None) as found:
        server = make_server(make_app(found, Access()), protocol=Hasty)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield int(bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port(hostile: Hostile) -> Iterator[int]:
    with listening(hostile.root) as port:
        yield port


def until_closed(connection: socket.socket, *, dribble: bytes = b"") -> float:
    """How long a connection is kept while a byte comes now and then."""
    began = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - began < 10.0:
        try:
            if dribble:
                connection.sendall(dribble)
            if not connection.recv(1000):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("first", "dribble"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-", b"x"),
        (b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n", b"y"),
    ],
    ids=["silent", "dribbles its headers", "dribbles its body"],
)
def test_a_slow_client_is_given_up(port: int, first: bytes, dribble: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(first)
        assert until_closed(slow, dribble=dribble) < 5.0


def test_slow_clients_hold_nobody_up(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    try:
        for each in slow:
            each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        assert httpx.get(f"http://127.0.0.1:{port}/static/app.css").status_code == 200
    finally:
        for each in slow:
            each.close()


def test_long_headers_are_refused(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as long:
        long.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (2 * HEAD_BYTES))
        assert long.recv(100).startswith(b"HTTP/1.1 400")


def test_it_says_where_it_is_and_ends_when_interrupted(hostile: Hostile) -> None:
    command = [sys.executable, "-m", "perftrail", "serve", "--port", "0", str(hostile.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = line.split()[0]
        assert "alpha, beta" in line
        assert httpx.get(address).status_code == 200
        server.send_signal(2)
        _, said = server.communicate(timeout=20)
    assert server.returncode in (0, 130)
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--writer", "ann"], "--trust-header"),
        (["--token-file", "nowhere"], "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_remedy(hostile: Hostile, words: list[str], why: str) -> None:
    done = start("serve", *words, hostile.root)
    assert done.returncode == 2
    assert why in done.stderr


def test_a_directory_without_studies_is_told(tmp_path: Path) -> None:
    done = start("serve", tmp_path)
    assert done.returncode == 2
    assert "no perftrail.toml" in done.stderr


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_a_library_that_is_missing_is_told_with_its_remedy(library: str) -> None:
    program = (
        f"import sys; sys.modules[{library!r}] = None; from perftrail.cli.main import main; main(['serve'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == f"serve: {library} is not installed; pip install 'perftrail[web]'"
