"""Access: only with a token or a proxy's header, only during a login session, and not by guessing."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from perftrail.errors import UsageError
from perftrail.web.access import LOOPBACK, Access, Tokens, read_tokens
from perftrail.web.app import API, ROUTES, bind
from perftrail.web.guard import COOKIE, SAFE, RateLimit, client_address
from tests.web.conftest import READ, WRITE, Client, served
from tests.web.studies import Hostile
from tests.web.test_pages import WORSE, form_token

EVIL = "https://evil.example"


def filled(path: str) -> str:
    """An address of a route, with any values of its parameters."""
    return re.sub(r"{\w+(:\w+)?}", lambda found: "1" if found[1] == ":int" else "alpha", path)


def test_no_request_is_served_without_a_token(guarded: Client) -> None:
    for route in (*ROUTES, *API):
        if route.path in ("/login", "/static/{name}"):
            continue
        for method in route.methods or ():
            answer = guarded.request(method, filled(route.path))
            wanted = 401 if route.path.startswith("/api/") else 303
            assert answer.status_code == wanted, route.path
            if wanted == 303:
                door = "/login?next=" if method in SAFE else "/login"
                assert answer.headers["location"].startswith(door)


def test_a_wrong_token_opens_nothing(guarded: Client) -> None:
    for token in ("", WRITE[:-1], WRITE + "w", READ.upper(), "\u00fc" * 24):
        answer = guarded.get("/api/studies", headers={b"Authorization": f"Bearer {token}".encode()})
        assert answer.status_code == 401
    page = guarded.get("/login")
    answer = guarded.post("/login", data={"form_token": form_token(page.text), "token": "x" * 24})
    assert answer.status_code == 403
    assert guarded.get("/s/alpha").status_code == 303


@pytest.fixture
def fresh(hostile: Hostile) -> Iterator[Client]:
    with served(hostile.root, Access(tokens=Tokens({WRITE: "write", READ: "read"}))) as client:
        yield client


def enter(client: Client, token: str, onward: str = "/") -> httpx.Response:
    page = client.get("/login")
    return client.post("/login", data={"form_token": form_token(page.text), "token": token, "next": onward})


def test_a_token_is_read_from_a_form_and_is_in_no_address(fresh: Client) -> None:
    before = fresh.get("/login").cookies[COOKIE]
    answer = enter(fresh, WRITE, "/s/alpha")
    assert (answer.status_code, answer.headers["location"]) == (303, "/s/alpha")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert fresh.cookies[COOKIE] != before, "a name that somebody knew before is worth nothing"
    assert WRITE not in str(answer.headers)
    assert fresh.page("/s/alpha").status_code == 200


def test_a_token_in_an_address_is_none(guarded: Client) -> None:
    assert guarded.get(f"/api/studies?token={WRITE}").status_code == 401


def test_a_permalink_leads_to_itself_after_the_login(fresh: Client) -> None:
    path = "/s/alpha/revisions/%2312"
    for whole in (f"{path}?x=%26", "/s/alpha/history?metric=bench-00-seconds&first=3&last=9", path):
        door = fresh.get(whole).headers["location"]
        requested = re.search(r'name="next" value="([^"]*)"', fresh.get(door).text)
        assert requested is not None
        assert html.unescape(requested[1]) == whole
    answer = enter(fresh, READ, f"{path}?x=%26")
    assert answer.headers["location"] == f"{path}?x=%26"


def test_a_form_of_an_ended_session_leads_to_the_login_page(
    fresh: Client,
) -> None:
    answer = fresh.post("/s/alpha/regressions/1", data={"status": "new"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_a_request_from_another_site_ends_no_session(hostile: Hostile) -> None:
    with served(hostile.root) as client:
        assert "samesite=lax" in client.get("/").headers["set-cookie"].lower()
        assert "set-cookie" not in client.get("/").headers, "the session continues"


@pytest.mark.parametrize("onward", ["//evil.example", EVIL, "/\\evil.example", "javascript:alert(1)"])
def test_the_login_redirects_to_no_other_site(fresh: Client, onward: str) -> None:
    assert enter(fresh, READ, onward).headers["location"] == "/"


def test_a_logout_ends_the_session(fresh: Client) -> None:
    enter(fresh, READ)
    old = fresh.cookies[COOKIE]
    page = fresh.page("/s/alpha")
    assert fresh.post("/logout", data={"form_token": form_token(page.text)}).status_code == 303
    assert fresh.get("/s/alpha", headers={"Cookie": f"{COOKIE}={old}"}).status_code == 303


def test_a_reader_cannot_write(fresh: Client) -> None:
    enter(fresh, READ)
    page = fresh.page("/s/alpha/regressions")
    key = WORSE.findall(page.text)[0]
    assert "Change the status or add a note" not in page.text
    form = {"form_token": form_token(page.text), "status": "fixed", "text": "no"}
    assert fresh.post(f"/s/alpha/regressions/{key}", data=form).status_code == 403
    note = {"status": "fixed"}
    bearer = {"Authorization": f"Bearer {READ}"}
    assert (
        fresh.post(f"/api/studies/alpha/regressions/{key}/notes", json=note, headers=bearer).status_code
        == 403
    )
    bearer = {"Authorization": f"Bearer {WRITE}"}
    assert (
        fresh.post(f"/api/studies/alpha/regressions/{key}/notes", json=note, headers=bearer).status_code
        == 201
    )


def test_guessing_is_slow(fresh: Client) -> None:
    codes = [enter(fresh, f"{number:024}").status_code for number in range(8)]
    assert codes[:5] == [403] * 5
    assert codes[5:] == [429] * 3
    assert enter(fresh, WRITE).status_code == 429, "not even the right one meanwhile"


@pytest.fixture
def proxied(hostile: Hostile) -> Iterator[Client]:
    """A server behind a proxy, and the proxy's connections to it."""
    access = Access(tokens=Tokens({WRITE: "write", READ: "read"}), proxies=LOOPBACK)
    with served(hostile.root, access) as client:
        yield client


def test_a_header_that_no_proxy_of_the_server_sent_gives_no_more_attempts(fresh: Client) -> None:
    for number in range(8):
        fresh.headers["X-Forwarded-For"] = f"192.0.2.{number}"
        assert enter(fresh, f"{number:024}").status_code == (403 if number < 5 else 429)


def test_failed_logins_behind_a_proxy_lock_out_no_other_client(proxied: Client) -> None:
    fresh = proxied
    for _ in range(20):  # without a valid form, nothing counts as an attempt
        assert fresh.post("/login", data={"form_token": "none", "token": "x" * 24}).status_code == 403
    stranger, ann = ({"X-Forwarded-For": f"10.9.9.9, {address}"} for address in ("192.0.2.1", "192.0.2.2"))

    def attempt(token: str, headers: dict[str, str]) -> int:
        page = fresh.get("/login", headers=headers)
        form = {"form_token": form_token(page.text), "token": token, "next": "/"}
        return fresh.post("/login", data=form, headers=headers).status_code

    assert [attempt("x" * 24, stranger) for _ in range(6)] == [403] * 5 + [429]
    assert attempt(WRITE, ann) == 303


def test_an_address_from_a_header_counts_from_the_proxy_alone() -> None:
    def seen(peer: str, *headers: str) -> str:
        sent = [(b"x-forwarded-for", header.encode()) for header in headers]
        scope = {"type": "http", "client": (peer, 1), "headers": sent}
        return client_address(scope, Access(proxies=frozenset({"10.0.0.1"})))

    assert seen("192.0.2.7", "192.0.2.8") == "192.0.2.7"
    assert seen("10.0.0.1", "192.0.2.8, 192.0.2.9") == "192.0.2.9"
    assert seen("10.0.0.1", "192.0.2.8", "192.0.2.9") == "192.0.2.9"
    assert seen("10.0.0.1", "nonsense") == seen("10.0.0.1") == "10.0.0.1"


def test_a_cookie_is_read_in_linear_time_and_only_in_its_form(fresh: Client) -> None:
    page = fresh.get("/login")
    name = page.cookies[COOKIE]
    for header, known in (
        (f"a=b; {COOKIE}={name}; c", True),
        (f"{COOKIE}=\u00e9; {COOKIE}={name}", False),
        (f'{COOKIE}="{name}"', False),
        ("\\" * 15_000, False),
    ):
        sent = {"Cookie": header.encode()}
        form = {"form_token": form_token(page.text), "token": WRITE}
        answer = fresh.post("/login", data=form, headers=sent)  # type: ignore[arg-type] # bytes are allowed
        assert (answer.status_code == 303) is known, header[:40]


def test_a_logged_in_user_is_not_limited_by_others_behind_the_same_proxy(fresh: Client) -> None:
    enter(fresh, READ)
    fresh.guard.rate_limit = RateLimit(burst=3.0, each_second=1e-6)
    stranger = {"Cookie": f"{COOKIE}=nobody"}
    assert [fresh.get("/login", headers=stranger).status_code for _ in range(4)] == [200] * 3 + [429]
    assert fresh.get("/login").status_code == 200


def test_a_proxys_header_is_accepted_from_the_proxy_alone(hostile: Hostile) -> None:
    access = Access(header="X-User", proxies=frozenset({"10.0.0.1"}), writers=frozenset({"ann"}))
    with served(hostile.root, access, address="10.0.0.9") as stranger:
        assert stranger.get("/s/alpha", headers={"X-User": "ann"}).status_code == 401
    with served(hostile.root, access, address="10.0.0.1") as proxy:
        assert proxy.get("/s/alpha").status_code == 401
        proxy.headers["X-User"] = "bob"
        assert "Change the status or add a note" not in proxy.page("/s/alpha/regressions").text
        proxy.headers["X-User"] = "ann"
        assert "Change the status or add a note" in proxy.page("/s/alpha/regressions").text


def test_a_user_header_added_by_the_proxys_client_is_refused(hostile: Hostile) -> None:
    access = Access(header="X-User", proxies=LOOPBACK, writers=frozenset({"ann"}))
    with served(hostile.root, access) as proxy:
        both = [("X-User", "ann"), ("X-User", "bob")]
        assert proxy.get("/", headers=httpx.Headers(both)).status_code == 401
        assert proxy.get("/", headers=httpx.Headers(both[1:])).status_code == 200


def test_other_machines_need_a_token() -> None:
    with pytest.raises(UsageError, match="--token-file"):
        bind("0.0.0.0", 0, Access())
    bind("127.0.0.1", 0, Access()).close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no token"),
        ("write short", "can be guessed"),
        ("admin " + "x" * 30, "not a valid token"),
        ("x\x00" * 20, "not a valid token"),
    ],
)
def test_what_is_no_token_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(UsageError, match=why):
        read_tokens(str(file))


def test_a_pipe_and_a_huge_file_are_refused_at_once(tmp_path: Path) -> None:
    pipe, huge = tmp_path / "pipe", tmp_path / "huge"
    os.mkfifo(pipe, 0o600)
    huge.touch(0o600)
    os.truncate(huge, 1 << 40)
    for file, why in ((pipe, "cannot be read"), (huge, "larger than 1024 KiB")):
        with pytest.raises(UsageError, match=why):
            read_tokens(str(file))


def test_tokens_that_others_can_read_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who\nread {READ}\n{WRITE}\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_tokens(str(file))
    file.chmod(0o600)
    tokens = read_tokens(str(file))
    assert tokens is not None
    assert [tokens.role(each) for each in (READ, WRITE, "x")] == ["read", "write", None]
