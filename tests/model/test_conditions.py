"""Flags of samples: when they are set, and their effect on estimates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.model.measurement import Conditions, Quiet, flags
from perftrail.model.noisy_samples import NOISE, FlaggedSample, select_samples, weight

MARKED = st.lists(
    st.builds(
        FlaggedSample,
        value=st.floats(0.1, 10.0),
        flags=st.lists(st.sampled_from((*NOISE, "output-cut")), max_size=2).map(tuple),
    )
)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(), ()),
        (Conditions(foreign_cpus=0.25), ()),
        (Conditions(foreign_cpus=0.26), ("busy",)),
        (Conditions(stolen_cpus=0.04), ()),
        (Conditions(stolen_cpus=0.06), ("stolen",)),
        (Conditions(throttled=1), ("throttled",)),
        (Conditions(throttled_seconds=0.01), ("throttled",)),
        (Conditions(swapped_pages=1), ("swapped",)),
        (Conditions(swapped_pages=1, memory_pressure=0.0), ()),
        (Conditions(swapped_pages=1, memory_pressure=0.1), ("swapped",)),
        (Conditions(suspended_seconds=0.0005), ()),
        (Conditions(suspended_seconds=3.0), ("suspended",)),
        (Conditions(foreign_cpus=2.0, stolen_cpus=1.0), ("busy", "stolen")),
    ],
)
def test_conditions_are_stated_in_words(conditions: Conditions, expected: tuple[str, ...]) -> None:
    assert flags(conditions, 0.25) == expected


def test_what_is_not_known_is_no_value() -> None:
    assert Conditions(foreign_cpus=0.5, io_pressure=0.0).values() == {"foreign_cpu": 0.5, "io_pressure": 0.0}


@given(MARKED, st.integers(1, 30))
def test_sifting_uses_all_or_exactly_the_unmarked(samples: list[FlaggedSample], least: int) -> None:
    every = tuple(sample.value for sample in samples)
    quiet = tuple(sample.value for sample in samples if weight(sample.flags))
    selected = select_samples(samples, least=least)
    if len(quiet) == len(every):
        assert (selected.values, selected.note) == (every, "")
    elif len(quiet) >= min(least, 10):
        assert selected.values == quiet
        assert selected.note.startswith("discarded ")
    else:
        assert selected.values == every
        assert selected.note.startswith("used all samples;")


def test_the_note_counts_noisy_samples_and_says_why() -> None:
    samples = [FlaggedSample(value=1.0)] * 13 + [FlaggedSample(value=2.0, flags=("busy", "output-cut"))] * 7
    assert select_samples(samples, least=5).note == "discarded 7 of 20 samples (busy)"


@pytest.mark.parametrize(("action", "seconds"), [("wait", 0.0), ("flag", 1.0), ("refuse", 1.0)])
def test_only_a_wait_takes_time(action: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=action):
        Quiet(action=action, seconds=seconds)  # type: ignore[arg-type] # any of the words
