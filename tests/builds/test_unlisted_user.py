"""A user whom the system does not list, without a home directory, as in many containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perftrail.builds.environment import build_environment
from perftrail.file_tree import expanded, user_cache, user_home
from perftrail.process.sandbox import view

UNLISTED = 1_234_567_890


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: UNLISTED)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


@pytest.mark.usefixtures("unlisted")
def test_builds_have_the_number_as_the_name_of_such_a_user(tmp_path: Path) -> None:
    environment = build_environment(temporary=tmp_path)
    assert environment["USER"] == environment["LOGNAME"] == str(UNLISTED)
    assert environment["HOME"] == "/"


@pytest.mark.usefixtures("unlisted")
def test_such_a_user_has_no_home_to_hide_and_nothing_is_expanded() -> None:
    assert view._own_homes() == ()
    assert (user_home(), user_cache()) == (Path("/"), Path("/.cache/perftrail"))
    assert expanded("~/programs") == Path("~/programs")
