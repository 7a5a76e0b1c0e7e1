"""Tables of pandas and polars share the memory of the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # it has no types of its own
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # as above
import pytest

import perftrail


@pytest.fixture(scope="module")
def samples(measured: Path) -> Any:
    return perftrail.open(measured).samples()


def addresses(array: Any) -> list[int | None]:
    """The addresses of an array's buffers, with those of its dictionary."""
    own = [None if buffer is None else buffer.address for buffer in array.buffers()]
    return own + addresses(array.dictionary) if pa.types.is_dictionary(array.type) else own


def test_pandas_shares_every_column(samples: Any) -> None:
    frame = samples.to_pandas(types_mapper=pd.ArrowDtype)
    for name in samples.column_names:
        [held] = frame[name].array.__arrow_array__().chunks
        assert addresses(held) == addresses(samples[name].chunk(0)), name


def test_polars_shares_every_column_of_numbers_times_and_truth_values(samples: Any) -> None:
    frame = pl.from_arrow(samples)
    assert isinstance(frame, pl.DataFrame)
    shared = [
        name
        for name in samples.column_names
        if addresses(frame[name].to_arrow()) == addresses(samples[name].chunk(0))
    ]
    assert shared == ["position", "size", "value", "invocation", "started", "quiet"]
    assert (
        frame["value"].to_numpy(allow_copy=False).ctypes.data
        == samples["value"].chunk(0).buffers()[1].address
    )


def test_polars_takes_a_table_by_the_capsule_that_others_take_too(samples: Any) -> None:
    assert hasattr(samples, "__arrow_c_stream__")
    frame = pl.DataFrame(samples)
    assert frame.schema["variant"] == pl.Categorical()
    assert frame.schema["started"] == pl.Datetime("us", "UTC")
    assert frame["variant"].unique(maintain_order=True).to_list() == ["near", "far"]


def test_a_copy_would_be_seen(samples: Any) -> None:
    copied = pa.array(samples["value"].to_pylist())
    assert addresses(copied) != addresses(samples["value"].chunk(0))
