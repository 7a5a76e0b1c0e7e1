"""The campaign of builds through daemons finds nothing in perftrail, and finds the defect that is planted again."""

from __future__ import annotations

import pytest

from campaign import daemons
from perftrail.builds import observing

pytestmark = pytest.mark.long


def test_each_way_to_ask_a_daemon_is_noticed() -> None:
    found = daemons.run(0.0, 1)
    assert found.losses == ()
    assert found.trials + len(found.notes) == 1 + len(daemons.WAYS)


def test_a_connection_that_counts_as_harmless_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: IPv6 is the network, as it was once assumed, and Java's IPv4 in IPv6 with it."""
    monkeypatch.setattr(daemons, "WAYS", {"IPv4 in IPv6": daemons.WAYS["IPv4 in IPv6"]})
    monkeypatch.setattr(observing, "_HARMLESS_FAMILIES", ("AF_NETLINK", "AF_INET6"))
    [loss] = daemons.run(0.0, 1).losses
    assert "IPv4 in IPv6: the daemon read another file" in loss
