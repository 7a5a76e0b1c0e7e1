"""The dashboard against random and hostile requests, wrong roles, and slow or greedy clients.

A real `perftrail serve` shows two studies whose texts are hostile, once without tokens and once with. schemathesis
derives requests from the server's own OpenAPI document and checks each answer against it. Pages get random arguments.
Each role requests each route. Meanwhile, slow and greedy clients occupy connections, and another client times pages.
"""

from __future__ import annotations

import itertools
import random
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, quote_from_bytes

import httpx2 as httpx
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from benchmarks.web.page_times import summarise_times
from benchmarks.web.serving import serving
from campaign import Result
from campaign.page_times import page_times
from perftrail.web.app import API, REQUEST_SECONDS, ROUTES, SENDING_SECONDS
from perftrail.web.guard import COOKIE, HEADERS
from tests.web.studies import Hostile, make_studies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from schemathesis import Case
    from starlette.routing import Route

GOAL_MS = 200.0
READ, WRITE = "r" * 24, "w" * 24
WRONG_TOKENS = (
    f"Bearer {'x' * 24}",
    f"Bearer {WRITE[:-1]}",
    f"Bearer {READ.upper()}",
    "Bearer",
    f"Basic {WRITE}",
)
PATIENCE_SECONDS = 60.0
SLACK_SECONDS = 10.0
"""Added to each time limit of the server before a client that exceeds it counts as a loss."""

STREAMS = 40
NOT_ANSWERED = 599
"""Status of a request that the server did not answer: a loss, as any of 5xx."""

EXAMPLES = 150
"""Requests that Hypothesis generates between two looks at the clock."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]


@dataclass(slots=True)
class Trials:
    """Trials and losses so far. Equal losses count as one sentence with the first example."""

    count: dict[str, int] = field(default_factory=dict)
    _losses: dict[str, tuple[int, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str) -> None:
        """Count a trial."""
        with self._lock:
            self.count[kind] = self.count.get(kind, 0) + 1

    def lose(self, what: str, example: str) -> None:
        """Record a loss with its example."""
        with self._lock:
            times, first = self._losses.get(what, (0, example))
            self._losses[what] = (times + 1, first)

    @property
    def losses(self) -> tuple[str, ...]:
        """A sentence for each kind of loss."""
        return tuple(
            f"{what}, {times} times; first: {first}" for what, (times, first) in self._losses.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server with its valid arguments; `token` is that of a writer, or empty for a server without tokens."""

    address: str
    token: str
    known: dict[str, list[str]]
    client: httpx.Client

    @property
    def login(self) -> dict[str, str]:
        """Headers of a writer."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        *,
        content: bytes | None = None,
        json: object = None,
    ) -> httpx.Response:
        """Send a request from a new address, without the cookies of earlier ones.

        A connection that the server closed since the last request is opened again. Without any answer, the status is
        `NOT_ANSWERED`.
        """
        self.client.cookies.clear()
        for _ in range(2):
            try:
                return self.client.request(
                    method, path, headers=headers | _new_address(), content=content, json=json
                )
            except httpx.TransportError as error:
                failed = repr(error)
        return httpx.Response(NOT_ANSWERED, text=failed)


_numbers = itertools.count(1)


def _new_address() -> dict[str, str]:
    """Return a header with a client address that was not used before: it has its own rate limit."""
    number = next(_numbers)
    return {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}


def run(seconds: float, seed: int, *, program: str = "perftrail") -> Result:
    """Run the campaign; `program` is the module that is the command line."""
    trials = Trials()
    notes = []
    with tempfile.TemporaryDirectory(prefix="campaign-web-") as scratch, ExitStack() as stack:
        root = Path(scratch, "studies")
        root.mkdir()
        hostile = make_studies(root)
        tokens = Path(scratch, "tokens")
        tokens.write_text(f"read {READ}\nwrite {WRITE}\n", encoding="ascii")
        tokens.chmod(0o600)
        servers = [
            _ready(stack, root, hostile, program=program),
            _ready(stack, root, hostile, "--token-file", str(tokens), token=WRITE, program=program),
        ]
        ends = time.monotonic() + seconds
        times = [stack.enter_context(page_times(each.address, each.token)) for each in servers]
        with ExitStack() as clients:
            for each in servers:
                clients.enter_context(_greedy_clients(each, trials))
            _requests(servers, trials, until=ends, first_seed=seed)
        stack.close()
    for name, client in zip(("without tokens", "with tokens"), times, strict=True):
        notes.append(_judge(name, client.milliseconds, client.with_free_processor, trials))
        for what in client.failed:
            trials.lose(f"a page of another client failed ({name})", what)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(trials.count.items()))
    notes.insert(0, f"{counts}; {len(API)} operations and {len(ROUTES)} pages")
    return Result(trials=sum(trials.count.values()), losses=trials.losses, notes=tuple(notes))


def _judge(name: str, milliseconds: Sequence[float], free: Sequence[float], trials: Trials) -> str:
    """Return the sentence about another client's pages; a slow page is a loss if a processor was free."""
    if not milliseconds:
        trials.lose(f"another client had no page ({name})", "none")
        return f"another client had no page ({name})"
    whole = summarise_times(milliseconds)
    sentence = (
        f"pages of another client, {name}: p95 {whole.p95_ms:.0f} ms, median {whole.median_ms:.0f} ms, "
        f"n = {whole.count:,}"
    )
    if len(free) < 20:
        return f"{sentence}; a processor was free for {len(free)} of them, too few to judge the time"
    alone = summarise_times(free)
    if alone.p95_ms > GOAL_MS:
        trials.lose(f"pages of another client take more than {GOAL_MS:.0f} ms ({name})", sentence)
    return f"{sentence}; while a processor was free: p95 {alone.p95_ms:.0f} ms, n = {alone.count:,}"


def _ready(
    stack: ExitStack, root: Path, hostile: Hostile, *options: str, token: str = "", program: str
) -> Server:
    """Start a server and wait for its first snapshots."""
    address = stack.enter_context(serving(root, "--proxy", "127.0.0.1", *options, program=program)).address
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = stack.enter_context(httpx.Client(base_url=address, timeout=60.0))
    with httpx.Client(base_url=address, headers=headers, timeout=60.0) as own:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for name in ("alpha", "beta"):
            while own.get(f"/api/studies/{name}", headers=_new_address()).status_code != httpx.codes.OK:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{address} does not show {name}")
                time.sleep(0.05)
        metrics = [each["name"] for each in own.get("/api/studies/alpha/metrics").json()]
        regressions = [each["id"] for each in own.get("/api/studies/alpha/regressions").json()]
        charts = re.findall(r"/charts/([\w-]+)\.json", own.get("/s/alpha").text)
    known = {
        "study": ["alpha", "alpha", "beta"],
        "metric": metrics,
        "name": [*metrics, *charts, "app.css"],
        "revision": [hostile.revisions[3].id, hostile.revisions[7].short, "#12", "#59"],
        "key": [hostile.runnable, hostile.search, hostile.broken, *regressions],
        "regression": regressions,
        "machine": [hostile.machine, hostile.other_machine],
        "phase": ["sample", "warmup"],
        "ordinal": ["0", "1", "2", "99"],
    }
    return Server(address=address, token=token, known=known, client=client)


def _requests(servers: Sequence[Server], trials: Trials, *, until: float, first_seed: int) -> None:
    """Alternate between the kinds of requests until the time is over; each at least once."""
    roles = [
        _roles_without_tokens(servers[0], trials),
        _roles_with_tokens(servers[1], trials, random.Random(first_seed)),
    ]
    with requests.Session() as session:
        operations = [_operations(each) for each in servers]
        for number in itertools.count(first_seed):
            for server, own in zip(servers, operations, strict=True):
                _request_operations(server, own, trials, session, seed_of_round=number, until=until)
                _request_pages(server, trials, seed_of_round=number, until=until)
            for each in roles:
                next(each)
            if time.monotonic() > until:
                return


# Random arguments


def _operations(server: Server) -> list[Any]:
    document = httpx.get(
        f"{server.address}/api/openapi.json", headers=server.login | _new_address(), timeout=60.0
    ).json()
    schema = schemathesis.openapi.from_dict(document)
    return [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]


def _generated(trial: Callable[..., None], seed_of_round: int, **arguments: st.SearchStrategy[Any]) -> None:
    """Call a trial with generated arguments."""
    made = settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seeded(seed_of_round)(made(given(**arguments)(trial)))()


def _request_operations(
    server: Server,
    operations: Sequence[Any],
    trials: Trials,
    session: requests.Session,
    *,
    seed_of_round: int,
    until: float,
) -> None:
    """Request random operations, whose arguments are valid, invalid, or those of the study."""

    def trial(case: Case[Any], real: dict[str, str]) -> None:
        if time.monotonic() > until and trials.count.get("requests of operations"):
            return
        if isinstance(case.path_parameters, dict):
            own = {name: value for name, value in real.items() if name in case.path_parameters}
            if case.method.upper() == "POST" and "key" in own:
                own["key"] = real["regression"]
            case.path_parameters.update(own)
        trials.add("requests of operations")
        try:
            response = case.call(
                base_url=server.address, session=session, headers=server.login | _new_address(), timeout=60.0
            )
        except requests.RequestException as error:
            trials.lose(f"{case.operation.label} was not answered", repr(error))
            return
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                _lose_answer(trials, case, response.status_code, failure, str(response.request.url))
        except Failure as failure:
            _lose_answer(trials, case, response.status_code, failure, str(response.request.url))

    strategies = [
        each.as_strategy(mode)
        for each in operations
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    ]
    real = st.fixed_dictionaries(
        {"regression": st.sampled_from(server.known["regression"])},
        optional={
            name: st.sampled_from(values) for name, values in server.known.items() if name != "regression"
        },
    )
    _generated(trial, seed_of_round, case=st.one_of(strategies), real=real)


def _lose_answer(trials: Trials, case: Case[Any], status: int, failure: BaseException, url: str) -> None:
    what = " ".join(str(failure).split())
    trials.lose(
        f"{case.operation.label} answered {status}, which its schema does not allow: {type(failure).__name__}",
        f"{url[:300]}: {what[:300]}",
    )


HOSTILE = (
    "../../../etc/passwd",
    "%2e%2e/secret.txt",
    "'; drop table invocation; --",
    "{{ 7 * 7 }}",
    "\0",
    "#" + "9" * 400,
    "\u202e",
    "a" * 5000,
    "",
)
QUERIES = ("a", "b", "va", "vb", "metric", "first", "last", "points", "search", "status", "next", "token")


def _request_pages(server: Server, trials: Trials, *, seed_of_round: int, until: float) -> None:
    """Request random pages with random bytes in the address, the query and the body."""
    values = st.one_of(
        st.sampled_from(HOSTILE).map(_encoded), st.binary(max_size=60), st.integers().map(_encoded)
    )
    methods = st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
    argument = {
        name: st.one_of(st.sampled_from(known).map(_encoded), values) for name, known in server.known.items()
    }

    def trial(
        route: Route, method: str, arguments: dict[str, bytes], query: dict[str, bytes], body: bytes
    ) -> None:
        if time.monotonic() > until and trials.count.get("requests of pages"):
            return
        if route.path.endswith("/events") and method == "GET":  # its answer has no end
            return
        path = re.sub(
            r"{(\w+)(:\w+)?}", lambda found: quote_from_bytes(arguments[found[1]], safe=""), route.path
        )
        asked = "&".join(f"{name}={quote_from_bytes(value)}" for name, value in query.items())
        address = f"{path}?{asked}" if asked else path
        trials.add("requests of pages")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        response = server.send(method, address, server.login | form, content=body or None)
        _check_page(trials, f"{method} {route.path}", address, response)

    _generated(
        trial,
        seed_of_round,
        route=st.sampled_from(ROUTES),
        method=methods,
        arguments=st.fixed_dictionaries(argument),
        query=st.dictionaries(st.sampled_from(QUERIES), values, max_size=4),
        body=st.one_of(st.just(b""), st.binary(max_size=200), st.just(b"status=fixed&text=x&form_token=0")),
    )


def _encoded(value: object) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


def _check_page(trials: Trials, what: str, address: str, response: httpx.Response) -> None:
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        trials.lose(f"{what} answered {response.status_code}", f"{address[:300]}: {response.text[:200]}")
    if response.status_code == NOT_ANSWERED:
        return
    missing = [name for name, value in HEADERS.items() if response.headers.get(name) != value]
    if missing:
        trials.lose(f"{what} answered {response.status_code} without {', '.join(missing)}", address[:300])


# Roles


Role = Literal[
    "none", "wrong token", "forged cookie", "ended session", "read", "write", "read session", "write session"
]
OUTSIDE: tuple[Role, ...] = ("none", "wrong token", "forged cookie", "ended session")
PUBLIC = ("/login", "/static/{name}")


def _roles_without_tokens(server: Server, trials: Trials) -> Iterator[None]:
    """Request each route of a server without tokens, from this machine, with and without other sites' marks."""
    while True:
        for route in (*ROUTES, *API):
            for method in sorted(route.methods or ()):
                path = _filled(route.path, server, random.Random(0))
                if path.endswith("/events"):
                    continue
                for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {}):
                    trials.add("roles")
                    response = _send(server, method, path, headers)
                    _check_page(trials, f"{method} {route.path}", path, response)
                    foreign = "Host" in headers or ("Origin" in headers and method not in ("GET", "HEAD"))
                    if foreign and response.status_code not in (403, 421):
                        trials.lose(f"{method} {route.path} serves another site", f"{path} {headers}")
        yield


def _roles_with_tokens(server: Server, trials: Trials, rng: random.Random) -> Iterator[None]:
    """Request each route in each role of a server with tokens."""
    while True:
        headers: dict[Role, dict[str, str]] = {
            "none": {},
            "wrong token": {"Authorization": rng.choice(WRONG_TOKENS)},
            "forged cookie": {"Cookie": f"{COOKIE}={'f' * 43}"},
            "ended session": _log_in(server, WRITE, ended=True),
            "read": {"Authorization": f"Bearer {READ}"},
            "write": {"Authorization": f"Bearer {WRITE}"},
            "read session": _log_in(server, READ),
            "write session": _log_in(server, WRITE),
        }
        for route in (*ROUTES, *API):
            for method in sorted(route.methods or ()):
                for role, own in headers.items():
                    path = _filled(route.path, server, rng)
                    if path.endswith("/events") and role not in OUTSIDE:
                        continue
                    if path in ("/logout", "/login") and method == "POST":
                        continue  # they need a form, which _log_in sends
                    trials.add("roles")
                    response = _send(server, method, path, own)
                    _check_page(trials, f"{method} {route.path} as {role}", path, response)
                    _check_role(trials, role, method, route.path, response)
        yield


def _check_role(trials: Trials, role: Role, method: str, route: str, response: httpx.Response) -> None:
    """Record a loss for a route that a role must not see and sees, or must see and does not see."""
    status = response.status_code
    what = f"{method} {route} as {role} answered {status}"
    if route in PUBLIC:
        return
    if role in OUTSIDE:
        refused = 401 if route.startswith("/api/") else 303
        location = response.headers.get("location", "")
        if status != refused or (refused == 303 and not location.startswith("/login")):
            trials.lose(what, response.text[:200])
        return
    if method == "POST":
        # a form of a session needs its form token; a form of the page is not for a bearer token
        allowed = role in ("write", "write session") and route.startswith("/api/")
        if (status == 201) is not allowed:
            trials.lose(what, response.text[:200])
    elif status in (401, 403) or response.headers.get("location", "").startswith("/login"):
        trials.lose(what, response.text[:200])


def _filled(route: str, server: Server, rng: random.Random) -> str:
    """Return an address of a route with valid arguments of the study."""
    known = server.known | {"study": ["alpha"]}
    if "/regressions/" in route:
        known |= {"key": known["regression"]}
    return re.sub(r"{(\w+)(:\w+)?}", lambda found: quote(rng.choice(known[found[1]]), safe=""), route)


def _send(server: Server, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    note = {"status": "new", "text": "campaign"} if path.endswith("/notes") else None
    return server.send(method, path, headers, json=note)


def _log_in(server: Server, token: str, *, ended: bool = False) -> dict[str, str]:
    """Log in, and out again if the session has ended; return the header of the session."""
    with httpx.Client(base_url=server.address, timeout=60.0, headers=_new_address()) as browser:

        def sends(path: str, page: str, **more: str) -> httpx.Response:
            form = re.search(r'name="form_token" value="(\w+)"', browser.get(page).text)
            assert form is not None, page
            return browser.post(path, data={"form_token": form[1], **more})

        sends("/login", "/login", token=token, next="/")
        cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        if ended:
            sends("/logout", "/s/alpha/searches")
    return cookie


# Slow and greedy clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """A client that occupies a connection: it sends `first`, then `dribble` each second, and reads nothing.

    The server must end the connection within `seconds`.
    """

    name: str
    first: bytes
    dribble: bytes = b""
    seconds: float = REQUEST_SECONDS


def _greedy(server: Server) -> Sequence[Greedy]:
    login = "".join(f"{name}: {value}\r\n" for name, value in server.login.items()).encode()
    head = b"Host: localhost\r\n" + login
    return (
        Greedy(name="sends nothing", first=b""),
        Greedy(name="sends its headers one byte a second", first=b"GET / HTTP/1.1\r\nX: ", dribble=b"x"),
        Greedy(
            name="sends its body one byte a second",
            first=b"POST /login HTTP/1.1\r\n" + head + b"Content-Length: 5000\r\n\r\n",
            dribble=b"y",
        ),
        Greedy(
            name="reads nothing",
            first=(b"GET /static/vega.js HTTP/1.1\r\n" + head + b"\r\n") * 20,
            seconds=SENDING_SECONDS,
        ),
    )


LARGE: dict[str, bytes] = {
    "a cookie of 16 KB": b"Cookie: " + b"\\" * 16_384 + b"\r\n",
    "a cookie of 15 KB": b"Cookie: " + b"\\" * 15_000 + b"\r\n",
    "a cookie of 15 KB of semicolons": b"Cookie: " + b";" * 15_000 + b"\r\n",
    "10,000 bytes of one header": b"X: " + b"x" * 9_995 + b"\r\n",
    "10,000 bytes of small headers": b"X: x\r\n" * 1666,
    "10,000 headers": b"X: x\r\n" * 10_000,
}


@contextmanager
def _greedy_clients(server: Server, trials: Trials) -> Iterator[None]:
    """Occupy connections in every way during the block."""
    ended = threading.Event()
    threads = [
        threading.Thread(target=_occupy, args=(server, each, trials, ended))
        for each in _greedy(server)
        for _ in range(5)
    ]
    threads.append(threading.Thread(target=_send_large, args=(server, trials, ended)))
    for each in threads:
        each.start()
    with ExitStack() as streams:
        try:
            _open_streams(server, streams, trials)
            yield
        finally:
            ended.set()
            for each in threads:
                each.join()


def _connected(server: Server) -> socket.socket:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60.0)


def _occupy(server: Server, greedy: Greedy, trials: Trials, ended: threading.Event) -> None:
    """Occupy one connection after the other; record one that the server does not end in time."""
    while not ended.is_set():
        trials.add("slow clients")
        began = time.monotonic()
        with _connected(server) as connection:
            connection.setblocking(False)
            connection.send(greedy.first)
            while not ended.wait(1.0) and _is_open_at_server(connection):
                if time.monotonic() - began > greedy.seconds + SLACK_SECONDS:
                    trials.lose(
                        f"a client that {greedy.name} keeps its connection",
                        f"{time.monotonic() - began:.0f} s, limit {greedy.seconds:.0f} s",
                    )
                    break
                with suppress(OSError):
                    connection.send(greedy.dribble)


def _is_open_at_server(connection: socket.socket) -> bool:
    """Return whether the server still has a connection open.

    A client that does not read cannot see the end of its connection: the kernel still has data for it.
    """
    try:
        client, server = connection.getsockname()[1], connection.getpeername()[1]
    except OSError:  # the server has reset it
        return False
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        ports = (int(words[1].rpartition(":")[2], 16), int(words[2].rpartition(":")[2], 16))
        if ports == (server, client):
            return words[9] != "0"  # the number of the file; a closed socket has none
    return False


def _send_large(server: Server, trials: Trials, ended: threading.Event) -> None:
    login = "".join(f"{name}: {value}\r\n" for name, value in server.login.items()).encode()
    while not ended.is_set():
        for name, header in LARGE.items():
            trials.add("large headers")
            with _connected(server) as connection:
                address = "".join(f"{key}: {value}\r\n" for key, value in _new_address().items()).encode()
                answer = b""
                with suppress(ConnectionError):
                    connection.sendall(
                        b"GET /s/alpha HTTP/1.1\r\nHost: localhost\r\n" + login + address + header + b"\r\n"
                    )
                    answer = connection.recv(100)
            status = answer.split(b" ")[1:2]
            if answer and (not status or status[0] >= b"500"):
                trials.lose(f"{name} is answered with an error of the server", repr(answer))
        ended.wait(0.5)


def _open_streams(server: Server, stack: ExitStack, trials: Trials) -> None:
    """Open as many live streams as the server allows; one more must be refused, and not served."""
    login = "".join(f"{name}: {value}\r\n" for name, value in server.login.items()).encode()
    for number in range(STREAMS + 1):
        trials.add("live streams")
        connection = stack.enter_context(_connected(server))
        address = "".join(f"{key}: {value}\r\n" for key, value in _new_address().items()).encode()
        connection.sendall(b"GET /s/alpha/events HTTP/1.1\r\nHost: localhost\r\n" + login + address + b"\r\n")
        status = connection.recv(100).split(b" ")[1:2]
        wanted = b"200" if number < STREAMS else b"503"
        if status != [wanted]:
            trials.lose(f"live stream {number + 1} is not answered with {wanted.decode()}", repr(status))
