"""A study on four machines that share only a network: each in a separate network namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cluster.namespaces import NoNamespaces, search

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]


def test_four_machines_that_share_only_a_network_give_the_local_answer(tmp_path: Path) -> None:
    try:
        found = search(4, revisions=6, scratch=tmp_path)
    except NoNamespaces as why:
        pytest.skip(f"network namespaces cannot be measured here: {why}")
    assert found.addresses == ("10.77.0.2", "10.77.0.3", "10.77.0.4", "10.77.0.5")
    assert found.away["verdict"] == "found"
    assert found.agreed, str(found)
    assert found.measuring == ("machine-1",)
    assert all(number > 0 for number in found.sent.values())
