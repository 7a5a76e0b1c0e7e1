"""The API satisfies its document, and the document describes every route."""

from __future__ import annotations

from typing import Any

import jsonschema
import openapi_spec_validator
import pytest

from perftrail.web.app import API, OPERATIONS
from perftrail.web.openapi import plain_path
from tests.web.conftest import Client
from tests.web.studies import Hostile


@pytest.fixture(scope="module")
def document(client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.get("/api/openapi.json").json()
    return answer


def addresses(hostile: Hostile) -> dict[str, str]:
    """The address of each operation that only reads."""
    study = "/api/studies/alpha"
    return {
        "/api/openapi.json": "/api/openapi.json",
        "/api/studies": "/api/studies",
        "/api/studies/{study}": study,
        "/api/studies/{study}/metrics": f"{study}/metrics",
        "/api/studies/{study}/history/{metric}": f"{study}/history/bench-00-seconds?first=3&last=50&points=7",
        "/api/studies/{study}/revisions/{revision}": f"{study}/revisions/{hostile.revisions[3].id}",
        "/api/studies/{study}/samples/{key}": f"{study}/samples/{hostile.runnable}",
        "/api/studies/{study}/compare": f"{study}/compare?a=%231&b=%2340",
        "/api/studies/{study}/regressions": f"{study}/regressions",
        "/api/studies/{study}/searches": f"{study}/searches",
        "/api/studies/{study}/searches/{key}": f"{study}/searches/{hostile.search}",
        "/api/studies/{study}/live": f"{study}/live",
    }


def test_the_document_is_an_openapi_document(document: dict[str, Any]) -> None:
    openapi_spec_validator.validate(document)


def test_the_document_names_exactly_the_routes(document: dict[str, Any]) -> None:
    reported = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    there = {
        (plain_path(route.path), method)
        for route in API
        for method in (route.methods or ())
        if method != "HEAD"  # it comes with GET
    }
    assert reported == there


def test_each_answer_has_the_documented_form(
    client: Client, document: dict[str, Any], hostile: Hostile
) -> None:
    known = addresses(hostile)
    assert set(known) == {plain_path(each.path) for each in OPERATIONS if each.method == "GET"} | {
        "/api/openapi.json"
    }
    for path, address in known.items():
        answer = client.page(address)
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        whole = {**schema, "components": document["components"]}
        jsonschema.Draft202012Validator(whole).validate(answer.json())


def test_refusals_have_the_documented_form(client: Client, document: dict[str, Any]) -> None:
    client.page("/api/studies/alpha")
    schema = document["components"]["schemas"]["Error"]
    for path in (
        "/api/studies/none",
        "/api/studies/alpha/history/none",
        "/api/studies/alpha/compare?a=nothing",
    ):
        answer = client.get(path)
        assert answer.status_code == 404
        jsonschema.validate(answer.json(), schema)


@pytest.mark.parametrize("address", ["/api/studies/al%00pha", "/api/studies/alpha/compare?a=%00"])
def test_a_null_character_is_refused_in_the_documented_form(
    client: Client, document: dict[str, Any], address: str
) -> None:
    answer = client.get(address)
    assert answer.status_code == 400
    jsonschema.validate(answer.json(), document["components"]["schemas"]["Error"])
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert "400" in operation["responses"], path


def test_a_note_is_stored_and_returned(client: Client, document: dict[str, Any]) -> None:
    key = client.page("/api/studies/alpha/regressions").json()[-1]["id"]
    address = f"/api/studies/alpha/regressions/{key}/notes"
    answer = client.post(address, json={"status": "fixed", "text": "since the table"})
    assert answer.status_code == 201
    jsonschema.validate(answer.json(), document["components"]["schemas"]["Note"])
    data = next(each for each in client.get("/api/studies/alpha/regressions").json() if each["id"] == key)
    assert (data["status"], data["notes"][-1]["text"]) == ("fixed", "since the table")


@pytest.mark.parametrize(
    "expected", [{"status": "gone"}, {"text": "x"}, {"status": "new", "more": "x"}, {"status": 3}, [], "new"]
)
def test_a_note_that_says_nothing_known_is_refused(client: Client, expected: object) -> None:
    key = client.page("/api/studies/alpha/regressions").json()[0]["id"]
    assert client.post(f"/api/studies/alpha/regressions/{key}/notes", json=expected).status_code == 422
