"""Every page shows the content of the store without a script, and addresses are permanent."""

from __future__ import annotations

import html
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import Request

from perftrail import studyfile
from perftrail.model.subject import Subject
from perftrail.present.dashboard.snapshot import take_snapshot
from perftrail.web.app import ROUTES
from perftrail.web.request_arguments import requested_subjects
from tests.copied import copy_study
from tests.web.conftest import Client, served
from tests.web.studies import REVISIONS, Hostile, more_steps, start_again

WORSE = re.compile(r'<article class="card regression" id="(\w+)">')


def form_token(text: str) -> str:
    found = re.search(r'name="form_token" value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_a_directory_of_studies_shows_each(client: Client) -> None:
    text = client.page("/").text
    assert 'href="/s/alpha"' in text
    assert 'href="/s/beta"' in text


def test_each_study_shows_its_answer_last_activity_sparkline_and_open_regressions(
    client: Client, hostile: Hostile
) -> None:
    text = client.page("/").text
    alpha = text[text.index('href="/s/alpha"') : text.index('href="/s/beta"')]
    assert hostile.revisions[37].short in alpha
    assert re.search(r'last activity <time datetime="[^"]+">\d{4}-\d\d-\d\d ', alpha)
    path = re.search(r'<path d="(M[^"]+)"', alpha)
    assert path is not None
    assert path[1].count(" L") >= 30
    assert re.search(r'href="/s/alpha/regressions">\d+ open regressions?<', alpha)


def test_the_overview_answers_and_says_what_is_stored(client: Client, hostile: Hostile) -> None:
    text = client.page("/s/alpha").text
    assert hostile.revisions[37].short in text[: text.index("Running work")]
    assert "1.080 to 1.120" in text
    assert "Content of the store" in text
    assert "No measurement is running" in text


def test_charts_are_given_to_the_script(client: Client) -> None:
    text = client.page("/s/alpha").text
    addresses = re.findall(r'data-spec="([^"]+)"', text)
    assert len(addresses) >= 2
    for address in addresses:
        data = client.get(address).json()
        assert data["spec"]["layer"]
        assert data["looks"]["dark"] != data["looks"]["light"]


def test_a_history_can_be_zoomed_from_all_of_it_to_one_revision(client: Client) -> None:
    whole = client.page("/s/alpha/history").text
    assert f"{REVISIONS + 1} of {REVISIONS + 1} revisions" in whole
    assert "<h2>Changes</h2>" in whole
    closer = client.page("/s/alpha/history?first=12&last=12").text
    assert "1 of 61 revisions" in closer
    assert closer.count("<code>") == 1
    drawn = client.get("/s/alpha/history/bench-00-seconds.json?first=10&last=19").json()
    series = next(layer for layer in drawn["spec"]["layer"] if layer["data"].get("name") == "points")
    assert [each["position"] for each in series["data"]["values"]] == list(range(10, 20))
    assert series["encoding"]["x"]["scale"]["domain"] == [9.5, 19.5]


@pytest.mark.parametrize("requested", ["first=-1", "first=x", "last=1e9", "first=" + "9" * 30, "metric=none"])
def test_an_invalid_part_is_refused_without_a_server_error(client: Client, requested: str) -> None:
    assert client.get(f"/s/alpha/history?{requested}").status_code in (400, 404)


def test_a_part_beyond_the_end_is_the_end(client: Client) -> None:
    assert "1 of 61 revisions" in client.page("/s/alpha/history?first=900&last=1000").text


def test_subjects_are_compared_whatever_they_are(client: Client, hostile: Hostile) -> None:
    one, other = hostile.revisions[5], hostile.revisions[50]
    text = client.page(f"/s/alpha/compare?a={one.id}&b=%2350").text
    assert f"{other.short} against {one.short}" in text
    assert "values, not interleaved" in text
    assert client.get(f"/s/alpha/compare.json?a={one.short}&b={other.short}").status_code == 200
    assert "no revision of this study has this name" in client.get("/s/alpha/compare?a=nothing").text


@pytest.mark.parametrize(
    ("requested", "first", "second"),
    [
        ("", (-1, "plain"), (-1, "fast")),
        ("a=%231&b=%232", (1, "plain"), (2, "plain")),
        ("a=%231&b=%232&vb=fast", (1, "fast"), (2, "fast")),
        ("a=%231&va=plain&b=%231&vb=fast", (1, "plain"), (1, "fast")),
        ("b=%233", (0, "plain"), (3, "plain")),
    ],
)
def test_revisions_are_compared_in_the_same_variant_unless_others_are_named(
    hostile: Hostile, requested: str, first: tuple[int, str], second: tuple[int, str]
) -> None:
    snapshot = take_snapshot(str(hostile.root / "beta" / "perftrail.toml"), store=None)
    view = snapshot.report_data.view
    [plain] = view.study.variants.values()
    study = replace(view.study, variants={"plain": plain, "fast": plain})
    data = replace(snapshot.report_data, view=replace(view, study=study))
    request = Request({"type": "http", "query_string": requested.encode(), "headers": []})
    found = requested_subjects(request, replace(snapshot, report_data=data))
    assert found == tuple(
        Subject(revision=data.measured[index], variant=variant) for index, variant in (first, second)
    )


def test_interleaved_samples_of_a_run_are_compared_by_pairs(client: Client) -> None:
    assert "8 interleaved pairs" in client.page("/s/beta/compare").text


def test_a_revision_leads_to_its_samples_builds_and_logs(client: Client, hostile: Hostile) -> None:
    text = client.page(f"/s/alpha/revisions/{hostile.revisions[0].id}").text
    assert f"/s/alpha/samples/{hostile.runnable}" in text
    assert "/s/alpha/history?metric=bench-00-seconds&amp;first=0&amp;last=25" in text
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


def test_a_search_is_shown_step_by_step(client: Client, hostile: Hostile) -> None:
    text = client.page(f"/s/alpha/searches?search={hostile.search}").text
    assert "How the search went" in text
    assert client.get(f"/s/alpha/searches/{hostile.search}.json").json()["spec"]["layer"]
    assert client.get("/s/alpha/searches?search=none").status_code == 404
    steps = client.get(f"/api/studies/alpha/searches/{hostile.search}").json()["steps"]
    assert [each["belief"].get("no_change") for each in steps] == [None, 0.25, 0.5 / 3, 0.125, 0.1]


def test_every_row_is_somewhere(hostile: Hostile, tmp_path: Path) -> None:
    copy_study(hostile.root / "beta", tmp_path / "beta")
    more_steps(tmp_path / "beta", 45)
    with served(tmp_path) as client:
        overview = client.page("/s/beta").text
        assert "35 more rows; Searches has all of them" in overview
        assert "2 more rows; History has all of them" in overview
        assert client.page("/s/beta/searches").text.count("measured, step") == 45


def test_regressions_come_newest_first_and_people_say_what_becomes_of_them(client: Client) -> None:
    page = client.page("/s/alpha/regressions")
    keys = WORSE.findall(page.text)
    assert len(keys) >= 2
    for link in ("compare before and after", "along the history"):
        found = re.search(f'href="([^"]+)">{link}<', page.text)
        assert found is not None
        assert client.get(html.unescape(found[1])).status_code == 200
    positions = [each["position"] for each in client.get("/api/studies/alpha/regressions").json()]
    assert positions == sorted(positions, reverse=True)
    reported = {
        "form_token": form_token(page.text),
        "status": "acknowledged",
        "text": "It is\r\nthe table.",
        "author": "Ann",
    }
    answer = client.post(f"/s/alpha/regressions/{keys[0]}", data=reported)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/s/alpha/regressions#{keys[0]}")
    after = client.page("/s/alpha/regressions?status=acknowledged").text
    assert WORSE.findall(after) == [keys[0]]
    assert "It is\nthe table." in after
    assert keys[0] not in client.page("/s/alpha/regressions?status=new").text


def test_a_regression_names_the_three_functions_that_explain_it(client: Client, hostile: Hostile) -> None:
    known = client.page("/api/studies/alpha/regressions").json()
    explained = [each for each in known if each["why"]]
    assert {each["revisions"][0] for each in explained} == {hostile.revisions[37].id}
    assert {each["benchmark"] for each in explained} == {"bench-00"}
    for each in explained:
        assert len(each["why"]) == 3
        assert "% in" in each["why"][0]
    page = client.page("/s/alpha/regressions").text
    found = re.findall(r'<ul class="why">(.*?)</ul>', page, re.DOTALL)
    assert [html.unescape(line) for line in re.findall("<li>(.*?)</li>", found[0])] == explained[0]["why"]
    assert "&lt;script&gt;" in found[0]


def test_the_flame_graph_of_an_explanation_is_a_page_without_access_to_the_others(client: Client) -> None:
    addresses = set()
    for path in ("/s/alpha", "/s/alpha/regressions"):
        addresses |= set(re.findall(r'href="(/s/alpha/flame-graphs/[^"]+)"', client.page(path).text))
    [address] = addresses
    answer = client.page(address)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none';")
    assert "connect-src" not in policy
    assert "allow-same-origin" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "<script>alert" not in answer.text
    assert client.get(address.replace("flame-", "flame-0", 1)).status_code == 404


@pytest.mark.parametrize("path", ["/nothing", "/s/none", "/s/alpha/revisions/none", "/s/alpha/samples/none"])
def test_a_missing_page_has_a_page_that_reports_it(client: Client, path: str) -> None:
    client.page("/s/alpha")
    answer = client.get(path)
    assert answer.status_code == 404
    assert "perftrail" in answer.text
    inside = path.startswith("/s/alpha/")
    assert ('href="/s/alpha/history"' in answer.text) == inside, "the way back"


def test_a_status_that_there_is_not_is_refused(client: Client) -> None:
    client.page("/s/alpha")
    assert client.get("/s/alpha/regressions?status=gone").status_code == 400


def test_json_has_the_addresses_of_logs(client: Client, hostile: Hostile) -> None:
    there = client.page(f"/api/studies/alpha/samples/{hostile.runnable}").json()
    known = [start["log"] for each in there for start in each["invocations"] if start["log"]]
    assert "printed" in client.get(known[0]).text
    builds = client.get(f"/api/studies/alpha/revisions/{hostile.revisions[3].id}").json()["builds"]
    [log] = [each["log"] for each in builds if not each["succeeded"]]
    assert "printed" in client.get(log).text


def test_no_browser_shows_a_page_with_an_older_script(client: Client) -> None:
    drawn = client.page("/s/alpha").text
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', drawn)
    assert len(addresses) == 7
    for address in addresses:
        path, _, stamp = address.partition("?")
        assert stamp
        assert "immutable" in client.get(address).headers["cache-control"]
        assert client.get(path).headers["cache-control"] == "no-cache"
        assert client.get(f"{path}?{stamp}0").headers["cache-control"] == "no-cache"


def test_a_study_that_can_be_read_no_more_is_shown_as_it_was_and_says_so(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHORTEST_PAUSE_SECONDS", "PAUSE_FACTOR", "TROUBLE_SECONDS", "CHECK_SECONDS"):
        monkeypatch.setattr(f"perftrail.web.studies.{name}", 0.1)
    copy_study(hostile.root / "beta", tmp_path / "beta")
    file = tmp_path / "beta" / "perftrail.toml"
    known, text = studyfile.load(str(file)), file.read_text()
    with served(tmp_path) as client:
        page = client.page("/s/beta").text
        assert "can no longer read the study" not in page
        file.write_text(f"{text}\n<b>")
        start_again(known)
        page = until_page(
            client,
            "/s/beta",
            expected="perftrail can no longer read the study. This page shows its last state.",
        )
        assert "&lt;b&gt;" in page
        assert "Content of the store" in page
        file.write_text(text)
        until_page(client, "/s/beta", unsaid="can no longer read the study")


def until_page(client: Client, path: str, *, expected: str = "", unsaid: str = "\0") -> str:
    over = time.monotonic() + 20.0
    while True:
        text = str(client.page(path).text)
        if expected in text and unsaid not in text:
            return text
        assert time.monotonic() < over, text
        time.sleep(0.05)


def test_every_page_is_known_to_these_tests() -> None:
    assert {route.path for route in ROUTES} == {
        "/",
        "/login",
        "/logout",
        "/static/{name}",
        "/s/{study}",
        "/s/{study}/events",
        "/s/{study}/charts/{name}.json",
        "/s/{study}/history",
        "/s/{study}/history/{name}.json",
        "/s/{study}/searches",
        "/s/{study}/searches/{key}.json",
        "/s/{study}/compare",
        "/s/{study}/compare.json",
        "/s/{study}/samples/{key}",
        "/s/{study}/logs/{key}/{machine}/{phase}/{ordinal}",
        "/s/{study}/build-logs/{key}",
        "/s/{study}/flame-graphs/{name}",
        "/s/{study}/regressions",
        "/s/{study}/regressions/{key}",
        "/s/{study}/revisions/{revision:path}",
    }
