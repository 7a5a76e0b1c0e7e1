"""Power failures lose nothing that was acknowledged; a store that did not sync would be found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign import power_failures
from tests.needs import needs

pytestmark = [
    pytest.mark.slow("processor"),
    needs("strace"),
]


def test_no_acknowledged_sample_is_lost_and_a_missing_sync_is_found(tmp_path: Path) -> None:
    record = power_failures.record_writer(tmp_path)
    assert len(record.acknowledged) == power_failures.SAMPLES
    found = power_failures.replay(record, tmp_path, seconds=4, seed=1)
    assert found.trials > 5
    assert found.losses == ()
    for entry in record.entries:
        if entry.file is not None:
            entry.file.syncs.clear()
    assert power_failures.replay(record, tmp_path, seconds=4, seed=1).losses
