"""Power failures lose nothing that was acknowledged; a store that did not sync would be found out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from campaign import power_failures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
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
