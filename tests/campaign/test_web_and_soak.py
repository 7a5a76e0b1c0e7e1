"""The campaigns of the dashboard and of long runs find nothing in perftrail, and find planted defects."""

from __future__ import annotations

import pytest

from campaign import soak, web

pytestmark = pytest.mark.slow("processor")

SECONDS = 5.0


def test_the_dashboard_withstands_hostile_requests() -> None:
    found = web.run(SECONDS, seed=1)
    assert found.losses == ()
    assert found.trials > 500


def test_an_operation_that_answers_500_is_found() -> None:
    found = web.run(SECONDS, seed=1, program="tests.campaign.planted_error")
    assert any("/searches answered 500" in loss for loss in found.losses)


def test_a_short_soak_leaves_nothing_over() -> None:
    found = soak.run(SECONDS, seed=1)
    assert found.losses == ()
    assert found.trials > 20


def test_a_descriptor_that_stays_open_is_found() -> None:
    found = soak.run(SECONDS, seed=1, program="tests.campaign.planted_leak")
    assert any(loss.startswith("descriptors are not closed: run:") for loss in found.losses)
