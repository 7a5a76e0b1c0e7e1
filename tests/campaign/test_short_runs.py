"""A short run of each campaign finds nothing."""

from __future__ import annotations

import importlib

import pytest

from campaign.__main__ import PROMISES


@pytest.mark.slow("processor")
@pytest.mark.parametrize("name", ["outside_root", "sandbox_escapes"])
def test_a_short_run_has_no_losses(name: str) -> None:
    assert name in PROMISES
    found = importlib.import_module(f"campaign.{name}").run(3.0, 1)
    assert found.trials or found.notes
    assert found.losses == ()
