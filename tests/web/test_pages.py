"""Every page says what the store holds, without a script; every address stays."""

from __future__ import annotations

import re

import pytest

from perftrail.web.app import ROUTES
from tests.web.conftest import Client
from tests.web.studies import REVISIONS, Hostile

WORSE = re.compile(r'<article class="card regression" id="(\w+)">')


def form_token(text: str) -> str:
    found = re.search(r'name="form_token" value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_a_directory_of_studies_shows_each(client: Client) -> None:
    text = client.page("/").text
    assert 'href="/s/alpha"' in text
    assert 'href="/s/beta"' in text


def test_the_overview_answers_and_says_what_is_stored(client: Client, hostile: Hostile) -> None:
    text = client.page("/s/alpha").text
    assert hostile.revisions[37].short in text[: text.index("Right now")]
    assert "1.080 to 1.120" in text
    assert "What is stored" in text
    assert "Nothing is measured right now" in text


def test_figures_are_given_to_the_script(client: Client) -> None:
    text = client.page("/s/alpha").text
    addresses = re.findall(r'data-spec="([^"]+)"', text)
    assert len(addresses) >= 2
    for address in addresses:
        told = client.get(address).json()
        assert told["spec"]["layer"]
        assert told["looks"]["dark"] != told["looks"]["light"]


def test_a_history_is_looked_at_from_all_of_it_to_one_revision(client: Client) -> None:
    whole = client.page("/s/alpha/history").text
    assert f"{REVISIONS + 1} of {REVISIONS + 1} revisions" in whole
    assert "Where it changed" in whole
    closer = client.page("/s/alpha/history?first=12&last=12").text
    assert "1 of 61 revisions" in closer
    assert closer.count("<code>") == 1
    drawn = client.get("/s/alpha/history/bench-00-seconds.json?first=10&last=19").json()
    series = next(layer for layer in drawn["spec"]["layer"] if layer["data"].get("name") == "points")
    assert [each["position"] for each in series["data"]["values"]] == list(range(10, 20))
    assert series["encoding"]["x"]["scale"]["domain"] == [9.5, 19.5]


@pytest.mark.parametrize("asked", ["first=-1", "first=x", "last=1e9", "first=" + "9" * 30, "figure=none"])
def test_a_part_that_makes_no_sense_is_refused_and_no_error_of_ours(client: Client, asked: str) -> None:
    assert client.get(f"/s/alpha/history?{asked}").status_code in (400, 404)


def test_a_part_beyond_the_end_is_the_end(client: Client) -> None:
    assert "1 of 61 revisions" in client.page("/s/alpha/history?first=900&last=1000").text


def test_subjects_are_compared_whatever_they_are(client: Client, hostile: Hostile) -> None:
    one, other = hostile.revisions[5], hostile.revisions[50]
    text = client.page(f"/s/alpha/compare?a={one.id}&b=%2350").text
    assert f"{other.short} against {one.short}" in text
    assert "values, not in turns" in text
    assert client.get(f"/s/alpha/compare.json?a={one.short}&b={other.short}").status_code == 200
    assert "no revision of this study is called so" in client.get("/s/alpha/compare?a=nothing").text


def test_what_a_run_took_in_turns_is_compared_by_pairs(client: Client) -> None:
    assert "8 pairs in turns" in client.page("/s/beta/compare").text


def test_a_revision_leads_to_its_samples_builds_and_logs(client: Client, hostile: Hostile) -> None:
    text = client.page(f"/s/alpha/revisions/{hostile.revisions[0].id}").text
    assert f"/s/alpha/samples/{hostile.runnable}" in text
    broken = client.page(f"/s/alpha/revisions/{hostile.revisions[3].id}").text
    assert f"/s/alpha/build-logs/{hostile.broken}" in broken
    assert "printed" in client.get(f"/s/alpha/build-logs/{hostile.broken}").text


def test_every_sample_is_there_with_its_log(client: Client, hostile: Hostile) -> None:
    text = client.page(f"/s/alpha/samples/{hostile.runnable}").text
    assert text.count("sample 0") == 2, "on each of two machines"
    address = f"/s/alpha/logs/{hostile.runnable}/{hostile.other_machine}/sample/0"
    assert address in text
    log = client.get(address)
    assert log.headers["content-type"] == "text/plain; charset=utf-8"
    assert "printed" in log.text


def test_a_search_is_told_step_by_step(client: Client, hostile: Hostile) -> None:
    text = client.page(f"/s/alpha/searches?search={hostile.search}").text
    assert "How the search went" in text
    assert client.get(f"/s/alpha/searches/{hostile.search}.json").json()["spec"]["layer"]
    assert client.get("/s/alpha/searches?search=none").status_code == 404


def test_regressions_come_newest_first_and_people_say_what_becomes_of_them(client: Client) -> None:
    page = client.page("/s/alpha/regressions")
    keys = WORSE.findall(page.text)
    assert len(keys) >= 2
    positions = [each["position"] for each in client.get("/api/studies/alpha/regressions").json()]
    assert positions == sorted(positions, reverse=True)
    said = {
        "form_token": form_token(page.text),
        "status": "acknowledged",
        "text": "It is\r\nthe table.",
        "author": "Ann",
    }
    answer = client.post(f"/s/alpha/regressions/{keys[0]}", data=said)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/s/alpha/regressions#{keys[0]}")
    after = client.page("/s/alpha/regressions?status=acknowledged").text
    assert WORSE.findall(after) == [keys[0]]
    assert "It is\nthe table." in after
    assert keys[0] not in client.page("/s/alpha/regressions?status=new").text


@pytest.mark.parametrize("path", ["/nothing", "/s/none", "/s/alpha/revisions/none", "/s/alpha/samples/none"])
def test_what_there_is_not_is_said_in_a_page(client: Client, path: str) -> None:
    client.page("/s/alpha")
    answer = client.get(path)
    assert answer.status_code == 404
    assert "perftrail" in answer.text


def test_every_page_is_known_to_these_tests() -> None:
    assert {route.path for route in ROUTES} == {
        "/",
        "/login",
        "/logout",
        "/static/{name}",
        "/s/{study}",
        "/s/{study}/events",
        "/s/{study}/figures/{name}.json",
        "/s/{study}/history",
        "/s/{study}/history/{name}.json",
        "/s/{study}/searches",
        "/s/{study}/searches/{key}.json",
        "/s/{study}/compare",
        "/s/{study}/compare.json",
        "/s/{study}/samples/{key}",
        "/s/{study}/logs/{key}/{machine}/{phase}/{ordinal:int}",
        "/s/{study}/build-logs/{key}",
        "/s/{study}/regressions",
        "/s/{study}/regressions/{key}",
        "/s/{study}/revisions/{revision:path}",
    }
