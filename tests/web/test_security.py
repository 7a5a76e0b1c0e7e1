"""Refused requests: forms of other sites, scripts, paths, and odd or too large input."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser

import pytest

from perftrail.web.guard import BODY_BYTES, COOKIE, HEADERS, MOST_KNOWN, RateLimit
from tests.web.conftest import HERE, Client, served
from tests.web.studies import SCRIPT, SECRET, Hostile
from tests.web.test_pages import WORSE, form_token

EVIL = "https://evil.example"


def addresses(hostile: Hostile) -> list[str]:
    """The address of each page that only reads."""
    study, revision = "/s/alpha", hostile.revisions[3].id
    return [
        "/",
        study,
        f"{study}/history",
        f"{study}/history?metric=bench-00-seconds&first=2&last=9",
        f"{study}/compare?a=%231&b=%2340",
        f"{study}/regressions",
        f"{study}/searches",
        f"{study}/searches?search={hostile.search}",
        f"{study}/revisions/{revision}",
        f"{study}/revisions/{hostile.revisions[-1].id}",
        f"{study}/samples/{hostile.runnable}",
    ]


# Other sites


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:81"},
    ],
)
def test_another_sites_form_is_refused(client: Client, headers: dict[str, str]) -> None:
    page = client.page("/s/alpha/regressions")
    key = WORSE.findall(page.text)[0]
    form = {"form_token": form_token(page.text), "status": "fixed"}
    assert client.post(f"/s/alpha/regressions/{key}", data=form, headers=headers).status_code == 403
    own = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
    assert client.post(f"/s/alpha/regressions/{key}", data=form, headers=own).status_code == 303


@pytest.mark.parametrize("token", ["", "0" * 64, "\u00fc"])
def test_a_form_without_its_sessions_token_is_refused(client: Client, token: str) -> None:
    key = WORSE.findall(client.page("/s/alpha/regressions").text)[0]
    form = {"form_token": token, "status": "fixed"}
    assert client.post(f"/s/alpha/regressions/{key}", data=form).status_code == 403


def test_a_form_of_another_session_is_refused(client: Client) -> None:
    page = client.page("/s/alpha/regressions")
    form = {"form_token": form_token(page.text), "status": "fixed"}
    other = {"Cookie": f"{COOKIE}=somebody-else"}
    address = f"/s/alpha/regressions/{WORSE.findall(page.text)[0]}"
    assert client.post(address, data=form, headers=other).status_code == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_the_api_refuses_requests_that_a_form_can_send(client: Client, kind: str) -> None:
    key = WORSE.findall(client.page("/s/alpha/regressions").text)[0]
    answer = client.post(
        f"/api/studies/alpha/regressions/{key}/notes",
        content=b'{"status":"fixed"}',
        headers={"Content-Type": kind},
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::1"]
)
def test_a_host_name_of_another_site_is_refused(client: Client, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8457", "127.0.0.1:8457", "[::1]:8457", "10.1.2.3"])
def test_own_names_and_numbers_are_known(client: Client, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_every_answer_has_strict_security_headers(client: Client, guarded: Client, hostile: Hostile) -> None:
    answers = [client.page(path) for path in addresses(hostile)]
    answers += [client.get("/none"), client.get("/", headers={"Host": EVIL}), guarded.get("/s/alpha")]
    answers += [client.get("/static/app.css"), client.get("/api/studies"), guarded.get("/api/studies")]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


# Scripts


def test_no_field_can_inject_a_script(client: Client, hostile: Hostile) -> None:
    page = client.page("/s/alpha/regressions")
    key = WORSE.findall(page.text)[0]
    form = {"form_token": form_token(page.text), "status": "new", "text": SCRIPT, "author": SCRIPT[:80]}
    assert client.post(f"/s/alpha/regressions/{key}", data=form).status_code == 303
    seen = 0
    for path in addresses(hostile):
        text = client.page(path).text
        found = Tags(text)
        assert not found.names & {"img", "b", "iframe", "object"}, path
        assert not any(name.startswith("on") for name in found.attributes), path
        assert "<script>alert" not in text, path
        seen += html.escape("<script>alert(") in text and "{{ 7 * 7 }}" in text
    assert seen >= 6, "what is hostile is shown, as text"


class Tags(HTMLParser):
    """The tags and attributes of a page, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_pages_have_no_script_and_no_style_of_their_own(client: Client, hostile: Hostile) -> None:
    for path in addresses(hostile):
        text = client.page(path).text
        assert all("src=" in each for each in re.findall(r"<script[^>]*>", text)), path
        assert "<style" not in text
        assert not re.search(r"<[^>]+\sstyle=", text), path


def test_charts_and_the_api_are_no_pages(client: Client, hostile: Hostile) -> None:
    for path in (
        "/api/studies/alpha",
        f"/s/alpha/searches/{hostile.search}.json",
        "/s/alpha/history/bench-00-seconds.json",
    ):
        answer = client.page(path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


# Paths


def test_a_store_cannot_name_files_outside_its_logs(client: Client, hostile: Hostile) -> None:
    client.page("/s/alpha")
    for ordinal in (1, 2):
        answer = client.get(f"/s/alpha/logs/{hostile.runnable}/{hostile.other_machine}/sample/{ordinal}")
        assert answer.status_code == 404
        assert SECRET not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/..%2faccess.py",
        "/static/%2e%2e%2faccess.py",
        "/static/....//access.py",
        "/s/..%2f..%2fetc",
        "/s/alpha/logs/..%2f..%2fsecret.txt/x/sample/0",
        "/s/alpha/build-logs/..%2f..%2fsecret.txt",
        "/s/alpha/charts/..%2f..%2fsecret.txt.json",
        "/s/alpha/revisions/../../secret.txt",
    ],
)
def test_no_address_leads_to_a_file(client: Client, path: str) -> None:
    client.page("/s/alpha")
    answer = client.get(path)
    assert answer.status_code in (303, 404)
    assert "Role" not in answer.text
    assert SECRET not in answer.text


# Odd

LONG = "9" * 5000
"""A number with more digits than Python converts."""


@pytest.mark.parametrize(
    "path",
    [
        f"/s/alpha/revisions/%23{LONG}",
        f"/api/studies/alpha/revisions/%23{LONG}",
        f"/s/alpha/logs/a/b/sample/{LONG}",
        "/s/alpha/logs/a/b/sample/-1",
        "/s/alpha/revisions/%ff%fe",
        "/s/alpha/compare?a=%ff&va=%ed%a0%80",
        "/s/alpha/samples/%F0%9F%A6%86",
        "/s/alpha/searches?search=%E2%80%AE",
    ],
)
def test_odd_addresses_are_not_found_without_a_server_error(client: Client, path: str) -> None:
    client.page("/s/alpha")
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/s/alpha/samples/%00", "/s/alpha/compare?a=%00", "/static/%00app.css"])
def test_a_character_that_no_database_stores_is_refused(client: Client, path: str) -> None:
    assert client.get(path).status_code == 400


def test_a_length_of_which_no_number_is_made_is_too_large(client: Client) -> None:
    answer = client.post("/login", content=b"x", headers={"Content-Length": LONG})
    assert answer.status_code == 413


def test_surrogates_are_stored_as_text(client: Client) -> None:
    key = client.page("/api/studies/alpha/regressions").json()[0]["id"]
    answer = client.post(
        f"/api/studies/alpha/regressions/{key}/notes",
        content=b'{"status": "new", "text": "half \\ud800 \\u0000", "author": "\\udfff"}',
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status_code, answer.json()["text"]) == (201, r"half \ud800 \x00")
    assert client.get("/s/alpha/regressions").status_code == 200


# Too much


def test_input_that_is_too_large_is_refused(client: Client) -> None:
    key = WORSE.findall(client.page("/s/alpha/regressions").text)[0]
    large = b"text=" + b"x" * BODY_BYTES
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post(f"/s/alpha/regressions/{key}", content=large, headers=kind).status_code == 413
    pieces = (b"x" * 1000 for _ in range(BODY_BYTES // 1000 + 1))
    assert client.post(f"/s/alpha/regressions/{key}", content=pieces, headers=kind).status_code == 413


def test_a_long_note_is_refused(client: Client) -> None:
    page = client.page("/s/alpha/regressions")
    key = WORSE.findall(page.text)[0]
    form = {"form_token": form_token(page.text), "status": "new", "text": "x" * 2001}
    assert client.post(f"/s/alpha/regressions/{key}", data=form).status_code == 422
    assert client.get(f"/s/alpha/compare?a={'x' * 300}").status_code == 400


def test_clients_with_too_many_requests_must_wait(hostile: Hostile) -> None:
    with served(hostile.root) as client:
        client.guard.rate_limit = RateLimit(burst=5.0, each_second=0.01)
        codes = [client.get("/static/app.css").status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3


def test_a_rate_limit_recovers_and_the_number_of_stored_clients_is_limited() -> None:
    rate_limit = RateLimit(burst=1.0, each_second=1.0)
    assert [rate_limit.allows("one"), rate_limit.allows("one")] == [True, False]
    while not rate_limit.allows("one"):
        time.sleep(0.05)
    slow = RateLimit(burst=1.0, each_second=1e-6)
    assert [slow.allows("one"), slow.allows("one"), slow.allows("other")] == [True, False, True]
    for number in range(MOST_KNOWN + 5):
        slow.allows(str(number))
    assert slow.allows("one"), "whom nobody remembers may ask again"
