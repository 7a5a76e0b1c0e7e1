"""The examples in the docstrings of the model and of the study file's reader are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import perftrail

ROOT = Path(perftrail.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)
    for package in ("model", "studyfile")
    for file in (ROOT / package).rglob("*.py")
    if ">>> " in file.read_text(encoding="utf-8")
)


def test_examples_are_found() -> None:
    assert len(WITH_EXAMPLES) >= 10


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
