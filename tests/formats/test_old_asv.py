"""Results of old versions of asv, whose files have no columns."""

from __future__ import annotations

import json

import pytest

from perftrail.errors import FormatError
from perftrail.formats.asv import read, recognises

OLD = {
    "results": {
        "suite.time_points": {
            "params": [["'a'", "'b'"]],
            "result": [0.5, None],
            "stats": [{"number": 1, "repeat": 2}, None],
        },
        "suite.time_plain": {"result": [0.25], "samples": [[0.25, 0.5]]},
        "suite.track_number": 7,
        "suite.time_failed": None,
    },
    "params": {"machine": "lab"},
    "commit_hash": "0" * 40,
    "date": 1_600_000_000_000,
    "version": 1,
}


def test_every_form_of_an_old_result_is_read() -> None:
    content = json.dumps(OLD).encode()
    assert recognises(content, "result.json")
    found = {each.benchmark: each for each in read(content)}
    assert {name: each.values for name, each in found.items()} == {
        "suite.time_points": (0.5,),
        "suite.time_plain": (0.25, 0.5),
        "suite.track_number": (7.0,),
    }
    assert found["suite.time_points"].point == (("arg", "a"),)
    assert found["suite.time_points"].summary
    assert {each.machine for each in found.values()} == {"lab"}


def test_a_version_that_is_not_known_is_refused() -> None:
    with pytest.raises(FormatError, match="version: is not 1 or 2"):
        read(json.dumps({**OLD, "version": 3}).encode())


def test_other_documents_with_results_are_not_those_of_asv() -> None:
    other = {"results": {"a": {"mean": 1}}, "commit_hash": "x"}
    assert not recognises(json.dumps(other).encode(), "result.json")
