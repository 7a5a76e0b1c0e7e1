"""The example of the docs, cell by cell: here, and in a real kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from perftrail.notebook.opened import SVG, TEXT, VEGA_LITE
from tests.notebook.example import blocks


@pytest.fixture(scope="module")
def outputs(measured: Path) -> list[Any]:
    """The outputs of each cell, in a notebook in the study's directory."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "source": text,
            "outputs": [],
            "execution_count": None,
        }
        for number, text in enumerate(blocks("python"))
    ]
    notebook = nbformat.reads(  # type: ignore[no-untyped-call] # it has no types of its own
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), as_version=4
    )
    # Not by ports, which would be looked for, let go and taken again.
    by_files = Config(KernelManager={"transport": "ipc", "ip": str(measured / "kernel")})
    NotebookClient(
        notebook,
        config=by_files,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(measured)}},
    ).execute()
    nbformat.validate(notebook)
    return [cell["outputs"][-1] for cell in notebook["cells"]]


def test_each_cell_runs(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(measured)
    names: dict[str, Any] = {}
    for text in blocks("python"):
        exec(text, names)


@pytest.mark.long
@pytest.mark.slow("processor")
def test_a_chart_is_drawn(outputs: list[Any]) -> None:
    data = outputs[0]["data"]
    assert set(data) == {VEGA_LITE, SVG, TEXT}
    assert data[SVG].startswith("<svg")
    assert len(json.dumps(data[VEGA_LITE])) > 1000


@pytest.mark.long
@pytest.mark.slow("processor")
def test_tables_are_shown_by_polars_and_pandas(outputs: list[Any]) -> None:
    estimates, quantiles, comparisons = (each["data"][TEXT] for each in outputs[1:])
    assert "shape: (8, 6)" in estimates
    assert "near" in quantiles
    assert "0.9" in quantiles
    assert "far" in comparisons
    assert "shape: (2, 7)" in comparisons
