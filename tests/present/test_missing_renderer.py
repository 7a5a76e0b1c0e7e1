"""Without the extra `report`, everything that needs charts states how to install it, before any other work."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from perftrail.cli.commands.compare import command as compare
from perftrail.errors import UsageError
from perftrail.local_engine import LocalEngine
from perftrail.present.html_page import Drawings, require_renderer

REMEDY = r"pip install 'perftrail\[report\]'"


@pytest.fixture(autouse=True)
def _without_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)


def test_charts_are_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match=REMEDY):
        require_renderer()
    with pytest.raises(UsageError, match=REMEDY):
        Drawings(LocalEngine())


def test_compare_refuses_images_before_it_measures() -> None:
    done = CliRunner().invoke(compare, ["v1", "v2", "/no/such/study", "--also", "svg=gate.svg"])
    assert isinstance(done.exception, UsageError)
    assert "perftrail[report]" in str(done.exception)
