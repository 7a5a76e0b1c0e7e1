"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "model.conditions",
        "model.expression",
        "model.parameters",
        "model.placeholders",
        "model.target",
        "model.tokens",
        "model.units",
        "model.wording",
        "studyfile.complaints",
        "studyfile.fields",
        "studyfile.locations",
        "studyfile.positions",
        "studyfile.values",
    ],
)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"perftrail.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
