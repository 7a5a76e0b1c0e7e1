"""Campaigns over the launcher's C code find nothing, in a short run."""

from __future__ import annotations

import pytest

from campaign import fuzz_launcher, static_analysis
from tests.needs import needs

pytestmark = pytest.mark.slow("processor")


def test_a_short_fuzzing_run_finds_no_crash() -> None:
    found = fuzz_launcher.run(5, seed=1)
    assert found.losses == ()
    assert found.trials > 1000


@needs("gcc")
def test_static_analysis_finds_nothing() -> None:
    found = static_analysis.run(60, seed=1)
    assert found.losses == ()
    assert found.notes[0].startswith("gcc -fanalyzer: ")
