"""The server over real connections: its options, and slow clients that delay no others."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn

from perftrail.cli.main import main
from perftrail.errors import UsageError
from perftrail.web.access import Access, Tokens
from perftrail.web.app import HEAD_BYTES, TimeLimitedProtocol, bind, make_app, make_server
from perftrail.web.studies import ServedStudy, find_studies, served_studies
from tests.web.studies import Hostile
from tests.web.test_pages import form_token


class ShortTimeouts(TimeLimitedProtocol):
    """A server with short timeouts."""

    seconds = 2.0
    sending_seconds = 2.0


@dataclass(frozen=True)
class Listening:
    """A server in this process: its port, the studies that it shows, and its connections."""

    port: int
    served_studies: Mapping[str, ServedStudy]
    server: uvicorn.Server

    def connections(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def listening(root: Path, access: Access | None = None) -> Iterator[Listening]:
    known = access or Access()
    with bind("127.0.0.1", 0, known) as bound, served_studies(find_studies(str(root)), store=None) as found:
        server = make_server(make_app(found, known), protocol=ShortTimeouts)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Listening(int(bound.getsockname()[1]), found, server)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def here(hostile: Hostile) -> Iterator[Listening]:
    with listening(hostile.root) as here:
        yield here


@pytest.fixture(scope="module")
def port(here: Listening) -> int:
    return here.port


def until(expected: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    over = time.monotonic() + 20.0
    while not expected():
        assert time.monotonic() < over
        time.sleep(0.02)


def until_closed(connection: socket.socket, *, dribble: bytes = b"") -> float:
    """Return how long a connection is kept that sends a byte from time to time."""
    began = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - began < 15.0:
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
def test_a_slow_client_is_disconnected(port: int, first: bytes, dribble: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(first)
        assert until_closed(slow, dribble=dribble) < 10.0


def test_slow_clients_delay_no_other_client(port: int) -> None:
    """The slow ones have another address: an address has a limit, and those above it are disconnected."""
    slow = [socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) for _ in range(60)]
    try:
        for each in slow:
            with suppress(ConnectionError):
                each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        assert httpx.get(f"http://127.0.0.1:{port}/static/app.css").status_code == 200
    finally:
        for each in slow:
            each.close()


def test_clients_that_read_no_answer_occupy_no_connection(here: Listening) -> None:
    until(lambda: here.connections() == 0)
    requested = b"GET /static/vega.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    deaf = [socket.create_connection(("127.0.0.1", here.port)) for _ in range(3)]
    try:
        for each in deaf:
            each.sendall(requested * 20)
        until(lambda: here.connections() == 3)
        until(lambda: here.connections() == 0)
    finally:
        for each in deaf:
            each.close()


def test_work_ends_when_the_browser_disconnects(here: Listening) -> None:
    served_study = here.served_studies["alpha"]
    address = f"http://127.0.0.1:{here.port}/s/alpha"
    until(lambda: "refresh" not in httpx.get(address).headers)
    with socket.create_connection(("127.0.0.1", here.port), timeout=20.0) as browser:
        browser.sendall(b"GET /s/alpha/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reported = b""
        while b"event: live" not in reported:
            reported += (more := browser.recv(10_000))
            assert more, reported
        assert b"x-accel-buffering: no" in reported
        assert b"no-transform" in reported
        assert served_study.watchers == 1
    until(lambda: served_study.watchers == 0 and served_study._check_task is None)


def test_a_head_request_for_an_endless_stream_is_answered(port: int) -> None:
    answer = httpx.head(f"http://127.0.0.1:{port}/s/alpha/events")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_stream_ends_with_the_session_that_began_it(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perftrail.web.studies.HEARTBEAT_SECONDS", 0.1)
    token = "r" * 24
    with (
        listening(hostile.root, Access(tokens=Tokens({token: "read"}))) as here,
        httpx.Client(base_url=f"http://127.0.0.1:{here.port}", follow_redirects=True) as browser,
    ):
        form = form_token(browser.get("/login").text)
        browser.post("/login", data={"form_token": form, "token": token})
        until(lambda: "refresh" not in browser.get("/s/alpha").headers)
        with browser.stream("GET", "/s/alpha/events") as stream:
            pieces = stream.iter_text()
            assert "retry" in next(pieces)
            form = form_token(browser.get("/s/alpha").text)
            browser.post("/logout", data={"form_token": form})
            over = time.monotonic() + 20.0
            assert all(time.monotonic() < over for _ in pieces), "it ends"


def test_long_headers_are_refused(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as long:
        long.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (2 * HEAD_BYTES))
        assert long.recv(100).startswith(b"HTTP/1.1 400")


def test_it_says_where_it_is_allows_another_name_as_browsers_show_it_and_ends_when_interrupted(
    hostile: Hostile,
) -> None:
    options = ["--port", "0", "--allow-host", "Perf.example.org:8443"]
    command = [sys.executable, "-m", "perftrail", "serve", *options, str(hostile.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = line.split()[0]
        assert "alpha, beta" in line
        assert httpx.get(address, timeout=60).status_code == 200
        for name, status in (("perf.example.org", 200), ("evil.example.org", 421)):
            assert httpx.get(address, headers={"Host": name}, timeout=60).status_code == status, name
        server.send_signal(2)
        _, output = server.communicate(timeout=20)
    assert server.returncode in (0, 130)
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--writer", "ann"], "--trust-header"),
        (["--token-file", "nowhere"], "cannot be read"),
        (["--trust-header", "X-User", "--proxy", "proxy.local"], "is not an IP address; write for example"),
    ],
)
def test_invalid_options_are_reported_with_their_remedy(
    hostile: Hostile, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert why in refusal(capsys, *words, str(hostile.root))


def test_a_directory_without_studies_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no perftrail.toml" in refusal(capsys, str(tmp_path))


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what the command prints when it serves nothing."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", *words])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_no_study_is_left_out_silently(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perftrail.web.studies.MOST", 1)
    with pytest.raises(UsageError, match="2 studies, more than 1"):
        find_studies(str(hostile.root))


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_a_library_that_is_missing_is_reported_with_its_remedy(library: str) -> None:
    program = (
        f"import sys; sys.modules[{library!r}] = None; from perftrail.cli.main import main; main(['serve'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == f"serve: {library} is not installed; pip install 'perftrail[web]'"
