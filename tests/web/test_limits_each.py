"""Limits for each client: one cannot block the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from perftrail.web import api, guard, pages
from perftrail.web.access import Access, LoginSessions
from perftrail.web.guard import Guard
from tests.web.conftest import served
from tests.web.studies import Hostile


@pytest.mark.parametrize("path", ["/api/studies/{}/compare", "/s/{}/compare", "/s/{}/compare.json"])
def test_comparisons_do_not_stop_the_other_answers(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    where: list[bool] = []

    def compare(*_: object) -> tuple[()]:
        where.append(_on_loop())
        return ()

    for module in (api, pages):
        monkeypatch.setattr(module, "compare_two", compare)
    with served(hostile.root) as client:
        name = next(iter(client.guard.app.state.web.served_studies))  # type: ignore[attr-defined] # Starlette's
        client.page(f"/s/{name}")
        client.get(path.format(name))
    assert where == [False]


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_an_address_has_a_limited_number_of_streams(hostile: Hostile) -> None:
    with served(hostile.root) as client:
        shared = client.guard.app.state.web  # type: ignore[attr-defined] # Starlette's
        name = next(iter(shared.served_studies))
        shared.streams["127.0.0.1"] = pages.MOST_STREAMS_EACH
        refused = client.get(f"/s/{name}/events")
        assert refused.status_code == 503
        assert "of your address are live already" in refused.text
        shared.streams.clear()
        shared.streams["10.0.0.9"] = pages.MOST_STREAMS_EACH
        assert client.head(f"/s/{name}/events").status_code == 200


def test_an_address_has_a_limited_number_of_unfinished_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_EACH", 2)
    access = Access(proxies=frozenset({"10.0.0.1"}), hosts=frozenset({"here"}))

    async def together() -> Counter[str]:
        finish = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await finish.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        guarded = Guard(app, access=access, login_sessions=LoginSessions())
        found: Counter[str] = Counter()

        async def ask(peer: str, forwarded: str) -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    found[f"{forwarded} {message['status']}"] += 1

            headers = [(b"host", b"here"), (b"x-forwarded-for", forwarded.encode())]
            scope = {
                "type": "http", "method": "GET", "path": "/login", "raw_path": b"/login", "query_string": b"",
                "headers": headers, "client": (peer, 1),
            }  # fmt: skip
            await guarded(scope, None, send)  # type: ignore[arg-type] # nothing is received

        calls = [asyncio.create_task(ask("10.0.0.1", each)) for each in ["1.1.1.1"] * 3 + ["2.2.2.2"] * 2]
        await asyncio.sleep(0)
        finish.set()
        await asyncio.gather(*calls)
        assert not guarded.running
        return found

    assert asyncio.run(together()) == {"1.1.1.1 200": 2, "1.1.1.1 429": 1, "2.2.2.2 200": 2}
